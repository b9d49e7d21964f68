"""Checks a quadratic assignment whose bound comes from the semidefinite relaxation; all else as quadratic.py does.

`bound.py` says what is proved, and in which arithmetic. Where that bound is missing, unreadable or no better, the
answer is what quadratic.py says of it.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from kernels.certificates import quadratic
from kernels.certificates.quadratic_exact import ENUMERATED, whole
from kernels.certificates.relaxed.bound import proved_bound
from kernels.problems import QuadraticAssignment
from kernels.solution import Certificate, Solution, Termination, unheard

NAME = "sdp"


def certify(
    problem: QuadraticAssignment, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """The certificate of quadratic.py, with the semidefinite bound among those that are checked.

    Complexity: beyond that of quadratic.py, one factorisation of order n^2 and n^4 differences.
    """
    said = solution.facts.get("bounds")
    claims = said if isinstance(said, dict) else {}
    named = NAME in claims and solution.termination is not Termination.INFEASIBLE and problem.n > ENUMERATED
    base = quadratic.certify(problem, solution, (lambda share: progress(share / 2)) if named else progress)
    if not named or not base.holds or base.objective is None:
        return base
    evidence = {k.removeprefix(f"{NAME}:"): v for k, v in solution.evidence.items() if k.startswith(f"{NAME}:")}
    value = proved_bound(problem, evidence)
    progress(1.0)
    if value is None:
        return base
    data = whole(problem)
    checked = {name: Fraction(number) for name, number in base.facts["bounds_checked"].items()} | {NAME: value}
    permutation = solution.arrays["permutation"]
    exact = quadratic._objective(problem, data, permutation)
    found = quadratic._concluded(problem, solution, permutation, exact, checked, data is not None)
    if max(checked, key=lambda name: checked[name]) != NAME:
        return found
    how = "recomputed in exact integers but for one eigenvalue, which a float64 factorisation bounds"
    start = "optimal: meets the lower bound" if found.facts["verified"] else "lower bound:"
    tree = "; the solver's branch and bound says optimal, which is not checked here"
    return replace(found, proved=f"{start} {NAME}, {how}{tree if tree in found.proved else ''}")
