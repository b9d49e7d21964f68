"""Transport of a part of the mass, or with priced marginals, against its optimum in fractions.

It is worked out where there is no entropic term, and but for squares: as that of balanced transport with one more row
and column, by shortest augmenting paths (flows.py).
"""

from collections.abc import Iterator
from fractions import Fraction

from kernels.certificates.exact.marginals import Held
from kernels.certificates.exact.statement import Claim, plain, rational
from tests.fuzz.case import Case
from tests.fuzz.flows import PARTIAL, ROUNDED, Table, least_flow

ZERO = Fraction(0)


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that the optimum, or the lack of a plan, refutes."""
    held = Held(case.inputs, {"reg_m": 1.0, **case.options})
    best = optimum(held)
    if best is None:
        if not held.whole and _but_for_rounding(held):
            return
        if claim.termination not in ("infeasible", *PARTIAL) or claim.objective is not None:
            yield "wrong", f"{claim.termination}, objective {claim.objective}; there is no plan"
        return
    if claim.termination == "infeasible":
        yield "wrong", "infeasible, it says; there is a plan"
        return
    if claim.objective is None:
        if claim.termination not in PARTIAL:
            yield "refused", f"{claim.termination}, and no objective where there is a plan"
        return
    if case.options.get("method") != "exact":
        if claim.bound is not None and claim.gap_abs is not None and claim.objective < claim.bound - claim.gap_abs:
            yield "misleading", f"the objective {claim.objective} is below the bound {claim.bound}"
        return
    sizes = sum(sum(side, ZERO) for side in held.masses) * max(
        (abs(c) for row in held.cost for c in row if c is not None), default=ZERO
    )
    sizes += sum((r * sum(side, ZERO) for r, side in zip(held.strengths, held.masses, strict=True)), ZERO)
    slack = ZERO if held.whole else sizes * ROUNDED
    if claim.bound is not None and rational(claim.bound) > best:
        yield "misleading", f"bound {claim.bound} is beyond the optimum {plain(best)}"
    if claim.gap_abs is not None and rational(claim.objective) - best > rational(claim.gap_abs):
        yield "misleading", f"gap {claim.gap_abs}, and the optimum {plain(best)} is further away"
    if claim.optimal and abs(rational(claim.objective) - best) > slack:
        yield "wrong", f"{claim.objective} is optimal, it says; {plain(best)} is"


def _but_for_rounding(held: Held) -> bool:
    """Whether there is a plan of a little less mass: the sums of floats may miss theirs by as much."""
    held.mass *= 1 - ROUNDED
    return optimum(held) is not None


def optimum(held: Held) -> Fraction | None:
    """The least value without an entropic term, None where there is no plan; of squares anything that is not None."""
    a, b = held.masses
    if held.kind == "l2":
        return ZERO
    if held.kind == "partial":
        if not 0 <= held.mass <= min(sum(a), sum(b)) * (1 + ROUNDED):
            return None
        mass = min(held.mass, sum(a), sum(b))
        kept = sum(b, ZERO) - mass, sum(a, ZERO) - mass
        table: Table = [[*row, ZERO] for row in held.cost] + [[*[ZERO] * len(b), None]]
        return least_flow(table, [*a, Fraction(kept[0])], [*b, Fraction(kept[1])])
    r1, r2 = held.strengths
    table = [[*row, min([r1, *(c + r2 for c in row if c is not None)])] for row in held.cost]
    back = [min([r2, *(c + r1 for c in column if c is not None)]) for column in zip(*held.cost, strict=True)]
    return least_flow([*table, [*back, ZERO]], [*a, sum(b, ZERO)], [*b, sum(a, ZERO)])
