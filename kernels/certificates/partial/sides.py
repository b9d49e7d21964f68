"""What marginals cost, and what potentials prove of them: in fractions, without rounding.

With p the marginal of a side, w its masses and r its strength, Phi(f) is a lower bound on <f, p> + D(p):

    partial   <f, w> - (|w| - mass) max f       each p_i <= w_i, and all p_i add up to `mass`. With s the largest f_i:
                                                <f, p> = s mass - sum (s - f_i) p_i >= s mass - sum (s - f_i) w_i
    tv        sum w_i min(f_i, r)               for f_i >= -r: f_i p_i + r |p_i - w_i| is least at p_i = w_i or at 0
    l2        sum w_i f_i - f_i^2 / (2 r)       for f_i <= r w_i, least at p_i = w_i - f_i / r; else r w_i^2 / 2, at 0

Lines without mass carry nothing in a part of the mass, and are left out of its max f.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.flow.dyadic import Exact
from kernels.problems.arrays import Array
from kernels.problems.marginal_transport import MarginalTransport

DOUBT = 1e-12
"""Relative: a comparison of rounded numbers that far apart is one of the numbers themselves."""
SAID = ("reg", "reg_m", "cost_scale", "reg_scale", "costs")
"""What facts may say of a problem's strengths and costs."""


@dataclass(frozen=True)
class Side:
    """Masses, strength and potentials (finite) of the rows (0) or columns (1)."""

    problem: MarginalTransport
    number: int
    potential: Array

    @property
    def masses(self) -> Array:
        """Of its lines."""
        return (self.problem.a, self.problem.b)[self.number]

    @property
    def strength(self) -> Fraction:
        """Of total variation and squares."""
        return Fraction(self.problem.strengths[self.number])

    @property
    def top(self) -> Fraction:
        """The largest potential of a line with mass; 0 where there is none."""
        held = self.potential[self.masses > 0]
        return Fraction(held.max().item()) if held.size else Fraction(0)

    def least(self) -> Fraction | None:
        """Phi; None where the potentials prove nothing."""
        masses = Exact.of(self.masses)
        if self.problem.kind == "partial":
            kept: Fraction = masses.total - Fraction(self.problem.mass)
            return masses.dot(Exact.of(self.potential)) - kept * self.top
        if self.problem.kind == "tv":
            limit: float = self.problem.strengths[self.number]
            if self.potential.dtype.kind == "i":
                limit = math.floor(limit)  # a comparison with a float would round integers beyond 2^53
            if (self.potential < -limit).any():
                return None
            return masses.dot(Exact.of(np.minimum(self.potential, limit)))
        return self._least_squares(masses)

    def _least_squares(self, masses: Exact) -> Fraction | None:
        """Phi of squares, or None. Its first form is never above the second, and stands where rounding may err."""
        f, w, r = self.potential, self.masses, self.problem.strengths[self.number]
        if not r:  # below all floats in units of reg; potentials of 0 are worth nothing at any strength
            return None if f.any() else Fraction(0)
        empty = f > r * w * (1 + DOUBT)
        potential, without = Exact.of(np.where(empty, 0.0, f)), Exact.of(np.where(empty, w, 0.0))
        first = masses.dot(potential) - potential.dot(potential) / (2 * self.strength)
        return first + without.dot(without) * self.strength / 2

    def paid(self, sums: Exact) -> Fraction:
        """D of the side's marginal; 0 for a part of the mass."""
        if self.problem.kind == "partial":
            return Fraction(0)
        away = self.away(sums)
        return self.strength * away.absolute.total if self.problem.kind == "tv" else self.strength / 2 * away.dot(away)

    def away(self, sums: Exact) -> Exact:
        """The marginal less the masses."""
        masses = Exact.of(self.masses)
        return sums + Exact([-one for one in masses.numbers], masses.shift)

    def beyond(self, sums: Exact) -> Exact:
        """By how much a part of the mass takes more of each line than it has."""
        away = self.away(sums)
        none = self.problem.kind != "partial"
        return Exact([0 if none else max(one, 0) for one in away.numbers], away.shift)

    def price(self, sums: Exact) -> Fraction:
        """What that is worth at the potentials, to first order."""
        top = Exact.of(np.full(self.potential.size, float(self.top)))
        below = Exact([-one for one in top.numbers], top.shift) + Exact.of(self.potential)
        return self.beyond(sums).dot(below.absolute)


@dataclass(frozen=True)
class Missed:
    """The mass by which constraints are broken, in sum, and what it is worth at the potentials."""

    violation: Fraction
    price: Fraction


def missed(problem: MarginalTransport, sides: tuple[Side, Side], sums: tuple[Exact, Exact]) -> Missed:
    """How far a plan is from the constraints of its problem."""
    beyond = sum((side.beyond(own).total for side, own in zip(sides, sums, strict=True)), Fraction(0))
    short = Fraction(problem.mass) - sums[0].total if problem.kind == "partial" else Fraction(0)
    worth = sum((side.price(own) for side, own in zip(sides, sums, strict=True)), Fraction(0))
    return Missed(beyond + abs(short), worth + abs(short) * abs(sides[0].top + sides[1].top))


def misstated(problem: MarginalTransport, facts: Mapping[str, Any]) -> str:
    """What facts say of other strengths than the problem has; "" where they do not."""
    true: dict[str, Any] = {"reg_m": list(problem.strengths), **problem.told}
    if problem.reg:
        true["reg"] = problem.reg
    for name in SAID:
        if name in facts and not (name in true and facts[name] == true[name]):
            return f"{name} is stated as {facts[name]!r:.60}, and the problem has {true.get(name)!r:.60}"
    return ""
