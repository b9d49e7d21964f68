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

    found = np.empty(problem.entries)
    metric, begins, ahead, x, y = pairs_of(problem)
    lines = len(begins) - 1
    ends = cut(lines, len(found), AT_ONCE)
    if lines:
        even = np.linspace(0, len(found), len(ends))[1:-1]
        ends = [0, *np.searchsorted(begins, even).tolist(), lines]

    def write(first: int, last: int) -> None:
        loops.write(metric, first, last, begins, ahead, x, y, found)

    in_threads(write, ends, ())
    return problem.written_out(found)


def pairs_of(problem: PointRejecting) -> tuple[int, Array, Array, Array, Array]:
    """What the loops are told of a problem: its metric, `begins`, `ahead`, x and y."""
    points = problem.points
    x, y = _read(points.x), _read(points.y.T if points.metric == "iou" else points.y)
    ahead, wide = _lines(problem.sizes)
    begins = np.concatenate([[0], np.cumsum(wide)])
    return METRICS.index(points.metric), untouched(begins), untouched(ahead), x, y


def _lines(sizes: Array) -> tuple[Array, Array]:
    """Of each row its first column among all columns, and how many it has."""
    return (
        np.repeat(np.cumsum(sizes[:, 1]) - sizes[:, 1], sizes[:, 0]),
        np.repeat(sizes[:, 1], sizes[:, 0]),
    )


def _read(cloud: Array) -> Array:
    """In the one form that the loops are compiled for."""
    return untouched(np.ascontiguousarray(cloud, dtype=np.float64))


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
    lines = np.zeros(2)
    for metric in METRICS:
        with_costs(PointRejecting(lines[:0], np.array([[2, 2]]), lines, lines, points=Points(boxes, boxes, metric)))
