"""Tables and plots of the auction's measurements: python -m benchmarks.auction_report.

Reads benchmarks/results/<name>.jsonl and <cpu>.jsonl (the last row of each kind counts), prints Markdown tables and
draws docs/images/auction_*.svg.
"""

import argparse
from typing import Any

import numpy as np

from benchmarks.pages import save, table
from benchmarks.rows import read

FINISHES = ("auto", "auction", "paths")
SIZES = (500, 1108, 2458, 5451, 8117, 18000)
PAPER_SIZES = (500, 744, 1108, 1650, 2458, 3660, 5451, 8117, 12087, 18000)
# Milliseconds of the paper's own CUDA program (graph variant), measured on the same kind of machine (one H200, 16 Xeon
# cores) on the same weights; None: over 30 s, or not run.
PROGRAM: dict[tuple[float, str], tuple[str, list[float | None]]] = {
    (1.0, "epsilon 1"): ("paper's program", [39, 82, 212, 218, 106, 328]),
    (0.1, "epsilon 1"): ("paper's program", [104, 79, 387, 385, 470, 676]),
    (1.0, "exact"): ("paper's program, epsilon 1/(n+1)", [207, 456, 5600, 15950, 31910, None]),
    (0.1, "exact"): ("paper's program, epsilon 1/(n+1)", [241, 266, 2546, 14040, 3612, None]),
}
# The paper's tables 2 and 3 (GTX 960, means of three instances): milliseconds, then rounds, by PAPER_SIZES.
PAPER: dict[tuple[float, str], dict[str, tuple[list[float], list[float]]]] = {
    (1.0, "epsilon 1"): {
        "any order": (
            [85, 98, 65, 137, 148, 296, 207, 363, 452, 688],
            [3177, 3507, 1980, 4426, 4257, 8935, 4466, 7676, 7031, 7145],
        ),
        "deterministic": (
            [93, 112, 53, 144, 183, 355, 241, 371, 437, 781],
            [3071, 3737, 1378, 4353, 5170, 10067, 5199, 7244, 5592, 8186],
        ),
        "graph": (
            [74, 87, 58, 121, 124, 261, 173, 323, 369, 680],
            [3164, 3572, 2027, 4487, 4169, 9235, 4374, 8458, 5681, 8259],
        ),
        "CPU": (
            [21, 41, 51, 132, 254, 618, 838, 1784, 2886, 5541],
            [3071, 3737, 1378, 4353, 5170, 10067, 5199, 7244, 5592, 8186],
        ),
    },
    (0.1, "epsilon 1"): {
        "any order": (
            [117, 266, 320, 309, 335, 498, 609, 1376, 1400, 2229],
            [4372, 9935, 11521, 10452, 10241, 14966, 15996, 37771, 32083, 41502],
        ),
        "deterministic": (
            [129, 297, 333, 327, 367, 509, 694, 1358, 1548, 2220],
            [4364, 9941, 11397, 10308, 10676, 13846, 17505, 35732, 33686, 37677],
        ),
        "graph": (
            [101, 232, 287, 269, 291, 413, 496, 1087, 1137, 2022],
            [4372, 9922, 11580, 10529, 10541, 14502, 15703, 36962, 30132, 42905],
        ),
        "CPU": (
            [31, 94, 170, 288, 571, 1208, 2306, 5988, 9545, 18053],
            [4364, 9941, 11397, 10308, 10676, 13846, 17505, 35732, 33686, 37677],
        ),
    },
    (1.0, "1/(n+1)"): {
        "any order": (
            [333, 527, 257, 843, 2681, 14135],
            [12983, 19939, 8744, 30854, 98342, 497157],
        ),
        "CPU": ([67, 155, 185, 635, 2368, 17722], [12974, 19108, 8699, 32172, 99424, 502452]),
    },
    (0.1, "1/(n+1)"): {
        "any order": (
            [236, 1001, 1396, 1467, 2050, 3278, 5707],
            [8825, 39267, 50845, 51902, 71565, 110249, 177905],
        ),
        "CPU": (
            [54, 283, 565, 1000, 2318, 5597, 12748],
            [8774, 39119, 50865, 51203, 69787, 106652, 178896],
        ),
    },
}


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
