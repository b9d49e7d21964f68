"""Checks a coupling of two spaces: its sums, its objective from above, and a lower bound on every coupling's.

What is proved. `objective` is at least the objective of the plan and of a coupling whose sums are exact
(objective.py). `bound` is at most the objective of any coupling: the best of the third lower bounds by rows and by
columns (lower.py), of the projection bound of symmetric matrices (spectrum.py), and of 0 where no cost is negative.
Both are float64, rounded to the weak side.

The problem is not convex, and its bound is seldom met: a gap says how much better another plan could be at most, not
that there is one. `optimal` is earned by a gap of at most CLOSE of the sizes that the objective is a difference of, and
also of at most SURE of the objective, or of what the smallest distances are worth: far points make large sizes, and
may not hide what near ones cost. `gap_reached` is earned by a relative gap within the tolerance. No solver's word is
believed.
"""

from collections.abc import Callable

import numpy as np

from kernels.certificates.gromov.lower import third
from kernels.certificates.gromov.objective import worth
from kernels.certificates.gromov.spectrum import projected
from kernels.certificates.rounded import share_up, sub_up
from kernels.problems.gromov import GromovWasserstein
from kernels.solution import Certificate, Solution, Termination, unheard

CLOSE, SURE = 1e-11, 1e-9
MOST_SHORT = 1e-9
"""Of what a plan's sums may lack of weights of sum 1, added up over all rows and columns."""


def certify(problem: GromovWasserstein, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective and bound; hold the termination to what they prove.

    Complexity: four products of the matrices with the plan, n m K for each third bound, K about 4 max(n, m), and the
        eigenvalues of both matrices.
    """
    plan = solution.arrays.get("plan")
    if plan is None or plan.shape != problem.shape or plan.dtype != np.float64 or not np.isfinite(plan).all():
        return _none("no plan of that shape in float64", 1.0)
    if float(plan.min()) < 0:
        return _none("the plan holds negative mass", -float(plan.min()))
    if float(plan.sum()) > 2:
        return _none("the plan holds more mass than the weights have", float(plan.sum()))
    found = worth(problem, plan)
    progress(0.2)
    if not found.short <= MOST_SHORT:
        return _none(f"the plan's sums are {found.short:.3g} from the weights", found.short)
    bounds = _bounds(problem, solution, progress)
    name = max(bounds, key=lambda key: bounds[key])
    bound = bounds[name]
    gap = max(0.0, float(sub_up(found.value, bound)))
    relative = share_up(gap, found.value, bound)
    word = None
    met = gap <= min(CLOSE * found.size, SURE * max(abs(found.value), found.least))
    tolerance = solution.facts.get("tolerance")
    if met:
        word = Termination.OPTIMAL
    elif isinstance(tolerance, float) and relative <= tolerance:
        word = Termination.GAP_REACHED
    elif solution.termination in (Termination.OPTIMAL, Termination.GAP_REACHED, Termination.INFEASIBLE):
        word = Termination.CONVERGED
    if solution.termination is Termination.STOPPED:
        word = None
    proved = f"{'optimal: meets the' if met else 'a coupling, and a'} lower bound: {name}, in float64 rounded outward"
    facts = {"verified": met, "bounds_checked": bounds}
    return Certificate(found.value, bound, gap, relative, found.short, True, proved, facts, word)


def _bounds(problem: GromovWasserstein, solution: Solution, progress: Callable[[float], None]) -> dict[str, float]:
    """Each bound by name."""
    found: dict[str, float] = {}
    asked = ("rows",) if problem.symmetric else ("rows", "columns")
    for at, lines in enumerate(asked):
        found[f"third, by {lines}"] = third(problem, lines, solution.arrays.get("f"))
        progress(0.2 + 0.6 * (at + 1) / len(asked))
    spectral = projected(problem, solution.arrays.get("f"))
    if spectral is not None:
        found["projection"] = spectral
    progress(1.0)
    if problem.cost is None or float(problem.cost.min()) >= 0:
        found["nothing is negative"] = 0.0
    return found


def _none(why: str, violation: float) -> Certificate:
    return Certificate(None, None, None, None, violation, False, why, {"verified": False})
