"""Measurements that a page draws itself: series of points from benchmarks/results, each with the run it comes from.

A static picture of a Markdown page that has a plot of its name here is drawn by static/plots.js instead, from
plots.json; where no script runs the picture stays.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rows import published, read

Row = dict[str, Any]
OURS = "Allot"
MOST_DIGITS = 5


@dataclass
class View:
    """One choice of a plot: its axes and its series, each a list of (x, y, row)."""

    name: str
    x: str
    y: str
    series: dict[str, list[tuple[float, float, Row]]] = field(default_factory=dict)
    log_x: bool = True
    step: bool = False
    linear_y: bool = False
    """Begin with a linear axis of values: shares of something."""

    def add(self, series: str, x: float, y: float, row: Row) -> None:
        """A point; the last row of a place counts."""
        points = self.series.setdefault(series, [])
        if not self.step:
            points[:] = [point for point in points if point[0] != x]
        points.append((x, y, row))


def source(row: Row) -> str:
    """Where, when and by which command a row was measured."""
    if "source" in row:
        return str(row["source"])
    where = row.get("gpu") or row.get("cpu", "")
    return f"{where}, {str(row.get('date', ''))[:10]}, commit {row.get('commit', 'unknown')}: {row.get('command', '')}"


def lap_time() -> list[View]:
    """Time over n, one choice a family, on a GPU and on two cores."""
    return [*_families("lap_h200", "gpu", "on an H200"), *_families("lap", "cpu", "on two cores")]


def _families(name: str, device: str, where: str) -> list[View]:
    views: dict[str, View] = {}
    for row in read(name):
        if not row.get("holds") or row.get("device") != device or "ms" not in row:
            continue
        family = row["family"]
        view = views.setdefault(family, View(f"{family}, {where}", "n", "ms"))
        view.add(OURS, row["n"], row["ms"], row)
        for rival, ms in row.get("peers_ms", {}).items():
            if not rival.startswith("allot"):
                view.add(rival, row["n"], ms, row)
        if device == "gpu":
            for rival, ms in published("lap")["peers"].get(family, {}).get(str(row["n"]), {}).items():
                if ms is not None:
                    view.add(rival, row["n"], ms, {"source": published("lap")["source"].partition(" null:")[0]})
    return [view for view in views.values() if len(view.series[OURS]) > 1]


def auction_time() -> list[View]:
    """Dense and sparse graphs, exact and with epsilon 1."""
    views: dict[tuple[float, str], View] = {}
    for density, graph in ((1.0, "dense"), (0.1, "10% sparse")):
        for asked, words in (("exact", "exact"), ("epsilon 1, auto", "epsilon 1")):
            views[density, asked] = View(f"{graph}, {words}, on an H200", "n", "ms")
    for row in read("auction_h200"):
        if not row.get("holds"):
            continue
        view = views.get((row.get("density", 0.0), row.get("asked", "exact")))
        if view is not None and row["part"] == "targets":
            view.add(OURS, row["n"], row["ms"], row)
        elif view is not None and row["part"] == "peers":
            for rival, ms in row["peers_ms"].items():
                view.add(rival, row["n"], ms, row)
    return list(views.values())


def auction_epsilon() -> list[View]:
    """What a coarser answer saves."""
    time, rounds = View("time", "epsilon", "ms"), View("rounds", "epsilon", "rounds")
    for row in read("auction_h200"):
        if row["part"] == "epsilon" and row.get("holds") and row.get("asked_epsilon"):
            time.add(f"{OURS}, n = {row['n']}", row["asked_epsilon"], row["ms"], row)
            rounds.add(f"{OURS}, n = {row['n']}", row["asked_epsilon"], row["rounds"], row)
    return [time, rounds]


def uot_bandwidth() -> list[View]:
    """How near a sweep comes to a bare read of the matrix, and how long it takes."""
    share = View("share of a bare read", "n", "%", linear_y=True)
    time = View("time of a sweep", "n", "microseconds")
    for row in read("uot_h200"):
        if row.get("bench") == "sweeps":
            name = f"{row['method']}, {row['storage']}"
            share.add(name, row["n"], 100 * row["bandwidth_share"], row)
            time.add(name, row["n"], row["us_per_sweep"], row)
    return [share, time]


def uot_gap() -> list[View]:
    """Time to a certified gap of 1e-6, one choice for each pair of strengths."""
    views: dict[tuple[str, float, float], View] = {}

    def view(where: str, row: Row) -> View:
        key = where, row["reg"], row["reg_m"]
        return views.setdefault(key, View(f"reg {row['reg']:g}, reg_m {row['reg_m']:g}, {where}", "n", "ms"))

    for row in read("uot_h200"):
        if row.get("bench") == "gap":
            found = view("on an H200", row)
            found.add(OURS, row["n"], row["ms"], row)
            found.add("POT on torch", row["n"], row["ms"] * row["times_faster"], row)
    for row in read("uot"):
        if row.get("kind") == "gap" and row.get("reached"):
            name = OURS if row["method"] == "allot" else row["method"]
            view("on two cores", row).add(name, row["n"], row["ms"], row)
    return list(views.values())


def uot_error() -> list[View]:
    """How far a plan is from one in float64, against the strength of the entropy."""
    view = View("n = 256", "reg", "largest relative error of the plan")
    for row in read("uot_error"):
        view.add(row["method"].replace("allot", OURS), row["reg"], row["plan_error"], row)
    return [view]


def qap_gap() -> list[View]:
    """The gap to the best known value while the search runs, one choice an instance, one line a seed."""
    views: dict[str, View] = {}
    for row in read("qap_h200"):
        if row["part"] != "curves" or not row.get("holds"):
            continue
        view = views.setdefault(row["instance"], View(row["instance"], "seconds", "% above the best known", step=True))
        name = f"{OURS}, seed {row['seed']}"
        view.series[name] = []
        for at, gap in row["curve"]:
            view.add(name, max(at, 1e-3), gap, row)
    return sorted(views.values(), key=lambda view: -max(x for points in view.series.values() for x, _, _ in points))


PLOTS: dict[str, tuple[str, Callable[[], list[View]]]] = {
    "lap_time": ("Time of a proved assignment", lap_time),
    "auction_time": ("Time of a matching", auction_time),
    "auction_epsilon": ("What a coarser answer saves", auction_epsilon),
    "uot_bandwidth": ("A sweep of transport", uot_bandwidth),
    "uot_gap": ("Time to a certified gap of 1e-6", uot_gap),
    "uot_error": ("Error of the plan", uot_error),
    "qap_gap": ("Gap against time", qap_gap),
}


def plots() -> dict[str, Any]:
    """Every plot as plots.js reads it: points are [x, y, number of the run]."""
    return {name: {"title": title, **_told(views())} for name, (title, views) in PLOTS.items()}


def _told(views: Iterable[View]) -> dict[str, Any]:
    runs: dict[str, int] = {}

    def shown(points: list[tuple[float, float, Row]], step: bool) -> list[list[float]]:
        ordered = points if step else sorted(points, key=lambda point: point[0])
        return [[_short(x), _short(y), runs.setdefault(source(row), len(runs))] for x, y, row in ordered]

    told = [
        {
            "name": view.name,
            "x": view.x,
            "y": view.y,
            "logX": view.log_x,
            "logY": not view.linear_y,
            "step": view.step,
            "series": [
                {"name": name, "points": shown(points, view.step)}
                for name, points in sorted(view.series.items(), key=lambda item: not item[0].startswith(OURS))
            ],
        }
        for view in views
    ]
    return {"views": told, "runs": list(runs)}


def _short(value: float) -> float:
    return float(f"{value:.{MOST_DIGITS}g}")


PARAGRAPH = re.compile(r"<p>((?:<img [^>]*>\s*)+)</p>")
IMAGE = re.compile(r'<img [^>]*src="/docs/images/(\w+)\.svg"[^>]*>')


def with_plots(html: str) -> str:
    """The page with a figure around each picture that can be drawn live."""

    def figures(paragraph: re.Match[str]) -> str:
        images = re.findall(r"<img [^>]*>", paragraph[1])
        if not any((found := IMAGE.fullmatch(image)) and found[1] in PLOTS for image in images):
            return paragraph[0]
        return "".join(_figure(image) for image in images)

    return PARAGRAPH.sub(figures, html)


def _figure(image: str) -> str:
    found = IMAGE.fullmatch(image)
    plot = f' class="plot" data-plot="{found[1]}"' if found and found[1] in PLOTS else ""
    return f"<figure{plot}>{image}</figure>\n"
