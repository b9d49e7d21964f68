"""The auction beside its peers, the paper's program and the paper's own tables: rows whose certificate held."""

from functools import partial
from typing import Any

from benchmarks.report.page import Plots, Table, Tables
from benchmarks.rows import published, read

FINISHES = {"auto": "auto", "auction": "rounds alone", "paths": "on to the optimum"}
SIZES = (500, 1108, 2458, 5451, 8117, 18000)
PAPER_SIZES = (500, 744, 1108, 1650, 2458, 3660, 5451, 8117, 12087, 18000)
DENSITIES = {1.0: "dense", 0.1: "10% sparse"}
FAMILIES = {
    "constant": "constant",
    "ties 0..0.1 n": "uniform integers 0 to 409",
    "uniform float64": "uniform float64",
    "rectangular n x 1.1 n": "n x 1.1 n",
    "20 kinds of rows": "20 kinds of rows",
    "20 kinds of columns": "20 kinds of columns",
    "20 kinds of both": "20 kinds of both",
    "product, n <= 512": "product b = i j, n = 512",
    "sqeuclidean matrix": "squared distances in the plane: matrix",
    "points sqeuclidean": "squared distances in the plane: points",
    "points, 48 neighbours": "squared distances in the plane: 48 nearest",
    "infeasible": "no assignment (8 edges a row, Hall violator of n / 4 rows)",
}
STARTS = {"nothing": "from nothing", "prices": "from old prices", "answer": "from the old prices and assignment"}
Rows = list[dict[str, Any]]


def last(rows: Rows, **wanted: Any) -> dict[str, Any] | None:
    """The last row that has all `wanted` values and a certificate that holds."""
    found = [row for row in rows if row["holds"] and all(row.get(key) == value for key, value in wanted.items())]
    return found[-1] if found else None


def times(rows: Rows, what: str = "ms", **wanted: Any) -> list[Any]:
    """One figure by SIZES."""
    found = [last(rows, part="targets", device="gpu", n=n, **wanted) for n in SIZES]
    return [row and row[what] for row in found]


def program(density: float, asked: str) -> tuple[str, list[float | None]]:
    """The paper's own program: its label and its milliseconds by SIZES."""
    (run,) = (r for r in published("auction_program")["runs"] if (r["density"], r["asked"]) == (density, asked))
    return run["label"], [*run["ms"], *[None] * (len(SIZES) - len(run["ms"]))]


def peers_of(rows: Rows, n: int, density: float) -> dict[str, float]:
    """The peers' milliseconds, where their objective is ours. Raises: AssertionError where it is another."""
    ours = last(rows, part="targets", n=n, density=density, asked="exact", device="gpu")
    found = last(rows, part="peers", n=n, density=density)
    if not found or not ours:
        return {}
    assert found["objective"] == ours["objective"], (n, density)
    peers: dict[str, float] = found["peers_ms"]
    return peers


def exact(density: float) -> Table:
    """The optimum, beside every peer."""
    rows = read("auction_h200")
    beside = [peers_of(rows, n, density) for n in SIZES]
    label, theirs = program(density, "exact")
    lines: list[list[Any]] = [["**allot, GPU**", *times(rows, density=density, asked="exact")]]
    for name in dict.fromkeys(name for peers in beside for name in peers):
        lines.append([name, *(peers.get(name) for peers in beside)])
    return Table([DENSITIES[density], *map(str, SIZES)], [*lines, [label, *theirs]])


def within() -> Table:
    """Epsilon 1, by each finish, with the gap that was left."""
    rows, lines = read("auction_h200"), list[list[Any]]()
    for density, name in DENSITIES.items():
        for finish, told in FINISHES.items():
            asked: dict[str, Any] = {"density": density, "asked": f"epsilon 1, {finish}"}
            lines.append([f"{name}: {told}", *times(rows, **asked)])
            lines.append(["true gap", *times(rows, "gap_abs", **asked)])
        label, theirs = program(density, "epsilon 1")
        lines.append([label, *theirs])
    return Table(["", *map(str, SIZES)], lines)


def in_short(asked: str, beside: str) -> Table:
    """Ours and the fastest peer, or ours and the paper's program."""
    rows, lines = read("auction_h200"), list[list[Any]]()
    for density, name in DENSITIES.items():
        if beside == "peers":
            theirs = [min(peers_of(rows, n, density).values(), default=None) for n in SIZES]
            lines += [[f"{name}: allot", *times(rows, density=density, asked="exact")], [f"{name}: fastest peer"]]
        else:
            theirs = program(density, asked)[1]
            lines += [[f"{name}: allot", *times(rows, density=density, asked="epsilon 1, auto")]]
            lines += [[f"{name}: paper's program"]]
        lines[-1] += theirs
    return Table([f"{asked}, n", *map(str, SIZES)], lines)


def paper(density: float, asked: str, value: str) -> Table:
    """The paper's tables 2 and 3, milliseconds or rounds, with our columns."""
    columns = {
        run["variant"]: run[value]
        for run in published("auction_paper")["runs"]
        if (run["density"], run["asked"]) == (density, asked)
    }
    ours = {"CPU": read("auction_cpu")}
    on_gpu, lines = read("auction_h200"), list[list[Any]]()
    for at, n in enumerate(PAPER_SIZES[: len(columns["CPU"])]):
        line: list[Any] = [str(n), *(column[at] for column in columns.values())]
        for variant in columns:
            measured = variant if asked == "epsilon 1" and variant != "CPU" else "deterministic"
            wanted = {"part": "paper", "n": n, "density": density, "asked": asked, "variant": measured}
            row = last(ours.get(variant, on_gpu), **wanted)
            line.append(row and row[value])
        lines.append(line)
    alike = {} if asked == "epsilon 1" else {"any order": "deterministic"}
    head = [f"paper, {variant}" for variant in columns] + [f"allot, {alike.get(name, name)}" for name in columns]
    return Table([f"{DENSITIES[density]}, {asked}, {value}", *head], lines)


def against_epsilon() -> Table:
    """Rounds, time and gap of rounds alone."""
    rows = read("auction_h200")
    asked = sorted({row["asked_epsilon"] for row in rows if row["part"] == "epsilon" and row["asked_epsilon"]})
    found = [last(rows, part="epsilon", asked_epsilon=value) or {} for value in reversed(asked)]
    names = {"rounds": "rounds", "ms": "ms", "gap_abs": "true gap"}
    lines = [[told, *(row.get(name) for row in found)] for name, told in names.items()]
    return Table(["epsilon", *(f"{value:.4g}" for value in reversed(asked))], lines)


def families() -> Table:
    """The exact solve of other families."""
    found = {row["family"]: row for row in read("auction_h200") if row["part"] == "families" and row["holds"]}
    lines = [[told, found[name]["ms"], found[name]["forests"]] for name, told in FAMILIES.items()]
    return Table(["family", "ms", "forests"], lines)


def warm() -> Table:
    """Solving again after some weights changed."""
    lines, shares = list[list[Any]](), list[float]()
    for device, name in (("cpu", "auction_cpu"), ("gpu", "auction_h200")):
        rows = [row for row in read(name) if row["part"] == "warm" and row["changed"]]
        shares = sorted({row["changed"] for row in rows})
        for start in dict.fromkeys(row["start"] for row in rows):
            found = [last(rows, changed=share, start=start) for share in shares]
            told = f"{device.upper()}, {STARTS.get(start, start)}"
            lines.append([told, *(row and row["ms"] for row in found)])
    return Table(["changed", *(f"{100 * share:g}%" for share in shares)], lines)


def on_cpu() -> Table:
    """Our time over that of the fastest peer of the same process."""
    rows, lines = read("auction_cpu"), list[list[Any]]()
    sizes = [n for n in PAPER_SIZES if last(rows, part="targets", n=n, asked="exact")]
    for density, name in DENSITIES.items():
        found = [last(rows, part="targets", n=n, density=density, asked="exact") for n in sizes]
        lines.append([name, *(row and row.get("ratio_to_best") for row in found)])
    return Table(["", *map(str, sizes)], lines)


def sparse_on_cpu() -> Table:
    """Sparse graphs on one core: our milliseconds, and the peers' over those of our solve."""
    found = {(row["family"], row["n"], row["edges"]): row for row in read("sparse_cpu") if row["holds"]}
    lines = list[list[Any]]()
    for (family, n, edges), row in found.items():
        assert not row["peers_wrong"], (family, n)
        ratios = [row["peers_over_solve"].get(name) for name in ("or-tools", "csgraph")]
        lines.append([family, f"{n:,}", f"{edges:,}", row["cpu_ms"]["solve"], row["cpu_ms"]["proved"], *ratios])
    return Table(["graph", "rows", "edges", "solve, ms", "proved, ms", "OR-Tools", "csgraph"], lines)


def time(pyplot: Any) -> Any:
    """Time against n, beside the peers and the paper's program."""
    rows = read("auction_h200")
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, density in zip(axes, DENSITIES, strict=True):
        for asked, style in (("exact", "o-"), ("epsilon 1", "s--")):
            wanted = {"part": "targets", "density": density, "device": "gpu"}
            wanted["asked"] = asked if asked == "exact" else f"{asked}, auto"
            found = [(n, last(rows, n=n, **wanted)) for n in PAPER_SIZES]
            points = [(n, row["ms"]) for n, row in found if row]
            axis.plot(*zip(*points, strict=True), style, color="C0", label=f"allot, H200, {asked}")
            name, values = program(density, asked)
            known = [(n, ms) for n, ms in zip(SIZES, values, strict=True) if ms]
            axis.plot(*zip(*known, strict=True), style, color="C1", alpha=0.7, label=f"{name.split(',')[0]}, {asked}")
        beside = {n: peers_of(rows, n, density) for n in PAPER_SIZES}
        for k, name in enumerate(dict.fromkeys(name for peers in beside.values() for name in peers)):
            known = [(n, peers[name]) for n, peers in beside.items() if name in peers]
            axis.plot(*zip(*known, strict=True), "o-", color=f"C{k + 2}", alpha=0.7, label=f"{name}, exact")
        axis.set(xscale="log", yscale="log", xlabel="n", title=DENSITIES[density])
        axis.legend(fontsize=6)
    axes[0].set_ylabel("ms")
    return figure


def bidders(pyplot: Any) -> Any:
    """Bidders of the first 100 rounds."""
    figure, axis = pyplot.subplots(figsize=(4.5, 3.2), layout="constrained")
    for seed in range(3):
        if row := last(read("auction_h200"), part="bidders", seed=seed):
            axis.plot(range(1, len(row["first_100"]) + 1), row["first_100"], label=f"instance {seed + 1}")
    axis.set(yscale="log", xlabel="round", ylabel="bidders", title="n = 1108, dense, epsilon 1")
    axis.legend()
    return figure


def epsilon(pyplot: Any) -> Any:
    """Rounds and gap against epsilon."""
    rows = [row for row in read("auction_h200") if row["part"] == "epsilon" and row["asked_epsilon"]]
    found = sorted({row["asked_epsilon"]: row for row in rows}.items())
    figure, axis = pyplot.subplots(figsize=(4.5, 3.2), layout="constrained")
    values = [value for value, _ in found]
    axis.plot(values, [row["rounds"] for _, row in found], "o-", label="rounds")
    axis.plot(values, [max(row["gap_abs"], 0.5) for _, row in found], "s--", label="true gap (0 drawn at 0.5)")
    axis.set(xscale="log", yscale="log", xlabel="epsilon", title="n = 2458, dense")
    axis.legend()
    return figure


TABLES: Tables = {
    "auction, exact": lambda: in_short("exact", "peers"),
    "auction, epsilon 1": lambda: in_short("epsilon 1", "program"),
    "auction, within epsilon": within,
    "auction, against epsilon": against_epsilon,
    "auction, families": families,
    "auction, warm": warm,
    "auction, on the CPU": on_cpu,
    "auction, sparse on the CPU": sparse_on_cpu,
    **{f"auction, exact, {name}": partial(exact, density) for density, name in DENSITIES.items()},
    **{
        f"auction, paper, {name}, {asked}, {value}": partial(paper, density, asked, value)
        for density, name in DENSITIES.items()
        for asked in ("epsilon 1", "1/(n+1)")
        for value in ("ms", "rounds")
    },
}
PLOTS: Plots = {"auction_time": time, "auction_bidders": bidders, "auction_epsilon": epsilon}
