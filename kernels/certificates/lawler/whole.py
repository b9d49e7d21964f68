"""The costs as integers, each rounded down, for a bound of a problem that is to be minimised.

The sum of floor(c 2^e) over what a permutation pays is an integer, and at most its objective times 2^e. So a bound of
such integers, over 2^e, is a bound of the objective whatever e is. Of integers that fit, and of floats of few bits,
nothing is lost. A maximum is the minimum of the negated costs.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kernels.problems.arrays import Amounts, Array, Integers
from kernels.problems.lawler import LawlerAssignment

REACH = 2**56
"""Most that m^2 such integers may add up to: see `level.py` for what else is added."""
BITS = 49
"""Of that sum, where nobody says which e to take."""
FARTHEST = 4000
"""Exponents beyond these are of no use: floats end at 2^-1074 and 2^1024."""


class Pieces(NamedTuple):
    """A problem's costs without its fixed facilities: `quads` (k, k, k, k), what is added to each placement, (., k, k),
    and what the fixed ones pay among themselves."""

    quads: Array
    singles: Array
    constants: Array


@dataclass(frozen=True, eq=False)
class Whole:
    """Integer costs of k free facilities: `quads` (k, k, k, k), `singles` (k, k), `constant`; times 2^-exponent.

    `hidden` is what rounding down may have taken off an objective.
    """

    quads: Integers
    singles: Integers
    constant: int
    exponent: int
    hidden: Fraction

    def worth(self, value: int) -> Fraction:
        """A number of these integers, in the units of the problem."""
        return Fraction(value) / Fraction(2) ** self.exponent


def whole_of(problem: LawlerAssignment, exponent: Array | None = None) -> Whole:
    """The integers at an exponent that somebody proposes, or at one of our own where that is of no use."""
    cost = -problem.cost if problem.maximize else problem.cost
    terms = problem.facilities**2
    reach = terms * Fraction(max(abs(cost.max().item()), abs(cost.min().item())))
    taken = _proposed(exponent, reach)
    if taken is None:
        taken = BITS - _bits(reach) if reach else 0
        taken = min(taken, 0) if problem.integer else taken
    integers, exact = _floors(cost, taken)
    pieces = pieces_of(integers, problem)
    singles, constant = pieces.singles.sum(axis=0), sum(pieces.constants.ravel().tolist())
    hidden = Fraction(0) if exact else terms / Fraction(2) ** taken
    return Whole(pieces.quads, singles, constant, taken, hidden)


def pieces_of(cost: Array, problem: LawlerAssignment) -> Pieces:
    """Costs of any type by what is free; facilities from m on cost 0."""
    m, n = problem.facilities, problem.n
    full = np.zeros((n, n, n, n), cost.dtype)
    full[:m, :, :m, :] = cost
    taken, used = list(problem.fixed.keys()), list(problem.fixed.values())
    rows, columns = (np.array([one for one in range(n) if one not in gone], np.int64) for gone in (taken, used))
    quads = full[np.ix_(rows, columns, rows, columns)]
    singles = [full[rows[:, None], columns, rows[:, None], columns]]
    for facility, place in problem.fixed.items():
        singles += [full[facility, place][np.ix_(rows, columns)], full[:, :, facility, place][np.ix_(rows, columns)]]
    index = (np.array(taken, np.int64), np.array(used, np.int64))
    constants = full[index[0][:, None], index[1][:, None], index[0], index[1]]
    return Pieces(quads, np.array(singles), constants)


def rounded(value: Fraction, towards: int) -> float:
    """The nearest float64 on that side: 1 above, -1 below."""
    found = float(value)
    if (Fraction(found) - value) * towards < 0:
        found = math.nextafter(found, towards * math.inf)
    return found


def _proposed(exponent: Array | None, reach: Fraction) -> int | None:
    """The exponent that somebody proposes, where the integers at it fit."""
    if exponent is None or exponent.dtype.kind not in "iu" or exponent.shape != (1,):
        return None
    found = int(exponent[0])
    fits = abs(found) <= FARTHEST and reach * Fraction(2) ** found <= REACH
    return found if fits else None


def _bits(reach: Fraction) -> int:
    """Some b with reach <= 2^b, at most one too large."""
    return int(reach).bit_length() if reach >= 1 else 1 - int(1 / reach).bit_length()


def _floors(cost: Amounts, exponent: int) -> tuple[Integers, bool]:
    """floor(cost 2^exponent), and whether nothing was lost. Requires that the results fit."""
    if cost.dtype.kind == "i":
        if exponent >= 0:
            return np.left_shift(cost, min(exponent, 63)), True
        found = np.right_shift(cost, min(-exponent, 63))
        return found, exponent > -63 and bool((np.left_shift(found, -exponent) == cost).all())
    scaled = np.ldexp(cost, exponent)
    floors = np.floor(scaled)
    lost = (scaled == 0) & (cost != 0)  # it underflowed
    floors[lost & (cost < 0)] = -1
    return floors.astype(np.int64), not lost.any() and bool((floors == scaled).all())
