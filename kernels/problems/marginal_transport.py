"""Optimal transport whose marginals are held in other ways than by KL: a part of the mass, total variation, squares."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.problems.arrays import FORBIDDEN, TOLD, Amounts, Array, InvalidProblem, Mask
from kernels.problems.transport import UnbalancedTransport

KINDS = ("partial", "tv", "l2")
ROUNDED = 1e-12
"""Of a mass: how far the sums of the same numbers in another order may be apart."""


@dataclass(frozen=True, eq=False)
class MarginalTransport:
    """min over P >= 0 of <C, P> + reg Omega(P) + D(P), with one of these D.

    - partial: 0 where P 1 <= a, P' 1 <= b and the sum of P is `mass`; infinite elsewhere.
    - tv: r_1 |P 1 - a|_1 + r_2 |P' 1 - b|_1, r = `strengths`.
    - l2: r_1 / 2 |P 1 - a|^2 + r_2 / 2 |P' 1 - b|^2.

    `reg` is 0 where there is no entropic term; Omega and `reference` are those of `UnbalancedTransport`. `cost` (m, n)
    is float64, where +inf forbids an entry, or int64 without an entropic term, where FORBIDDEN does. `a` (m,), `b`
    (n,) are float64, or int64 without an entropic term; `mass` is an int where both are. `told` is what the answer
    says of how the problem came to be.
    """

    cost: Array
    a: Amounts
    b: Amounts
    kind: str
    reg: float = 0.0
    reference: str = "product"
    mass: float = 0.0
    strengths: tuple[float, float] = (math.inf, math.inf)
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)
    batch: None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the plan."""
        return self.a.size, self.b.size

    @property
    def whole(self) -> bool:
        """True where costs, masses and strengths are integers, which leaves nothing to rounding."""
        data = self.cost.dtype == np.int64 and self.a.dtype == np.int64
        limits = float(self.mass).is_integer() and all(map(_is_whole, self.strengths))
        return self.reg == 0 and self.kind != "l2" and data and limits

    @property
    def permitted(self) -> Mask:
        """The entries that a plan may use, as booleans."""
        if self.cost.dtype == np.int64:
            return np.asarray(self.cost != FORBIDDEN)
        return np.isfinite(self.cost)

    @property
    def entropic(self) -> UnbalancedTransport:
        """The same costs, masses and entropic term between relaxed sides."""
        return UnbalancedTransport(
            self.a, self.b, self.reg, (1.0, 1.0), cost=self.cost, reference=self.reference, told=self.told
        )


def _is_whole(number: float) -> bool:
    return math.isinf(number) or float(number).is_integer()


def amount(a: Amounts, b: Amounts, mass: float | None, share: float | None) -> float:
    """The mass to be moved: as it is given, or that share of what the side with less of it has.

    What is more than a side has by rounding alone is cut down to that.

    Raises:
        InvalidProblem: where it is more than a side has.
    """
    whole = a.dtype == b.dtype == np.int64
    most = min(_below(Fraction(int(one.sum())) if whole else _exactly(one)) for one in (a, b))
    wanted = most if share == 1 else most * share if share is not None else float(mass or 0)
    if not wanted > 0:
        raise InvalidProblem("mass_share", f"is {share} of no mass; expected masses on both sides")
    if wanted > most * (1 + ROUNDED):
        raise InvalidProblem("mass", f"is {wanted:.9g}; expected at most {most:.9g}, the mass of the side with less")
    wanted = min(wanted, most)
    return int(wanted) if whole and float(wanted).is_integer() else float(wanted)


def _exactly(masses: Amounts) -> Fraction:
    return sum(map(Fraction, masses.tolist()), Fraction(0))


def _below(number: Fraction) -> float:
    """The largest float that is not above it; a whole number as it is."""
    if number.denominator == 1 and number < 1 << 62:
        return int(number)
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)


def affordable(cost: Amounts, permitted: Mask, strengths: tuple[float, float]) -> None:
    """Refuse costs below -(r_1 + r_2): with total variation such an entry pays for ever more mass.

    Raises:
        InvalidProblem: where there is one.
    """
    held = cost[permitted]
    if held.size and Fraction(held.min().item()) + sum(map(Fraction, strengths)) < 0:
        limit = f"{-sum(strengths):.6g}"
        raise InvalidProblem(
            "cost", f"goes down to {held.min():.6g}, where more mass always pays; expected at least {limit}"
        )
