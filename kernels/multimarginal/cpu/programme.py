"""Transport among three measures without an entropic term, as one linear programme, by HiGHS."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from kernels.deadline import Deadline
from kernels.multimarginal.rounding import MARGINALS, repaired
from kernels.multimarginal.sinkhorn import scale
from kernels.problems.arrays import Floats
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.multimarginal import MultimarginalOptions

SHARE = 0.01
"""Of the spread of the costs: the reg of the answer that stands in where the programme has not come to an end."""
STAND_IN = 200
"""Iterations that it may take."""
WAYS = tuple(
    {"primal_feasibility_tolerance": exact, "dual_feasibility_tolerance": exact, "presolve": presolve}
    for exact, presolve in ((1e-10, True), (1e-10, False), (1e-9, True))
)
"""HiGHS's tolerances, for costs whose largest is about 1, one after the other until it comes to an end. Beside masses
of 1e-11 its presolve takes a programme for infeasible, and no programme here is."""
SOLVED, OUT_OF_TIME = 0, 1
"""What SciPy says of one."""


def programme(problem: Multimarginal, options: "MultimarginalOptions", deadline: Deadline) -> Solution:
    """min <C, P> over plans with the marginals a, b, c."""
    rows, m, n = problem.sizes
    facts = {"reg": 0.0, "tolerance": float(options.tolerance)}
    cost = problem.costs(slice(None))
    unit = math.ldexp(1.0, math.frexp(problem.largest)[1]) if problem.largest else 1.0
    for way in WAYS:
        left = deadline.remaining_s
        limit = {} if math.isinf(left) else {"time_limit": max(left, 1e-3)}
        found = linprog(
            cost.ravel() / unit, A_eq=_constraints(rows, m, n), b_eq=np.concatenate(problem.masses), method="highs-ds",
            options={**way, **limit},
        )  # fmt: skip
        if found.status in (SOLVED, OUT_OF_TIME) or deadline.expired():
            break
    if found.x is None or found.status != SOLVED:
        word = deadline.expired() or (Termination.TIME_LIMIT if found.status == OUT_OF_TIME else Termination.CONVERGED)
        return _stand_in(problem, cost, options, word, facts)
    prices = np.split(found.eqlin.marginals * unit, (rows, rows + m))
    plan = np.maximum(found.x.reshape(rows, m, n), 0.0)
    arrays = _answer(problem, cost, plan, prices, options.output)
    return Solution(Termination.OPTIMAL, "exact, dual simplex", arrays, int(found.nit), facts=facts)


def _constraints(rows: int, m: int, n: int) -> Any:
    """The three marginals of a plan."""
    first = sparse.kron(sparse.eye(rows), np.ones((1, m * n)))
    second = sparse.kron(np.ones((1, rows)), sparse.kron(sparse.eye(m), np.ones((1, n))))
    third = sparse.kron(np.ones((1, rows * m)), sparse.eye(n))
    return sparse.vstack([first, second, third], format="csr")


def _answer(problem: Multimarginal, cost: Floats, plan: Floats, prices: list[Floats], output: str) -> dict[str, Floats]:
    """The plan, repaired, and potentials that are feasible but for rounding."""
    f, g, h = prices
    f = f + (cost - f[:, None, None] - g[:, None] - h).min()
    plan = repaired(problem, plan)
    arrays = {"f": f, "g": g, "h": h, "plan": plan}
    if output == "marginals":
        arrays |= {name: plan.sum(axis=axis) for name, axis in zip(MARGINALS, (2, 1, 0), strict=True)}
    return arrays


def _stand_in(
    problem: Multimarginal, cost: Floats, options: "MultimarginalOptions", word: Termination, facts: dict[str, Any]
) -> Solution:
    """A first answer by Sinkhorn's iteration, where the programme ran out of time, or HiGHS gave it up."""
    soft = replace(problem, reg=SHARE * problem.spread or 1.0)
    few = options.model_copy(update={"iterations": STAND_IN, "output": "plan"})
    found = scale(np, soft, few, Deadline())
    prices = [found.arrays[name] for name in "fgh"]
    arrays = _answer(problem, cost, found.arrays["plan"], prices, options.output)
    return Solution(word, "exact, stopped: entropic in its place", arrays, found.iterations, facts=facts)
