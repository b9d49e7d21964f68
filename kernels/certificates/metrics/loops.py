"""What `exactly.py` works out of points, compiled: step for step what `words.py` does to arrays.

Nothing may be reordered or fused: the steps are those whose errors `words.py` states. A sum goes by halves: the first
numbers take the last, until one is left. LLVM makes vectors of the loops over coordinates but for those of a sum, which
are short.
"""

import numpy as np

from kernels.certificates.compiled import inlined, jit, two_sum
from kernels.certificates.rounded import SPLITTER
from kernels.problems.arrays import Array

Word = tuple[float, float]
SQUARES, SIZES, PRODUCTS = range(3)
"""What is added up over the coordinates: squares of differences, their sizes, or products."""
SMALL_FACTOR, SMALL_PRODUCT = 2.0**-450, 2.0**-900
"""Factors of a square, and products, that may lose by underflow; `exactly.py` says how much."""


@inlined
def fast(x: float, y: float) -> Word:
    """The same where |x| >= |y| or x is 0 (Dekker)."""
    s = x + y
    return s, y - (s - x)


@inlined
def plus(xh: float, xl: float, yh: float, yl: float) -> Word:
    """`words.plus`."""
    s, s_error = two_sum(xh, yh)
    t, t_error = two_sum(xl, yl)
    v, w = fast(s, s_error + t)
    return fast(v, t_error + w)


@inlined
def product(x: float, y: float) -> Word:
    """`words.product`."""
    p = x * y
    c, d = x * SPLITTER, y * SPLITTER
    xh, yh = c - (c - x), d - (d - y)
    xl, yl = x - xh, y - yh
    return p, xl * yl - (((p - xh * yh) - xl * yh) - xh * yl)


@inlined
def times(xh: float, xl: float, yh: float, yl: float) -> Word:
    """`words.times`."""
    p, error = product(xh, yh)
    return fast(p, error + (xh * yl + xl * yh))


@inlined
def over(xh: float, xl: float, yh: float, yl: float) -> Word:
    """`words.over`."""
    first = xh / yh
    p, error = product(yh, first)
    r, r_low = fast(p, error + yl * first)
    rest = (xh - r) + (xl - r_low)
    return fast(first, rest / yh)


@inlined
def root(xh: float, xl: float) -> Word:
    """`words.root`."""
    first = np.sqrt(xh)
    p, error = product(first, first)
    rest = ((xh - p) - error) + xl
    return fast(first, rest / (2 * first if first > 0 else 1.0))


@inlined
def total(high: Array, low: Array) -> Word:
    """The sum of some numbers by halves; they are written over."""
    d = high.size
    while d > 1:
        half = d // 2
        for k in range(half):
            high[k], low[k] = plus(high[k], low[k], high[k + half], low[k + half])
        if d % 2:
            high[0], low[0] = plus(high[0], low[0], high[d - 1], low[d - 1])
        d = half
    return high[0], low[0]


@jit
def add_up(
    first: int, last: int, kind: int, x: Array, x_low: Array, y: Array, y_low: Array, rows: Array, columns: Array,
    high: Array, low: Array, sizes: Array, lost: Array,
) -> None:  # fmt: skip
    """The sums of the pairs from `first` to before `last`, as high + low.

    `x_low` and `y_low` are (0, d) where coordinates are of one word. `sizes` are of the products, rounded; 0 for other
    kinds. `lost`: how many terms may have lost by underflow.
    """
    d, in_two = x.shape[1], len(x_low) > 0
    terms, rests, nothing = np.empty(d), np.empty(d), np.zeros(d)
    for k in range(first, last):
        i, j = rows[k], columns[k]
        a, b = x[i], y[j]
        few, size = 0, 0.0
        if kind == PRODUCTS:
            for c in range(d):
                terms[c], rests[c] = product(a[c], b[c])
            for c in range(d):
                few += 1 if (abs(terms[c]) < SMALL_PRODUCT) & (a[c] != 0) & (b[c] != 0) else 0
            for c in range(d):
                size += abs(terms[c])
        else:
            a_low, b_low = (x_low[i], y_low[j]) if in_two else (nothing, nothing)
            for c in range(d):
                terms[c], rests[c] = plus(a[c], a_low[c], -b[c], -b_low[c])
            if kind == SIZES:
                for c in range(d):
                    sign = -1.0 if terms[c] < 0 else 1.0
                    terms[c], rests[c] = sign * terms[c], sign * rests[c]
            else:
                for c in range(d):
                    few += 1 if (terms[c] != 0) & (abs(terms[c]) < SMALL_FACTOR) else 0
                for c in range(d):
                    terms[c], rests[c] = times(terms[c], rests[c], terms[c], rests[c])
        high[k], low[k] = total(terms, rests)
        sizes[k], lost[k] = size, few


@jit
def same(first: int, last: int, x: Array, y: Array, rows: Array, columns: Array, found: Array) -> None:
    """Whether the points of a pair are the same, bit by bit but for the sign of 0."""
    for k in range(first, last):
        a, b = x[rows[k]], y[columns[k]]
        c = 0
        while c < a.size and a[c] == b[c]:
            c += 1
        found[k] = c == a.size


@jit
def direct(
    first: int, last: int, points: Array, is_moved: bool, high: Array, low: Array, length: Array, sizes: Array
) -> None:
    """Points over their lengths as high + low, after the mean of the coordinates was subtracted where asked.

    `length` and `sizes`, the sum of distances from the first coordinate, are rounded. A point of length 0 stays.
    """
    d = points.shape[1]
    a, b, c, e = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for i in range(first, last):
        point, zero = points[i], points[i, 0]
        size = 0.0
        for k in range(d):
            a[k], b[k] = point[k], 0.0
        if is_moved:
            for k in range(d):
                a[k], b[k] = plus(point[k], 0.0, -zero, -0.0)
            for k in range(d):
                size += abs(a[k])
            c[:], e[:] = a, b
            mean, rest = total(c, e)
            mean, rest = over(mean, rest, float(d), 0.0)
            for k in range(d):
                a[k], b[k] = plus(a[k], b[k], -mean, -rest)
        for k in range(d):
            c[k], e[k] = times(a[k], b[k], a[k], b[k])
        far, more = total(c, e)
        far, more = root(far, more)
        length[i], sizes[i] = far, size
        if not far > 0:
            far, more = 1.0, 0.0
        to_high, to_low = high[i], low[i]
        for k in range(d):
            to_high[k], to_low[k] = over(a[k], b[k], far, more)
