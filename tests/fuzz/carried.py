"""Transport against what must be true: weak duality in both directions, exact sides, and whether a plan exists."""

from collections.abc import Iterator
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from kernels import Array
from kernels.certificates.exact import Claim, transport
from kernels.certificates.exact.statement import rational
from tests.fuzz import oracles
from tests.fuzz.case import Case


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that a feasible plan, or the lack of one, refutes."""
    problems = problems_of(case, claim)
    strengths = problems[0].strengths
    exact = [strength is None for strength in strengths]
    feasible = [_feasible(problem, *exact) for problem in problems]
    if claim.termination == "infeasible":
        if all(feasible):
            yield "wrong", "infeasible, it says; a plan exists"
        return
    if claim.termination in ("gap_reached", "optimal") and not all(feasible):
        yield "wrong", f"{claim.termination}, it says; no plan exists"
    known = claim.objective is not None and claim.bound is not None
    if known and not any(exact) and claim.objective < claim.bound:  # type: ignore[operator]
        yield "misleading", f"the objective {claim.objective} is below the bound {claim.bound}"
    if claim.termination == "gap_reached" and "plan" in claim.arrays and any(exact):
        yield from _sides(problems, claim)


def problems_of(case: Case, claim: Claim) -> list[transport.Problem]:
    """Each problem of a batch, or the one."""
    cost = case.inputs.get("cost")
    count = len(cost) if isinstance(cost, np.ndarray) and cost.ndim == 3 else None
    with localcontext(transport.DIGITS):
        keys: list[int | None] = list(range(count)) if count is not None else [None]
        return [transport.Problem(case.inputs, case.options, dict(claim.facts), k) for k in keys]


def _feasible(problem: transport.Problem, exact_a: bool, exact_b: bool) -> bool:
    a, b = ([Fraction(x) for x in side] for side in (problem.a, problem.b))
    allowed = [[problem.cost(i, j) is not None for j in range(len(b))] for i in range(len(a))]
    return oracles.can_be_carried(a, b, allowed, exact_a, exact_b)


def _sides(problems: list[transport.Problem], claim: Claim) -> Iterator[tuple[str, str]]:
    """The exact sides of a plan are met but for the rounding of its own type."""
    plans = claim.arrays["plan"]
    each: list[Array] = [plans] if plans.ndim == 2 else list(plans)
    for problem, plan in zip(problems, each, strict=True):
        for side, (masses, strength) in enumerate(zip((problem.a, problem.b), problem.strengths, strict=True)):
            if strength is not None:
                continue
            sums = [sum((rational(x) for x in line), Fraction(0)) for line in (plan if side == 0 else plan.T)]
            off = sum(abs(x - Fraction(y)) for x, y in zip(sums, masses, strict=True))
            room: Any = np.finfo(plan.dtype)
            mass = Fraction(sum(masses))
            most = mass * Fraction(float(room.eps)) * 4 * sum(plan.shape) + Fraction(float(room.tiny)) * plan.size
            if off > most:
                yield "misleading", f"exact side {side} is {float(off / mass):.2g} of its mass off in the returned plan"
