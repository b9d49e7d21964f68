"""Barycenters against optima worked out in other ways: a linear programme, and Newton's method on the dual problem."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from kernels import Array
from kernels.certificates.exact.barycenter import problem_of
from kernels.certificates.exact.statement import Claim
from kernels.problems.barycenter import Barycenter, FreeBarycenter
from tests.fuzz.case import Case

NEAR = 1e-6
"""Of the scale of a problem: more than the errors of the oracles."""


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that the optimum refutes."""
    problem = problem_of(case.inputs, case.options)
    if claim.termination == "infeasible":
        yield "wrong", "infeasible, it says; there always is a barycenter"
    if isinstance(problem, FreeBarycenter):
        yield from _against_pairs(problem, claim)
        return
    scale = float(np.abs(problem.cost).max()) + problem.reg
    if not scale or claim.objective is None or problem.debiased:
        return
    found = least(problem)
    if found is None:
        return
    yield from refuted(claim, found, scale)


def refuted(claim: Claim, found: float, scale: float) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each number of a claim with an objective that an optimum refutes, in float64 at that scale."""
    assert claim.objective is not None
    if claim.bound is not None and claim.bound > found + NEAR * scale:
        yield "misleading", f"bound {claim.bound} is beyond the optimum {found}"
    if claim.objective < found - NEAR * scale:
        yield "wrong", f"objective {claim.objective} is below the optimum {found}"
    if claim.gap_abs is not None and claim.objective - found > claim.gap_abs + NEAR * scale:
        yield "misleading", f"gap {claim.gap_abs}, and the optimum {found} is further from {claim.objective}"


_known: dict[bytes, float | None] = {}
"""The optimum of the problem that was asked for last: answers to it are corrupted one by one."""


def least(problem: Barycenter) -> float | None:
    """The optimum in float64; None where the method does not settle."""
    arrays = (problem.masses, problem.weights, problem.cost, np.array(problem.reg))
    key = b"".join(str(one.shape).encode() + one.tobytes() for one in arrays)
    if key not in _known:
        _known.clear()
        _known[key] = linear(problem) if problem.reg == 0 else _entropic(problem)
    return _known[key]


def linear(problem: Barycenter) -> float | None:
    """A linear programme over the plans, the first of which says what the barycenter is."""
    k, m, n = problem.sizes
    top = float(np.abs(problem.cost).max()) or 1.0
    cost = np.concatenate([problem.weights[one] * problem.cost_of(one).ravel() / top for one in range(k)])
    rows = []
    for one in range(1, k):
        for i in range(m):
            line = np.zeros((k, m, n))
            line[0, i], line[one, i] = 1, -1
            rows.append(line.ravel())
    for one in range(k):
        for j in range(n):
            line = np.zeros((k, m, n))
            line[one, :, j] = 1
            rows.append(line.ravel())
    sides = np.concatenate([np.zeros((k - 1) * m), problem.masses.ravel()])
    found = linprog(cost, A_eq=np.array(rows), b_eq=sides, method="highs-ipm")
    return float(found.fun) * top if found.status == 0 else None


def _entropic(problem: Barycenter) -> float | None:
    """The largest dual value over row potentials whose weighted sum is 0, by a quasi-Newton method."""
    _, m, n = problem.sizes
    used = np.flatnonzero(problem.weights > 0)
    w, reg = problem.weights[used], problem.reg
    costs = np.stack([problem.cost_of(int(one)) for one in used]) / reg
    masses = problem.masses[used]
    if np.ptp(costs) > 2000:
        return None

    def lost(flat: Array) -> tuple[float, Array]:
        f = flat.reshape(len(used), m)
        f = f - w @ f / w.sum()
        terms = f[:, :, None] - costs - np.log(m * n)
        with np.errstate(divide="ignore"):
            columns = logsumexp(terms, axis=1)
            g = np.where(masses > 0, np.log(np.where(masses > 0, masses, 1.0)) - columns, 0.0)
        shares = np.exp(terms - columns[:, None]) * masses[:, None]
        slope = -(w[:, None] * shares.sum(axis=2))
        slope = slope - w[:, None] * (slope.sum(axis=0) / w.sum())
        return -float((w[:, None] * masses * g).sum()), -slope.ravel()

    found: Any = minimize(lost, np.zeros(len(used) * m), jac=True, method="L-BFGS-B",
                          options={"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    settled = np.abs(lost(found.x)[1]).sum() * max(1.0, float(np.ptp(costs))) < 1e-7 * (1 + abs(found.fun))
    return -float(found.fun) * reg if settled else None


def _against_pairs(problem: FreeBarycenter, claim: Claim) -> Iterator[tuple[str, str]]:
    """The bound against the transports between the measures, by linear programmes."""
    total, w = 0.0, problem.weights
    for i, j in combinations(range(len(w)), 2):
        cost = ((problem.clouds[i][:, None] - problem.clouds[j]) ** 2).sum(axis=2)
        sides = problem.masses[[i, j]].ravel()
        between = _transport(sides, cost)
        if between is None:
            return
        total += w[i] * w[j] * between
    scale = float(np.ptp(problem.clouds)) ** 2
    if claim.bound is not None and claim.bound > total / w.sum() + NEAR * scale:
        yield "misleading", f"bound {claim.bound} is beyond {total / w.sum()}, what the pairs give"
    if claim.objective is not None and claim.objective < total / w.sum() - NEAR * scale:
        yield "wrong", f"objective {claim.objective} is below {total / w.sum()}, what any barycenter costs"


def _transport(masses: Array, cost: Array) -> float | None:
    """None where the solver cannot tell: its tolerances are not made for masses and costs of any size."""
    m, n = cost.shape
    masses = masses / np.repeat([masses[:m].sum(), masses[m:].sum()], [m, n])
    sides = np.concatenate([np.kron(np.eye(m), np.ones((1, n))), np.kron(np.ones((1, m)), np.eye(n))])
    top = float(cost.max()) or 1.0
    found = linprog(cost.ravel() / top, A_eq=sides, b_eq=masses, method="highs-ds")
    return None if found.fun is None else float(found.fun) * top
