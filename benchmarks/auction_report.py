"""Tables and plots of the auction's measurements: python -m benchmarks.auction_report [--name auction_h200].

Reads benchmarks/results/<name>.jsonl (the last row of each kind counts), prints Markdown tables and draws
docs/images/auction_*.svg.
"""

import argparse
import json
from typing import Any

from benchmarks.rows import RESULTS

IMAGES = RESULTS.parent.parent / "docs" / "images"
SIZES = (500, 1108, 2458, 5451, 8117, 18000)
# Milliseconds of the paper's own CUDA program (graph variant) and of exact solvers, measured on the same kind of
# machine (one H200, 16 Xeon cores) on the same weights; None: over 30 s, or not run.
PEERS: dict[tuple[float, str], dict[str, list[float | None]]] = {
    (1.0, "epsilon 1"): {"paper's program": [39, 82, 212, 218, 106, 328]},
    (0.1, "epsilon 1"): {"paper's program": [104, 79, 387, 385, 470, 676]},
    (1.0, "exact"): {
        "paper's program, epsilon 1/(n+1)": [207, 456, 5600, 15950, 31910, None],
        "lapx": [1.6, 11, 82, 620, 1415, 11860],
        "SciPy": [8.8, 59, 442, 2343, 5386, 41830],
    },
    (0.1, "exact"): {
        "paper's program, epsilon 1/(n+1)": [241, 266, 2546, 14040, 3612, None],
        "SciPy csgraph": [1.8, 8.9, 51, 511, 762, 4371],
        "OR-Tools": [3.3, 16, 86, 429, 1036, None],
    },
}


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]


def last(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any] | None:
    """The last row that has all `wanted` values and a certificate that holds."""
    found = [row for row in rows if row["holds"] and all(row.get(key) == value for key, value in wanted.items())]
    return found[-1] if found else None


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head: list[str], lines: list[list[Any]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(part if isinstance(part, str) else _cell(part) for part in line) + " |")
    print()


def targets(rows: list[dict[str, Any]]) -> None:
    for (density, asked), peers in PEERS.items():
        print(f"{'Dense' if density == 1 else '10% sparse'}, {asked}, ms:\n")
        found = [last(rows, part="targets", n=n, density=density, asked=asked, device="gpu") for n in SIZES]
        lines = [["allot, GPU", *(row and row["ms"] for row in found)]]
        if asked == "exact":
            ours = [row.get("peers_ms", {}) if row else {} for row in found]
            for name in dict.fromkeys(name for peer in ours for name in peer):
                lines.append([f"{name}, this run", *(peer.get(name) for peer in ours)])
        else:
            lines.append(["its true gap", *(row and row["gap_abs"] for row in found)])
        lines += [[name, *values] for name, values in peers.items()]
        table(["", *map(str, SIZES)], lines)


def paper(rows: list[dict[str, Any]]) -> None:
    for value, unit in (("ms", "ms"), ("rounds", "rounds")):
        lines = []
        for density in (1.0, 0.1):
            for variant, asked in (
                ("deterministic", "epsilon 1"),
                ("any order", "epsilon 1"),
                ("graph", "epsilon 1"),
                ("deterministic", "1/(n+1)"),
            ):
                found = [
                    last(rows, part="paper", n=n, density=density, variant=variant, asked=asked, device="gpu")
                    for n in SIZES
                ]
                name = f"{'dense' if density == 1 else 'sparse'}, {variant}, {asked}"
                lines.append([name, *(row and row[value] for row in found)])
        print(f"Tables 2 and 3 of the paper, {unit}:\n")
        table(["", *map(str, SIZES)], lines)


def plots(rows: list[dict[str, Any]]) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams |= {"svg.hashsalt": "allot", "font.size": 9}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, density in zip(axes, (1.0, 0.1), strict=True):
        for asked, style in (("exact", "o-"), ("epsilon 1", "s--")):
            found = [(n, last(rows, part="targets", n=n, density=density, asked=asked, device="gpu")) for n in SIZES]
            points = [(n, row["ms"]) for n, row in found if row]
            axis.plot(*zip(*points, strict=True), style, color="C0", label=f"allot, H200, {asked}")
            for k, (name, values) in enumerate(PEERS[density, asked].items()):
                known = [(n, v) for n, v in zip(SIZES, values, strict=True) if v]
                axis.plot(*zip(*known, strict=True), style, color=f"C{k + 1}", alpha=0.7, label=f"{name}, {asked}")
        axis.set(xscale="log", yscale="log", xlabel="n", title="dense" if density == 1 else "10% sparse")
        axis.legend(fontsize=6)
    axes[0].set_ylabel("ms")
    _save(figure, "auction_time")
    figure, axis = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    for seed in range(3):
        if row := last(rows, part="bidders", seed=seed):
            axis.plot(range(1, len(row["first_100"]) + 1), row["first_100"], label=f"instance {seed + 1}")
    axis.set(yscale="log", xlabel="round", ylabel="bidders", title="n = 1108, dense, epsilon 1")
    axis.legend()
    _save(figure, "auction_bidders")
    figure, axis = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    values = sorted({row["asked_epsilon"] for row in rows if row["part"] == "epsilon" and row["asked_epsilon"]})
    if values:
        found = [last(rows, part="epsilon", asked_epsilon=value) or {} for value in values]
        axis.plot(values, [row.get("rounds") for row in found], "o-", label="rounds")
        axis.plot(values, [max(row.get("gap_abs", 0), 0.5) for row in found], "s--", label="true gap (0 drawn at 0.5)")
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title="n = 2458, dense")
        axis.legend()
    _save(figure, "auction_epsilon")


def _save(figure: Any, name: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="auction_h200")
    rows = read(parser.parse_args().name)
    targets(rows)
    paper(rows)
    plots(rows)


if __name__ == "__main__":
    main()
