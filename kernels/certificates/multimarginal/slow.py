"""Transport among three measures, checked with 60 decimal digits: the repaired plan's value, and the bound.

What is proved stands in `entropic.py` and `exact.py`. Here the plan is written down, repaired and priced entry by
entry. Python rounds +, -, *, /, exp and ln correctly, so a value is within 10^-40 of the sizes of its terms. A plan and
its sums over one side, where they are returned, are held against it entry by entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.problems.arrays import Array
from kernels.problems.multimarginal import PAIRS, Multimarginal, multimarginal

DIGITS = Context(prec=60, Emin=-999999, Emax=999999, traps=[])
MOST = 20_000
"""Entries of the plan: more would take minutes."""
CLOSE = Fraction(1, 10**6)
"""Of the sizes of a value's terms: how far an objective may be above it, beside what a repair is priced at."""
ROUNDED = Fraction(1, 10**38)
TOP = Decimal(690)
ZERO = Decimal(0)
SAME = Decimal("1.2e-9")
"""Of the mass: how far what is returned may be from what it is called, and a tenth or two for rounding."""
OPTIMAL = Fraction(11, 10**10)
"""Relative gap of an optimum, and a tenth for rounding."""
SLIGHT = Fraction(1, 2**44)
"""Of the largest cost: a gap that is rounding, if it is small beside the smallest as well."""
MARGINALS = dict(zip(PAIRS, ("plan_xy", "plan_xz", "plan_yz"), strict=True))


@dataclass(frozen=True)
class _Found:
    """What the answer is worth: the repaired plan's value, the sizes of its terms, the bound, what the repair may be
    priced at, the mass that it adds, and statements about what is returned."""

    value: Fraction
    size: Fraction
    bound: Fraction
    moved: Fraction
    missed: Fraction
    said: list[Statement]


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Whether each statement of the answer holds."""
    reg = 0.0 if options.get("method") == "exact" else options.get("reg", "auto")
    problem = multimarginal(inputs, reg, options.get("metric", "sqeuclidean"))
    if claim.termination == "infeasible":
        return [Statement("infeasible", False, "there always is a plan")]
    if np.prod(problem.sizes) > MOST:
        return [Statement("objective", None, f"more than {MOST} triples are not checked digit by digit")]
    if claim.objective is None or claim.bound is None:
        return [Statement("objective", None, "no objective or no bound is stated")]
    with localcontext(DIGITS):
        found = _found(problem, claim)
    stated, missed = rational(claim.objective), rational(claim.max_violation or 0)
    words = f"{claim.objective} is stated, a plan with these marginals is worth {plain(found.value)}"
    told = f"{claim.bound} is stated, the potentials give {plain(found.bound)}"
    return [
        *found.said,
        Statement("violation", found.missed <= missed, f"{plain(found.missed)} found, {plain(missed)} is stated"),
        Statement("objective", stated >= found.value - ROUNDED * found.size, words),
        Statement("objective close", stated <= found.value + CLOSE * found.size + found.moved, words),
        Statement("bound", rational(claim.bound) <= found.bound + ROUNDED * found.size, told),
        *gap_statements(claim, stated),
        *_earned(problem, claim, Fraction(options.get("tolerance", 1e-6))),
    ]


def _earned(problem: Multimarginal, claim: Claim, tolerance: Fraction) -> list[Statement]:
    """Whether the stated gap, checked beside it, allows the word that the answer ended with."""
    most = {"optimal": OPTIMAL, "gap_reached": max(OPTIMAL, tolerance)}.get(claim.termination)
    if most is None:
        return []
    objective, bound = rational(claim.objective), rational(claim.bound)
    costs = [Fraction(abs(one)) for part in problem.parts for one in part.ravel().tolist() if one]
    slight = min(SLIGHT * Fraction(problem.largest), OPTIMAL * min(costs, default=Fraction(0)))
    close = objective - bound <= max(slight, most * max(abs(objective), abs(bound)))
    return [Statement(claim.termination, close, f"objective and bound are {plain(objective - bound)} apart")]


def _found(problem: Multimarginal, claim: Claim) -> _Found:
    a, b, c = (_shares(side) for side in problem.masses)
    reference, cost, reg = a[:, None, None] * b[:, None] * c, _costs(problem), Decimal(problem.reg)
    f, g, h = (_decimals(claim.arrays[name].astype(float)) for name in "fgh")
    held = reference > 0
    spare = (cost - f[:, None, None] - g[:, None] - h)[held]
    pulled = (f * a).sum() + (g * b).sum() + (h * c).sum()
    plan = np.full(cost.shape, ZERO)
    if problem.reg:
        least = min(spare)
        assert -least / reg <= TOP, "the potentials are far from those of any plan"
        plan[held] = reference[held] * _each(-spare / reg, "exp")
        shares = reference[held] * _each((least - spare) / reg, "exp")  # of which one at least does not underflow
        bound = pulled + least - reg * shares.sum().ln()
    else:
        given = _decimals(claim.arrays["plan"].astype(float))
        assert min(given.ravel()) >= 0, "the plan has negative mass"
        plan[held] = given[held]
        bound = pulled + min(spare)
    plan, short = _repaired(plan, (a, b, c), (2, 0, 1) if problem.reg else (0, 1, 2))
    terms = (plan * cost).ravel()
    value, size = terms.sum(), abs(terms).sum() + abs(f * a).sum() + abs(g * b).sum() + abs(h * c).sum()
    some = plan > 0
    if problem.reg and some.any():
        entropy = plan[some] * _each(plan[some] / reference[some], "ln")
        value, size = value + reg * entropy.sum(), size + reg * (1 + abs(entropy).sum())
    # scaling down takes `short` from each side at most, whose entropy is left out of a stated objective as well; and
    # a certificate in float64 adds what rounding may do to sums of exponentials (`sums.py`), some times over
    size_of_all = Decimal(problem.largest) + sum(max(abs(one)) for one in (f, g, h))
    rounding = Decimal(2) ** -44 * (8 + (size_of_all / reg if reg else 0))
    if problem.reg:
        missed, said = max(ZERO, short - rounding), _returned(claim, plan, SAME + 4 * rounding)
    else:
        off = sum(abs(_side(given, at) - side).sum() for at, side in enumerate((a, b, c)))
        missed, said = off, [Statement("answer", off <= SAME, f"the plan's marginals are {off:.3g} off")]
        said += _returned(claim, given, SAME)
    short += rounding
    mixed = reg * short * (4 + 3 * (1 / short).ln()) if short > 0 else ZERO
    moved = 2 * short * Decimal(problem.largest) + mixed  # priced at the dearest triple, and as low as the cheapest
    priced = Fraction(max(ZERO, moved))
    return _Found(Fraction(value), Fraction(size), Fraction(bound), priced, Fraction(missed), said)


def _returned(claim: Claim, plan: Any, most: Decimal) -> list[Statement]:
    """Whether the plan and its sums over one side are those of `plan`, where they are returned."""
    own = {"plan": plan} | {name: plan.sum(axis=3 - i - j) for (i, j), name in MARGINALS.items()}
    said = []
    for name in own.keys() & claim.arrays.keys():
        found = _decimals(claim.arrays[name].astype(float))
        assert found.shape == own[name].shape, f"{name} has another shape"
        off = abs(found - own[name]).sum()
        said.append(Statement(name, off <= most, f"{off:.3g} of the mass from that of the potentials"))
    return said


def _repaired(plan: Any, masses: tuple[Any, ...], order: tuple[int, ...]) -> tuple[Any, Decimal]:
    """The plan with each side scaled down where it has too much and what all lack added; and how much that is.

    The sides take turns as in the proof whose objective is checked: another order gives another plan.
    """
    for side in order:
        sums = _side(plan, side)
        down = np.array([min(Decimal(1), m / s) if s else Decimal(1) for m, s in zip(masses[side], sums, strict=True)])
        plan = plan * down.reshape([-1 if at == side else 1 for at in range(3)])
    lacks = [side - _side(plan, at) for at, side in enumerate(masses)]
    short = lacks[0].sum()
    if short <= 0:
        return plan, ZERO
    lacks = [np.array([max(ZERO, one) for one in lack]) for lack in lacks]  # below by rounding at most
    return plan + lacks[0][:, None, None] * lacks[1][:, None] * lacks[2] / short**2, short


def _side(plan: Any, side: int) -> Any:
    return plan.sum(axis=tuple(at for at in range(3) if at != side))


def _costs(problem: Multimarginal) -> Any:
    """Sums of pairs without rounding."""
    if problem.tensor is not None:
        return _decimals(problem.tensor)
    first, second, third = (_decimals(part) for part in problem.pairs)
    return first[:, :, None] + second[:, None] + third


def _shares(masses: Array) -> Any:
    """The masses with the sum 1, which the stored ones are within three roundings."""
    exact = _decimals(masses)
    return exact / exact.sum()


def _decimals(values: Array) -> Any:
    return np.array([Decimal(one) for one in values.ravel().tolist()]).reshape(values.shape)


def _each(values: Any, name: str) -> Any:
    return np.array([getattr(one, name)() for one in values])
