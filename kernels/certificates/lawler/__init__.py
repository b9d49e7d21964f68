"""Checks a quadratic assignment with general costs: its objective, and a lower bound that multipliers prove.

What is proved. The answer is a permutation with the fixed facilities at their places. `objective` is the sum of its
costs: exact of integers, of floats the exact sum rounded up once (down where it is maximised). `bound` is on the weak
side of every permutation's. `whole.py` makes integers of the costs, `level.py` proves the bound of them, `every.py`
prices all permutations of eight facilities or fewer. `slow.py` checks all of it in fractions. None shares code with a
solver.

Multipliers that are wrong make a bound worse, never false. `optimal` is earned where both meet: of costs that are
exact as integers without any gap, of others within what rounding them down may hide. That may also be no more than 1e-9
of what is paid, and of the objective or of the smallest cost: dear costs that cancel may not hide what the others are.
"""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import numpy as np

from kernels.certificates.lawler.every import LARGEST, cheapest
from kernels.certificates.lawler.level import level_one
from kernels.certificates.lawler.whole import rounded, whole_of
from kernels.certificates.rounded import share_up
from kernels.problems.arrays import Array, Indices
from kernels.problems.lawler import LawlerAssignment
from kernels.solution import Certificate, Number, Solution, Termination, unheard

NEGLIGIBLE = Fraction(1, 10**9)
"""Of the sizes that an answer is judged by: how far from the bound an optimum may be, where costs were rounded."""
FARTHEST_BOUND = 2**1000
"""Multipliers that prove a bound below minus this are left out: costs are far smaller, and float64 ends near there."""


def certify(problem: LawlerAssignment, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective and bound; hold the termination to what they prove.

    Complexity: some passes over n^4 costs.
    """
    p = solution.arrays.get("permutation")
    why = _wrong(problem, p)
    if p is None or why:
        return Certificate(None, None, None, None, 1, False, why, {"verified": False})
    paid = _paid(problem, p.astype(np.int64))
    value = sum(paid, Fraction(0))
    progress(0.2)
    found, how, slack = _bound(problem, solution, progress)
    if problem.integer:
        found = Fraction(ceil(found))
    best = -found if problem.maximize else found
    sign = -1 if problem.maximize else 1
    objective, bound = _number(problem, value, sign), _number(problem, best, -sign)
    met = sign * (value - best) <= (_negligible(problem, paid, slack) if slack else 0)
    gap = abs(Fraction(objective) - Fraction(bound))
    gap_abs: Number = int(gap) if problem.integer else rounded(gap, 1)
    gap_rel = share_up(gap_abs, objective, bound)
    said = "optimal: " if met else ""
    proved = f"{said}a permutation, and its objective, recomputed; {how}"
    facts = {"verified": met, "bound_by": how}
    return Certificate(objective, bound, gap_abs, gap_rel, 0, True, proved, facts, _word(solution, met))


def _bound(
    problem: LawlerAssignment, solution: Solution, progress: Callable[[float], None]
) -> tuple[Fraction, str, Fraction]:
    """(what no permutation of the problem to be minimised is below, how that was found, what rounding may hide)."""
    if problem.free <= LARGEST:
        return cheapest(problem), "every permutation was priced", Fraction(0)
    known = {**solution.arrays, **solution.evidence}
    exponent = known.get("exponent")
    whole = whole_of(problem, exponent)
    agreed = exponent is not None and exponent.tolist() == [whole.exponent]  # else multipliers are in other units
    found = whole.worth(level_one(whole, known if agreed else {}, progress))
    if abs(found) > FARTHEST_BOUND:
        whole = whole_of(problem)
        found = whole.worth(level_one(whole, {}, progress))
    return found, "lower bound: level-1 reformulation, from its multipliers", whole.hidden


def _negligible(problem: LawlerAssignment, paid: list[Fraction], hidden: Fraction) -> Fraction:
    """How far an optimum may be from the bound, where rounding hides so much of it."""
    sizes = np.abs(problem.cost[problem.cost != 0])
    least = Fraction(sizes.min().item()) if sizes.size else Fraction(0)
    judged = min(sum(map(abs, paid), Fraction(0)), max(abs(sum(paid, Fraction(0))), least))
    return min(hidden, NEGLIGIBLE * judged)


def _paid(problem: LawlerAssignment, p: Indices) -> list[Fraction]:
    m = problem.facilities
    every = np.arange(m)
    return list(map(Fraction, problem.cost[every[:, None], p[:m, None], every, p[:m]].ravel().tolist()))


def _wrong(problem: LawlerAssignment, p: Array | None) -> str:
    """What is wrong with the answer, "" where it is one."""
    n = problem.n
    if p is None or p.dtype.kind not in "iu" or p.shape != (n,) or sorted(p.tolist()) != list(range(n)):
        return f"no permutation of {n} places"
    if any(int(p[facility]) != place for facility, place in problem.fixed.items()):
        return "a fixed facility is at another place"
    return ""


def _number(problem: LawlerAssignment, value: Fraction, towards: int) -> Number:
    """A value as the answer has it, rounded to that side."""
    return int(value) if problem.integer else rounded(value, towards)


def _word(solution: Solution, met: bool) -> Termination | None:
    if solution.termination is Termination.STOPPED:
        return None
    if met:
        return Termination.OPTIMAL
    earned = (Termination.OPTIMAL, Termination.INFEASIBLE)
    return Termination.CONVERGED if solution.termination in earned else None
