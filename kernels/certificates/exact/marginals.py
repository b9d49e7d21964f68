"""Transport that moves a part of the mass, or pays for its marginals by total variation or squares, checked slowly.

The problem: min over P >= 0 of <C, P> + reg Omega(P) + D(P); kernels/problems/marginal_transport.py has D. Sums over
exponentials and logarithms have 60 decimal digits (transport.py), all else is fractions. Without an entropic term the
potentials of the columns are taken, those of the rows follow from them.
"""

from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from math import nextafter
from typing import Any

import numpy as np

from kernels.certificates.exact.several import _sized
from kernels.certificates.exact.statement import Claim, Inputs, Statement, listed_plan, permitted, plain, rational
from kernels.certificates.exact.transport import DIGITS, Problem, dual, primal
from kernels.problems.arrays import Array
from kernels.problems.worked_out import worked_out

ROUNDED = Fraction(1, 1 << 40)
"""Of the sizes of the terms: the largest gap of floats that leaves the word optimal, and how much an objective may be
above the plan's value."""
SURE = Fraction(1001, 10**12)
"""Of the objective or the data: the same. The certificate's own is a billionth, of sums that it rounds."""
ZERO = Fraction(0)
LEAST = Fraction(1, 1 << 1074)
"""The smallest float64: what rounding a number below the normal ones may add."""


def has_other_marginals(options: Mapping[str, Any]) -> bool:
    """Whether a transport job asks for one of these."""
    return options.get("marginals", "kl") != "kl" or any(options.get(name) for name in ("mass", "mass_share"))


class Held:
    """One problem, as it was given, in fractions."""

    def __init__(self, inputs: Inputs, options: Mapping[str, Any]) -> None:
        table = inputs.get("cost")
        if table is None:
            x, y = (np.asarray(inputs[name]) for name in "xy")
            table = worked_out(x, y, options.get("metric", "sqeuclidean"))
        given = np.asarray(table)
        self.cost = [[Fraction(c) if permitted(c) else None for c in row] for row in given.tolist()]
        self.floats = np.where([[c is not None for c in row] for row in self.cost], given, np.inf).astype(np.float64)
        sides = [inputs.get(name) for name in "ab"]
        lists = [
            [1.0 / n] * n if s is None else np.asarray(s).tolist() for s, n in zip(sides, given.shape, strict=True)
        ]
        self.masses = [[Fraction(one) for one in side] for side in lists]
        self.kind = options.get("marginals", "kl") if options.get("marginals", "kl") != "kl" else "partial"
        self.whole = given.dtype.kind != "f" and all(isinstance(one, int) for side in lists for one in side)
        self.mass = self._amount(options, lists) if self.kind == "partial" else ZERO
        pair = options.get("reg_m", 1.0)
        pair = pair if isinstance(pair, list | tuple) else (pair, pair)
        self.strengths = [rational(one) for one in pair] if self.kind != "partial" else [ZERO, ZERO]
        self.whole &= all(one.denominator == 1 for one in (self.mass, *self.strengths))

    def _amount(self, options: Mapping[str, Any], lists: list[list[Any]]) -> Fraction:
        """As it was asked for; what is more than a side has by rounding is cut down to that."""
        sums = [sum(map(Fraction, side), ZERO) for side in lists]
        least = min(sums)
        most: int | float = int(least) if least.denominator == 1 else float(least)
        if Fraction(most) > least:
            most = nextafter(most, 0.0)
        if options.get("mass") is not None:
            return min(Fraction(options["mass"]), Fraction(most))
        return Fraction(most if options["mass_share"] == 1 else most * options["mass_share"])

    def least(self, side: int, potential: list[Fraction]) -> Fraction | None:
        """What a side's marginal is worth at least."""
        masses, r = self.masses[side], self.strengths[side]
        pairs = list(zip(potential, masses, strict=True))
        if self.kind == "partial":
            top = max((f for f, w in pairs if w), default=ZERO)
            return self.mass * top - sum(((top - f) * w for f, w in pairs), ZERO)
        if self.kind == "tv":
            return None if min(potential) < -r else sum((w * min(f, r) for f, w in pairs), ZERO)
        return sum((f * w - f * f / (2 * r) if f <= r * w else r * w * w / 2 for f, w in pairs), ZERO)

    def paid(self, side: int, sums: list[Fraction]) -> Fraction:
        """D of one side."""
        away = [abs(p - w) for p, w in zip(sums, self.masses[side], strict=True)]
        r = self.strengths[side]
        return r * sum(away, ZERO) if self.kind == "tv" else r / 2 * sum((one * one for one in away), ZERO)

    def natural(self) -> Fraction:
        """What is to be moved at the smallest cost that is not 0, or what an empty plan pays where that is less."""
        least = min((abs(c) for row in self.cost for c in row if c), default=ZERO)
        if self.kind == "partial":
            return self.mass * least
        nothing = (self.paid(k, [ZERO] * len(side)) for k, side in enumerate(self.masses))
        return min(sum(self.masses[0], ZERO) * least, sum(nothing, ZERO))

    def broken(self, sums: list[list[Fraction]]) -> Fraction:
        """The mass by which the limits and the sum of a part of the mass are missed."""
        if self.kind != "partial":
            return ZERO
        beyond = sum((max(p - w, ZERO) for k in (0, 1) for p, w in zip(sums[k], self.masses[k], strict=True)), ZERO)
        return beyond + abs(sum(sums[0], ZERO) - self.mass)

    def rows(self, g: list[Fraction]) -> list[Fraction]:
        """The largest potentials of the rows beside g; those without an entry get r, or that of the largest."""
        found = [min((c - p for c, p in zip(row, g, strict=True) if c is not None), default=None) for row in self.cost]
        top = max((one for one in found if one is not None), default=ZERO)
        top = self.strengths[0] if self.kind == "tv" else top
        return [top if one is None else one for one in found]


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer."""
    facts, asked = _spelled(options, claim.facts)
    chosen = {**options, "reg": facts["reg"], "reg_m": facts["reg_m"]}
    held = Held(inputs, chosen)
    if claim.termination == "infeasible":
        return [_infeasible(held, claim.arrays)]
    wrong, plan = _plan(claim.arrays, (len(held.masses[0]), len(held.masses[1])))
    if wrong:
        return [Statement("answer", False, wrong)]
    if any(mass < 0 or held.cost[i][j] is None for (i, j), mass in plan.items()):
        return [Statement("answer", False, "the plan holds negative mass, or uses a forbidden entry")]
    said = [Statement("answer", True, "no mass is negative or on a forbidden entry")]
    sums = [[ZERO] * len(side) for side in held.masses]
    for (i, j), mass in plan.items():
        sums[0][i] += mass
        sums[1][j] += mass
    off = held.broken(sums)
    words = f"limits and sum are missed by {plain(off)}, {claim.max_violation} is stated"
    said.append(Statement("violation", off <= rational(claim.max_violation or 0), words))
    said += _sized(inputs, asked, facts)
    if options.get("method") == "exact":
        value, bound, size = _linear(held, plan, sums, claim.arrays)
    else:
        value, bound, size = _entropic(held, chosen, sums, claim.arrays)
    return said + _numbers(held, options, claim, value, bound, size)


def _spelled(options: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and options with a word for strengths that the problem has not: both "inf"."""
    stated, asked = dict(facts), dict(options)
    if options.get("method") == "exact":
        stated["reg"], asked["reg"] = "inf", "inf"
    if options.get("marginals", "kl") == "kl":
        stated["reg_m"], asked["reg_m"] = ["inf", "inf"], "inf"
    default = options.get("reg_m", 1.0)
    pair = list(default) if isinstance(default, list | tuple) else [default, default]
    return {"reg": options.get("reg"), "reg_m": pair, **stated}, asked


def _plan(arrays: Mapping[str, Array], shape: tuple[int, int]) -> tuple[str, dict[tuple[int, int], Fraction]]:
    """What is wrong with the entries of the plan, and these."""
    if "plan" in arrays:
        rows, columns = np.nonzero(arrays["plan"])
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return "", {(i, j): rational(arrays["plan"][i, j]) for i, j in pairs}
    wrong, entries = listed_plan(arrays, shape)
    return wrong, {(i, j): Fraction(mass) for i, j, mass in entries}


def _linear(
    held: Held, plan: dict[tuple[int, int], Fraction], sums: list[list[Fraction]], arrays: Mapping[str, Array]
) -> tuple[Fraction, Fraction | None, Fraction]:
    """The plan's value, the best bound of the columns' potentials, and the size of the terms."""
    value = sum((mass * (held.cost[i][j] or ZERO) for (i, j), mass in plan.items()), ZERO)
    value += held.paid(0, sums[0]) + held.paid(1, sums[1])
    g = [rational(one) for one in arrays["g"].tolist()]
    if held.kind == "tv":
        r1, r2 = held.strengths
        g = [min(max(one, -r2), r2) for one in g]
        f = [max(min(one, r1), -r1) for one in held.rows(g)]
        columns = [
            [c - p for c, p in zip(column, f, strict=True) if c is not None] for column in zip(*held.cost, strict=True)
        ]
        g = [max(min([one, *column]), -r2) for one, column in zip(g, columns, strict=True)]
    else:
        f = held.rows(g)
    levels = sorted({one for one, w in zip(f, held.masses[0], strict=True) if w}) if held.kind == "partial" else []
    choices = [[min(one, level) for one in f] for level in levels] or [f]
    ours, theirs = [held.least(0, one) for one in choices], held.least(1, g)
    known = [one for one in ours if one is not None]
    bound = max(known) + theirs if known and theirs is not None else None
    size = sum((abs(p) * w for k, own in ((0, f), (1, g)) for p, w in zip(own, held.masses[k], strict=True)), ZERO)
    return value, bound, size + abs(value)


def _entropic(
    held: Held, options: Mapping[str, Any], sums: list[list[Fraction]], arrays: Mapping[str, Array]
) -> tuple[Fraction, Fraction | None, Fraction]:
    """At least the plan's value, at most the bound that f and g prove but for 40 digits, and the size of the terms."""
    masses = dict(zip("ab", (np.array([float(w) for w in side]) for side in held.masses), strict=True))
    relaxed = Problem({"cost": held.floats, **masses}, {**options, "reg_m": ["inf", 1.0]})
    potentials = [np.where(np.asarray(masses[n]) > 0, arrays[m], 0.0) for n, m in (("a", "f"), ("b", "g"))]
    if held.kind == "tv":
        potentials = [np.maximum(p, -float(r)) for p, r in zip(potentials, held.strengths, strict=True)]
    with localcontext(DIGITS):
        relaxed.strengths = [None, None]
        spent = primal(relaxed, _decimals(arrays["plan"]))
        entries = dual(relaxed, *potentials)
    value = spent.low + held.paid(0, sums[0]) + held.paid(1, sums[1])
    given = [[rational(p) for p in potential.tolist()] for potential in potentials]
    least = [held.least(side, given[side]) for side in (0, 1)]
    linear = sum((p * w for k in (0, 1) for p, w in zip(given[k], held.masses[k], strict=True)), ZERO)
    none = entries is None or least[0] is None or least[1] is None
    bound = None if none or entries is None else entries.high - linear + (least[0] or ZERO) + (least[1] or ZERO)
    return value, bound, Fraction(spent.size) + abs(value)


def _decimals(plan: Array) -> Any:
    return {
        (i, j): Decimal(plan[i, j].item()) for i, j in zip(*(one.tolist() for one in np.nonzero(plan)), strict=True)
    }


def _numbers(
    held: Held, options: Mapping[str, Any], claim: Claim, value: Fraction, bound: Fraction | None, size: Fraction
) -> list[Statement]:
    said, slack = [], ZERO if held.whole and options.get("method") == "exact" else ROUNDED * size
    if claim.objective is not None:
        words = f"{claim.objective} is stated, the plan's value is {plain(value)}"
        over = max(slack, abs(value) / 10**6, LEAST)
        close = value <= rational(claim.objective) <= value + over
        said.append(Statement("objective", close, words))
    if claim.bound is not None:
        true = bound is not None and rational(claim.bound) <= bound
        found = "nothing" if bound is None else plain(bound)
        said.append(Statement("bound", true, f"{claim.bound} is stated, the potentials prove {found}"))
    if claim.objective is not None and claim.bound is not None:
        apart = max(value - rational(claim.bound), rational(claim.bound) - rational(claim.objective))
        covers = claim.gap_abs is not None and apart <= rational(claim.gap_abs)
        said.append(Statement("gap", covers, f"{plain(apart)} apart, {claim.gap_abs} is stated"))
    entropic = options.get("method") != "exact"
    if claim.termination == "gap_reached" or (entropic and claim.optimal):
        asked = Fraction(options.get("tolerance", 1e-6))
        scale = max(abs(rational(claim.objective or 0)), abs(rational(claim.bound or 0)))
        near = claim.gap_abs is not None and rational(claim.gap_abs) <= asked * scale
        said.append(Statement("gap reached", near, f"{claim.gap_rel} is stated, {float(asked)} was asked"))
    elif claim.optimal:
        gap = None if claim.gap_abs is None else rational(claim.gap_abs)
        judged = max(abs(rational(claim.objective or 0)), held.natural())
        earned = gap is not None and (gap == 0 or (not held.whole and gap <= min(ROUNDED * size, SURE * judged)))
        said.append(Statement("optimal", earned, f"a gap of {claim.gap_abs} is stated"))
    return said


def _infeasible(held: Held, arrays: Mapping[str, Array]) -> Statement:
    rows = sorted(set(arrays["hall_rows"].tolist()))
    if any(not 0 <= i < len(held.masses[0]) for i in rows):
        return Statement("infeasible", False, "a row that is named is none")
    columns = [j for j in range(len(held.masses[1])) if any(held.cost[i][j] is not None for i in rows)]
    others = [w for i, w in enumerate(held.masses[0]) if i not in rows]
    most = sum(others, ZERO) + sum((held.masses[1][j] for j in columns), ZERO)
    words = f"without {len(rows)} rows but for their columns {plain(most)} can be moved, of {plain(held.mass)}"
    return Statement("infeasible", held.kind == "partial" and most < held.mass, words)
