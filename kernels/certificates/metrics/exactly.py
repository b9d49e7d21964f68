"""Single costs of points to some 100 bits, each with a bound of what it is off by.

Write OFF for 2^-100 and d for the dimension. Sums of d terms of one sign are off by (d - 1) OFF relative, sums of any
terms by that times the sum of their sizes (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
sections 4.2 and 3.1, with OFF in the place of the unit roundoff). So, with a factor of 4 for the products of errors:

    sqeuclidean    differences, squares and sum: 4 (d + 4) OFF relative
    euclidean      the root of that: the same; |root(t) - root(a)| <= |t - a| / root(a), and root(|t - a|) where a is 0
    cityblock      4 (d + 4) OFF relative
    inner          4 (d + 4) OFF times sum |x_k y_k|
    cosine         half the squared distance of the points over their lengths. A point over its length is off by a
                   vector of length e = 4 (d + 16) OFF. Two such errors, e and f, move a squared distance s by
                   2 root(s) (e + f) + (e + f)^2
    correlation    the same after the first coordinate (without error) and then the mean were subtracted. The mean is
                   off by OFF sum |x_k - x_1|, hence each point by root(d) times that before it is divided by its
                   length, and by twice that over the length afterwards; the quotient is at most d + root(d)
    iou            (A only + B only) / (A only + B only + both). A only is e_x h + w e_y: by how much A is wider than
                   the intersection times the height of A, and the width of the intersection times by how much A is
                   higher. All terms are of one sign: 64 OFF relative

Differences of two float64 are exact as two words. A point that equals the other bit by bit costs exactly 0, but for
`inner`. What underflows: a product below 2^-960 loses at most 2^-1060 of itself, which is added.

The sums are compiled (`loops.py`), but for boxes.
"""

from typing import NamedTuple

import numpy as np

from kernels.certificates.metrics import words
from kernels.certificates.metrics.words import OFF, Words
from kernels.certificates.rounded import two_sum
from kernels.certificates.threads import cut, in_threads
from kernels.problems.arrays import Array, untouched

DIRECTIONS = ("cosine", "correlation")
SMALL_FACTOR, SMALL_PRODUCT, LOST = 2.0**-450, 2.0**-900, 2.0**-1060
"""Products of two such numbers, and such products, may lose so much each by underflow."""
TOO_SMALL, LARGE = 2.0**-900, 2.0**-300
"""Intersections of boxes below the first, where the wider box is 1 wide, are not told apart from nothing; beside a
union above the second they are nothing."""
BOX_LOST = 2.0**-150
"""More than what underflows of such a share."""
AT_ONCE = 1 << 16
"""Coordinates of boxes worked out together: what a core's cache holds."""
A_THREAD = 1 << 16
"""Coordinates that are worth a thread."""
ROUND_UP = 1 + 2.0**-40
FAR_OFF, ANYWHERE = 2.0**-10, 4.0
"""Errors of a direction beyond the first are not followed up: any two directions are at most 2 apart."""


class Known(NamedTuple):
    """Costs high + low, off by at most `error`."""

    high: Array
    low: Array
    error: Array


class Cloud:
    """Points (k, d) in two words, the second (0, d) where all are 0, and what each is off by as a vector."""

    def __init__(self, points: Array, metric: str) -> None:
        self.d = points.shape[1]
        self.same = points
        self.points = Words(points, np.zeros((0, self.d)))
        self.off, self.whole = np.zeros(len(points)), np.ones(len(points), bool)
        if metric in DIRECTIONS:
            _, own = np.frexp(np.abs(points).max(axis=1, keepdims=True))
            self.same = np.ldexp(points, -own)
            self.whole = (np.ldexp(self.same, own) == points).all(axis=1)  # nothing underflowed
            self._turn(metric == "correlation")

    def _turn(self, is_moved: bool) -> None:
        """Subtract the mean where asked, and divide by the length."""
        self.points, length, sizes = _directed(self.same, is_moved)
        some = length > 0
        moved = 2 * float(np.sqrt(self.d)) * OFF * sizes / np.where(some, length, 1.0)
        off = 2 * (moved + 4 * (self.d + 16) * OFF)
        self.off = np.where(some & (off < FAR_OFF), off, ANYWHERE)


def _directed(points: Array, is_moved: bool) -> tuple[Words, Array, Array]:
    """Points of length 1, their lengths, and the sums of distances from the first coordinate."""
    from kernels.certificates.metrics import loops

    found = Words(np.empty_like(points), np.empty_like(points))
    length, sizes = np.empty(len(points)), np.empty(len(points))
    in_threads(loops.direct, cut(len(points), points.size, A_THREAD), (_read(points), is_moved, *found, length, sizes))
    return found, length, sizes


class _Sums(NamedTuple):
    """What the costs of pairs are made of: see `loops.add_up`; whether both points are the same."""

    total: Words
    sizes: Array
    lost: Array
    same: Array


class Exactly:
    """The costs of pairs of points x (m, d), y (n, d)."""

    def __init__(self, x: Array, y: Array, metric: str) -> None:
        self.metric, self.d = metric, int(x.shape[1])
        self.x, self.y = (Cloud(np.ascontiguousarray(points, np.float64), metric) for points in (x, y))

    def of(self, rows: Array, columns: Array) -> Known:
        """Of the pairs (rows, columns), both (k,)."""
        if self.metric != "iou":
            return self._known(rows, columns)
        parts = []
        step = max(1, AT_ONCE // self.d)
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            with np.errstate(under="ignore"):
                parts.append(_overlaps(self.x.points.high[rows[some]], self.y.points.high[columns[some]]))
        if not parts:
            return Known(*(np.zeros(0) for _ in range(3)))
        return Known(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _known(self, i: Array, j: Array) -> Known:
        with np.errstate(under="ignore"):
            sums = self._summed(i, j)
            found = self._cost(sums, self.x.off[i] + self.y.off[j])
        if self.metric == "inner":
            return found
        same = sums.same & self.x.whole[i] & self.y.whole[j]
        return Known(*(np.where(same, 0.0, array) for array in found))

    def _summed(self, i: Array, j: Array) -> _Sums:
        from kernels.certificates.metrics import loops

        kind = {"inner": loops.PRODUCTS, "cityblock": loops.SIZES}.get(self.metric, loops.SQUARES)
        high, low, sizes = (np.empty(len(i)) for _ in range(3))
        few, same = np.empty(len(i), np.int64), np.zeros(len(i), bool)
        ends = cut(len(i), len(i) * self.d, A_THREAD)
        pairs = tuple(_read(index.astype(np.int64, copy=False)) for index in (i, j))
        points = tuple(map(_read, (*self.x.points, *self.y.points)))
        in_threads(loops.add_up, ends, (kind, *points, *pairs, high, low, sizes, few))
        if kind != loops.PRODUCTS:
            in_threads(loops.same, ends, (_read(self.x.same), _read(self.y.same), *pairs, same))
        return _Sums(Words(high, low), sizes, few * LOST, same)

    def _cost(self, sums: _Sums, off: Array) -> Known:
        """The cost whose sum is known; `off` is what the points of a pair are off by, added up."""
        total, lost = sums.total, sums.lost
        if self.metric == "inner":
            return Known(-total.high, -total.low, ROUND_UP * 4 * (self.d + 4) * OFF * sums.sizes + 2 * lost)
        error = 4 * (self.d + 4) * OFF * total.high + 2 * lost
        if self.metric in DIRECTIONS:
            error += 2 * np.sqrt(total.high) * off + off * off
            return Known(total.high / 2, total.low / 2, ROUND_UP * error)  # halving is exact: nothing here is tiny
        if self.metric == "euclidean":
            far = words.root(total)
            known = np.where(far.high > 0, far.high, 1.0)
            error = np.where(far.high > 0, error / known + 4 * OFF * far.high, np.sqrt(error))
            total = far
        return Known(total.high, total.low, ROUND_UP * error)


def _read(array: Array) -> Array:
    """In the one form that the loops are compiled for."""
    return untouched(np.ascontiguousarray(array))


def _overlaps(a: Array, b: Array) -> Known:
    """1 - intersection / union of boxes (k, 4); from 0 to 1 where areas are too small to tell.

    Each axis of each pair has a unit of its own, in which the wider box is 1/2 to 1 wide: that changes no share. What
    underflows in that unit is not nothing: whether boxes are apart, or one and the same, is asked of them as they came.
    A share is at most that of the intersection's width in the wider box's, so one that underflows is below 2^-1000.
    """
    shared: list[Words] = []
    alone_a: list[Words] = []
    alone_b: list[Words] = []
    sides: list[tuple[Words, Words]] = []
    apart, thin = np.zeros(len(a), bool), np.zeros(len(a), bool)
    for from_, to in ((0, 2), (1, 3)):
        start, end = np.maximum(a[:, from_], b[:, from_]), np.minimum(a[:, to], b[:, to])
        both = _difference(a[:, to], a[:, from_]), _difference(b[:, to], b[:, from_])
        _, power = np.frexp(np.maximum(both[0].high, both[1].high))
        shared.append(_times_power(_difference(end, start), -power))
        apart |= end <= start
        thin |= shared[-1].high == 0
        for box, alone in ((a, alone_a), (b, alone_b)):
            more = words.plus(_difference(box[:, to], end), _difference(start, box[:, from_]))
            alone.append(_times_power(more, -power))
        sides.append((_times_power(both[0], -power), _times_power(both[1], -power)))
    inside = words.times(shared[0], shared[1])
    only_a = words.plus(words.times(alone_a[0], sides[1][0]), words.times(shared[0], alone_a[1]))
    only_b = words.plus(words.times(alone_b[0], sides[1][1]), words.times(shared[0], alone_b[1]))
    outside = words.plus(only_a, only_b)
    known = ~apart & (inside.high >= TOO_SMALL)
    same = known & (a == b).all(axis=1)
    union = words.plus(outside, inside)
    hardly = ~apart & ~known & (thin | (union.high >= LARGE))  # a share below TOO_SMALL over LARGE
    share = words.over(outside, Words(np.where(known, union.high, 1.0), np.where(known, union.low, 0.0)))
    off = np.where(known, 64 * OFF * share.high + BOX_LOST, np.where(hardly, BOX_LOST, 0.5))
    high = np.where(known, share.high, np.where(apart | hardly, 1.0, 0.5))
    return Known(high, np.where(known, share.low, 0.0), np.where(apart | same, 0.0, off))


def _times_power(x: Words, power: Array) -> Words:
    return Words(np.ldexp(x.high, power), np.ldexp(x.low, power))


def _difference(x: Array, y: Array) -> Words:
    return Words(*two_sum(x, -y))


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    points, first = np.arange(6.0).reshape(2, 3), np.zeros(1, np.int64)
    for metric in ("sqeuclidean", "cosine"):
        Exactly(points, points, metric).of(first, first)
