"""Assignments of points by column generation, as `lap` calls them: which problems, and what comes back.

Coordinates are multiplied by a power of two that brings the largest one near 1, so that neither squares nor the bids'
units leave float64. All costs and duals are then theirs times another power of two, exactly.
"""

from collections.abc import Callable

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.columns.level import Answer, costs_of_pairs, value_of_duals
from kernels.lap.cpu import finely
from kernels.lap.spatial.levels import Match
from kernels.lap.spatial.pricing import Pricing
from kernels.lap.spatial.which import FEWEST
from kernels.problems.arrays import Costs, Floats
from kernels.problems.metrics import METRICS
from kernels.problems.points import PointAssignment, Points
from kernels.solution import Solution, Termination

SolveOne = Callable[[Costs, bool, Costs | None, Costs | None, int, Deadline], Solution]


class Coarsest:
    """The coarsest level, by the solver of matrices."""

    def __init__(self, metric: str, solve_one: SolveOne) -> None:
        self._metric, self._solve_one = metric, solve_one

    def __call__(self, x: Floats, y: Floats, deadline: Deadline) -> Answer:
        """Solve it; a first answer once time is up."""
        cost = finely.costs(x, y, self._metric)
        arrays = self._solve_one(cost, False, None, None, cost.size, deadline).arrays
        return Answer(arrays["assignment"], arrays["u"], arrays["v"])


class Told:
    """Reports of the finest level's rounds, in the units of the problem."""

    def __init__(self, unit: int, deadline: Deadline) -> None:
        self._unit, self._deadline = unit, deadline

    def __call__(self, search: Pricing, answer: Answer, rounds: int) -> None:
        """Tell the cost of the pairs and what the duals are worth."""
        if not self._deadline.heard:
            return
        n = len(answer.columns)
        objective, bound = costs_of_pairs(search, answer.columns, np.zeros(n)).sum(), value_of_duals(answer)
        self._deadline.report(rounds, *(float(np.ldexp(one, self._unit)) for one in (objective, bound)))


def solve(problem: PointAssignment, deadline: Deadline, solve_one: SolveOne) -> Solution:
    """Pair the points of `problem`, which `suits`; as `kernels.lap.cpu.solver.solve` otherwise.

    Duals to start from are not read: a cold start prices all pairs a few times, and they would not save that.
    """
    points = problem.points
    x, y = (np.ascontiguousarray(cloud, dtype=np.float64) for cloud in (points.x, points.y))
    _, power = np.frexp(max(np.abs(x).max(), np.abs(y).max()))
    unit = int(power) * (2 if points.metric == "sqeuclidean" else 1)
    dense, told = Coarsest(points.metric, solve_one), Told(unit, deadline)
    match = Match(METRICS.index(points.metric), dense, deadline, told)
    answer = match.match(np.ldexp(x, -power), np.ldexp(y, -power))
    ended = deadline.expired() if not match.complete else None
    arrays = {"assignment": answer.columns, "u": np.ldexp(answer.u, unit), "v": np.ldexp(answer.v, unit)}
    return Solution(
        ended or Termination.OPTIMAL,
        "columns",
        dict(arrays),
        iterations=match.counts["rounds"],
        facts=dict(match.counts),
    )


def warm_up(solve_one: SolveOne) -> None:
    """Compile pricing and the sparse solver's loops, or load them from numba's cache."""
    rng = np.random.default_rng(0)
    x, y = rng.random((FEWEST, 2)), rng.random((FEWEST, 2))
    solve(PointAssignment(np.empty((0, 0)), points=Points(x, y)), Deadline(), solve_one)
