"""The optimum of a small float problem without any rounding, in Python's integers.

Finite floats are integers times one power of two. On those integers shortest augmenting paths are exact whatever the
range of the costs, and so are the prices; a price that is no float is returned in several words, whose sum it is. This
is slow (about 50 ns an operation): it is for answers whose float search lost the bits that decide.
"""

import math
from dataclasses import dataclass

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats, Indices, Integers, Wholes

MOST_WORDS = 42
"""Enough for every price: sums of floats span less than 2200 bits."""


@dataclass(frozen=True)
class Optimum:
    """`partner_of` (n,) the column of each row; `u` (n,) rounded; the prices (m,) as sums of `words` (n_words, m)."""

    partner_of: Indices
    u: Floats
    words: Floats


def solve(cost: Floats, deadline: Deadline) -> Optimum | None:
    """Minimise over pairings of all rows of `cost` (n, m), n <= m, float64, +inf forbidden, which has one.

    None when the deadline passed first. Complexity: n^2 m operations of Python integers at worst.
    """
    whole, exponent = integers(cost)
    found = paths(whole, deadline)
    if found is None:
        return None
    row_of, u, v = found
    partner_of = np.empty(len(cost), np.int64)
    cols = np.flatnonzero(row_of >= 0)
    partner_of[row_of[cols]] = cols
    return Optimum(partner_of, words(u, exponent)[0], words(v, exponent))


def paths(whole: Wholes, deadline: Deadline) -> tuple[Integers, list[int], list[int]] | None:
    """Shortest augmenting paths over Python integers (n, m): the row of each column (-1: none) and the duals."""
    n, m = whole.shape
    u, v = [0] * n, np.zeros(m, object)
    row_of = np.full(m, -1)
    for source in range(n):
        if deadline.expired():
            return None
        distance, parent, end, scanned = _search(whole, u, v, row_of, source)
        u[source] += distance[end]
        for j in scanned:
            rise = distance[end] - distance[j]
            u[row_of[j]] += rise
            v[j] -= rise
        i = -1
        while i != source:
            i = int(parent[end])
            before = np.flatnonzero(row_of == i)
            row_of[end] = i
            end = int(before[0]) if i != source else end
    return row_of, u, v.tolist()


def integers(cost: Floats) -> tuple[Wholes, int]:
    """Python integers and an exponent with integer * 2^exponent = entry; forbidden entries are beyond every pairing."""
    known = np.isfinite(cost)
    mantissa, power = np.frexp(np.where(known, cost, 0.0))
    fraction, power = (mantissa * 2.0**53).astype(np.int64), power.astype(np.int64) - 53
    used = fraction != 0
    exponent = int(power[used].min()) if used.any() else 0
    shift = np.where(used, power - exponent, 0)
    whole = fraction.astype(object) * np.array([1 << s for s in shift.ravel().tolist()], object).reshape(shift.shape)
    largest = max((abs(value) for value in whole.ravel().tolist()), default=0)
    whole[~known] = 4 * (len(cost) + 1) * largest + 1
    return whole, exponent


def _search(
    whole: Wholes, u: list[int], v: Wholes, row_of: Indices, source: int
) -> tuple[Wholes, Integers, int, list[int]]:
    """Dijkstra's search from a free row: distances, parent rows, the free column that is nearest, columns scanned."""
    m = len(v)
    distance, parent = whole[source] - u[source] - v, np.full(m, source)
    open_cols = np.ones(m, bool)
    scanned: list[int] = []
    while True:
        cols = np.flatnonzero(open_cols)
        j = int(cols[distance[cols].argmin()])
        i = int(row_of[j])
        if i < 0:
            return distance, parent, j, scanned
        scanned.append(j)
        open_cols[j] = False
        through = whole[i] - v + (distance[j] - u[i])
        nearer = open_cols & (through < distance)
        distance[nearer], parent[nearer] = through[nearer], i


def words(prices: list[int], exponent: int) -> Floats:
    """Each price as floats that add up to it, the largest first."""
    words: list[list[float]] = []
    while any(prices) and len(words) < MOST_WORDS:
        split = [_leading(price) for price in prices]
        words.append([math.ldexp(float(top), shift + exponent) for top, shift in split])
        prices = [price - (top << shift) for price, (top, shift) in zip(prices, split, strict=True)]
    return np.array(words or [[0.0] * len(prices)])


def _leading(value: int) -> tuple[int, int]:
    """The leading 53 bits of an integer, rounded down, and their place."""
    shift = max(0, value.bit_length() - 53)
    return value >> shift, shift
