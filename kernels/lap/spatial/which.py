"""Which clouds of points are paired by generated columns; read by cards and estimates, so without compiled code."""

from typing import TYPE_CHECKING

from kernels.problems.points import METRICS, PointAssignment

if TYPE_CHECKING:
    from kernels.lap import LapOptions

FEWEST, FEWEST_HIGH = 2048, 4096
FLAT, HIGH = 3, 8
"""Rows from which generating columns was measured to be faster than the matrix: up to FLAT dimensions, up to HIGH."""


def suits(problem: PointAssignment, options: "LapOptions") -> bool:
    """Whether columns are generated for these points: as many rows as columns, distances of few coordinates."""
    m, n = problem.shape
    d = int(problem.points.x.shape[1])
    if problem.maximize or options.iteration_limit is not None or problem.points.metric not in METRICS:
        return False
    return m == n and d <= HIGH and m >= (FEWEST if d <= FLAT else FEWEST_HIGH)
