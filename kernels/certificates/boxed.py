"""Which assignments of points are proved by boxes (`metrics/boxes.py`); estimates ask too, so without compiled code."""

from kernels.problems.points import METRICS, PointAssignment

FEWEST = 1 << 17
"""Pairs from which boxes take less time than a sweep over all of them."""
HIGHEST = 8
"""Dimensions up to which that was measured."""


def suits(problem: PointAssignment) -> bool:
    """Whether costs are to be minimised, of a metric that boxes know bounds of, and many enough."""
    m, n = problem.shape
    metric, d = problem.points.metric, problem.points.x.shape[1]
    return not problem.maximize and metric in METRICS and d <= HIGHEST and m * n >= FEWEST
