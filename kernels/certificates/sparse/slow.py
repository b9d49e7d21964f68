"""Transport on the entries of a sparse cost, checked with 60 decimal digits: the plan's value, and that of its dual.

The arithmetic, and what it allows for its own rounding, is that of kernels/certificates/exact/transport.py. Nothing
here is shared with a solver or with the certificate that answers jobs.
"""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from math import fsum
from statistics import median
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.certificates.exact.transport import (
    CLOSE,
    DIGITS,
    Plan,
    Problem,
    Sum,
    dual,
    priced,
    primal,
    residual,
)
from kernels.problems.arrays import Array, Csr

SHARES = (0.05, 1.0, 1.0)
"""Of the size of the costs: reg, and reg_m of both sides, where they were left open."""
LITTLE = Fraction(1, 2**600)
"""More than what underflows adds to an objective."""
NEAR = 1e-6
"""How far a stated size of the costs may be off."""


class Stored(Problem):
    """One problem, entry by entry, as it was given."""

    def __init__(self, inputs: Inputs, options: Mapping[str, Any], strengths: tuple[float, list[float]]) -> None:
        graph = inputs["cost"]
        assert isinstance(graph, Csr)
        self.inputs, self.options, self.table = inputs, options, None
        ends = np.asarray(graph.indptr).tolist()
        columns, values = np.asarray(graph.indices).tolist(), np.asarray(graph.values).tolist()
        self.pairs = [(i, columns[k]) for i in range(graph.shape[0]) for k in range(ends[i], ends[i + 1])]
        self.costs = {pair: Decimal(float(value)) for pair, value in zip(self.pairs, values, strict=True)}
        a, b = (self._masses(name, size) for name, size in zip("ab", graph.shape, strict=True))
        self.reg, pair = Decimal(strengths[0]), strengths[1]
        self.strengths = [None if math.isinf(one) else Decimal(one) for one in pair]
        self.product = options.get("reference", "product") == "product"
        if self.strengths == [None, None]:  # both sides exact: b is brought to the sum of a
            factor = fsum(a) / fsum(b) if any(a) and any(b) else 1.0
            b = [x * factor for x in b]
        self.a, self.b = ([Decimal(x) for x in side] for side in (a, b))

    def cost(self, i: int, j: int) -> Decimal | None:
        """C_ij; None where it is not stored."""
        return self.costs.get((i, j))

    def entries(self) -> Iterator[tuple[int, int, Decimal]]:
        """The entries that a plan may use."""
        return ((i, j, cost) for (i, j), cost in self.costs.items() if self.a[i] and self.b[j])

    def constant(self, total: Sum) -> None:
        """The term reg sum R, over the stored entries."""
        if self.product:
            for i, j in self.pairs:
                total.add(self.reg * self.a[i] * self.b[j])


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer."""
    if options.get("certificate") == "none":
        return [Statement("certificate", None, "the job asked for none, so nothing is stated that could be checked")]
    if "reg" not in claim.facts:
        return [Statement("strengths", None, "the answer does not say which reg and reg_m it had")]
    pair = [math.inf if one in (None, "inf") else float(one) for one in claim.facts["reg_m"]]
    with localcontext(DIGITS):
        problem = Stored(inputs, options, (float(claim.facts["reg"]), pair))
        said = _sized(problem, options, claim.facts)
        if claim.termination == "infeasible":
            return [*said, _infeasible(problem, claim.arrays)]
        wrong, plan = _plan(problem, claim.arrays)
        if wrong:
            return [*said, Statement("answer", False, wrong)]
        said.append(Statement("answer", True, "no mass is negative or where there is none"))
        return [*said, *_numbers(problem, plan, claim), *_reached(claim, options)]


def _plan(problem: Stored, arrays: Mapping[str, Array]) -> tuple[str, Plan]:
    masses = arrays.get("entry_values")
    if masses is None or masses.shape != (len(problem.pairs),):
        return f"there are no {len(problem.pairs)} entry_values", {}
    plan: Plan = {}
    for (i, j), mass in zip(problem.pairs, masses.tolist(), strict=True):
        if not (math.isfinite(mass) and mass >= 0) or (mass and not (problem.a[i] and problem.b[j])):
            return f"the plan holds {mass} at [{i}, {j}]", {}
        if mass:
            plan[i, j] = Decimal(mass)
    return "", plan


def _numbers(problem: Stored, plan: Plan, claim: Claim) -> list[Statement]:
    said = []
    f, g = claim.arrays["f"], claim.arrays["g"]
    value, bound, price = primal(problem, plan), dual(problem, f, g), Fraction(priced(problem, plan, f, g))
    if claim.objective is not None:
        stated, size = rational(claim.objective), Fraction(value.size)
        words = f"{claim.objective} is stated, the plan costs {plain(value.low)}"
        said.append(Statement("objective", value.low <= stated, words))
        said.append(Statement("objective close", stated <= value.high + size * CLOSE + 2 * price + LITTLE, words))
    if claim.bound is not None:
        found = "nothing" if bound is None else plain(bound.high)
        true = bound is not None and rational(claim.bound) <= bound.high
        said.append(Statement("bound", true, f"{claim.bound} is stated, the potentials prove {found}"))
    said += gap_statements(claim, value.low if claim.objective is not None else None)
    stated_off, left = claim.max_violation or 0, residual(problem, plan)
    words = f"the exact sides are {float(left)} off in sum, {stated_off} is stated"
    within = math.isinf(stated_off) or Fraction(left) <= rational(stated_off)
    said.append(Statement("violation", within, words))
    for side, name in enumerate(("row_marginal", "column_marginal")):
        if name in claim.arrays:
            said.append(_marginal(problem, plan, side, claim.arrays[name]))
    return said


def _marginal(problem: Stored, plan: Plan, side: int, shown: Array) -> Statement:
    """Whether a marginal that is shown is that of the plan, but for what k sums of float64 may round."""
    name = ("row_marginal", "column_marginal")[side]
    sums, counts = [Decimal(0)] * shown.size, [1] * shown.size
    for pair, mass in plan.items():
        sums[pair[side]] += mass
        counts[pair[side]] += 1
    off = [
        abs(Decimal(given) - true) - count * true * Decimal(2) ** -52
        for given, true, count in zip(shown.tolist(), sums, counts, strict=True)
    ]
    return Statement(name, max(off) <= 0, f"is that of the plan, but for {float(max(*off, Decimal(0))):.3g}")


def _reached(claim: Claim, options: Mapping[str, Any]) -> list[Statement]:
    """Whether the gap is as small as was asked, where the answer says so."""
    if claim.termination not in ("gap_reached", "optimal"):
        return []
    if claim.gap_abs is None or claim.objective is None or claim.bound is None:
        return [Statement("gap reached", False, "the gap was reached, it says, without an objective and a bound")]
    asked = rational(float(options.get("tolerance", 1e-6)))
    scale = max(abs(rational(claim.objective)), abs(rational(claim.bound)))
    words = f"a gap of {claim.gap_rel} is stated, {float(asked)} was asked"
    return [Statement("gap reached", rational(claim.gap_abs) <= asked * scale, words)]


def _infeasible(problem: Stored, arrays: Mapping[str, Array]) -> Statement:
    """Whether the lines that are named have more mass than all that they may use."""
    for side, name in enumerate(("hall_rows", "hall_columns")):
        if name not in arrays or problem.strengths[side] is not None:
            continue
        own, other = (problem.a, problem.b) if side == 0 else (problem.b, problem.a)
        chosen = set(np.asarray(arrays[name]).tolist())
        if not chosen or min(chosen) < 0 or max(chosen) >= len(own):
            continue
        used = {pair[1 - side] for pair in problem.pairs if pair[side] in chosen}
        have, room = (sum(map(Fraction, masses), Fraction(0)) for masses in ([own[i] for i in chosen],
                                                                             [other[j] for j in used]))  # fmt: skip
        short = have > room if problem.strengths[1 - side] is None else bool(have > 0 and not room)
        return Statement("infeasible", short, f"{name} have {plain(have)}, and what they may use takes {plain(room)}")
    return Statement("infeasible", None, "the answer names no lines that show it")


def _sized(problem: Stored, options: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Statement]:
    """Whether reg and reg_m are what was asked, by the size of the costs worked out again."""
    given = options.get("reg_m", "auto")
    asked = [options.get("reg", "auto"), *(given if isinstance(given, list | tuple) else (given, given))]
    kind = options.get("reg_scale", "none")
    size = _size(problem, "mean" if kind == "none" else kind)
    stated = [facts["reg"], *facts["reg_m"]]
    off = []
    for name, one, share, said in zip(("reg", "reg_m of rows", "reg_m of columns"), asked, SHARES, stated, strict=True):
        shown = math.inf if said in (None, "inf") else float(said)
        wanted = share if one == "auto" else math.inf if one in (None, "inf") else float(one)
        relative = one == "auto" or kind != "none"
        true = wanted * size if relative else wanted
        right = shown == true if math.isinf(true) or not relative else abs(shown - true) <= NEAR * true
        if not right:
            off.append(f"{name} is {shown}, and {true} was asked")
    return [Statement("strengths", not off, "; ".join(off) or "reg and reg_m are what was asked")]


def _size(problem: Stored, kind: str) -> float:
    """The mean, by masses, or the median size of the costs that lie between mass; 1 where there is none."""
    held = [(problem.a[i] * problem.b[j], abs(cost)) for i, j, cost in problem.entries()]
    if not any(cost for _, cost in held):
        return 1.0
    if kind == "median":
        return float(median([cost for _, cost in held])) or 1.0
    return float(sum(weight * cost for weight, cost in held) / sum(weight for weight, _ in held))
