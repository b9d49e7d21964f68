"""Transport: sweeps, gaps, batches, points and several GPUs, beside the peers; the last row of each case counts."""

from typing import Any

from benchmarks.report.page import Plots, Table, Tables
from benchmarks.rows import read

KINDS = (("fused", "float32"), ("fused", "float16"), ("log", "float32"))
SHORT_N = 10240
"""Of the gaps that the overview shows."""
CACHED_N = 8192
"""From here on a matrix is larger than the second-level cache."""


def rows(bench: str, name: str = "uot_h200") -> list[dict[str, Any]]:
    """The rows of one bench."""
    return [row for row in read(name) if row["bench"] == bench]


def last(bench: str, *key: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The last row of each case, in order of the case."""
    found = {tuple(row.get(k) for k in key): row for row in rows(bench)}
    return {case: found[case] for case in sorted(found)}


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def sweeps() -> Table:
    """Microseconds of an iteration and its share of a bare read."""
    found = last("sweeps", "method", "storage", "n")
    lines = []
    for n in sorted({case[2] for case in found}):
        line = [str(n)]
        for kind in KINDS:
            row = found.get((*kind, n), {})
            share, more = row.get("bandwidth_share"), row.get("us_accelerated")
            line += [_number(row.get("us_per_sweep")), "" if share is None else f"{100 * share:.0f}", _number(more)]
        memory = found.get(("fused", "float32", n), {}).get("memory_over_input")
        lines.append([*line, "" if memory is None or memory < 0 else f"{100 * memory:.2f}"])
    head = [f"{m} {s}, {what}" for m, s in KINDS for what in ("us", "% of read", "us accelerated")]
    return Table(["n", *head, "% memory"], lines)


def gaps() -> Table:
    """Milliseconds to a certified gap, beside POT."""
    lines = []
    for (n, reg, reg_m), row in last("gap", "n", "reg", "reg_m").items():
        pot = f"{row['pot_sweeps']} x {row['pot_ms_per_sweep']:.2f}"
        ours = [str(row["sweeps"]), _number(row["ms"]), f"{row['gap_float64']:.1e}", pot, _number(row["times_faster"])]
        lines.append([str(n), f"{reg:g}, {reg_m:g}", *ours])
    return Table(["n", "reg, reg_m", "sweeps", "ms", "gap", "POT: iterations x ms", "times faster"], lines)


def batch() -> Table:
    """Batches: 100 sweeps, and to a gap."""
    lines = []
    for (n, size), row in last("batch", "n", "batch").items():
        fixed = [r for r in rows("batch") if (r["n"], r["batch"]) == (n, size) and r["tolerance"] < 0][-1]
        lines.append([f"{size} x {n} x {n}", _number(fixed["ms"]), f"{row['sweeps']:.1f}, {_number(row['ms'])}"])
    return Table(["batch", "100 sweeps, ms", "to a gap of 1e-6, each by itself: sweeps, ms"], lines)


def points() -> Table:
    """Milliseconds of a sweep over point clouds."""
    found = last("points", "n", "d").items()
    lines = [[str(n), str(d), _number(row["us_per_sweep"] and row["us_per_sweep"] / 1e3)] for (n, d), row in found]
    return Table(["n", "d", "ms a sweep"], lines)


def gpus() -> Table:
    """Milliseconds of a sweep over several GPUs."""
    lines = []
    for (n, gpus), row in last("multi-gpu", "n", "gpus").items():
        ms, efficiency = row["ms_per_sweep"], row["efficiency"]
        lines.append([str(n), str(gpus), _number(ms), "" if efficiency is None else f"{100 * efficiency:.0f}"])
    return Table(["n", "GPUs", "ms a sweep", "efficiency, %"], lines)


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


def peer_iterations(name: str) -> Table:
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
    return Table(["method", *head, "plan error"], lines)


def peer_gaps(name: str) -> Table:
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
    return Table(["method", *head], lines)


def sweeps_in_short() -> Table:
    """Microseconds of an iteration, and its share of a bare read where the matrix is larger than the cache."""
    found = last("sweeps", "method", "storage", "n")
    sizes = sorted({case[2] for case in found})
    lines = []
    for kind in KINDS:
        line: list[Any] = [", ".join(kind)]
        for n in sizes:
            row = found.get((*kind, n))
            share = row.get("bandwidth_share") if row and n >= CACHED_N else None
            line.append(
                "" if row is None else _number(row["us_per_sweep"]) + (f", {100 * share:.0f}%" if share else "")
            )
        lines.append(line)
    return Table(["n", *map(str, sizes)], lines)


def gaps_in_short() -> Table:
    """How many times faster than POT at one size."""
    found = {case[1:]: row for case, row in last("gap", "n", "reg", "reg_m").items() if case[0] == SHORT_N}
    ordered = sorted(found, key=lambda case: (-case[0], case[1]))
    lines = [["times faster", *(f"{found[case]['times_faster']:.0f}" for case in ordered)]]
    return Table(["reg, reg_m", *(f"{reg:g}, {reg_m:g}" for reg, reg_m in ordered)], lines)


def of_the_paper() -> Table:
    """MAP-UOT by both rules beside our sweeps, one and two threads."""
    found = {(row["method"], row["threads"]): row for row in read("uot_map") if row["n"] == SHORT_N}
    lines = []
    for method in dict.fromkeys(method for method, _ in found):
        one, two = found[method, 1], found[method, 2]
        line = [method, _number(one["ms"]), _number(two["ms"]), f"{one['ms'] / two['ms']:.2f}"]
        line += [f"{row['times_pot']:.2f}" for row in (one, two)] + [f"{two['gflops']:.0f}"]
        lines.append([*line, f"{100 * two['peak_over_input']:.1f}", f"{two['plan_error']:.1e}"])
    head = "method|ms, 1 thread|ms, 2 threads|speedup|times POT, 1 thread|times POT, 2 threads|Gflop/s, 2 threads"
    return Table([*head.split("|"), "% memory", "plan error"], lines)


def bandwidth(pyplot: Any) -> Any:
    """Share of the bandwidth against n."""
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    for method, storage in KINDS:
        of = {r["n"]: r["bandwidth_share"] for r in rows("sweeps") if (r["method"], r["storage"]) == (method, storage)}
        axes.plot(sorted(of), [100 * of[n] for n in sorted(of)], marker="o", label=f"{method} {storage}")
    axes.set(xlabel="n", ylabel="% of 4.6 TB/s, one read an iteration", ylim=(0, 100), xscale="log")
    axes.set_xticks([1024, 2048, 4096, 8192, 20480], ["1024", "2048", "4096", "8192", "20480"])
    axes.legend()
    figure.tight_layout()
    return figure


def gap(pyplot: Any) -> Any:
    """Time to a gap, beside POT."""
    found = {(r["n"], r["reg"], r["reg_m"]): r for r in rows("gap")}
    cases = sorted(found)
    figure, axes = pyplot.subplots(figsize=(8, 3.5))
    places = range(len(cases))
    axes.bar([p - 0.2 for p in places], [found[c]["pot_ms_per_sweep"] * found[c]["pot_sweeps"] for c in cases], 0.4)
    axes.bar([p + 0.2 for p in places], [found[c]["ms"] for c in cases], 0.4)
    axes.set(yscale="log", ylabel="ms to a relative gap of 1e-6")
    axes.set_xticks(list(places), [f"n {n}\nreg {reg:g}\nreg_m {reg_m:g}" for n, reg, reg_m in cases])
    axes.legend(["POT, torch", "allot, log"])
    figure.tight_layout()
    return figure


def error(pyplot: Any) -> Any:
    """Error of the plan against reg."""
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    found = rows("error", "uot_error")
    for method in dict.fromkeys(row["method"] for row in found):
        of = {row["reg"]: row["plan_error"] for row in found if row["method"] == method}
        axes.plot(sorted(of), [max(of[reg] or 10.0, 1e-12) for reg in sorted(of)], marker="o", label=method)
    axes.set(xscale="log", yscale="log", xlabel="reg", ylabel="L1 error of the plan / mass", ylim=(1e-11, 20))
    axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


TABLES: Tables = {
    "uot, sweeps in short": sweeps_in_short,
    "uot, gaps in short": gaps_in_short,
    "uot, sweeps": sweeps,
    "uot, gap": gaps,
    "uot, batch": batch,
    "uot, points": points,
    "uot, several GPUs": gpus,
    "uot, the paper's": of_the_paper,
    "uot, peers, iteration": lambda: peer_iterations("uot"),
    "uot, peers, gap": lambda: peer_gaps("uot"),
    "uot, peers, iteration, GPU": lambda: peer_iterations("uot_peers_h200"),
    "uot, peers, gap, GPU": lambda: peer_gaps("uot_peers_h200"),
}
PLOTS: Plots = {"uot_bandwidth": bandwidth, "uot_gap": gap, "uot_error": error}
