"""Quadratic assignment: gaps against time, rates, bounds and proofs; objectives were recomputed in integers."""

import math
from typing import Any

from benchmarks.report.page import Plots, Table, Tables, cell
from benchmarks.rows import published, read

PANELS = (
    ("threads", "threads", "threads per block", "seconds", "5: 2-opt, 6144 starts"),
    ("shared", "matrices_shared", "matrices in shared memory", "seconds", "6: 2-opt, 6144 starts"),
    ("neighbourhoods", "iterations", "iterations", "gap_pct", "7: 256 searches"),
    ("starts", "starts", "searches", "gap_pct", "8: 400 iterations"),
    ("seeds", "seeds", "seeds", "gap_pct", "9: best of, 256 searches"),
)
CLASSIC = ("gilmore-lawler", "gilmore-lawler by columns", "projection", "rlt1")
"""Bounds other than the semidefinite one."""
Row = dict[str, Any]


def part(name: str, rows: str = "qap_h200") -> list[Row]:
    """The rows of one part."""
    return [row for row in read(rows) if row["part"] == name]


def curves() -> dict[str, list[Row]]:
    """Each instance's latest run over seeds, by gap and then by time."""
    found, rows = {}, part("curves")
    for name in dict.fromkeys(row["instance"] for row in rows):
        of_name = [row for row in rows if row["instance"] == name]
        last = max(of_name, key=lambda row: row["date"])
        run = [row for row in of_name if row["command"] == last["command"] and row["commit"] == last["commit"]]
        found[name] = sorted(run, key=lambda row: (row["gap_pct"], row["reached_s"] or row["limit_s"]))
    return found


def gaps() -> Table:
    """The seed in the middle of each instance and the worst, beside the report's."""
    theirs, lines = published("qap_report")["instances"], []
    for name, run in curves().items():
        middle, worst = run[len(run) // 2], run[-1]
        told = [_reached(row) for row in (middle, worst)]
        report = theirs[name]
        lines.append(
            [name, _percent(middle), _percent(worst), *told, f"{report['gap_pct']:g}%, {cell(report['ms'] / 1e3)} s"]
        )
    head = ["instance", "gap", "worst", "at best known after", "the worst's", "Novoa and Qasem: gap, time"]
    return Table(head, lines)


def _percent(row: Row) -> str:
    return f"{row['gap_pct']:.3f}%" if row["gap_pct"] else "0"


def _reached(row: Row) -> str:
    return f"{row['reached_s']:.3g} s" if not row["gap_pct"] else f"not within {row['limit_s']:g} s"


def in_short() -> Table:
    """How many end at the best known value."""
    middle = {name: run[len(run) // 2] for name, run in curves().items()}
    exact = [row for row in middle.values() if not row["gap_pct"]]
    longest = max(row["reached_s"] for row in exact)
    lines = [[f"{len(exact)} of them", f"at the best known value, after at most {longest:.2g} s"]]
    lines += [[name, f"{row['gap_pct']:.2f}% above it"] for name, row in middle.items() if row["gap_pct"]]
    mean = sum(row["gap_pct"] for row in middle.values()) / len(middle)
    return Table(["instance", "ends"], [*lines, ["mean of all", f"{mean:.3f}% above it"]])


def speed() -> Table:
    """Exchanges a second of whole solves."""
    found = {}
    for where, rows in (("H200", part("speed")), ("one CPU core, CPU time", part("speed", "qap"))):
        for row in rows:
            found[f"{where}, `{row['system']}`", row["instance"]] = row["moves_per_s"]
    names = sorted({name for _, name in found}, key=lambda name: (int("".join(filter(str.isdigit, name))), name))
    lines = []
    for system in dict.fromkeys(system for system, _ in found):
        rates = [found.get((system, name)) for name in names]
        lines.append([system, *(rate and f"{rate:.1e}".replace("e+0", "e").replace("e+", "e") for rate in rates)])
    return Table(["", *names], lines)


def bounds() -> Table:
    """Bounds and milliseconds, on two cores and on the H200 (the projection bound: on its host)."""
    found: dict[str, dict[str, Row]] = {}
    for device, rows in (("cpu", "qap"), ("gpu", "qap_h200")):
        for row in part("bounds", rows):
            found.setdefault(row["instance"], {})[f"{row['bound']}, {device}"] = row
    lines = []
    for name, of in found.items():
        line: list[Any] = [name]
        for bound in ("gilmore-lawler", "projection"):
            one, other = of.get(f"{bound}, cpu"), of.get(f"{bound}, gpu")
            known = one or other
            line += [
                known and f"{known['value']} ({known['below_pct']:.1f}%)",
                one and one["ms"],
                other and other["ms"],
            ]
        lines.append(line)
    head = [text for bound in ("Gilmore-Lawler", "projection") for text in (bound, "ms, CPU", "ms, H200")]
    return Table(["instance", *head], lines)


def proofs() -> Table:
    """Seconds until an answer was proved optimal, search included."""
    found: dict[str, dict[str, Row]] = {}
    for device, rows in (("gpu", "qap_h200"), ("cpu", "qap")):
        for row in part("proofs", rows):
            if row["holds"] and row["termination"] == "optimal":
                found.setdefault(row["instance"], {})[device] = row
    lines = []
    for name, of in sorted(found.items(), key=lambda item: (next(iter(item[1].values()))["n"], item[0])):
        line: list[Any] = [name]
        for device in ("gpu", "cpu"):
            proof = of.get(device)
            line += [proof and f"{proof['seconds']:.2g} s", proof and proof["nodes"]]
        lines.append(line)
    return Table(["instance", "one H200", "nodes", "two CPU cores", "nodes"], lines)


def floors() -> Table:
    """Certified gaps to the best known value, with the options as they are: on two cores, and on GPUs once measured."""
    files = {"two CPU cores": "qap_floors", "one H200": "qap_floors_h200", "one H100": "qap_floors_h100"}
    found: dict[str, dict[str, Row]] = {}
    for system, name in files.items():
        for row in part("floors", name):
            found.setdefault(row["instance"], {})[system] = row
    systems = [system for system in files if any(system in of for of in found.values())]
    lines = []
    for name, of in sorted(found.items(), key=lambda item: (next(iter(item[1].values()))["n"], item[0])):
        line: list[Any] = [name, _classic(next(iter(of.values())))]
        for system in systems:
            told = of.get(system)
            tree = ", a tree's proof" if told and told["termination"] == "optimal" and told["gap_pct"] > 0 else ""
            line += [told and f"{told['limit_s']:g} s", told and f"{abs(told['gap_pct']):.2f}%{tree}"]
        lines.append(line)
    return Table(["instance", "classic bounds", *(text for system in systems for text in (system, "gap"))], lines)


def _classic(row: Row) -> str | None:
    """The gap that the best of the classic bounds of the same run leaves."""
    cheap = [value for bound, value in (row["bounds"] or {}).items() if bound in CLASSIC]
    return f"{abs(100 * (row['best_known'] - max(cheap)) / row['best_known']):.2f}%" if cheap else None


def peers() -> Table:
    """SciPy's methods in the same run."""
    lines = []
    for row in {row["instance"]: row for row in part("peers", "qap")}.values():
        line = [row["instance"]]
        for name, seconds in (("faq_gap_pct", "faq_s"), ("2opt_gap_pct", "2opt_s"), ("gap_pct", "seconds")):
            line.append(f"{row[name]:.2g}% in {cell(1e3 * row[seconds])} ms")
        lines.append(line)
    return Table(["instance", "faq", "2opt", "ours"], lines)


def thinned(curve: list[list[float]]) -> list[list[float]]:
    """The last point of each 50th of a decade: all that a reader can tell apart."""
    kept = {int(50 * math.log10(max(seconds, 1e-6))): [seconds, gap] for seconds, gap in curve}
    return list(kept.values())


def gap(pyplot: Any) -> Any:
    """Gap against logarithmic time, a panel per instance, a line per seed, the seed in the middle in bold."""
    runs, columns = curves(), 4
    lines = -(-len(runs) // columns)
    figure, panels = pyplot.subplots(
        lines, columns, figsize=(12, 2.2 * lines), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axes in panels.flat[len(runs) :]:
        axes.set_visible(False)
    for axes, (name, run) in zip(panels.flat, runs.items(), strict=False):
        for place, row in enumerate(run):
            seconds, gaps = zip(*thinned(row["curve"]), strict=True)
            ends = [*seconds, row["limit_s"]] if row["gap_pct"] > 0 else seconds
            width, shade = (1.6, "C0") if place == len(run) // 2 else (0.6, "0.7")
            axes.step(ends, [*gaps, gaps[-1]][: len(ends)], where="post", linewidth=width, color=shade)
        axes.set_title(name, fontsize=9)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set(xlim=(1e-3, 60), ylim=(0, 100))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.supxlabel("seconds")
    figure.supylabel("percent above best known")
    return figure


def figures(pyplot: Any) -> Any:
    """The sensitivity figures of Novoa and Qasem (2019)."""
    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(14, 3))
    for axes, (name, x, label, y, title) in zip(panels, PANELS, strict=True):
        rows = part(name)
        for instance in sorted({row["instance"] for row in rows}):
            of_name = [row for row in rows if row["instance"] == instance]
            least = {
                key: min(row[y] for row in of_name if row[x] == key) for key in sorted({row[x] for row in of_name})
            }
            axes.plot(list(least), list(least.values()), "o-", label=instance, markersize=3)
        axes.set(xlabel=label, ylabel={"gap_pct": "percent above best known"}.get(y, y), title=title)
        if name in ("neighbourhoods", "starts"):
            axes.set_xscale("log")
        if name == "shared":
            axes.set_xticks([0, 1], ["no", "yes"])
        if name == "threads":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


TABLES: Tables = {
    "qap, in short": in_short,
    "qap, gaps": gaps,
    "qap, speed": speed,
    "qap, bounds": bounds,
    "qap, proofs": proofs,
    "qap, floors": floors,
    "qap, peers": peers,
}
PLOTS: Plots = {"qap_gap": gap, "qap_figures": figures}
