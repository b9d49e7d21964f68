"""From potentials to the plan; one that carries a part of the mass is made to meet its limits and its sum."""

from typing import Any

import numpy as np

from kernels.problems.arrays import Floats
from kernels.problems.marginal_transport import MarginalTransport
from kernels.uot.flow import settle

BLOCK = 1 << 22
"""Entries in work at a time."""


def finished(xp: Any, problem: MarginalTransport, f: Floats, g: Floats) -> Floats:
    """The plan of f and g (host), on the host."""
    plan = _plan(xp, problem, f, g)
    if problem.kind != "partial":
        return plan if xp is np else np.asarray(plan.get())
    if not problem.permitted.all():
        return _rerouted(problem, plan if xp is np else plan.get())
    _limited(xp, problem, plan)
    return plan if xp is np else np.asarray(plan.get())


def _plan(xp: Any, problem: MarginalTransport, f: Floats, g: Floats) -> Any:
    m, n = problem.shape
    lines = []
    for potential, masses in ((f, problem.a), (g, problem.b)):
        with np.errstate(divide="ignore"):
            weight = np.log(masses) if problem.reference == "product" else np.where(masses > 0, 0.0, -np.inf)
        lines.append(xp.asarray(potential / problem.reg + weight))
    plan = xp.empty((m, n))
    for k in range(0, m, step := max(1, BLOCK // n)):
        part = slice(k, min(m, k + step))
        block = xp.asarray(problem.cost[part]).astype(xp.float64)
        block *= -1 / problem.reg
        block += lines[0][part, None]
        block += lines[1]
        plan[part] = xp.exp(xp.minimum(block, 700.0))
    return plan


def _limited(xp: Any, problem: MarginalTransport, plan: Any) -> None:
    """Scale lines with too much down, and spread what is then missing over what lines have left: in its place."""
    a, b = xp.asarray(problem.a), xp.asarray(problem.b)
    for masses, axis in ((b, 0), (a, 1)):
        sums = plan.sum(axis=axis)
        factor = xp.where(sums > masses, masses / xp.where(sums > 0, sums, 1.0), 1.0)
        plan *= factor[:, None] if axis else factor
    left_a, left_b = xp.maximum(a - plan.sum(axis=1), 0.0), xp.maximum(b - plan.sum(axis=0), 0.0)
    carried = float(plan.sum())
    missing, room = problem.mass - carried, min(float(left_a.sum()), float(left_b.sum()))
    if missing > 0 and room > 0:
        plan += (left_a * (min(missing, room) / float(left_a.sum())))[:, None] * (left_b / float(left_b.sum()))
    elif missing < 0:
        plan *= problem.mass / carried


def _rerouted(problem: MarginalTransport, plan: Floats) -> Floats:
    """The same where entries are forbidden: as balanced transport with one more row and column (see exact.py)."""
    m, n = problem.shape
    kept = [max(float(masses.sum()) - problem.mass, 0.0) for masses in (problem.a, problem.b)]
    whole = np.zeros((m + 1, n + 1))
    whole[:m, :n] = plan
    a, b = np.append(problem.a, kept[1]), np.append(problem.b, kept[0])
    permitted = np.ones(whole.shape, bool)
    permitted[:m, :n], permitted[m, n] = problem.permitted, False
    whole[:m, n] = np.maximum(problem.a - plan.sum(axis=1), 0.0)
    whole[m, :n] = np.maximum(problem.b - plan.sum(axis=0), 0.0)
    for line, most in ((whole[:, n], kept[0]), (whole[m], kept[1])):
        found = float(line.sum())
        line *= most / found if found > most else 1.0
    permitted &= (a > 0)[:, None] & (b > 0)
    settle(whole, permitted, a, b, lambda: None)
    return np.ascontiguousarray(whole[:m, :n])
