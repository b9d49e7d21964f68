"""The dual bound of assignments whose lines may be left at a price: exact for the prices given, rounded down once.

All of it is in min form. r_i is the price of leaving row i, s_j that of column j, none where the line must be paired.
For every v with v_j <= s_j

    sum_i min(r_i, min_j (c_ij - v_j))  +  sum_j v_j     (j permitted)

is at most what any choice of pairs costs: a pair pays at least u_i + v_j, a row that is left r_i >= u_i, a column that
is left s_j >= v_j. So nothing of v needs to be believed. Lines of the shorter side play the rows, so that of a problem
with more rows than columns the prices of the rows are taken.

Rounding to nearest never reverses an order, so an exact minimum is among the entries that attain the rounded one. Their
errors are found by TwoSum, and a line's minimum is high + low without error. All terms are then added without error and
rounded once. Integers: int64, where the problem keeps |c| below 2^58 and prices beyond 2^61 are dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.rounded import down, two_sum
from kernels.problems.arrays import FORBIDDEN, Array, permitted

BLOCK = 1 << 17
"""Entries looked at together: these stay in the cache."""
EXACT_ENTRIES = 1 << 14
TOP = np.iinfo(np.int64).max
LARGEST_PRICE: dict[str, Any] = {"i": 1 << 61, "f": float(np.finfo(np.float64).max) / 64}


@dataclass(frozen=True)
class Side:
    """One problem turned so that its lines are those of the shorter side, in min form.

    `matrix` (n_lines, n_others): the costs as given, not negated. `top` (n_lines,) is the price of leaving a line,
    `cap` that of the others; TOP or inf where there is none. `price` (n_others,) is capped, and finite.
    """

    matrix: Array
    top: Array
    cap: Array
    price: Array


def usable(price: Array, cap: Array) -> Array:
    """`price`, with the cap or 0 for what is no number or beyond use, and at most the cap."""
    kept = np.abs(price) <= LARGEST_PRICE[price.dtype.kind]  # False for NaN; -2^63 is its own absolute value
    if price.dtype.kind == "i":
        kept &= price > -TOP
    return np.asarray(np.minimum(np.where(kept, price, np.zeros((), price.dtype)), cap))


def smallest(sides: list[Side], sign: int) -> tuple[Array, Array]:
    """min(top, min c - price) of each line of all problems, one after the other, as high + low without error.

    TOP or inf for a line that must be paired and has no permitted entry. low is 0 for integers.
    """
    kind = sides[0].price.dtype if sides else np.dtype(np.float64)
    worst = TOP if kind.kind == "i" else np.inf
    highs, lows = [], []
    for matrices, prices, tops in _blocks(sides):
        widths = np.concatenate([np.full(len(one), one.shape[1]) for one in matrices])
        lines = np.flatnonzero(widths)
        high, low = np.full(len(widths), worst, kind), np.zeros(len(widths), kind)
        if len(lines):
            entries = np.concatenate([one.reshape(-1) for one in matrices]).astype(kind, copy=False)
            given = np.concatenate([np.tile(p, len(one)) for one, p in zip(matrices, prices, strict=True)])
            starts = np.concatenate([[0], np.cumsum(widths[lines])[:-1]])
            high[lines], low[lines] = _minima(entries, given, starts, widths[lines], np.concatenate(tops)[lines], sign)
        highs.append(high)
        lows.append(low)
    high, low = (np.concatenate([*parts, np.zeros(0, kind)]) for parts in (highs, lows))
    top = np.concatenate([np.zeros(0, kind), *(side.top for side in sides)])
    leaves = (top < high) | ((top == high) & (low > 0))
    return np.where(leaves, top, high), np.where(leaves, np.zeros((), kind), low)


def _minima(entries: Array, given: Array, starts: Array, widths: Array, top: Array, sign: int) -> tuple[Array, Array]:
    """The smallest c - price of each run of entries: the rounded one, and the error of the exact one.

    The error is left out where the rounded one is above `top`: then so is the exact one, or it equals `top`.
    """
    exact = given.dtype.kind == "i"
    barred = entries == FORBIDDEN if exact else None
    if exact and sign > 0 and barred is not None and not barred.any():
        barred = None
    values = entries * sign if sign < 0 else entries
    differences = values - given
    if barred is not None:
        differences[barred] = TOP
    high = np.minimum.reduceat(differences, starts)
    low = np.zeros(len(high), given.dtype)
    if not exact:
        finite = np.where(np.isfinite(high) & (high <= top), high, np.nan)
        at = np.flatnonzero(differences == np.repeat(finite, widths))
        line = np.searchsorted(starts, at, side="right") - 1
        _, error = two_sum(values[at], -given[at])
        errors = np.full(len(high), np.inf)
        np.minimum.at(errors, line, error)
        low = np.where(np.isinf(high), 0.0, np.where(np.isinf(errors), 0.0, errors))
    return high, low


def _blocks(sides: list[Side]) -> Iterator[tuple[list[Array], list[Array], list[Array]]]:
    """Matrices, their prices and tops, a block of entries at a time; large ones by their lines."""
    matrices: list[Array] = []
    prices: list[Array] = []
    tops: list[Array] = []
    size = 0
    for side in sides:
        step = max(1, BLOCK // max(1, side.matrix.shape[1]))
        for first in range(0, max(1, len(side.matrix)), step):
            part = side.matrix[first : first + step]
            matrices.append(part)
            prices.append(side.price)
            tops.append(side.top[first : first + step])
            size += part.size
            if size >= BLOCK:
                yield matrices, prices, tops
                matrices, prices, tops, size = [], [], [], 0
    if matrices:
        yield matrices, prices, tops


def finer(side: Side, sign: int, words: Array) -> float | None:
    """The bound of one problem of floats at prices that are sums of `words` (several, n_others), in rational numbers.

    None where it is too large for that, or a line that must be paired has no permitted entry.
    """
    if side.matrix.size > EXACT_ENTRIES or not (np.abs(words) <= LARGEST_PRICE["f"]).all():
        return None
    caps = [None if np.isinf(cap) else Fraction(cap) for cap in side.cap.tolist()]
    sums = [sum(map(Fraction, column), Fraction(0)) for column in words.T.tolist()]
    prices = [price if cap is None else min(price, cap) for price, cap in zip(sums, caps, strict=True)]
    total = sum(prices, Fraction(0))
    for line, allowed, top in zip(side.matrix.tolist(), permitted(side.matrix), side.top.tolist(), strict=True):
        choices = [sign * Fraction(line[j]) - prices[j] for j in np.flatnonzero(allowed).tolist()]
        choices += [] if np.isinf(top) else [Fraction(top)]
        if not choices:
            return None
        total += min(choices)
    bounded = down(total)
    return bounded if np.isfinite(bounded) else None
