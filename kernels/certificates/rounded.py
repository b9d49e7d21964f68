"""float64 arithmetic rounded to the weak side, so that a bound stays a bound.

NumPy rounds to nearest only. The rounding error of one sum or product is itself a float64 and is found without error
(TwoSum, TwoProduct); its sign says whether the nearest result lies on the strong side, and one step of `nextafter`
then leads to the weak side. Results are the directed roundings of IEEE 754, except where a product's error underflows:
those take a step that may be one more than needed. Overflow towards the weak side gives an infinity, towards the strong
side the largest finite number, as directed rounding does. Infinite operands give what IEEE 754 gives.

Sources: O. Moeller, "Quasi double-precision in floating point addition", BIT 5 (1965), and D. E. Knuth, "The Art of
Computer Programming", volume 2, 4.2.2, theorem B (TwoSum); T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971) (TwoProduct); T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and
dot product", SIAM J. Sci. Comput. 26 (2005), section 2, for both and for what underflow does to them.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.problems.arrays import Array

Real = Array | float
SPLITTER = 134217729.0  # 2^27 + 1: halves of 26 bits
EXACT_PRODUCT = (2.0**-960, 2.0**990)
"""Operands and results whose products have errors that neither underflow nor overflow."""


def two_sum(x: Real, y: Real) -> tuple[Array, Array]:
    """Return (s, e) with s = x + y rounded to nearest and s + e = x + y exactly, where s is finite."""
    s = np.asarray(np.add(x, y))
    with np.errstate(invalid="ignore", over="ignore"):
        t = s - x
        return s, np.asarray((x - (s - t)) + (y - t))


def add_down(x: Real, y: Real) -> Array:
    """Return x + y rounded towards -inf."""
    return _directed(x, y, -1)


def add_up(x: Real, y: Real) -> Array:
    """Return x + y rounded towards +inf."""
    return _directed(x, y, 1)


def sub_down(x: Real, y: Real) -> Array:
    """Return x - y rounded towards -inf."""
    return _directed(x, np.negative(y), -1)


def sub_up(x: Real, y: Real) -> Array:
    """Return x - y rounded towards +inf."""
    return _directed(x, np.negative(y), 1)


def mul_down(x: Real, y: Real) -> Array:
    """Return a lower bound on x * y: the product rounded towards -inf, at most one step lower."""
    return _product(x, y, -1)


def mul_up(x: Real, y: Real) -> Array:
    """Return an upper bound on x * y: the product rounded towards +inf, at most one step higher."""
    return _product(x, y, 1)


def div_down(x: Real, y: Real) -> Array:
    """Return a lower bound on x / y, two steps of float64 below the exact quotient at most."""
    return _step(np.divide(x, y), -1)


def div_up(x: Real, y: Real) -> Array:
    """Return an upper bound on x / y, two steps of float64 above the exact quotient at most."""
    return _step(np.divide(x, y), 1)


def sum_down(values: Any) -> float:
    """Return the exact sum of `values` (float64, any shape) rounded towards -inf.

    Infinite terms give theirs, and -inf where both are there.
    """
    return _total(values, -1)


def sum_up(values: Any) -> float:
    """Return the exact sum of `values` (float64, any shape) rounded towards +inf, as `sum_down`."""
    return _total(values, 1)


def down(exact: Fraction | int) -> float:
    """Return the largest float64 that is at most `exact`."""
    return _nearest(exact, -1)


def up(exact: Fraction | int) -> float:
    """Return the smallest float64 that is at least `exact`."""
    return _nearest(exact, 1)


def share_up(gap: Any, *sizes: Any) -> float:
    """Return `gap` (at least 0) over the largest magnitude in `sizes`, rounded up; 0 where the gap is 0.

    The quotient is a fraction until it is rounded once, so that none is lost among subnormal numbers. It is inf where
    all sizes are 0 and the gap is not, and where float64 has no number that large. Args are numbers, None counts as 0.
    """
    if not gap or gap == math.inf:
        return float(gap)
    scale = max(abs(_plain(one)) for one in sizes)
    if not scale:
        return math.inf
    (a, b), (c, d) = _plain(gap).as_integer_ratio(), scale.as_integer_ratio()
    above, below = a * d, b * c
    try:
        nearest = above / below  # of integers: rounded once
    except OverflowError:
        return up(Fraction(above, below))
    a, b = nearest.as_integer_ratio()
    return math.nextafter(nearest, math.inf) if a * below < above * b else nearest


def _plain(value: Any) -> int | float:
    return (value.item() if isinstance(value, np.generic) else value) or 0


def _directed(x: Real, y: Real, side: int) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        s, error = two_sum(x, y)
    operands = np.isfinite(x) & np.isfinite(y)
    wrong = (error < 0) if side < 0 else (error > 0)
    moved = np.where(wrong & operands, np.nextafter(s, side * np.inf), s)
    overflowed = operands & ~np.isfinite(s)
    if overflowed.any():  # the error of an infinite sum is NaN: move back from the strong side
        moved = np.where(overflowed & (s == -side * np.inf), np.nextafter(s, side * np.inf), moved)
    return np.asarray(moved)


def _product(x: Real, y: Real, side: int) -> Array:
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        p = np.asarray(np.multiply(x, y))
        (xh, xl), (yh, yl) = _halves(x), _halves(y)
        error = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl
    low, high = EXACT_PRODUCT
    sizes = [np.abs(value) for value in (x, y, p)]
    known = np.logical_and.reduce([(size >= low) & (size <= high) for size in np.broadcast_arrays(*sizes)])
    zero = np.equal(x, 0) | np.equal(y, 0)
    wrong = (error < 0) if side < 0 else (error > 0)
    unsure = np.isfinite(x) & np.isfinite(y) & ~known & ~zero
    return np.asarray(np.where((known & wrong) | unsure, np.nextafter(p, side * np.inf), p))


def _halves(x: Real) -> tuple[Array, Array]:
    c = np.multiply(x, SPLITTER)
    high = c - (c - x)
    return high, np.asarray(x - high)


def _step(q: Array, side: int) -> Array:
    return np.asarray(np.nextafter(q, side * np.inf))


def _total(values: Any, side: int) -> float:
    terms = np.asarray(values, np.float64).ravel().tolist()
    try:
        nearest = math.fsum(terms)
        off = math.fsum([*terms, -nearest])
    except (OverflowError, ValueError):
        return _far(terms, side)
    if (off < 0 and side < 0) or (off > 0 and side > 0):
        return math.nextafter(nearest, side * math.inf)
    return nearest


def _far(terms: list[float], side: int) -> float:
    """The same where a sum on the way left the range of float64, which the total need not, or a term is infinite."""
    ends = {term for term in terms if math.isinf(term)}
    if ends:
        return side * math.inf if len(ends) > 1 else ends.pop()
    return _nearest(sum(map(Fraction, terms)), side)


def _nearest(exact: Fraction | int, side: int) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if math.isinf(nearest):
        return nearest if (exact > 0) == (side > 0) else math.nextafter(nearest, 0.0)
    difference = Fraction(nearest) - exact
    if (difference > 0 and side < 0) or (difference < 0 and side > 0):
        return math.nextafter(nearest, side * math.inf)
    return nearest
