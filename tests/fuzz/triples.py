"""Transport among three measures: plans in fractions that no bound may exceed, and optima worked out in other ways.

Those are a linear programme without an entropic term, and Newton's method on the dual problem with one.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.special import logsumexp

from kernels import Array
from kernels.certificates.exact.statement import Claim, plain, rational
from kernels.problems.multimarginal import Multimarginal, multimarginal
from tests.fuzz.between import refuted
from tests.fuzz.case import Case

MOST = 20
"""Plans that are tried."""
WIDEST = 500.0
"""Spread of costs over reg up to which the dual problem is solved."""
FARTHEST = 1e6
"""Of a potential over reg: what is rounded at that size says nothing of an optimum."""
STEPS, SETTLED = 60, 1e-8
"""Of Newton's method, and how near its sums must come to the masses, times the spread of the costs over reg."""
_known: dict[int, tuple[Case, float | None]] = {}
"""The optimum of the case that was asked for last: answers to it are corrupted one by one."""


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that a plan or the optimum refutes."""
    if claim.termination == "infeasible":
        yield "wrong", "infeasible, it says; there always is a plan"
    problem = problem_of(case)
    best = min(_value(problem, plan) for plan in plans(problem))
    if claim.bound is not None and rational(claim.bound) > best:
        yield "misleading", f"bound {claim.bound} is above a plan of {plain(best)}"
    if claim.objective is None:
        return
    if claim.gap_abs is not None and rational(claim.objective) - best > rational(claim.gap_abs):
        yield "misleading", f"gap {claim.gap_abs}, and a plan costs {plain(best)}, not {claim.objective}"
    scale, found = problem.largest + problem.reg, least(case, problem)
    if found is None or np.isnan(found):
        return
    yield from refuted(claim, found, scale)


def problem_of(case: Case) -> Multimarginal:
    """The problem that is asked."""
    reg = 0.0 if case.options.get("method") == "exact" else case.options.get("reg", "auto")
    return multimarginal(case.inputs, reg, case.options.get("metric", "sqeuclidean"))


Plan = dict[tuple[int, int, int], Fraction]


def plans(problem: Multimarginal) -> Iterator[Plan]:
    """The product, which has no entropy; without an entropic term also some with few entries."""
    sides = [[Fraction(mass) for mass in side.tolist()] for side in problem.masses]
    shares = [[mass / sum(side) for mass in side] for side in sides]
    places = [range(len(side)) for side in shares]
    yield {(i, j, k): shares[0][i] * shares[1][j] * shares[2][k] for i, j, k in itertools.product(*places)}
    rng = np.random.default_rng(len(places[0]) * 100 + len(places[1]) * 10 + len(places[2]))
    for _ in range(0 if problem.reg else MOST):
        yield _filled(shares, [rng.permutation(len(side)).tolist() for side in shares])


def _filled(shares: list[list[Fraction]], orders: list[list[int]]) -> Plan:
    """Each measure in an order, from the first points on."""
    left, at, plan = [list(side) for side in shares], [0, 0, 0], Plan()
    while all(at[s] < len(orders[s]) for s in range(3)):
        i, j, k = (orders[s][at[s]] for s in range(3))
        moved = min(left[0][i], left[1][j], left[2][k])
        plan[i, j, k] = plan.get((i, j, k), Fraction(0)) + moved
        for s, point in enumerate((i, j, k)):
            left[s][point] -= moved
            at[s] += not left[s][point]
    return plan


def _value(problem: Multimarginal, plan: Plan) -> Fraction:
    total = Fraction(0)
    for (i, j, k), mass in plan.items():
        if mass and problem.tensor is not None:
            total += mass * Fraction(problem.tensor[i, j, k].item())
        elif mass:
            pairs = ((0, i, j), (1, i, k), (2, j, k))
            total += mass * sum(Fraction(problem.pairs[p][one, other].item()) for p, one, other in pairs)
    return total


def least(case: Case, problem: Multimarginal) -> float | None:
    """The optimum in float64; None where the method does not settle."""
    if id(case) not in _known:
        _known.clear()
        _known[id(case)] = case, _linear(problem) if problem.reg == 0 else _entropic(problem)
    return _known[id(case)][1]


def _linear(problem: Multimarginal) -> float | None:
    """A linear programme over the plans."""
    cost = problem.costs(slice(None))
    top = float(np.abs(cost).max()) or 1.0
    rows = []
    for side, size in enumerate(problem.sizes):
        for point in range(size):
            line = np.zeros(problem.sizes)
            np.moveaxis(line, side, 0)[point] = 1
            rows.append(line.ravel())
    found = linprog(cost.ravel() / top, A_eq=np.array(rows), b_eq=np.concatenate(problem.masses), method="highs-ds")
    return float(found.fun) * top if found.status == 0 else None


def _entropic(problem: Multimarginal) -> float | None:
    """The largest dual value, by a quasi-Newton method."""
    held = [side > 0 for side in problem.masses]
    masses = [side[mask] for side, mask in zip(problem.masses, held, strict=True)]
    costs = problem.costs(slice(None))[np.ix_(*held)] / problem.reg
    if not np.ptp(costs) <= WIDEST:
        return None
    logs = np.log(masses[0])[:, None, None] + np.log(masses[1])[:, None] + np.log(masses[2]) - costs
    return _newton(logs, masses, max(1.0, float(np.ptp(costs)))) * problem.reg


def _newton(logs: Array, masses: list[Array], scale: float) -> float:
    """The largest <f, a> + <g, b> + <h, c> - log Z; NaN where sums are not `masses` in the end.

    So it does where potentials run away, as they may beside masses of 1e-17. The matrix of second derivatives is that
    of covariances under the plan, which has no inverse: potentials may be shared out between the sides.
    """
    wanted, flat = np.concatenate(masses), np.zeros(sum(map(len, masses)))
    ends = np.cumsum([len(side) for side in masses])[:-1]
    places = np.indices(logs.shape).reshape(3, -1) + np.array([0, *ends])[:, None]
    marks = np.zeros((logs.size, flat.size))
    for side in places:
        marks[np.arange(logs.size), side] = 1

    def value(at: Array) -> float:
        return float(at @ wanted - logsumexp(logs.ravel() + marks @ at))

    best, off = value(flat), np.inf
    for _ in range(STEPS):
        terms = logs.ravel() + marks @ flat
        plan = np.exp(terms - logsumexp(terms))
        sums = plan @ marks
        off = float(np.abs(sums - wanted).sum())
        if off * scale < SETTLED:
            return best
        step = np.linalg.lstsq((marks.T * plan) @ marks - np.outer(sums, sums), wanted - sums, rcond=1e-14)[0]
        while (found := value(flat + step)) < best and np.abs(step).max() > 1e-12:
            step /= 2
        flat, best = flat + step, max(found, best)
        if not np.abs(flat).max() < FARTHEST:
            break
    return np.nan
