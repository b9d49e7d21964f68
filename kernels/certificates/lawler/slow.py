"""Lawler's quadratic assignment, checked with Python's integers alone, entry by entry.

The third implementation, to be read: it shares nothing with a solver or with the certificate that answers jobs.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.problems.arrays import Array

MOST_TRIED = 7
"""Free facilities, up to which every permutation is priced."""
LARGEST = 24
"""Free facilities, up to which multipliers are gone through: n^4 steps of Python."""
MOST_BITS = 4000
NEGLIGIBLE = Fraction(1, 10**9)
"""Of what is paid, and of the objective or the smallest cost: how far from the optimum floats are called optimal."""


class Costs:
    """What two placements cost, as a fraction to be minimised, and which facilities and places are free."""

    def __init__(self, cost: Array, maximize: bool, fixed: Mapping[int, int]) -> None:
        self.m, self.n = cost.shape[:2]
        self.cost, self.sign, self.fixed = cost, -1 if maximize else 1, fixed
        self.facilities = [one for one in range(self.n) if one not in fixed]
        self.places = [one for one in range(self.n) if one not in set(fixed.values())]

    def of(self, i: int, p: int, k: int, q: int) -> Fraction:
        """0 for a facility that costs nothing, and for what cannot be."""
        if max(i, k) >= self.m or (i == k) != (p == q):
            return Fraction(0)
        return self.sign * Fraction(self.cost[i, p, k, q].item())

    def total(self, permutation: list[int]) -> Fraction:
        """What a permutation pays."""
        return sum(self.paid(permutation), Fraction(0))

    def paid(self, permutation: list[int]) -> list[Fraction]:
        """One by one."""
        every = range(self.m)
        return [self.of(i, permutation[i], k, permutation[k]) for i in every for k in every]

    def least(self) -> Fraction:
        """The cheapest of all permutations."""
        found = []
        for rest in permutations(self.places):
            whole = dict(self.fixed) | dict(zip(self.facilities, rest, strict=True))
            found.append(self.total([whole[i] for i in range(self.n)]))
        return min(found)


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Say of each statement of an answer whether it holds."""
    if claim.termination == "infeasible":
        return [Statement("infeasible", False, "no pair is forbidden, so that every permutation is an answer")]
    fixed = {int(one): int(place) for one, place in (options.get("fixed") or {}).items()}
    costs = Costs(np.asarray(inputs["cost"]), bool(options.get("maximize", False)), fixed)
    given = claim.arrays.get("permutation")
    p = [] if given is None or given.dtype.kind not in "iu" else given.tolist()
    if sorted(p) != list(range(costs.n)):
        return [Statement("answer", False, f"it is no permutation of {costs.n} places")]
    if any(p[one] != place for one, place in fixed.items()):
        return [Statement("answer", False, "a fixed facility is at another place")]
    said = [Statement("answer", True, "a permutation")]
    paid = costs.paid(p)
    value = sum(paid, Fraction(0))
    if claim.objective is None:
        return [*said, Statement("objective", False, "there is none")]
    stated = costs.sign * rational(claim.objective)
    size = sum(map(abs, paid), Fraction(0))
    right = stated == value if isinstance(claim.objective, int) else value <= stated <= value + size / 2**50
    words = f"the permutation costs {plain(costs.sign * value)}, {claim.objective} is stated"
    said.append(Statement("objective", right, words))
    said += _bound(costs, claim, value, size)
    return [*said, *gap_statements(claim, costs.sign * value, costs.sign < 0)]


def _bound(costs: Costs, claim: Claim, value: Fraction, size: Fraction) -> list[Statement]:
    if claim.bound is None:
        return [Statement("bound", None, "none is stated")]
    stated, free = costs.sign * rational(claim.bound), len(costs.facilities)
    slack = Fraction(0)
    if free <= MOST_TRIED:
        proved, how = costs.least(), "the best of all permutations has"
    elif free > LARGEST or any(claim.arrays.get(name) is None for name in ("exponent", "rows", "columns", "prices")):
        return [Statement("bound", None, "the answer has no multipliers that could be gone through (option duals)")]
    else:
        proved, slack = _level_one(costs, claim)
        how = "the multipliers prove"
    if costs.cost.dtype.kind in "iu":
        proved = Fraction(math.ceil(proved))
    said = [Statement("bound", stated <= proved, f"{how} {plain(costs.sign * proved)}, {claim.bound} is stated")]
    if claim.optimal:
        least = min((abs(Fraction(one)) for one in costs.cost.ravel().tolist() if one), default=Fraction(0))
        met = value - proved <= min(slack, NEGLIGIBLE * min(size, max(abs(value), least)))
        said.append(Statement("optimal", met, f"it is {plain(value - proved)} from the bound"))
    return said


def _level_one(costs: Costs, claim: Claim) -> tuple[Fraction, Fraction]:
    """What multipliers prove of the floors of all costs times 2^exponent, and what these floors may hide."""
    rows, columns, prices = (claim.arrays[name].tolist() for name in ("rows", "columns", "prices"))
    exponent = int(claim.arrays["exponent"][0])
    assert abs(exponent) <= MOST_BITS, "the exponent is beyond any float's"
    unit, k = Fraction(2) ** exponent, len(costs.facilities)
    lost = any((Fraction(one) * unit).denominator != 1 for one in costs.cost.ravel().tolist())

    def floor(i: int, p: int, j: int, q: int) -> int:
        return math.floor(costs.of(i, p, j, q) * unit)

    facilities, places, fixed = costs.facilities, costs.places, list(costs.fixed.items())
    leader = [[floor(i, p, i, p) for p in places] for i in facilities]
    for one, place in fixed:
        for a, i in enumerate(facilities):
            for b, p in enumerate(places):
                leader[a][b] += floor(i, p, one, place) + floor(one, place, i, p)
    grain = math.gcd(*(entry for line in leader for entry in line))
    for a in range(k):
        for b in range(k):
            leader[a][b] += sum(rows[a][b][c] for c in range(k) if c != a)
            leader[a][b] += sum(columns[a][b][d] for d in range(k) if d != b)
    for a, i in enumerate(facilities):
        for b, p in enumerate(places):
            for c in range(a + 1, k):
                rest = []
                for d in range(k):
                    if d == b:
                        continue
                    both = floor(i, p, facilities[c], places[d]) + floor(facilities[c], places[d], i, p)
                    grain = math.gcd(grain, both)
                    rest.append(both - rows[a][b][c] - columns[a][b][d] - rows[c][d][a] - columns[c][d][b])
                leader[a][b] += min(rest)
    tried = (prices, [0] * k, [min(column) >> 1 for column in zip(*leader, strict=True)])
    least = max(sum(min(one - v for one, v in zip(line, w, strict=True)) for line in leader) + sum(w) for w in tried)
    found = -(-least // grain) * grain if grain else 0
    found += sum(floor(*one, *other) for one in fixed for other in fixed)
    return found / unit, costs.m**2 / unit if lost else Fraction(0)
