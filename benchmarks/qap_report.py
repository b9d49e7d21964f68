"""Plots and tables of the quadratic assignment's rows: python -m benchmarks.qap_report [--rows qap_h200].

Reads benchmarks/results/<rows>.jsonl and writes docs/images/qap_*.svg; prints the tables of docs/benchmarks/qap.md.
"""

import argparse
import math
from typing import Any

import matplotlib

from benchmarks.pages import save, table
from benchmarks.rows import read

matplotlib.use("svg")
import matplotlib.pyplot as plt

PANELS = (
    ("threads", "threads", "threads per block", "seconds", "5: 2-opt, 6144 starts"),
    ("shared", "matrices_shared", "matrices in shared memory", "seconds", "6: 2-opt, 6144 starts"),
    ("neighbourhoods", "iterations", "iterations", "gap_pct", "7: 256 searches"),
    ("starts", "starts", "searches", "gap_pct", "8: 400 iterations"),
    ("seeds", "seeds", "seeds", "gap_pct", "9: best of, 256 searches"),
)


def latest(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Each instance's latest run over seeds, by gap and then by time."""
    found = {}
    for name in dict.fromkeys(row["instance"] for row in rows):
        of_name = [row for row in rows if row["instance"] == name]
        last = max(of_name, key=lambda row: row["date"])
        run = [row for row in of_name if row["command"] == last["command"] and row["commit"] == last["commit"]]
        found[name] = sorted(run, key=lambda row: (row["gap_pct"], row["reached_s"] or row["limit_s"]))
    return found


def medians(runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The seed in the middle of each instance, with `seeds` and `worst_pct`."""
    return [run[len(run) // 2] | {"seeds": len(run), "worst_pct": run[-1]["gap_pct"]} for run in runs.values()]


def thinned(curve: list[list[float]]) -> list[list[float]]:
    """The last point of each 50th of a decade: all that a reader can tell apart."""
    kept = {int(50 * math.log10(max(seconds, 1e-6))): [seconds, gap] for seconds, gap in curve}
    return list(kept.values())


def plot_curves(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Gap against logarithmic time, a panel per instance, a line per seed, the seed in the middle in bold."""
    columns = 4
    lines = -(-len(runs) // columns)
    figure, panels = plt.subplots(
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
    save(figure, "qap_gap")


def plot_figures(rows: list[dict[str, Any]]) -> None:
    """The sensitivity figures of Novoa and Qasem (2019)."""
    figure, panels = plt.subplots(1, len(PANELS), figsize=(14, 3))
    for axes, (part, x, label, y, title) in zip(panels, PANELS, strict=True):
        for name in sorted({row["instance"] for row in rows if row["part"] == part}):
            of_name = [row for row in rows if row["part"] == part and row["instance"] == name]
            least = {
                key: min(row[y] for row in of_name if row[x] == key) for key in sorted({row[x] for row in of_name})
            }
            axes.plot(list(least), list(least.values()), "o-", label=name, markersize=3)
        axes.set(xlabel=label, ylabel={"gap_pct": "percent above best known"}.get(y, y), title=title)
        if part in ("neighbourhoods", "starts"):
            axes.set_xscale("log")
        if part == "shared":
            axes.set_xticks([0, 1], ["no", "yes"])
        if part == "threads":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    figure.tight_layout()
    save(figure, "qap_figures")


def columns_of(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """A table with these columns."""
    table(list(columns), [[row.get(column) for column in columns] for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="qap_h200")
    rows = read(parser.parse_args().rows)
    by_part = {part: [row for row in rows if row["part"] == part] for part in {row["part"] for row in rows}}
    runs = latest(by_part.get("curves", []))
    plot_curves(runs)
    plot_figures(rows)
    columns_of(medians(runs), ("instance", "n", "seeds", "limit_s", "gap_pct", "worst_pct", "reached_s"))
    for part, columns in (
        ("speed", ("instance", "system", "moves_per_s")),
        ("twoopt", ("instance", "seconds", "gap_pct")),
        ("threads", ("instance", "threads", "seconds")),
        ("shared", ("instance", "matrices_shared", "seconds")),
        ("bounds", ("instance", "bound", "value", "ms")),
        ("cores", ("instance", "threads", "seconds", "gap_pct")),
        ("proofs", ("instance", "seconds", "termination", "objective", "bound", "nodes")),
    ):
        print(f"\n{part}")
        columns_of(by_part.get(part, []), columns)


if __name__ == "__main__":
    main()
