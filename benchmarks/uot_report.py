"""Tables and plots of the transport measurements: python -m benchmarks.uot_report.

Reads benchmarks/results/uot_h200.jsonl (the last row of each case counts), uot.jsonl, uot_peers_h200.jsonl and
uot_error.jsonl, writes the tables between the `rows` marks of docs/benchmarks/uot.md, and draws docs/images/uot_*.svg.
"""

import re
from collections.abc import Callable
from typing import Any

from benchmarks.pages import IMAGES, save
from benchmarks.rows import read

PAGE = IMAGES.parent / "benchmarks" / "uot.md"


def rows(bench: str, name: str = "uot_h200") -> list[dict[str, Any]]:
    return [row for row in read(name) if row["bench"] == bench]


def last(bench: str, *key: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The last row of each case, in order of the case."""
    found = {tuple(row.get(k) for k in key): row for row in rows(bench)}
    return {case: found[case] for case in sorted(found)}


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines))


def sweeps_table() -> str:
    found = last("sweeps", "method", "storage", "n")
    kinds = [("fused", "float32"), ("fused", "float16"), ("log", "float32")]
    lines = []
    for n in sorted({case[2] for case in found}):
        line = [str(n)]
        for kind in kinds:
            row = found.get((*kind, n), {})
            share, more = row.get("bandwidth_share"), row.get("us_accelerated")
            line += [_number(row.get("us_per_sweep")), "" if share is None else f"{100 * share:.0f}", _number(more)]
        memory = found.get(("fused", "float32", n), {}).get("memory_over_input")
        lines.append([*line, "" if memory is None or memory < 0 else f"{100 * memory:.2f}"])
    head = [f"{m} {s}, {what}" for m, s in kinds for what in ("us", "% of read", "us accelerated")]
    return _table(["n", *head, "% memory"], lines)


def gap_table() -> str:
    lines = []
    for (n, reg, reg_m), row in last("gap", "n", "reg", "reg_m").items():
        pot = f"{row['pot_sweeps']} x {row['pot_ms_per_sweep']:.2f}"
        ours = [str(row["sweeps"]), _number(row["ms"]), f"{row['gap_float64']:.1e}", pot, _number(row["times_faster"])]
        lines.append([str(n), f"{reg:g}, {reg_m:g}", *ours])
    return _table(["n", "reg, reg_m", "sweeps", "ms", "gap", "POT: iterations x ms", "times faster"], lines)


def batch_table() -> str:
    lines = []
    for (n, size), row in last("batch", "n", "batch").items():
        fixed = [r for r in rows("batch") if (r["n"], r["batch"]) == (n, size) and r["tolerance"] < 0][-1]
        lines.append([f"{size} x {n} x {n}", _number(fixed["ms"]), f"{row['sweeps']:.1f}, {_number(row['ms'])}"])
    return _table(["batch", "100 sweeps, ms", "to a gap of 1e-6, each by itself: sweeps, ms"], lines)


def points_table() -> str:
    found = last("points", "n", "d").items()
    lines = [[str(n), str(d), _number(row["us_per_sweep"] and row["us_per_sweep"] / 1e3)] for (n, d), row in found]
    return _table(["n", "d", "ms a sweep"], lines)


def gpus_table() -> str:
    lines = []
    for (n, gpus), row in last("multi-gpu", "n", "gpus").items():
        ms, efficiency = row["ms_per_sweep"], row["efficiency"]
        lines.append([str(n), str(gpus), _number(ms), "" if efficiency is None else f"{100 * efficiency:.0f}"])
    return _table(["n", "GPUs", "ms a sweep", "efficiency, %"], lines) if lines else "Not measured yet."


def _beside(kind: str, name: str) -> dict[str, dict[tuple[Any, ...], dict[str, Any]]]:
    """Last rows of one kind for the sizes that a peer was measured at: by method, by case."""
    found = [row for row in read(name) if row.get("kind") == kind]
    sizes = {row["n"] for row in found if "compared" in row}
    methods: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
    for row in found:
        if row["n"] in sizes and row["method"] != "read":
            methods.setdefault(row["method"], {})[row["n"], row.get("reg"), row.get("reg_m")] = row
    return methods


def _cases(methods: dict[str, dict[tuple[Any, ...], dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return sorted({case for of in methods.values() for case in of}, key=lambda case: (case[1:] != (None, None), case))


def peer_iterations_table(name: str) -> str:
    """Milliseconds of one iteration and, of a peer, how many of ours that is."""
    methods = _beside("iteration", name)
    cases = _cases(methods)
    lines = []
    for method, of in methods.items():
        line = [method]
        for case in cases:
            row = of.get(case, {})
            times = [_number(row.get(f"times_{ours}")) for ours in ("fused", "log")]
            line += [_number(row.get("ms")), ", ".join(times) if "compared" in row else ""]
        lines.append([*line, f"{max(row['plan_error'] for row in of.values()):.1e}"])
    head = [cell for n, *_ in cases for cell in (f"{n}: ms", "times fused, log")]
    return _table(["method", *head, "plan error"], lines) if lines else "Not measured yet."


def peer_gaps_table(name: str) -> str:
    """Milliseconds to a gap of 1e-6 and how many times ours that is, or the gap that was left."""
    methods = _beside("gap", name)
    cases = _cases(methods)
    lines = []
    for method, of in methods.items():
        line = [method]
        for case in cases:
            row = of.get(case)
            if row is None:
                line.append("")
            elif row["ms"] is None:
                line.append(f"gap {row['gap_rel']:.0e}" if row["gap_rel"] is not None else "")
            else:
                line.append(f"{_number(row['ms'])} ({_number(row['times_allot'])})")
        lines.append(line)
    head = [f"{n}: {reg:g}, {reg_m:g}" for n, reg, reg_m in cases]
    return _table(["method", *head], lines) if lines else "Not measured yet."


TABLES: dict[str, Callable[[], str]] = {
    "sweeps": sweeps_table,
    "gap": gap_table,
    "batch": batch_table,
    "points": points_table,
    "multi-gpu": gpus_table,
    "peers, iteration": lambda: peer_iterations_table("uot"),
    "peers, gap": lambda: peer_gaps_table("uot"),
    "peers, iteration, GPU": lambda: peer_iterations_table("uot_peers_h200"),
    "peers, gap, GPU": lambda: peer_gaps_table("uot_peers_h200"),
}


def write_tables() -> None:
    text = PAGE.read_text()
    for name, table in TABLES.items():
        mark = re.compile(rf"(<!-- rows: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        for found in reversed(list(mark.finditer(text))):
            text = f"{text[: found.end(1)]}{table()}\n{text[found.start(2) :]}"
    PAGE.write_text(text)


def bandwidth(pyplot: Any) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    for method, storage in (("fused", "float32"), ("fused", "float16"), ("log", "float32")):
        of = {r["n"]: r["bandwidth_share"] for r in rows("sweeps") if (r["method"], r["storage"]) == (method, storage)}
        axes.plot(sorted(of), [100 * of[n] for n in sorted(of)], marker="o", label=f"{method} {storage}")
    axes.set(xlabel="n", ylabel="% of 4.6 TB/s, one read an iteration", ylim=(0, 100), xscale="log")
    axes.set_xticks([1024, 2048, 4096, 8192, 20480], ["1024", "2048", "4096", "8192", "20480"])
    axes.legend()
    figure.tight_layout()
    save(figure, "uot_bandwidth")


def gap(pyplot: Any) -> None:
    found = {(r["n"], r["reg"], r["reg_m"]): r for r in rows("gap")}
    cases = sorted(found)
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    places = range(len(cases))
    axes.bar([p - 0.2 for p in places], [found[c]["pot_ms_per_sweep"] * found[c]["pot_sweeps"] for c in cases], 0.4)
    axes.bar([p + 0.2 for p in places], [found[c]["ms"] for c in cases], 0.4)
    axes.set(yscale="log", ylabel="ms to a relative gap of 1e-6")
    axes.set_xticks(list(places), [f"n {n}\nreg {reg}, reg_m {reg_m:g}" for n, reg, reg_m in cases])
    axes.legend(["POT, torch", "allot, log"])
    figure.tight_layout()
    save(figure, "uot_gap")


def error(pyplot: Any) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    found = rows("error", "uot_error")
    for method in dict.fromkeys(row["method"] for row in found):
        of = {row["reg"]: row["plan_error"] for row in found if row["method"] == method}
        axes.plot(sorted(of), [max(of[reg] or 10.0, 1e-12) for reg in sorted(of)], marker="o", label=method)
    axes.set(xscale="log", yscale="log", xlabel="reg", ylabel="L1 error of the plan / mass", ylim=(1e-11, 20))
    axes.legend(fontsize=8)
    figure.tight_layout()
    save(figure, "uot_error")


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    write_tables()
    bandwidth(pyplot)
    gap(pyplot)
    error(pyplot)


if __name__ == "__main__":
    main()
