"""What marginals cost, and what potentials prove of them: in fractions, without rounding.

With p the marginal of a side, w its masses and r its strength, Phi(f) is a lower bound on <f, p> + D(p):

    partial   <f, w> - (|w| - mass) max f       each p_i <= w_i, and all p_i add up to `mass`. With s the largest f_i:
                                                <f, p> = s mass - sum (s - f_i) p_i >= s mass - sum (s - f_i) w_i
    tv        sum w_i min(f_i, r)               for f_i >= -r: f_i p_i + r |p_i - w_i| is least at p_i = w_i or at 0
    l2        sum w_i f_i - f_i^2 / (2 r)       for f_i <= r w_i, least at p_i = w_i - f_i / r; else r w_i^2 / 2, at 0

Lines without mass carry nothing in a part of the mass, and are left out of its max f.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.flow.dyadic import Exact
from kernels.problems.arrays import Array
from kernels.problems.marginal_transport import MarginalTransport

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
            limit = self.problem.strengths[self.number]
            if (self.potential < -limit).any():
                return None
            return masses.dot(Exact.of(np.minimum(self.potential, limit)))
        pairs = zip(self.potential.tolist(), self.masses.tolist(), strict=True)
        return sum((_square(Fraction(f), Fraction(w), self.strength) for f, w in pairs), Fraction(0))

    def paid(self, sums: list[Fraction]) -> Fraction:
        """D of the side's marginal; 0 for a part of the mass."""
        if self.problem.kind == "partial":
            return Fraction(0)
        away = [abs(p - Fraction(w)) for p, w in zip(sums, self.masses.tolist(), strict=True)]
        if self.problem.kind == "tv":
            return self.strength * sum(away, Fraction(0))
        return self.strength / 2 * sum((one * one for one in away), Fraction(0))

    def beyond(self, sums: list[Fraction]) -> list[Fraction]:
        """By how much a part of the mass takes more of each line than it has."""
        if self.problem.kind != "partial":
            return []
        return [max(p - Fraction(w), Fraction(0)) for p, w in zip(sums, self.masses.tolist(), strict=True)]

    def price(self, sums: list[Fraction]) -> Fraction:
        """What that is worth at the potentials, to first order."""
        apart = zip(self.potential.tolist(), self.beyond(sums), strict=False)
        return sum((abs(self.top - Fraction(f)) * one for f, one in apart), Fraction(0))


def _square(f: Fraction, w: Fraction, r: Fraction) -> Fraction:
    return f * w - f * f / (2 * r) if f <= r * w else r * w * w / 2


@dataclass(frozen=True)
class Missed:
    """The mass by which constraints are broken, in sum, and what it is worth at the potentials."""

    violation: Fraction
    price: Fraction


def missed(problem: MarginalTransport, sides: tuple[Side, Side], sums: tuple[list[Fraction], list[Fraction]]) -> Missed:
    """How far a plan is from the constraints of its problem."""
    beyond = sum((sum(side.beyond(own), Fraction(0)) for side, own in zip(sides, sums, strict=True)), Fraction(0))
    short = Fraction(problem.mass) - sum(sums[0], Fraction(0)) if problem.kind == "partial" else Fraction(0)
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
