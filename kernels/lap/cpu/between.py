"""Costs between the points of frames, for the solver: of a small problem by who solves it, else all rows, in threads.

Each row is one line of costs. Its loop runs over the columns and has no branch, so that LLVM makes vectors of it. The
formulas and the order of their roundings are in `kernels/problems/clouds.py`; nothing may be fused or reordered.
"""

from typing import NamedTuple

import numpy as np

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
    across: Floats  # (d, columns): the columns' points, turned
    areas: Floats  # of the columns' boxes, for iou alone


def clouds_of(problem: PointRejecting) -> Clouds:
    """The points of a problem."""
    x, y = (_wide(cloud) for cloud in (problem.points.x, problem.points.y))
    metric, areas = ROUNDED.index(problem.points.metric), np.zeros(0)
    if metric == IOU:
        areas = (y[:, 2] - y[:, 0]) * (y[:, 3] - y[:, 1])
    return Clouds(metric, x, untouched(np.ascontiguousarray(y.T)), areas)


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
    while first < last:
        begin, end, stop = starts[k, 2], starts[k + 1, 2], min(last, starts[k + 1, 1])
        at, wide = starts[k, 0] + (first - starts[k, 1]) * (end - begin), end - begin
        for i in range(first, stop):
            write_line(clouds, i, begin, costs[at : at + wide])
            at += wide
        first, k = max(first, stop), k + 1


@inner
def write_line(clouds: Clouds, i: int, begin: int, line: Floats) -> None:
    """The costs of row i with the columns from `begin` on."""
    metric, point, across = clouds.metric, clouds.x[i], clouds.across
    if metric == IOU:
        box_line(point, across, clouds.areas[begin : begin + line.size], begin, line)
    elif metric == CITYBLOCK:
        size_line(point, across, begin, line)
    else:
        square_line(point, across, begin, line)
        if metric == EUCLIDEAN:
            for j in range(line.size):
                line[j] = np.sqrt(line[j])


@inner
def of_columns(across: Floats, k: int, begin: int, count: int) -> Floats:
    """Coordinate k of so many columns, as one piece of memory: a slice of both would be taken for steps apart."""
    found: Floats = across[k][begin : begin + count]
    return found


@inner
def box_line(box: Floats, across: Floats, areas: Floats, begin: int, line: Floats) -> None:
    """1 - intersection over union of a box with each of the columns from `begin` on."""
    x1, y1, x2, y2 = box[0], box[1], box[2], box[3]
    left, low = of_columns(across, 0, begin, line.size), of_columns(across, 1, begin, line.size)
    right, high = of_columns(across, 2, begin, line.size), of_columns(across, 3, begin, line.size)
    area = (x2 - x1) * (y2 - y1)
    for j in range(line.size):
        wide = min(x2, right[j]) - max(x1, left[j])
        tall = min(y2, high[j]) - max(y1, low[j])
        common = (wide if wide > 0.0 else 0.0) * (tall if tall > 0.0 else 0.0)
        union = (area + areas[j]) - common
        line[j] = 1.0 - common / (union if common > 0.0 else 1.0)


@inner
def square_line(point: Floats, across: Floats, begin: int, line: Floats) -> None:
    """Squared distances of a point to each of the columns from `begin` on."""
    for j in range(line.size):
        line[j] = 0.0
    for k in range(point.size):
        own, other = point[k], of_columns(across, k, begin, line.size)
        for j in range(line.size):
            step = own - other[j]
            line[j] += step * step


@inner
def size_line(point: Floats, across: Floats, begin: int, line: Floats) -> None:
    """City-block distances of a point to each of the columns from `begin` on."""
    for j in range(line.size):
        line[j] = 0.0
    for k in range(point.size):
        own, other = point[k], of_columns(across, k, begin, line.size)
        for j in range(line.size):
            line[j] += abs(own - other[j])


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
    sizes, lines = np.array([[1, 2], [1, 0]]), np.zeros(2)
    for metric in ROUNDED:
        points = Points(boxes, boxes, metric)
        written_out(PointRejecting(lines[:0], sizes, lines, lines, form="ragged", points=points))
