"""Transport against what must be true: weak duality in both directions, exact sides, and whether a plan exists."""

from collections.abc import Iterator, Mapping
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from kernels import Array
from kernels.certificates.exact import transport
from kernels.certificates.exact.every import problem_of, problems_of
from kernels.certificates.exact.marginals import has_other_marginals
from kernels.certificates.exact.statement import Claim, rational
from tests.fuzz import flows, oracles, sides
from tests.fuzz.case import Case

PARTIAL = ("time_limit", "iteration_limit", "stopped")


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that a feasible plan, or the lack of one, refutes."""
    if has_other_marginals(case.options):
        yield from sides.against(case, claim)
        return
    if case.options.get("method") == "exact":
        yield from flows.against(case, claim)
        return
    cost = case.inputs.get("cost")
    if not isinstance(cost, np.ndarray) or cost.ndim == 2:
        yield from _one(case.inputs, case, claim, claim.arrays)
        return
    for k, part in enumerate(problems_of(claim, len(cost))):
        arrays = {name: array[k] for name, array in claim.arrays.items()}
        for kind, why in _one(problem_of(case.inputs, k), case, part, arrays):
            yield kind, f"problem {k}: {why}"


def _one(inputs: Any, case: Case, claim: Claim, arrays: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
    with localcontext(transport.DIGITS):
        problem = transport.Problem(inputs, case.options)
    exact = [strength is None for strength in problem.strengths]
    feasible = _feasible(problem, exact, to_the_last=True)
    if claim.termination == "infeasible":
        if feasible:
            yield "wrong", "infeasible, it says; a plan exists"
        return
    if claim.termination in ("gap_reached", "optimal") and not _feasible(problem, exact, to_the_last=False):
        yield "wrong", f"{claim.termination}, it says; no plan exists"
    if feasible and claim.objective is None and claim.termination not in PARTIAL:
        yield "refused", f"{claim.termination}, and no objective where a plan exists"
    known = claim.objective is not None and claim.bound is not None
    if known and not any(exact) and claim.objective < claim.bound:  # type: ignore[operator]
        yield "misleading", f"the objective {claim.objective} is below the bound {claim.bound}"
    if claim.termination == "gap_reached" and "plan" in arrays and any(exact):
        yield from _sides(problem, arrays["plan"])


def _feasible(problem: transport.Problem, exact: list[bool], to_the_last: bool) -> bool:
    a, b = ([Fraction(x) for x in side] for side in (problem.a, problem.b))
    allowed = [[problem.cost(i, j) is not None for j in range(len(b))] for i in range(len(a))]
    return oracles.can_be_carried(a, b, allowed, exact[0], exact[1], to_the_last)


def _sides(problem: transport.Problem, plan: Array) -> Iterator[tuple[str, str]]:
    """The exact sides of a plan are met but for the rounding of its own type."""
    for side, (masses, strength) in enumerate(zip((problem.a, problem.b), problem.strengths, strict=True)):
        if strength is not None:
            continue
        sums = [sum((rational(x) for x in line), Fraction(0)) for line in (plan if side == 0 else plan.T)]
        off = sum(abs(x - Fraction(y)) for x, y in zip(sums, masses, strict=True))
        room: Any = np.finfo(plan.dtype)
        mass = Fraction(sum(masses))
        most = mass * Fraction(float(room.eps)) * 64 * sum(plan.shape) + Fraction(float(room.tiny)) * plan.size
        if off > most:
            yield "misleading", f"exact side {side} is {float(off / mass):.2g} of its mass off in the returned plan"
