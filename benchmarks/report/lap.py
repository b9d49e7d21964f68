"""Linear assignment: the last row of each family and size whose answer was right, beside the peers."""

from typing import Any

from benchmarks.instances import LAP_FAMILIES
from benchmarks.report.page import Plots, Table, Tables, cell
from benchmarks.rows import published, read

SIZES = (256, 512, 1024, 2048, 4096, 8192)
ANATOMY_N = 4096
PARTS = ("sort", "reduce_columns", "bid", "grow", "bid_coarse", "grow_coarse", "bid_scaled", "grow_scaled")
SYSTEMS = (
    *(("u", n) for n in (1024, 2048, 4096, 8192)),
    *((family, n) for family in ("r1", "r10", "r01") for n in (1024, 4096, 8192)),
    *((family, 1024) for family in ("sqeuclid", "clustered", "gene50", "lowrank8", "powerlaw")),
)
Row = dict[str, Any]


def answers() -> dict[tuple[str, int], Row]:
    """The last right row of each family and size; peers that were not run then keep their earlier times."""
    found: dict[tuple[str, int], Row] = {}
    for row in read("lap_h200"):
        if not row.get("holds") or row.get("device") != "gpu":
            continue
        key = row["family"], row["n"]
        row["peers_ms"] = found.get(key, {}).get("peers_ms", {}) | row.get("peers_ms", {})
        found[key] = row
    return found


def others(family: str, n: int, row: Row) -> dict[str, float]:
    """Every peer's time: the CPU peers of the same run, and those measured earlier."""
    told = published("lap")["peers"].get(family, {}).get(str(n), {})
    return {**row.get("peers_ms", {}), **{name: ms for name, ms in told.items() if ms is not None}}


def overview() -> Table:
    """Milliseconds, and the ratio of the fastest peer to them."""
    found = answers()
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
    return Table(["family", *map(str, SIZES)], lines)


def anatomy() -> Table:
    """What a time is made of, and the counts behind it."""
    found, lines = answers(), []
    for family in LAP_FAMILIES:
        if (row := found.get((family, ANATOMY_N))) is not None:
            parts = row["parts_ms"]
            bids, grown = (sum(ms for name, ms in parts.items() if name.startswith(part)) for part in ("bid", "grow"))
            counts = [row["bid_rounds"], row["n_begun"], row["phases"], row["rounds"], row["sweeps"]]
            per_round = 1e3 * grown / max(1, row["rounds"])
            lines.append([family, row["ms"], bids, grown, *counts, per_round, row["floor_ms"], row["certify_ms"]])
    head = (
        "family|total|auction|forest|auction rounds|rows left|phases|rounds|sweeps|us/round|floor of the sweeps|proof"
    )
    return Table(head.split("|"), lines)


def large() -> Table:
    """The largest sizes."""
    rows = [row for (family, _), row in answers().items() if family == "u drawn on the device"]
    lines = [[r["n"], r["dtype"], r["ms"], r["rounds"], r["sweeps"], r["floor_ms"], r["certify_ms"]] for r in rows]
    return Table(["n", "type", "ms", "rounds", "sweeps", "floor of the sweeps", "proof"], lines)


def crossover(singles: bool) -> Table:
    """Whole calls on both devices, of single problems or of batches."""
    rows = {(r["family"], r["batch"], r["n"]): r for r in read("lap_crossover_h200") if r["holds"]}
    cases = sorted({(family, batch) for family, batch, _ in rows if (batch == 1) == singles})
    sizes = sorted({n for _, batch, n in rows if (batch == 1) == singles})
    lines: list[list[Any]] = []
    for family, batch in cases:
        line: list[Any] = [family if singles else f"{batch} x {family.removeprefix('batch ')}"]
        for n in sizes:
            row = rows.get((family, batch, n))
            line.append(f"{cell(row['cpu_ms'])} / {cell(row['gpu_ms'])}" if row else None)
        lines.append(line)
    return Table(["costs", *map(str, sizes)], lines)


def systems() -> Table:
    """The papers' systems beside the programs that their authors published."""
    rows: dict[tuple[str, int, str], Row] = {}
    for row in read("lap_systems_h200"):
        rows.setdefault((row["family"], row["n"], row["method"]), row)  # the first: the steps of tuning come behind
    told, lines = published("lap")["peers"], []
    for family, n in SYSTEMS:
        peers = told.get(family, {}).get(str(n), {})
        ours = [rows[family, n, method]["ms"] for method in ("hungarian", "tree")]
        lines.append([f"{family} {n}", ours[0], peers.get("HyLAC"), ours[1], peers.get("RAFT")])
    return Table(["family, n", "`hungarian`", "HyLAC", "`tree`", "RAFT"], lines)


def ablation() -> Table:
    """What each step of tuning gains."""
    found = {(r["family"], r["n"], r["opt"]): r["ms"] for r in read("lap_systems_h200") if r["method"] == "hungarian"}
    levels = sorted({level for _, _, level in found})
    cases = [(family, n) for family, n, level in found if level == levels[0]]
    lines = [[f"{family} {n}", *(found.get((family, n, level)) for level in levels)] for family, n in cases]
    return Table(["family, n", *map(str, levels)], lines)


def batches() -> Table:
    """Milliseconds of a launch and of the call around it, beside peers."""
    rows = {(r["problems"], r["n"], r["dtype"]): r for r in read("lap_systems_h200") if r["method"] == "batched"}
    told, names = published("lap_batches")["batches"], ("torch-linear-assignment", "torch-lap-cuda", "lapx")
    lines = []
    for (count, n, dtype), row in rows.items():
        batch = f"{count} x {n}^2"
        peers = told.get(batch, {}).get(dtype, {})
        lines.append([batch, dtype, row["ms"], row["call_ms"], *(peers.get(name) for name in names)])
    return Table(["batch", "type", "launch", "call", *names], lines)


def time(pyplot: Any) -> Any:
    """Time over n beside the peers."""
    found, families = answers(), ("u", "r1", "sqeuclid", "clustered")
    figure, axes = pyplot.subplots(1, len(families), figsize=(13, 3.6), sharey=True)
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
    return figure


def parts(pyplot: Any) -> Any:
    """What a time is made of."""
    found = answers()
    shown = [found[family, ANATOMY_N] for family in LAP_FAMILIES if (family, ANATOMY_N) in found]
    figure, ax = pyplot.subplots(figsize=(9, 3.6))
    left = [0.0] * len(shown)
    for part in PARTS:
        share = [row["parts_ms"].get(part, 0.0) / sum(row["parts_ms"].values()) for row in shown]
        ax.barh([row["family"] for row in shown], share, left=left, label=part.replace("_", " "))
        left = [a + b for a, b in zip(left, share, strict=True)]
    ax.invert_yaxis()
    ax.set_xlabel(f"share of the time, n = {ANATOMY_N}")
    ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=7, frameon=False)
    figure.tight_layout()
    return figure


TABLES: Tables = {
    "lap, overview": overview,
    "lap, anatomy": anatomy,
    "lap, large": large,
    "lap, crossover": lambda: crossover(True),
    "lap, crossover of batches": lambda: crossover(False),
    "lap, systems": systems,
    "lap, ablation": ablation,
    "lap, batches": batches,
}
PLOTS: Plots = {"lap_time": time, "lap_parts": parts}
