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

from collections.abc import Iterator, Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, listed_plan, plain, rational
from kernels.problems.arrays import Array, Csr

DIGITS = Context(prec=60, Emin=-999999, Emax=999999, traps=[])
ERROR = Decimal("1e-40")
FAR = 2_000_000
"""exp of minus more is below 10^-800,000 and taken as 0, which no other number here is near; of more, infinite."""
CLOSE = Fraction(1, 10**6)
"""The same above the plan's value: an objective is rounded up, by more where exp amplifies the errors of potentials."""


Plan = dict[tuple[int, int], Decimal]


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

    def __init__(self, inputs: Inputs, options: Mapping[str, Any]) -> None:
        cost = inputs.get("cost")
        assert not isinstance(cost, Csr)
        self.table, self.inputs, self.options = cost, inputs, options
        shape = (len(self._cloud("x")), len(self._cloud("y"))) if cost is None else cost.shape
        a, b = (self._masses(name, n) for name, n in zip("ab", shape, strict=True))
        self.reg = Decimal(options.get("reg", 0.05))
        strengths = options.get("reg_m", 1.0)
        pair = strengths if isinstance(strengths, list | tuple) else (strengths, strengths)
        self.strengths = [None if one in (None, "inf", float("inf")) else Decimal(one) for one in pair]
        self.product = options.get("reference", "product") == "product"
        if self.strengths == [None, None]:  # both sides exact: b is brought to the sum of a
            factor = fsum(a) / fsum(b) if any(a) and any(b) else 1.0
            b = [x * factor for x in b]
        self.a, self.b = ([Decimal(x) for x in side] for side in (a, b))

    def _cloud(self, name: str) -> Array:
        points = self.inputs[name]
        assert not isinstance(points, Csr)
        return points

    def _masses(self, name: str, n: int) -> list[float]:
        given = self.inputs.get(name)
        assert not isinstance(given, Csr)
        return [1.0 / n] * n if given is None else [float(x) for x in given.tolist()]

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


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of one problem's answer."""
    with localcontext(DIGITS):
        problem = Problem(inputs, options)
        if claim.termination == "infeasible":
            return [_infeasible(problem)]
        if wrong := _ill_listed(problem, claim.arrays):
            return [Statement("answer", False, wrong)]
        plan = returned_plan(problem, claim.arrays)
        wrong = _wrong(problem, plan)
        if wrong:
            nothing = "plan" not in claim.arrays and claim.objective is None  # potentials that diverge, and no claim
            return [Statement("answer", None if nothing else False, wrong)]
        said = [Statement("answer", True, "no mass is negative or on a forbidden entry")]
        f, g = claim.arrays["f"], claim.arrays["g"]
        said += _numbers(claim, primal(problem, plan), dual(problem, f, g), priced(problem, plan, f, g))
        stated, left = claim.max_violation or 0, residual(problem, plan)
        words = f"the exact sides are {float(left)} off in sum, {stated} is stated"
        said.append(Statement("violation", Fraction(left) <= rational(stated), words))
        if claim.termination in ("gap_reached", "optimal"):
            said.append(_reached(claim, options))
        return said


def _infeasible(problem: Problem) -> Statement:
    """Whether no plan exists, where that can be seen at once: a side without mass leaves the plan 0 alone."""
    if any(problem.a) and any(problem.b):
        return Statement("infeasible", None, "whether a plan exists is not worked out here")
    sides = zip((problem.a, problem.b), problem.strengths, strict=True)
    owed = [any(masses) and strength is None for masses, strength in sides]
    words = "a side has no mass, and the other is " + ("exact and has some" if any(owed) else "met or relaxed")
    return Statement("infeasible", any(owed), words)


def _numbers(claim: Claim, value: Sum, bound: Sum | None, price: Decimal) -> list[Statement]:
    """Objective, bound and gap against the plan's value (its open sides may be priced) and the dual value."""
    said = []
    if claim.objective is not None:
        stated, size, words = rational(claim.objective), Fraction(value.size), f"{claim.objective} is stated, "
        words += f"the plan costs {plain(value.low)}"
        said.append(Statement("objective", value.low <= stated, words))
        close = stated <= value.high + size * CLOSE + 2 * Fraction(price)
        said.append(Statement("objective close", close, words))
    if claim.bound is not None:
        true = bound is not None and rational(claim.bound) <= bound.high
        found = "nothing" if bound is None else plain(bound.high)
        said.append(Statement("bound", true, f"{claim.bound} is stated, the potentials prove {found}"))
    if claim.objective is not None and claim.bound is not None:
        apart = value.low - rational(claim.bound)
        covers = claim.gap_abs is not None and apart <= rational(claim.gap_abs)
        words = f"objective and bound are {plain(apart)} apart, {claim.gap_abs} is stated"
        said.append(Statement("gap", covers, words))
    return said


def _reached(claim: Claim, options: Mapping[str, Any]) -> Statement:
    """Whether the gap is as small as was asked."""
    asked = float(options.get("tolerance", 1e-6))
    if claim.gap_abs is None or claim.objective is None or claim.bound is None:
        return Statement("gap reached", False, "the gap was reached, it says, without an objective and a bound")
    scale = max(abs(rational(claim.objective)), abs(rational(claim.bound)))
    words = f"a gap of {claim.gap_rel} is stated, {asked} was asked"
    return Statement("gap reached", rational(claim.gap_abs) <= rational(asked) * scale, words)


def returned_plan(problem: Problem, arrays: Mapping[str, Array]) -> Plan:
    """The entries of the returned plan that are not 0.

    Where only potentials came back: P(f, g) + rest_a rest_b' (if there is a rest), but for the entries that are listed.
    """
    plan: Plan = {}
    if "plan" in arrays:
        rows, columns = np.nonzero(arrays["plan"])
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return {(i, j): Decimal(arrays["plan"][i, j].item()) for i, j in pairs}
    for i, j, cost in problem.entries():
        plan[i, j] = dual_entry(problem, i, j, cost, arrays["f"], arrays["g"])
    if "rest_a" in arrays:
        rest_a, rest_b = ([Decimal(x) for x in arrays[name].tolist()] for name in ("rest_a", "rest_b"))
        for i, j in np.ndindex(len(rest_a), len(rest_b)):
            plan[i, j] = plan.get((i, j), Decimal(0)) + rest_a[i] * rest_b[j]
    if "entry_values" in arrays:
        _, entries = listed_plan(arrays, (len(problem.a), len(problem.b)))
        plan |= {(i, j): Decimal(mass) for i, j, mass in entries}
    return {pair: mass for pair, mass in plan.items() if mass}


def _ill_listed(problem: Problem, arrays: Mapping[str, Array]) -> str:
    """What is wrong with entries that are set beside the potentials."""
    if "plan" in arrays or "entry_values" not in arrays:
        return ""
    return listed_plan(arrays, (len(problem.a), len(problem.b)))[0]


def _wrong(problem: Problem, plan: Plan) -> str:
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


def primal(problem: Problem, plan: Plan) -> Sum:
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


def _side(plan: Plan, side: int, n: int) -> list[Decimal]:
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


def residual(problem: Problem, plan: Plan) -> Decimal:
    """How far the sides that have to be exact are from their masses, in sum; less what 60 digits may add to it."""
    off = size = Decimal(0)
    for side, (masses, strength) in enumerate(zip((problem.a, problem.b), problem.strengths, strict=True)):
        if strength is None:
            found = _side(plan, side, len(masses))
            off += sum((abs(x - y) for x, y in zip(found, masses, strict=True)), Decimal(0))
            size += sum(found, Decimal(0)) + sum(masses, Decimal(0))
    return max(off - ERROR * size, Decimal(0))


def priced(problem: Problem, plan: Plan, f: Array, g: Array) -> Decimal:
    """What the mass that exact sides lack or exceed is worth at the potentials."""
    worth = Decimal(0)
    for side, (masses, potentials) in enumerate(((problem.a, f), (problem.b, g))):
        if problem.strengths[side] is None:
            for found, wanted, p in zip(_side(plan, side, len(masses)), masses, potentials.tolist(), strict=True):
                worth += abs(found - wanted) * Decimal(abs(p) if np.isfinite(p) else 0)
    return worth
