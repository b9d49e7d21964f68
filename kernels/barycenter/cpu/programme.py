"""A barycenter without an entropic term, as one linear programme, by HiGHS."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from kernels.barycenter.projections import project
from kernels.deadline import Deadline
from kernels.problems.arrays import Array, Floats
from kernels.problems.barycenter import Barycenter
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions

SHARE = 0.01
"""Of the spread of the costs: the reg of the answer that stands in where the programme has not come to an end."""
LEAST_SPREAD = 1e-9
"""Of the largest cost: potentials are rounded at that size, and smaller spreads would be lost in it."""
STAND_IN = 200
"""Iterations that it may take."""
EXACT = 1e-10
"""HiGHS's tolerances, for costs whose largest is about 1."""


def programme(problem: Barycenter, options: "BarycenterOptions", deadline: Deadline) -> Solution:
    """min sum_k w_k <C_k, P_k> over plans with column sums a_k and one common vector of row sums b."""
    k, m, n = problem.sizes
    facts = {"reg": 0.0, "tolerance": float(options.tolerance)}
    used = np.flatnonzero(problem.weights > 0)
    top = float(np.abs(problem.cost).max())
    unit = math.ldexp(1.0, math.frexp(top)[1]) if top else 1.0
    left = deadline.remaining_s
    limit = {} if math.isinf(left) else {"time_limit": max(left, 1e-3)}
    each = [(problem.weights[one] * k / unit * problem.cost_of(int(one))).ravel() for one in used]
    sides = np.concatenate([np.zeros(used.size * m), problem.masses[used].ravel()])
    found = linprog(
        np.concatenate([*each, np.zeros(m)]), A_eq=_constraints(used.size, m, n), b_eq=sides,
        method="highs-ds",
        options={"primal_feasibility_tolerance": EXACT, "dual_feasibility_tolerance": EXACT, **limit},
    )  # fmt: skip
    if found.x is None or found.status != 0:
        return _stand_in(problem, options, deadline, facts)
    plan, b = np.zeros((k, m, n)), np.maximum(found.x[-m:], 0.0)
    b /= b.sum()
    plan[used] = np.maximum(found.x[:-m].reshape(used.size, m, n), 0.0)
    f = np.zeros((k, m))
    prices = found.eqlin.marginals[: used.size * m].reshape(used.size, m)
    f[used] = prices * (unit / k) / problem.weights[used, None]
    rest = np.setdiff1d(np.arange(k), used)
    plan[rest] = b[:, None] * problem.masses[rest, None]
    arrays = {"barycenter": b, "plan": plan, **_potentials(problem, f)}
    return Solution(Termination.OPTIMAL, "exact, dual simplex", arrays, int(found.nit), facts=facts)


def _constraints(k: int, m: int, n: int) -> Any:
    """Row sums of each plan less b, then its column sums."""
    rows = sparse.kron(sparse.eye(k * m), np.ones((1, n)))
    columns = sparse.kron(sparse.eye(k), sparse.kron(np.ones((1, m)), sparse.eye(n)))
    b = sparse.vstack([sparse.kron(np.ones((k, 1)), -sparse.eye(m)), sparse.csr_array((k * n, m))])
    return sparse.hstack([sparse.vstack([rows, columns]), b], format="csr")


def _potentials(problem: Barycenter, f: Floats) -> dict[str, Array]:
    """f less what its weighted sum is off from 0, and the best g for it."""
    w = problem.weights
    f = f - w @ f / w.sum()
    g = np.stack([(problem.cost_of(one) - f[one][:, None]).min(axis=0) for one in range(len(f))])
    return {"f": f, "g": g}


def _stand_in(problem: Barycenter, options: "BarycenterOptions", deadline: Deadline, facts: dict[str, Any]) -> Solution:
    """A first answer by projections, where the programme ran out of time."""
    _, m, n = problem.sizes
    spread = float(problem.cost.max() - problem.cost.min())
    spread = max(spread, LEAST_SPREAD * float(np.abs(problem.cost).max())) or 1.0
    soft = replace(problem, reg=SHARE * spread)
    few = options.model_copy(update={"iterations": STAND_IN})
    found = project(np, soft, few, Deadline())
    b, f, g = (found.arrays[name] for name in ("barycenter", "f", "g"))
    plan = np.empty(problem.sizes)
    for one in range(len(f)):
        plan[one] = np.exp((f[one][:, None] + g[one] - problem.cost_of(one)) / soft.reg) / (m * n)
    word = deadline.expired() or Termination.TIME_LIMIT
    arrays = {"barycenter": b, "plan": plan, **_potentials(problem, f)}
    return Solution(word, "exact, stopped: entropic in its place", arrays, found.iterations, facts=facts)
