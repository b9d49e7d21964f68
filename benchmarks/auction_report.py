"""Tables and plots of the auction's measurements: python -m benchmarks.auction_report.

Reads benchmarks/results/<name>.jsonl and <cpu>.jsonl (the last row of each kind counts), prints Markdown tables and
draws docs/images/auction_*.svg.
"""

import argparse
from typing import Any

import numpy as np

from benchmarks.pages import save, table
from benchmarks.rows import published, read

FINISHES = ("auto", "auction", "paths")
SIZES = (500, 1108, 2458, 5451, 8117, 18000)
PAPER_SIZES = (500, 744, 1108, 1650, 2458, 3660, 5451, 8117, 12087, 18000)
PROGRAM: dict[tuple[float, str], tuple[str, list[float | None]]] = {
    (run["density"], run["asked"]): (run["label"], run["ms"]) for run in published("auction_program")["runs"]
}
PAPER: dict[tuple[float, str], dict[str, tuple[list[float], list[float]]]] = {}
"""The paper's tables 2 and 3: milliseconds, then rounds, by PAPER_SIZES."""
for run in published("auction_paper")["runs"]:
    PAPER.setdefault((run["density"], run["asked"]), {})[run["variant"]] = run["ms"], run["rounds"]


def last(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any] | None:
    """The last row that has all `wanted` values and a certificate that holds."""
    found = [row for row in rows if row["holds"] and all(row.get(key) == value for key, value in wanted.items())]
    return found[-1] if found else None


def peers_of(rows: list[dict[str, Any]], n: int, density: float) -> dict[str, float]:
    """The peers' milliseconds, where their objective is ours."""
    ours, found = (last(rows, part=part, n=n, density=density, **more) for part, more in (
        ("targets", {"asked": "exact", "device": "gpu"}), ("peers", {})))  # fmt: skip
    if not found or not ours:
        return {}
    assert found["objective"] == ours["objective"], (n, density)
    peers: dict[str, float] = found["peers_ms"]
    return peers


def targets(rows: list[dict[str, Any]]) -> None:
    for (density, asked), (program, program_ms) in PROGRAM.items():
        print(f"{'Dense' if density == 1 else '10% sparse'}, {asked}, ms:\n")
        first, *others = (asked,) if asked == "exact" else [f"{asked}, {finish}" for finish in FINISHES]
        found = [last(rows, part="targets", n=n, density=density, asked=first, device="gpu") for n in SIZES]
        lines: list[list[Any]] = [[f"allot, GPU, {first}", *(row and row["ms"] for row in found)]]
        if asked == "exact":
            beside = [peers_of(rows, n, density) for n in SIZES]
            for name in dict.fromkeys(name for peer in beside for name in peer):
                lines.append([name, *(peer.get(name) for peer in beside)])
        else:
            lines.append(["true gap", *(row and row["gap_abs"] for row in found)])
        for other in others:
            found = [last(rows, part="targets", n=n, density=density, asked=other, device="gpu") for n in SIZES]
            lines.append([f"allot, GPU, {other}", *(row and row["ms"] for row in found)])
            lines.append(["true gap", *(row and row["gap_abs"] for row in found)])
        table(["", *map(str, SIZES)], [*lines, [program, *program_ms]])


def paper(rows: list[dict[str, Any]], cpu: list[dict[str, Any]]) -> None:
    for (density, asked), columns in PAPER.items():
        name = f"{'dense' if density == 1 else '10% sparse'}, {asked}"
        for k, value in enumerate(("ms", "rounds")):
            head, lines = [f"{name}, {value}"], []
            small = {"any order": "deterministic"} if asked != "epsilon 1" else {}  # the paper's is any order
            head += [f"paper, {variant}" for variant in columns]
            head += [f"allot, {small.get(variant, variant)}" for variant in columns]
            for at, n in enumerate(PAPER_SIZES[: len(columns["CPU"][0])]):
                ours: list[Any] = []
                for variant in columns:
                    wanted = {"part": "paper", "n": n, "density": density, "asked": asked}
                    measured = variant if asked == "epsilon 1" and variant != "CPU" else "deterministic"
                    row = last(cpu if variant == "CPU" else rows, **wanted, variant=measured)
                    ours.append(row and row[value])
                lines.append([str(n), *(column[k][at] for column in columns.values()), *ours])
            table(head, lines)


def plots(rows: list[dict[str, Any]]) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 9
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, density in zip(axes, (1.0, 0.1), strict=True):
        for asked, style in (("exact", "o-"), ("epsilon 1", "s--")):
            measured = asked if asked == "exact" else f"{asked}, auto"
            wanted = {"part": "targets", "density": density, "asked": measured, "device": "gpu"}
            found = [(n, last(rows, n=n, **wanted)) for n in PAPER_SIZES]
            points = [(n, row["ms"]) for n, row in found if row]
            axis.plot(*zip(*points, strict=True), style, color="C0", label=f"allot, H200, {asked}")
            name, values = PROGRAM[density, asked]
            known = [(n, v) for n, v in zip(SIZES, values, strict=True) if v]
            axis.plot(*zip(*known, strict=True), style, color="C1", alpha=0.7, label=f"{name.split(',')[0]}, {asked}")
        beside = {n: peers_of(rows, n, density) for n in PAPER_SIZES}
        for k, name in enumerate(dict.fromkeys(name for peer in beside.values() for name in peer)):
            known = [(n, peer[name]) for n, peer in beside.items() if name in peer]
            axis.plot(*zip(*known, strict=True), "o-", color=f"C{k + 2}", alpha=0.7, label=f"{name}, exact")
        axis.set(xscale="log", yscale="log", xlabel="n", title="dense" if density == 1 else "10% sparse")
        axis.legend(fontsize=6)
    axes[0].set_ylabel("ms")
    save(figure, "auction_time")
    figure, axis = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    for seed in range(3):
        if row := last(rows, part="bidders", seed=seed):
            axis.plot(range(1, len(row["first_100"]) + 1), row["first_100"], label=f"instance {seed + 1}")
    axis.set(yscale="log", xlabel="round", ylabel="bidders", title="n = 1108, dense, epsilon 1")
    axis.legend()
    save(figure, "auction_bidders")
    figure, axis = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    given = {row["asked_epsilon"] for row in rows if row["part"] == "epsilon" and row["asked_epsilon"]}
    epsilons: list[float] = sorted(given)
    if epsilons:
        at: list[dict[str, Any]] = [last(rows, part="epsilon", asked_epsilon=value) or {} for value in epsilons]
        axis.plot(epsilons, [row.get("rounds", np.nan) for row in at], "o-", label="rounds")
        axis.plot(epsilons, [max(row.get("gap_abs", 0), 0.5) for row in at], "s--", label="true gap (0 drawn at 0.5)")
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title="n = 2458, dense")
        axis.legend()
    save(figure, "auction_epsilon")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="auction_h200")
    parser.add_argument("--cpu", default="auction_cpu", help="rows of the CPU twin, for the paper's tables")
    given = parser.parse_args()
    rows = read(given.name)
    targets(rows)
    paper(rows, read(given.cpu))
    plots(rows)


if __name__ == "__main__":
    main()
