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
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.certificates.metrics import words
from kernels.certificates.metrics.words import OFF, Words, module_of, two_sum
from kernels.problems.arrays import Array

DIRECTIONS = ("cosine", "correlation")
SMALL_FACTOR, LOST = 2.0**-450, 2.0**-1060
"""Products of two such numbers may lose so much each by underflow."""
TOO_SMALL, LARGE = 2.0**-900, 2.0**-300
"""Intersections of boxes below the first, where the wider box is 1 wide, are not told apart from nothing; beside a
union above the second they are nothing."""
BOX_LOST = 2.0**-150
"""More than what underflows of such a share."""
AT_ONCE = {"numpy": 1 << 16, "cupy": 1 << 24}
"""Coordinates worked out together: what a core's cache holds, and what fills a device."""
ROUND_UP = 1 + 2.0**-40
FAR_OFF, ANYWHERE = 2.0**-10, 4.0
"""Errors of a direction beyond the first are not followed up: any two directions are at most 2 apart."""


class Known(NamedTuple):
    """Costs high + low, off by at most `error`."""

    high: Array
    low: Array
    error: Array


class Cloud:
    """Points (k, d) in two words, with what each of them is off by as a vector."""

    def __init__(self, points: Array, metric: str) -> None:
        xp = module_of(points)
        given = points.astype(np.float64)
        self.d = given.shape[1]
        self.points, self.off = Words(given, xp.zeros_like(given)), xp.zeros(len(given))
        self.same, self.whole = given, xp.ones(len(given), bool)
        if metric in DIRECTIONS:
            _, own = xp.frexp(xp.abs(given).max(axis=1, keepdims=True))
            self.same = xp.ldexp(given, -own)
            self.whole = (xp.ldexp(self.same, own) == given).all(axis=1)  # nothing underflowed
            self.points = Words(self.same, xp.zeros_like(given))
            self._centre(metric == "correlation", xp)

    def _centre(self, is_moved: bool, xp: Any) -> None:
        """Subtract the mean where asked, and divide by the length."""
        d, points = self.d, self.points
        sizes = xp.zeros(len(points.high))
        if is_moved:
            points = words.minus(points, Words(points.high[:, :1], points.low[:, :1]))  # without error
            sizes = xp.abs(points.high).sum(axis=1)
            mean = words.over(words.total(points), Words(xp.full(len(sizes), float(d)), xp.zeros(len(sizes))))
            points = words.minus(points, Words(mean.high[:, None], mean.low[:, None]))
        length = words.root(words.total(words.times(points, points)))
        some = length.high > 0
        length = Words(xp.where(some, length.high, 1.0), xp.where(some, length.low, 0.0))
        self.points = words.over(points, Words(length.high[:, None], length.low[:, None]))
        moved = 2 * float(np.sqrt(d)) * OFF * sizes / length.high
        off = 2 * (moved + 4 * (d + 16) * OFF)
        self.off = xp.where(some & (off < FAR_OFF), off, ANYWHERE)


class Exactly:
    """The costs of pairs of points x (m, d), y (n, d), which are all on the host or all on a device."""

    def __init__(self, x: Array, y: Array, metric: str) -> None:
        self.metric, self.d = metric, int(x.shape[1])
        self.x, self.y = (Cloud(points, metric) for points in (x, y))
        self._xp = module_of(x)

    def of(self, rows: Array, columns: Array) -> Known:
        """Of the pairs (rows, columns), both (k,)."""
        parts = []
        step = max(1, AT_ONCE[self._xp.__name__] // self.d)
        for first in range(0, len(rows), step):
            here = slice(first, first + step)
            parts.append(self._some(rows[here], columns[here]))
        if not parts:
            return Known(*(self._xp.zeros(0) for _ in range(3)))
        return Known(*(self._xp.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _some(self, i: Array, j: Array) -> Known:
        with np.errstate(under="ignore"):
            if self.metric == "iou":
                return _overlaps(self.x.points.high[i], self.y.points.high[j])
            if self.metric == "inner":
                return self._products(i, j)
            found = self._distances(i, j)
        same = (self.x.same[i] == self.y.same[j]).all(axis=1) & self.x.whole[i] & self.y.whole[j]
        return Known(*(self._xp.where(same, 0.0, array) for array in found))

    def _products(self, i: Array, j: Array) -> Known:
        xp, x, y = self._xp, self.x.points.high[i], self.y.points.high[j]
        high, low = words.product(x, y)
        total, sizes = words.total(Words(high, low)), xp.abs(high).sum(axis=1)
        lost = xp.where((xp.abs(high) < 2.0**-900) & (x != 0) & (y != 0), LOST, 0.0).sum(axis=1)
        return Known(-total.high, -total.low, ROUND_UP * 4 * (self.d + 4) * OFF * sizes + 2 * lost)

    def _distances(self, i: Array, j: Array) -> Known:
        xp = self._xp
        away = words.minus(self.x.points.at(i), self.y.points.at(j))
        lost = xp.zeros(len(i))
        if self.metric == "cityblock":
            sign = xp.where(away.high < 0, -1.0, 1.0)
            total = words.total(Words(sign * away.high, sign * away.low))
        else:
            lost = xp.where((away.high != 0) & (xp.abs(away.high) < SMALL_FACTOR), LOST, 0.0).sum(axis=1)
            total = words.total(words.times(away, away))
        error = 4 * (self.d + 4) * OFF * total.high + 2 * lost
        if self.metric in DIRECTIONS:
            off = self.x.off[i] + self.y.off[j]
            error += 2 * xp.sqrt(total.high) * off + off * off
            return Known(total.high / 2, total.low / 2, ROUND_UP * error)  # halving is exact: nothing here is tiny
        if self.metric == "euclidean":
            far = words.root(total)
            known = xp.where(far.high > 0, far.high, 1.0)
            error = xp.where(far.high > 0, error / known + 4 * OFF * far.high, xp.sqrt(error))
            total = far
        return Known(total.high, total.low, ROUND_UP * error)


def _overlaps(a: Array, b: Array) -> Known:
    """1 - intersection / union of boxes (k, 4); from 0 to 1 where areas are too small to tell.

    Each axis of each pair has a unit of its own, in which the wider box is 1/2 to 1 wide: that changes no share.
    """
    xp = module_of(a)
    shared: list[Words] = []
    alone_a: list[Words] = []
    alone_b: list[Words] = []
    sides: list[tuple[Words, Words]] = []
    for from_, to in ((0, 2), (1, 3)):
        start, end = xp.maximum(a[:, from_], b[:, from_]), xp.minimum(a[:, to], b[:, to])
        both = _difference(a[:, to], a[:, from_]), _difference(b[:, to], b[:, from_])
        _, power = xp.frexp(xp.maximum(both[0].high, both[1].high))
        shared.append(_times_power(_difference(end, start), -power))
        for box, alone in ((a, alone_a), (b, alone_b)):
            more = words.plus(_difference(box[:, to], end), _difference(start, box[:, from_]))
            alone.append(_times_power(more, -power))
        sides.append((_times_power(both[0], -power), _times_power(both[1], -power)))
    inside = words.times(shared[0], shared[1])
    only_a = words.plus(words.times(alone_a[0], sides[1][0]), words.times(shared[0], alone_a[1]))
    only_b = words.plus(words.times(alone_b[0], sides[1][1]), words.times(shared[0], alone_b[1]))
    outside = words.plus(only_a, only_b)
    apart = (shared[0].high <= 0) | (shared[1].high <= 0)
    known = ~apart & (inside.high >= TOO_SMALL)
    same = known & xp.stack([part.high == 0 for part in (*alone_a, *alone_b)]).all(axis=0)
    union = words.plus(outside, inside)
    hardly = ~apart & ~known & (union.high >= LARGE)  # a share below TOO_SMALL over LARGE
    share = words.over(outside, Words(xp.where(known, union.high, 1.0), xp.where(known, union.low, 0.0)))
    off = xp.where(known, 64 * OFF * share.high + BOX_LOST, xp.where(hardly, BOX_LOST, 0.5))
    high = xp.where(known, share.high, xp.where(apart | hardly, 1.0, 0.5))
    return Known(high, xp.where(known, share.low, 0.0), xp.where(apart | same, 0.0, off))


def _times_power(x: Words, power: Array) -> Words:
    xp = module_of(x.high)
    return Words(xp.ldexp(x.high, power), xp.ldexp(x.low, power))


def _difference(x: Array, y: Array) -> Words:
    return Words(*two_sum(x, -y))
