"""Costs between the points of frames, for the solver: of a small problem by who solves it, else all rows, in threads.

Each row is one line of costs. Its loop runs over the columns and has no branch, so that LLVM makes vectors of it. The
formulas and the order of their roundings are in `kernels/problems/clouds.py`; nothing may be fused or reordered.
"""

from typing import NamedTuple

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.threads import in_threads, threads_for
from kernels.problems import Rejecting
from kernels.problems.arrays import Floats, Indices, Reals, untouched
from kernels.problems.clouds import ROUNDED, PointRejecting
from kernels.problems.points import Points

A_WAKE, PIECES = 1 << 15, 2
"""Costs that are worked out in the time that one more thread costs all others, some 30 us; pieces for each thread."""
IOU, SQEUCLIDEAN, EUCLIDEAN, CITYBLOCK = range(len(ROUNDED))
"""Places in ROUNDED, which loops are told."""


class Clouds(NamedTuple):
    """What the costs of all problems are worked out from, in the one form that the loops are compiled for."""

    metric: int  # its place in ROUNDED
    x: Floats  # (rows, d)
    y: Floats  # (columns, d)


def clouds_of(problem: PointRejecting) -> Clouds:
    """The points of a problem."""
    points = problem.points
    return Clouds(ROUNDED.index(points.metric), _wide(points.x), _wide(points.y))


def written_out(problem: PointRejecting) -> Rejecting:
    """The same problem with its costs in float64."""
    starts, clouds = problem.starts, clouds_of(problem)
    costs = np.empty(problem.entries)
    wide = np.repeat(problem.sizes[:, 1], problem.sizes[:, 0])
    first = np.concatenate([[0], np.cumsum(wide)])  # where the costs of each row begin
    threads = threads_for(len(costs), A_WAKE)
    cuts = np.searchsorted(first, np.linspace(0, len(costs), PIECES * threads + 1)[1:-1])
    ends = np.unique(np.concatenate([[0], cuts, [len(wide)]])).tolist()
    owner = np.searchsorted(starts[1:, 1], ends, side="right").tolist()

    def write(piece: int) -> None:
        write_rows(clouds, owner[piece], ends[piece], ends[piece + 1], untouched(starts), costs)

    in_threads(write, range(len(ends) - 1), threads)
    return problem.written_out(costs)


def _wide(cloud: Reals) -> Floats:
    """The points in the one form that the loops are compiled for."""
    return untouched(np.ascontiguousarray(cloud, dtype=np.float64))


@jit
def write_rows(clouds: Clouds, k: int, first: int, last: int, starts: Indices, costs: Floats) -> None:
    """The costs of the rows from `first` to before `last`, counted over all problems; `first` is one of problem k."""
    widest, one = 0, k
    while one < len(starts) - 1 and starts[one, 1] < last:
        widest, one = max(widest, starts[one + 1, 2] - starts[one, 2]), one + 1
    across, areas = new_columns(clouds, widest)
    while first < last:
        begin, wide, stop = starts[k, 2], starts[k + 1, 2] - starts[k, 2], min(last, starts[k + 1, 1])
        if stop > first:
            at = starts[k, 0] + (first - starts[k, 1]) * wide
            work_out(clouds, first, begin, across, areas, costs[at : at + (stop - first) * wide], wide)
        first, k = max(first, stop), k + 1


@inner
def new_columns(clouds: Clouds, widest: int) -> tuple[Floats, Floats]:
    """Room for `work_out`: the points of at most so many columns, turned, and the areas of their boxes."""
    return np.empty((clouds.x.shape[1], widest)), np.empty(widest)


@inner
def work_out(
    clouds: Clouds, first: int, begin: int, across: Floats, areas: Floats, costs: Floats, wide: int
) -> None:  # fmt: skip
    """Costs of the rows from `first` on with the `wide` columns from `begin` on, row by row: as many as there is room.

    The columns are turned first, so that a row is one loop over them. They are few and stay in the core's cache.
    """
    clouds, across, areas, costs = borrowed(clouds), borrowed(across), borrowed(areas), borrowed(costs)
    metric, x, y = clouds.metric, clouds.x, clouds.y
    for j in range(wide):
        for k in range(len(across)):
            across[k, j] = y[begin + j, k]
        if metric == IOU:
            areas[j] = (across[2, j] - across[0, j]) * (across[3, j] - across[1, j])
    for i in range(costs.size // max(wide, 1)):
        write_line(metric, x[first + i], across, areas, costs[i * wide : (i + 1) * wide])


@inner
def write_line(metric: int, point: Floats, across: Floats, areas: Floats, line: Floats) -> None:
    """The costs of a row with all columns."""
    if metric == IOU:
        box_line(point, across, areas[: line.size], line)
    elif metric == CITYBLOCK:
        size_line(point, across, line)
    else:
        square_line(point, across, line)
        if metric == EUCLIDEAN:
            for j in range(line.size):
                line[j] = np.sqrt(line[j])


@inner
def of_columns(across: Floats, k: int, count: int) -> Floats:
    """Coordinate k of so many columns, as one piece of memory: a slice of both would be taken for steps apart."""
    found: Floats = across[k][:count]
    return found


@inner
def box_line(box: Floats, across: Floats, areas: Floats, line: Floats) -> None:
    """1 - intersection over union of a box with each of the columns."""
    x1, y1, x2, y2 = box[0], box[1], box[2], box[3]
    left, low = of_columns(across, 0, line.size), of_columns(across, 1, line.size)
    right, high = of_columns(across, 2, line.size), of_columns(across, 3, line.size)
    area = (x2 - x1) * (y2 - y1)
    for j in range(line.size):
        wide = min(x2, right[j]) - max(x1, left[j])
        tall = min(y2, high[j]) - max(y1, low[j])
        common = (wide if wide > 0.0 else 0.0) * (tall if tall > 0.0 else 0.0)
        union = (area + areas[j]) - common
        line[j] = 1.0 - common / (union if common > 0.0 else 1.0)


@inner
def square_line(point: Floats, across: Floats, line: Floats) -> None:
    """Squared distances of a point to each of the columns."""
    for j in range(line.size):
        line[j] = 0.0
    for k in range(point.size):
        own, other = point[k], of_columns(across, k, line.size)
        for j in range(line.size):
            step = own - other[j]
            line[j] += step * step


@inner
def size_line(point: Floats, across: Floats, line: Floats) -> None:
    """City-block distances of a point to each of the columns."""
    for j in range(line.size):
        line[j] = 0.0
    for k in range(point.size):
        own, other = point[k], of_columns(across, k, line.size)
        for j in range(line.size):
            line[j] += abs(own - other[j])


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
    sizes, lines = np.array([[1, 2], [1, 0]]), np.zeros(2)
    for metric in ROUNDED:
        points = Points(boxes, boxes, metric)
        written_out(PointRejecting(lines[:0], sizes, lines, lines, form="ragged", points=points))
