"""Optimal transport without an entropic term, checked in fractions: the plan's cost, its sides, its potentials' bound.

The problem: min over P >= 0 of sum_ij P_ij c_ij with the row sums a and the column sums b. For any g, every plan costs
at least sum_i a_i min_j (c_ij - g_j) + sum_j b_j g_j. Float masses b were brought to the sum of a by one factor. Costs
between points are those that float64 makes of them (kernels/problems/worked_out.py), as the answer says.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, listed_plan, permitted, plain, rational
from kernels.problems.arrays import Array
from kernels.problems.worked_out import worked_out

SMALL, SURE = Fraction(1, 1 << 50), Fraction(1, 10**9)
"""Of the sizes of the terms, and of the objective or the data: gaps of floats that leave the word optimal."""
Plan = dict[tuple[int, int], Fraction]


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer."""
    cost = _cost(inputs, options)
    a, b = _masses(inputs, cost)
    if claim.termination == "infeasible":
        return [_infeasible(cost, a, b, claim.arrays)]
    wrong, plan = _plan(claim.arrays, cost.shape)
    if wrong:
        return [Statement("answer", False, wrong)]
    if any(mass < 0 or not permitted(cost[i, j].item()) for (i, j), mass in plan.items()):
        return [Statement("answer", False, "the plan holds negative mass, or uses a forbidden entry")]
    said = [Statement("answer", True, "no mass is negative or on a forbidden entry")]
    g = [rational(one) for one in claim.arrays["g"].tolist()]
    u = [_row(row, g) for row in cost.tolist()]
    whole = all(np.asarray(one).dtype.kind != "f" for one in (cost, inputs.get("a", 1.0), inputs.get("b", 1.0)))
    value = sum((mass * Fraction(cost[i, j].item()) for (i, j), mass in plan.items()), Fraction(0))
    missed = [_missed(plan, side, masses) for side, masses in ((0, a), (1, b))]
    left = sum((abs(one) for side in missed for one in side), Fraction(0))
    said.append(_at_least("violation", claim.max_violation, left, "the sides are off in sum by"))
    if claim.objective is not None:
        words = f"{claim.objective} is stated, the plan costs {plain(value)}"
        stated = rational(claim.objective)
        close = stated == value if value.denominator == 1 else value <= stated <= value + abs(value) / (1 << 50)
        said.append(Statement("objective", close or 0 <= stated - value <= Fraction(1, 1 << 1074), words))
    return [*said, *_bounded(claim, a, b, u, g), *_gap(claim, cost, plan, value, (a, b), u, g, missed, whole)]


def _cost(inputs: Inputs, options: Mapping[str, Any]) -> Array:
    if "cost" in inputs:
        return np.asarray(inputs["cost"])
    x, y = (np.asarray(inputs[name]) for name in ("x", "y"))
    return worked_out(x, y, options.get("metric", "sqeuclidean"))


def _masses(inputs: Inputs, cost: Array) -> tuple[list[Fraction], list[Fraction]]:
    sides: list[list[Any]] = []
    for name, size in zip("ab", cost.shape, strict=True):
        given = inputs.get(name)
        sides.append([1.0 / size] * size if given is None else np.asarray(given).tolist())
    a, b = sides
    if not all(isinstance(one, int) for one in (*a, *b)):
        a, b = ([float(one) for one in side] for side in (a, b))
        factor = fsum(a) / fsum(b)
        b = [one * factor for one in b]
    return [Fraction(one) for one in a], [Fraction(one) for one in b]


def _plan(arrays: Mapping[str, Array], shape: Any) -> tuple[str, Plan]:
    """What is wrong with the entries of the plan, and these."""
    if "plan" in arrays:
        rows, columns = np.nonzero(arrays["plan"])
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return "", {(i, j): rational(arrays["plan"][i, j]) for i, j in pairs}
    wrong, entries = listed_plan(arrays, shape)
    return wrong, {(i, j): Fraction(mass) for i, j, mass in entries}


def _row(row: list[Any], g: list[Fraction]) -> Fraction | None:
    """min_j (c_ij - g_j); None where every entry is forbidden."""
    each = [Fraction(c) - price for c, price in zip(row, g, strict=True) if permitted(c)]
    return min(each, default=None)


def _missed(plan: Plan, side: int, masses: list[Fraction]) -> list[Fraction]:
    sums = [-mass for mass in masses]
    for pair, mass in plan.items():
        sums[pair[side]] += mass
    return sums


def _at_least(name: str, stated: Any, true: Fraction, words: str) -> Statement:
    return Statement(name, true <= rational(stated or 0), f"{words} {plain(true)}, {stated} is stated")


def _bounded(
    claim: Claim, a: list[Fraction], b: list[Fraction], u: list[Fraction | None], g: list[Fraction]
) -> list[Statement]:
    if claim.bound is None:
        return []
    if any(one is None and mass for one, mass in zip(u, a, strict=True)):
        return [Statement("bound", False, "a row with mass may use no entry, so that there is no plan")]
    rows = (mass * one for mass, one in zip(a, u, strict=True) if one is not None)
    found = sum(rows, Fraction(0)) + sum((mass * price for mass, price in zip(b, g, strict=True)), Fraction(0))
    words = f"{claim.bound} is stated, the potentials prove {plain(found)}"
    return [Statement("bound", rational(claim.bound) <= found, words)]


def _gap(
    claim: Claim,
    cost: Array,
    plan: Plan,
    value: Fraction,
    masses: tuple[list[Fraction], list[Fraction]],
    u: list[Fraction | None],
    g: list[Fraction],
    missed: list[list[Fraction]],
    whole: bool,
) -> list[Statement]:
    if claim.objective is None or claim.bound is None:
        return []
    apart = value - rational(claim.bound)
    price = sum((abs(x * one) for x, one in zip(missed[0], u, strict=True) if one is not None), Fraction(0))
    price += sum((abs(x) * abs(one) for x, one in zip(missed[1], g, strict=True)), Fraction(0))
    below = rational(claim.bound) - rational(claim.objective)
    covered = claim.gap_abs is not None and max(below, apart + price) <= rational(claim.gap_abs)
    words = f"objective and bound are {plain(apart)} apart, what the sides miss is worth {plain(price)}"
    said = [Statement("gap", covered, f"{words}, {claim.gap_abs} is stated")]
    if claim.optimal and claim.gap_abs is not None:
        sizes = sum(
            (
                m * (abs(Fraction(cost[i, j].item())) + abs(u[i] or Fraction(0)) + abs(g[j]))
                for (i, j), m in plan.items()
            ),
            Fraction(0),
        )
        data = Fraction(0)
        for mass, row in zip(masses[0], cost.tolist(), strict=True):
            data += mass * min((abs(Fraction(c)) for c in row if permitted(c) and c), default=Fraction(0))
        gap = rational(claim.gap_abs)
        earned = gap == 0 if whole else gap <= SMALL * sizes and gap <= SURE * max(abs(value), data)
        said.append(Statement("optimal", earned or gap == 0, f"the gap is {plain(gap)}"))
    return said


def _infeasible(cost: Array, a: list[Fraction], b: list[Fraction], arrays: Mapping[str, Array]) -> Statement:
    rows = sorted(set(arrays["hall_rows"].tolist()))
    if any(not 0 <= i < len(a) for i in rows):
        return Statement("infeasible", False, "a row that is named is none")
    columns = [j for j in range(len(b)) if any(permitted(cost[i, j].item()) for i in rows)]
    asked, there = (sum((masses[k] for k in lines), Fraction(0)) for masses, lines in ((a, rows), (b, columns)))
    words = f"{len(rows)} rows have the mass {plain(asked)}, and their columns {plain(there)}"
    return Statement("infeasible", asked > there, words)
