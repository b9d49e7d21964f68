"""Tables and plots of the dense assignment measurements: python -m benchmarks.lap_report [--name lap_h200].

Reads benchmarks/results/<name>.jsonl (the last row of each case counts), prints Markdown tables, draws
docs/images/lap_*.svg, and puts the tables in the place of those below the same sentences in the page --into names.
"""

import argparse
import contextlib
import io
import re
from pathlib import Path
from typing import Any

from benchmarks.instances import LAP_FAMILIES
from benchmarks.pages import cell, save, table
from benchmarks.rows import published, read

SIZES = (256, 512, 1024, 2048, 4096, 8192)
PARTS = ("sort", "reduce_columns", "bid", "grow", "bid_coarse", "grow_coarse", "bid_scaled", "grow_scaled")
Row = dict[str, Any]


def answers(name: str) -> dict[tuple[str, int], Row]:
    """The last row of each family and size whose answer was right; peers not run then keep their earlier times."""
    found: dict[tuple[str, int], Row] = {}
    for row in read(name):
        if not row.get("holds") or row.get("device") != "gpu":
            continue
        key = row["family"], row["n"]
        row["peers_ms"] = found.get(key, {}).get("peers_ms", {}) | row.get("peers_ms", {})
        found[key] = row
    return found


def others(family: str, n: int, row: Row) -> dict[str, float]:
    """Every peer's time: the CPU peers of the same run, and those measured earlier."""
    told = published("lap")["peers"].get(family, {}).get(str(n), {})
    earlier = {name: ms for name, ms in told.items() if ms is not None}
    return {**row.get("peers_ms", {}), **earlier}


def overview(found: dict[tuple[str, int], Row]) -> None:
    print("Milliseconds on the device, data already there; in brackets the ratio of the fastest peer to ours.\n")
    lines: list[list[Any]] = []
    for family in LAP_FAMILIES:
        line: list[Any] = [family]
        for n in SIZES:
            row = found.get((family, n))
            if row is None:
                line.append(None)
                continue
            rivals = [ms for name, ms in others(family, n, row).items() if not name.startswith("allot")]
            line.append(cell(row["ms"]) + (f" ({cell(min(rivals) / row['ms'])}x)" if rivals else ""))
        lines.append(line)
    table(["family", *map(str, SIZES)], lines)


def anatomy(found: dict[tuple[str, int], Row], n: int = 4096) -> None:
    print(f"What the time is made of at n = {n} (ms), and the counts behind it.\n")
    lines = []
    for family in LAP_FAMILIES:
        if (row := found.get((family, n))) is not None:
            parts = row["parts_ms"]
            bids, grown = (sum(ms for name, ms in parts.items() if name.startswith(part)) for part in ("bid", "grow"))
            counts = [row["bid_rounds"], row["n_begun"], row["phases"], row["rounds"], row["sweeps"]]
            per_round = 1e3 * grown / max(1, row["rounds"])
            lines.append([family, row["ms"], bids, grown, *counts, per_round, row["floor_ms"], row["certify_ms"]])
    head = (
        "family|total|auction|forest|auction rounds|rows left|phases|rounds|sweeps|us/round|floor of the sweeps|proof"
    )
    table(head.split("|"), lines)


def big(found: dict[tuple[str, int], Row]) -> None:
    rows = [row for (family, _), row in found.items() if family == "u drawn on the device"]
    if rows:
        print("The largest sizes (u, drawn on the device).\n")
        lines = [[r["n"], r["dtype"], r["ms"], r["rounds"], r["sweeps"], r["floor_ms"], r["certify_ms"]] for r in rows]
        table(["n", "type", "ms", "rounds", "sweeps", "floor of the sweeps", "proof"], lines)


def crossover(name: str) -> None:
    rows = {(r["family"], r["batch"], r["n"]): r for r in read(name) if r["holds"]}
    if not rows:
        return
    print("Whole calls, CPU / GPU (ms), inputs in page-locked memory, proof on the device included.\n")
    for singles in (True, False):
        cases = sorted({(f, b) for f, b, _ in rows if (b == 1) == singles})
        sizes = sorted({n for _, b, n in rows if (b == 1) == singles})
        lines: list[list[Any]] = []
        for family, batch in cases:
            line: list[Any] = [family if singles else f"{batch} x {family.removeprefix('batch ')}"]
            for n in sizes:
                row = rows.get((family, batch, n))
                line.append(f"{cell(row['cpu_ms'])} / {cell(row['gpu_ms'])}" if row else None)
            lines.append(line)
        table(["costs", *map(str, sizes)], lines)


def draw(found: dict[tuple[str, int], Row]) -> None:
    """Time over n beside the peers, and what a time is made of."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    families = ("u", "r1", "sqeuclid", "clustered")
    figure, axes = plt.subplots(1, len(families), figsize=(13, 3.6), sharey=True)
    for ax, family in zip(axes, families, strict=True):
        series: dict[str, list[tuple[int, float]]] = {}
        for n in SIZES:
            if (row := found.get((family, n))) is not None:
                series.setdefault("allot gpu", []).append((n, row["ms"]))
                for peer, ms in others(family, n, row).items():
                    series.setdefault(peer, []).append((n, ms))
        for peer, points in series.items():
            ours = peer == "allot gpu"
            ax.loglog(*zip(*points, strict=True), marker="o", ms=3, lw=2.5 if ours else 1, label=peer, zorder=ours)
        ax.set_title(family)
        ax.set_xlabel("n")
        ax.set_xticks(SIZES, [str(n) for n in SIZES], fontsize=7)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("ms")
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    save(figure, "lap_time")
    shown = [found[family, 4096] for family in LAP_FAMILIES if (family, 4096) in found]
    figure, ax = plt.subplots(figsize=(9, 3.6))
    left = [0.0] * len(shown)
    for part in PARTS:
        share = [row["parts_ms"].get(part, 0.0) / sum(row["parts_ms"].values()) for row in shown]
        ax.barh([row["family"] for row in shown], share, left=left, label=part.replace("_", " "))
        left = [a + b for a, b in zip(left, share, strict=True)]
    ax.invert_yaxis()
    ax.set_xlabel("share of the time, n = 4096")
    ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=7, frameon=False)
    figure.tight_layout()
    save(figure, "lap_parts")


def put_into(page: Path, printed: str) -> None:
    """Replace the tables below each printed sentence. Raises: AssertionError where the page lacks a sentence."""
    tables = r"\n\n(?:\|.*\n|\n(?=\|))+"
    text = page.read_text()
    for found in re.finditer(r"^[^|\n].*$" + tables, printed, re.MULTILINE):
        new, sentence = found[0], re.escape(found[0].splitlines()[0])
        text, count = re.subn(sentence + tables, new.replace("\\", r"\\"), text)
        assert count == 1, f"{page} has {count} tables below: {found[0].splitlines()[0]}"
    page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="lap_h200")
    parser.add_argument("--into", type=Path, help="page whose tables are replaced, as docs/benchmarks.md")
    arguments = parser.parse_args()
    found = answers(arguments.name)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        overview(found)
        anatomy(found)
        big(found)
        crossover(arguments.name.replace("lap", "lap_crossover"))
    print(out.getvalue())
    if arguments.into:
        put_into(arguments.into, out.getvalue())
    draw(found)


if __name__ == "__main__":
    main()
