"""Numbers as unevaluated sums of two float64 (high + low), some 106 bits, with the error of each step.

Each step below is off by at most OFF = 2^-100 of its result, which is 64 times 2^-106. The proved errors, in units of
u^2 = 2^-106: sum 3 (also where the operands cancel), product 5, quotient 15, root 25/8. This holds where nothing
overflows and no product underflows: |x y| >= 2^-960 or one of the two is 0. Callers say what lies below that.

Sources: M. Joldes, J.-M. Muller, V. Popescu, "Tight and rigorous error bounds for basic building blocks of double-word
arithmetic", ACM Transactions on Mathematical Software 44 (2017), algorithms 6, 10 and 17 with their theorems;
V. Lefevre, N. Louvet, J.-M. Muller, J. Picot, L. Rideau, "Accurate calculation of Euclidean norms using double-word
arithmetic", ACM Transactions on Mathematical Software 49 (2023), for the root; T. J. Dekker, Numerische Mathematik 18
(1971) for products of two float64 without error.
"""

from typing import NamedTuple

import numpy as np

from kernels.certificates.rounded import SPLITTER, two_sum
from kernels.problems.arrays import Array

OFF = 2.0**-100


class Words(NamedTuple):
    """high + low, |low| at most half a unit in the last place of high."""

    high: Array
    low: Array


def plus(x: Words, y: Words) -> Words:
    """x + y."""
    s, s_error = two_sum(x.high, y.high)
    t, t_error = two_sum(x.low, y.low)
    v, w = _fast(s, s_error + t)
    return Words(*_fast(v, t_error + w))


def times(x: Words, y: Words) -> Words:
    """x y."""
    p, error = product(x.high, y.high)
    return Words(*_fast(p, error + (x.high * y.low + x.low * y.high)))


def over(x: Words, y: Words) -> Words:
    """x / y, y not 0."""
    first = x.high / y.high
    p, error = product(y.high, first)
    r, r_low = _fast(p, error + y.low * first)
    rest = (x.high - r) + (x.low - r_low)
    return Words(*_fast(first, rest / y.high))


def root(x: Words) -> Words:
    """The square root of x >= 0."""
    first = np.sqrt(x.high)
    p, error = product(first, first)
    rest = ((x.high - p) - error) + x.low
    return Words(*_fast(first, rest / np.where(first > 0, 2 * first, 1.0)))


def product(x: Array, y: Array) -> tuple[Array, Array]:
    """x y rounded, and its error."""
    p = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return p, xl * yl - (((p - xh * yh) - xl * yh) - xh * yl)


def _halves(x: Array) -> tuple[Array, Array]:
    c = x * SPLITTER
    high = c - (c - x)
    return high, x - high


def _fast(x: Array, y: Array) -> tuple[Array, Array]:
    """The sum and its error, where |x| >= |y| or x is 0."""
    s = x + y
    return s, y - (s - x)
