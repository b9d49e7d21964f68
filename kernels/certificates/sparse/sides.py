"""What lines alone tell of a sparse problem: the sums of a plan, what they cost, and what potentials are worth.

k terms of one sign are off by (k - 1) u of their sum in any order, u = 2^-53 (N. J. Higham, "Accuracy and Stability of
Numerical Algorithms", 2002, section 4.2).
"""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from kernels.certificates.rounded import div_down, mul_down, mul_up, sub_up, sum_down, sum_up
from kernels.certificates.sparse.entries import SLACK, Potentials
from kernels.certificates.transport_divergence import of_marginal
from kernels.certificates.transport_elementary import TINIEST, UNIT, expm1_up
from kernels.problems.arrays import AnyIndices, Array
from kernels.problems.sparse_transport import SparseTransport

Bounds = tuple[Array, Array]
"""Of numbers: each at least the first and at most the second."""


@dataclass(frozen=True)
class Side:
    """Of the rows or of the columns.

    Attributes:
        sums: bounds of what the plan carries on each line.
        paid: at least what these sums cost; 0 where the side is exact.
        least: at most the potentials' share of the dual value.
        away: at least how far an exact side is off, in sum; 0 where it is relaxed.
        price: at least what that is worth at the potentials.
        surely: at most how far it is off.
        mass: of the side.
    """

    sums: Bounds
    paid: float
    least: float
    away: float
    price: float
    surely: float
    mass: float

    def met(self, lines: int) -> bool:
        """Whether what the exact side is off may be rounding, in a problem of so many lines."""
        return self.surely <= 8 * UNIT * lines * self.mass


def line_sums(problem: SparseTransport, plan: Array) -> tuple[Bounds, Bounds]:
    """Bounds of what rows and columns of a plan carry."""
    found, by_side = [], cast(tuple[AnyIndices, AnyIndices], (problem.entry_rows, problem.entry_columns))
    for ends, size in zip(by_side, problem.shape, strict=True):
        sums, counts = np.bincount(ends, plan, size), np.bincount(ends, minlength=size)
        wide = SLACK * np.maximum(counts - 1, 0) * UNIT * sums
        found.append((np.maximum(sums - wide, 0.0) * (1 - UNIT), (sums + wide) * (1 + 2 * UNIT)))
    return found[0], found[1]


def of_side(problem: SparseTransport, side: int, at: Potentials, lines: tuple[Bounds, Bounds] | None) -> Side:
    """What is known of a side; `lines` is None where the plan is none."""
    masses, strength = (problem.a, problem.b)[side], problem.reg_m[side]
    potential, left = (at.f, at.g)[side], at.left[side]
    nothing = np.zeros_like(masses)
    low, high = (nothing, nothing) if lines is None else lines[side]
    mass = float(masses.sum())
    if math.isinf(strength):
        off = np.maximum(sub_up(masses, low), sub_up(high, masses))
        surely = float(np.maximum(np.maximum(low - masses, masses - high), 0.0).sum())
        price = _up(mul_up(abs(potential), off))
        known = math.inf if lines is None else _up(off)
        return Side((low, high), 0.0, sum_down(mul_down(masses, potential)), known, price, surely, mass)
    paid = np.maximum(of_marginal(low, masses), of_marginal(high, masses))
    with np.errstate(over="ignore", invalid="ignore"):
        grown = expm1_up(-div_down(potential, strength))
        grown = np.where(left, -1.0, np.where((potential == 0) | (masses == 0), 0.0, grown))
        lost = _up(mul_up(masses, grown) + np.where(masses > 0, TINIEST, 0.0))
        least = -float(mul_up(strength, lost)) if math.isfinite(lost) else -math.inf
    return Side((low, high), float(mul_up(strength, _up(paid))), least, 0.0, 0.0, 0.0, mass)


def _up(values: Array) -> float:
    """The sum rounded up; inf where a term is not finite."""
    return sum_up(values) if np.isfinite(values).all() else math.inf
