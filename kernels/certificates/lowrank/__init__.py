"""Checks a coupling of low rank: its sums, its objective from above, and a lower bound on every coupling's.

What is proved. The factors are not negative, their column sums are g and the sums of P = Q diag(1/g) R' are the
weights, each to within what `max_violation` adds up. `objective` is at least that of P and that of a coupling whose
sums are exact (objective.py). `bound` is at most the cost of any coupling, of low rank or not (lower.py). Both are
float64, rounded to the weak side.

A gap has two parts that are not told apart: how far these factors are from the best ones of that rank, and what the
rank costs. `optimal` is earned by a relative gap of at most SURE: then no coupling of any rank is better.
`gap_reached` is earned by one within the tolerance. No solver's word is believed.
"""

from collections.abc import Callable

import numpy as np

from kernels.certificates.lowrank.lower import bound_of
from kernels.certificates.lowrank.objective import worth
from kernels.certificates.rounded import share_up, sub_up
from kernels.problems.arrays import Array
from kernels.problems.lowrank import MOST_PAIRS, LowRankTransport
from kernels.solution import Certificate, Solution, Termination, unheard

SURE = 1e-9
MOST_SHORT = 1e-9
"""Of what sums may lack of weights of sum 1, and of g, added up over all rows, columns and components."""
SMALLEST = 1e-200
"""Mass of a component: what is less could underflow in a product."""


def certify(problem: LowRankTransport, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective and bound; hold the termination to what they prove.

    Complexity: (m + n) r (d + 4) for the objective, and m n (d + 2) in blocks for the bound.
    """
    factors = _factors(problem, solution)
    if isinstance(factors, str):
        return _none(factors, 1.0)
    q, r, g = factors
    found = worth(problem, q, r, g)
    progress(0.2)
    if not found.short <= MOST_SHORT:
        return _none(f"sums are {found.short:.3g} from the weights and from g", found.short)
    if not problem.bounded:
        return _unbounded(problem, solution, found.value, found.short)
    bound = bound_of(problem, solution.arrays.get("f"), progress)
    gap = max(0.0, float(sub_up(found.value, bound)))
    relative = share_up(gap, found.value, bound)
    word, tolerance = None, solution.facts.get("tolerance")
    met = relative <= SURE
    if met:
        word = Termination.OPTIMAL
    elif isinstance(tolerance, float) and relative <= tolerance:
        word = Termination.GAP_REACHED
    else:
        word = _without_proof(solution)
    if solution.termination is Termination.STOPPED:
        word = None
    what = (
        "optimal: no coupling of any rank is better" if met else "a coupling of that rank; the gap has in it what the"
    )
    proved = f"{what if met else what + ' rank costs'}. Lower bound: optimal transport by potentials, rounded outward"
    return Certificate(found.value, bound, gap, relative, found.short, True, proved, {"verified": met}, word)


def _factors(problem: LowRankTransport, solution: Solution) -> tuple[Array, Array, Array] | str:
    """Q, R and g, or what is wrong with them."""
    m, n = problem.shape
    q, r, g = (solution.arrays.get(name) for name in ("q", "r", "g"))
    if q is None or r is None or g is None or g.ndim != 1 or not 1 <= g.size <= problem.rank:
        return "no factors of at most that rank"
    if q.shape != (m, g.size) or r.shape != (n, g.size):
        return "factors of other shapes"
    for name, one in (("q", q), ("r", r), ("g", g)):
        if one.dtype != np.float64 or not np.isfinite(one).all() or float(one.min()) < 0:
            return f"{name} holds what is no mass in float64"
        if float(one.max()) > 2:
            return f"{name} holds more mass than the weights have"
    if float(g.min()) < SMALLEST:
        return "a component without mass"
    return q, r, g


def _unbounded(problem: LowRankTransport, solution: Solution, value: float, short: float) -> Certificate:
    """Sums and objective alone."""
    m, n = problem.shape
    why = f"no lower bound, since {m} x {n} pairs are more than the {MOST_PAIRS} that one is worked out for"
    proved = f"a coupling of that rank, and its objective, rounded outward; {why}"
    word = None if solution.termination is Termination.STOPPED else _without_proof(solution)
    return Certificate(value, None, None, None, short, True, proved, {"verified": False}, word)


def _without_proof(solution: Solution) -> Termination | None:
    earned = (Termination.OPTIMAL, Termination.GAP_REACHED, Termination.INFEASIBLE)
    return Termination.CONVERGED if solution.termination in earned else None


def _none(why: str, violation: float) -> Certificate:
    return Certificate(None, None, None, None, violation, False, why, {"verified": False})
