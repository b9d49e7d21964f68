"""Entropic transport, checked with 60 decimal digits: the plan's value, the value of its dual, and the sides left open.

The problem: min over P >= 0 of sum_ij P_ij (C_ij + reg (log(P_ij / R_ij) - 1)) + reg sum R + sum over the relaxed sides
of strength KL(side of P | mass), R = a b' or (reference uniform, where the term reg sum R is left out) all ones. For
any f, g the dual value below is at most that minimum.

Python's decimal rounds +, -, *, /, sqrt, exp and ln correctly, so each is within 10^-59 of its result. An argument of
exp is worked out as a fraction, rounded once, and at most `FAR` in size, so exp is within 10^-50 of its result; a cost
between points is within 10^-57 of itself, and no cost is above 10^12 reg. Hence each term of a sum is within 10^-44 of
its size, and a sum of fewer than 10^9 terms within 10^-40 of the sum of their sizes (Higham, Accuracy and Stability of
Numerical Algorithms, 2002, section 4.2). `Sum` keeps both, and every comparison allows that much.
"""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, plain, rational
from kernels.problems.arrays import Array, Csr

DIGITS = Context(prec=60, Emin=-999999, Emax=999999, traps=[])
ERROR = Decimal("1e-40")
FAR = 2_000_000
"""exp of minus more is below 10^-800,000 and taken as 0, which no other number here is near; of more, infinite."""
ROUNDED = 2.0**-40
"""Of the sizes of its terms: how far an objective, a sum of logarithms in float64, may lie from the plan's value."""


class Sum:
    """A sum and the sum of the sizes of its terms."""

    def __init__(self) -> None:
        self.value, self.size = Decimal(0), Decimal(0)

    def add(self, term: Decimal, size: Decimal | None = None) -> None:
        """One more term; `size` where parts of it cancelled."""
        self.value += term
        self.size += abs(term) if size is None else size

    @property
    def low(self) -> Fraction:
        """Not above the true sum."""
        return Fraction(DIGITS.subtract(self.value, DIGITS.multiply(ERROR, self.size)))

    @property
    def high(self) -> Fraction:
        """Not below the true sum."""
        return Fraction(DIGITS.add(self.value, DIGITS.multiply(ERROR, self.size)))


class Problem:
    """One transport problem; entry by entry, as it was given."""

    def __init__(self, inputs: Inputs, options: dict[str, Any], facts: dict[str, Any], k: int | None = None) -> None:
        self.inputs, self.options = inputs, options
        cost = inputs.get("cost")
        assert not isinstance(cost, Csr)
        self.table = cost if cost is None or k is None else cost[k]
        shape = (len(self._cloud("x")), len(self._cloud("y"))) if self.table is None else self.table.shape
        self.a, self.b = (self._masses(name, n, k) for name, n in zip("ab", shape, strict=True))
        self.reg = Decimal(options.get("reg", 0.05))
        strengths = options.get("reg_m", 1.0)
        pair = strengths if isinstance(strengths, list | tuple) else (strengths, strengths)
        self.strengths = [None if one in (None, "inf", float("inf")) else Decimal(one) for one in pair]
        self.product = options.get("reference", "product") == "product"
        factor = facts.get("mass_factor")
        if factor is not None:  # the second masses were brought to the sum of the first
            one = factor[k] if k is not None and isinstance(factor, list) else factor
            self.b = [Decimal(float(x) * one) for x in self.b]

    def _cloud(self, name: str) -> Array:
        points = self.inputs[name]
        assert not isinstance(points, Csr)
        return points

    def _masses(self, name: str, n: int, k: int | None) -> list[Decimal]:
        given = self.inputs.get(name)
        assert not isinstance(given, Csr)
        if given is None:
            return [Decimal(1.0 / n)] * n
        return [Decimal(float(x)) for x in (given[k] if k is not None and given.ndim == 2 else given).tolist()]

    def cost(self, i: int, j: int) -> Decimal | None:
        """C_ij; None where the entry is forbidden."""
        if self.table is not None:
            entry = float(self.table[i, j])
            return None if entry == np.inf else Decimal(entry)
        x, y = ([Decimal(c) for c in self._cloud(name)[k].tolist()] for name, k in (("x", i), ("y", j)))
        metric = self.options.get("metric", "sqeuclidean")
        if metric == "inner":
            return -sum((p * q for p, q in zip(x, y, strict=True)), Decimal(0))
        squared = sum(((p - q) ** 2 for p, q in zip(x, y, strict=True)), Decimal(0))
        return squared if metric == "sqeuclidean" else squared.sqrt()

    def entries(self) -> Iterator[tuple[int, int, Decimal]]:
        """The entries that a plan may use: (i, j, C_ij)."""
        for i, of_row in enumerate(self.a):
            for j, of_column in enumerate(self.b):
                cost = self.cost(i, j) if of_row and of_column else None
                if cost is not None:
                    yield i, j, cost

    def reference(self, i: int, j: int) -> Decimal:
        """R_ij."""
        return self.a[i] * self.b[j] if self.product else Decimal(1)

    def constant(self, total: Sum) -> None:
        """The term reg sum R."""
        if self.product:
            total.add(self.reg * sum(self.a) * sum(self.b))


def check(inputs: Inputs, options: dict[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer, of one problem or of a batch (whose objective and bound are sums)."""
    with localcontext(DIGITS):
        cost = inputs.get("cost")
        count = len(cost) if isinstance(cost, np.ndarray) and cost.ndim == 3 else None
        problems = [Problem(inputs, options, dict(claim.facts), k) for k in (range(count) if count else [None])]
        arrays = [{name: v if count is None else v[k] for name, v in claim.arrays.items()} for k in range(count or 1)]
        if claim.termination == "infeasible" and count is None:
            return [Statement("infeasible", None, "whether a plan exists is not worked out here")]
        if count is not None:
            return _batch(claim, options, problems, arrays)
        return _statements(claim, options, problems[0])


def _statements(claim: Claim, options: dict[str, Any], problem: Problem) -> list[Statement]:
    """Every statement about one problem."""
    plan = _plan(problem, dict(claim.arrays))
    wrong = _wrong(problem, plan)
    said = [Statement("answer", not wrong, wrong or "no mass is negative or on a forbidden entry")]
    if wrong:
        return said
    f, g = claim.arrays["f"], claim.arrays["g"]
    said += _numbers(claim, primal(problem, plan), dual(problem, f, g), residual(problem, plan))
    if claim.termination in ("gap_reached", "optimal"):
        said.append(_reached(claim, options))
    return said


def _batch(
    claim: Claim, options: dict[str, Any], problems: list[Problem], arrays: list[dict[str, Array]]
) -> list[Statement]:
    """Each problem of a batch by itself, from what the facts list of it, and the sums over those with an objective."""
    listed = claim.facts["problems"]
    names = ("terminations", "objectives", "bounds", "gaps", "violations")
    said, solved = [], []
    for k, (word, *numbers, violation) in enumerate(zip(*(listed[name] for name in names), strict=True)):
        if word == "infeasible":
            continue
        objective, bound, gap = numbers
        one = Claim(word, objective, bound, gap, None, violation, arrays[k], claim.facts)
        solved += [(objective, bound)] if objective is not None else []
        said += [replace(s, name=f"problem {k}: {s.name}") for s in _statements(one, options, problems[k])]
    if claim.objective is not None:
        total = sum((rational(objective) for objective, _ in solved), Fraction(0))
        size = sum((abs(rational(objective)) for objective, _ in solved), Fraction(0))
        right = abs(rational(claim.objective) - total) <= size / 2**50
        said.append(Statement("objective", right, f"{claim.objective} is stated, {plain(total)} is the sum"))
    if claim.bound is not None:
        least = sum((rational(bound) for _, bound in solved), Fraction(0))
        right = rational(claim.bound) <= least
        said.append(Statement("bound", right, f"{claim.bound} is stated, {plain(least)} is the sum"))
    return said


def _numbers(claim: Claim, value: Sum, lower: Sum | None, left: Decimal) -> list[Statement]:
    low, high, size = value.low, value.high, Fraction(value.size)
    said = []
    if claim.objective is not None:
        right = low - size * Fraction(ROUNDED) <= rational(claim.objective) <= high + size * Fraction(ROUNDED)
        said.append(Statement("objective", right, f"{claim.objective} is stated, {plain(low)} found"))
    if claim.bound is not None:
        true = lower is not None and rational(claim.bound) <= lower.high
        proved = "nothing" if lower is None else plain(lower.high)
        said.append(Statement("bound", true, f"{claim.bound} is stated, the potentials prove {proved}"))
    if claim.objective is not None and claim.bound is not None:
        apart = low - rational(claim.bound)
        covers = claim.gap_abs is not None and apart <= rational(claim.gap_abs)
        said.append(
            Statement("gap", covers, f"objective and bound are {plain(apart)} apart, {claim.gap_abs} is stated")
        )
    stated = claim.max_violation or 0
    words = f"the exact sides are {float(left)} off in sum, {stated} is stated"
    said.append(Statement("violation", Fraction(left) <= rational(stated), words))
    return said


def _reached(claim: Claim, options: dict[str, Any]) -> Statement:
    """Whether the gap is as small as was asked."""
    asked = float(options.get("tolerance", 1e-6))
    if claim.gap_abs is None or claim.objective is None or claim.bound is None:
        return Statement("gap reached", False, "the gap was reached, it says, without an objective and a bound")
    scale = max(abs(rational(claim.objective)), abs(rational(claim.bound)))
    words = f"a gap of {claim.gap_rel} is stated, {asked} was asked"
    return Statement("gap reached", rational(claim.gap_abs) <= rational(asked) * scale, words)


def _plan(problem: Problem, arrays: dict[str, Array]) -> dict[tuple[int, int], Decimal]:
    """The entries of the returned plan that are not 0; where only potentials came back, those of P(f, g)."""
    if "plan" in arrays:
        rows, columns = np.nonzero(arrays["plan"])
        return {
            (i, j): Decimal(arrays["plan"][i, j].item()) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        }
    plan = {(i, j): dual_entry(problem, i, j, c, arrays["f"], arrays["g"]) for i, j, c in problem.entries()}
    if "rest_a" in arrays and "rest_b" in arrays:  # both sides exact: what the potentials leave out goes everywhere
        for i, j in plan:
            plan[i, j] += Decimal(arrays["rest_a"][i].item()) * Decimal(arrays["rest_b"][j].item())
    if "entry_rows" in arrays:  # or these entries have other values, where some are forbidden
        places = zip(arrays["entry_rows"].tolist(), arrays["entry_columns"].tolist(), strict=True)
        for (i, j), mass in zip(places, arrays["entry_values"].tolist(), strict=True):
            if i >= 0:
                plan[i, j] = Decimal(mass)
    return {pair: mass for pair, mass in plan.items() if mass}


def _wrong(problem: Problem, plan: dict[tuple[int, int], Decimal]) -> str:
    for (i, j), mass in plan.items():
        if not mass.is_finite() or mass < 0:
            return f"the plan holds {mass} at [{i}, {j}]"
        if not problem.a[i] or not problem.b[j] or problem.cost(i, j) is None:
            return f"the plan uses [{i}, {j}], which is forbidden or has no mass"
    return ""


def dual_entry(problem: Problem, i: int, j: int, cost: Decimal, f: Array, g: Array) -> Decimal:
    """P(f, g)_ij = R_ij exp((f_i + g_j - C_ij) / reg)."""
    if not (np.isfinite(f[i]) and np.isfinite(g[j])):
        return Decimal(0) if f[i] == -np.inf or g[j] == -np.inf else Decimal("inf")
    exponent = (rational(f[i]) + rational(g[j]) - Fraction(cost)) / Fraction(problem.reg)
    if abs(exponent) > FAR:
        return Decimal(0) if exponent < 0 else Decimal("inf")
    return _exp(exponent) * problem.reference(i, j)


def _exp(exponent: Fraction) -> Decimal:
    return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def primal(problem: Problem, plan: dict[tuple[int, int], Decimal]) -> Sum:
    """The objective of a plan; its exact sides are taken as they are."""
    total = Sum()
    for (i, j), mass in plan.items():
        cost = problem.cost(i, j)
        assert cost is not None
        total.add(mass * cost)
        total.add(mass * problem.reg * (mass / problem.reference(i, j)).ln())
        total.add(-mass * problem.reg)
    problem.constant(total)
    for side, (masses, strength) in enumerate(zip((problem.a, problem.b), problem.strengths, strict=True)):
        for found, wanted in zip(_side(plan, side, len(masses)), masses, strict=True):
            if strength is not None and wanted:
                total.add(strength * found * (found / wanted).ln() if found else Decimal(0))
                total.add(-strength * found)
                total.add(strength * wanted)
    return total


def _side(plan: dict[tuple[int, int], Decimal], side: int, n: int) -> list[Decimal]:
    sums = [Decimal(0)] * n
    for pair, mass in plan.items():
        sums[pair[side]] += mass
    return sums


def dual(problem: Problem, f: Array, g: Array) -> Sum | None:
    """The dual value of f and g, which no plan goes below; None when it is minus infinity."""
    total = Sum()
    for i, j, cost in problem.entries():
        mass = dual_entry(problem, i, j, cost, f, g)
        if not mass.is_finite():
            return None
        total.add(-problem.reg * mass)
    problem.constant(total)
    for masses, potentials, strength in zip((problem.a, problem.b), (f, g), problem.strengths, strict=True):
        for mass, potential in zip(masses, potentials.tolist(), strict=True):
            if not mass:
                continue
            if np.isnan(potential):  # null in JSON: no entry is permitted here, and the potential is infinite
                potential = np.inf
            if potential == -np.inf or (strength is None and potential == np.inf):
                return None
            if strength is None:
                total.add(mass * Decimal(potential))
                continue
            power = Fraction(FAR) if potential == np.inf else rational(potential) / Fraction(strength)
            if power < -FAR:
                return None
            grown = Decimal(0) if power >= FAR else _exp(-power)
            total.add(strength * mass * (1 - grown), strength * mass * (1 + grown))
    return total


def residual(problem: Problem, plan: dict[tuple[int, int], Decimal]) -> Decimal:
    """How far the sides that have to be exact are from their masses, in sum."""
    off = Decimal(0)
    for side, (masses, strength) in enumerate(zip((problem.a, problem.b), problem.strengths, strict=True)):
        if strength is None:
            found = _side(plan, side, len(masses))
            off += sum((abs(x - y) for x, y in zip(found, masses, strict=True)), Decimal(0))
    return off * (1 - ERROR)
