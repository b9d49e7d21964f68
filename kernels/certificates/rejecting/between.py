"""Costs between the points of frames, worked out again from the points alone: the proof reads no number of the solver.

The problem is that of rounded costs, whose formulas and roundings are in `kernels/problems/clouds.py`. Here they are
reached on another way, pair by pair. Rounding to nearest never reverses an order and is the same for a number and its
negative. So the rounded width that two boxes share is the least of four rounded differences, and a difference may be
taken from either side. What follows has the roundings that the formulas state, and no other.
"""

import numpy as np

from kernels.certificates.threads import cut, in_threads
from kernels.problems import Array, Rejecting
from kernels.problems.arrays import untouched
from kernels.problems.clouds import PointRejecting
from kernels.problems.points import Points

AT_ONCE = 1 << 15
"""Pairs from which a thread is worth its start."""
METRICS = ("iou", "sqeuclidean", "euclidean", "cityblock")
"""By their numbers in the loops."""


def written(problem: Rejecting) -> Rejecting:
    """The same problem with its costs: one between points with those of all pairs in float64."""
    return with_costs(problem) if isinstance(problem, PointRejecting) else problem


def with_costs(problem: PointRejecting) -> Rejecting:
    """The same problem with its costs in float64."""
    from kernels.certificates.rejecting import pair_loops as loops

    starts = problem.starts
    found = np.empty(int(starts[-1, 0]))
    in_threads(loops.write, _rows_at(starts, cut(len(found), len(found), AT_ONCE)), (*points_of(problem), found))
    return problem.written_out(found)


def _rows_at(starts: Array, entries: list[int]) -> list[int]:
    """The rows, counted over all problems, that have these entries; the last is beyond them all."""
    owner = np.searchsorted(starts[1:, 0], entries[:-1], side="right")
    owner = np.minimum(owner, len(starts) - 2)
    ahead, wide = np.array(entries[:-1]) - starts[owner, 0], starts[owner + 1, 2] - starts[owner, 2]
    return [0, *(starts[owner, 1] + ahead // np.maximum(wide, 1))[1:].tolist(), int(starts[-1, 1])]


def points_of(problem: PointRejecting) -> tuple[int, Array, Array, Array]:
    """What the loops are told of a problem: its metric, x, y and `starts`."""
    points = problem.points
    return METRICS.index(points.metric), _read(points.x), _read(points.y), untouched(problem.starts)


def _read(cloud: Array) -> Array:
    """In the one form that the loops are compiled for."""
    return untouched(np.ascontiguousarray(cloud, dtype=np.float64))


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
    lines = np.zeros(2)
    for metric in METRICS:
        with_costs(PointRejecting(lines[:0], np.array([[2, 2]]), lines, lines, points=Points(boxes, boxes, metric)))
