"""Costs of points by NumPy's operations on whole arrays: what the compiled loops of a certificate must come to."""

import numpy as np

from kernels import Array
from kernels.certificates.metrics import words
from kernels.certificates.metrics.exactly import LOST, SMALL_FACTOR, SMALL_PRODUCT, Cloud, Exactly, Known, _Sums
from kernels.certificates.metrics.words import Words


def by_words(costs: Exactly, i: Array, j: Array) -> Known:
    """The costs of pairs."""
    with np.errstate(under="ignore"):
        sums = summed(costs.metric, costs.x, costs.y, i, j)
        found = costs._cost(sums, costs.x.off[i] + costs.y.off[j])
    if costs.metric == "inner":
        return found
    same = sums.same & costs.x.whole[i] & costs.y.whole[j]
    return Known(*(np.where(same, 0.0, array) for array in found))


def summed(metric: str, x: Cloud, y: Cloud, i: Array, j: Array) -> _Sums:
    """Their sums over the coordinates."""
    nothing = np.zeros(len(i))
    if metric == "inner":
        a, b = x.points.high[i], y.points.high[j]
        high, low = words.product(a, b)
        lost = np.where((np.abs(high) < SMALL_PRODUCT) & (a != 0) & (b != 0), LOST, 0.0).sum(axis=1)
        return _Sums(total(Words(high, low)), np.abs(high).sum(axis=1), lost, nothing != 0)
    away = minus(some(x, i), some(y, j))
    same = (x.same[i] == y.same[j]).all(axis=1)
    if metric == "cityblock":
        sign = np.where(away.high < 0, -1.0, 1.0)
        return _Sums(total(Words(sign * away.high, sign * away.low)), nothing, nothing, same)
    lost = np.where((away.high != 0) & (np.abs(away.high) < SMALL_FACTOR), LOST, 0.0).sum(axis=1)
    return _Sums(total(words.times(away, away)), nothing, lost, same)


def directed(points: Array, is_moved: bool) -> tuple[Words, Array, Array]:
    """Points of length 1, their lengths, and the sums of distances from the first coordinate."""
    d = points.shape[1]
    found, sizes = Words(points, np.zeros_like(points)), np.zeros(len(points))
    if is_moved:
        found = minus(found, Words(found.high[:, :1], found.low[:, :1]))
        sizes = np.abs(found.high).sum(axis=1)
        mean = words.over(total(found), Words(np.full(len(sizes), float(d)), np.zeros(len(sizes))))
        found = minus(found, Words(mean.high[:, None], mean.low[:, None]))
    length = words.root(total(words.times(found, found)))
    far = length.high > 0
    by = Words(np.where(far, length.high, 1.0)[:, None], np.where(far, length.low, 0.0)[:, None])
    return words.over(found, by), length.high, sizes


def total(terms: Words) -> Words:
    """The sums over the last axis of (k, d), halves first."""
    while (d := terms.high.shape[1]) > 1:
        half, odd = d // 2, d % 2
        part = words.plus(columns(terms, 0, half), columns(terms, half, 2 * half))
        if odd:
            last = words.plus(columns(part, 0, 1), columns(terms, d - 1, d))
            part.high[:, :1], part.low[:, :1] = last
        terms = part
    return Words(terms.high[:, 0], terms.low[:, 0])


def columns(x: Words, first: int, end: int) -> Words:
    return Words(x.high[:, first:end], x.low[:, first:end])


def minus(x: Words, y: Words) -> Words:
    return words.plus(x, Words(-y.high, -y.low))


def some(cloud: Cloud, index: Array) -> Words:
    """Some of the points in two words."""
    high, low = cloud.points
    return Words(high[index], low[index] if len(low) else np.zeros_like(high[index]))
