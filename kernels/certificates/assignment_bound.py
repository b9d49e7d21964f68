"""The dual bound of dense assignment problems: exact for the prices given, rounded down once at the end.

All of it is in min form: c is the weight, or its negation when maximising, which is exact. The lines of the shorter
side must all be paired; the others have prices v, with v <= 0 where they may stay free. For every such v

    sum over lines of min_j (c_ij - v_j)  +  sum_j v_j     (j permitted)

is at most the cost of any assignment (weak duality), so nothing of v needs to be believed.

How it is computed. Rounding to nearest never reverses an order, so the smallest rounded difference of a line is the
rounding of the smallest exact one, and an exact minimum is among the entries that attain it. The errors of those few
are found by TwoSum (rounded.py gives its sources): a line's minimum is high + low without error. All terms are then
added without error and rounded once (`sum_down`). Prices may be given in several words, whose exact sum they are: up
to EXACT_ENTRIES entries they are used as they are, in rational numbers; beyond, two words are used (dropping the
others leaves a price like any other), and the difference to the second is rounded down.

Integers: int64, where the problem keeps |c| below 2^58 and prices beyond 2^61 are dropped; sums are Python's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.rounded import down, sub_down, sum_down, two_sum
from kernels.problems.arrays import FORBIDDEN, Array, permitted
from kernels.solution import Number

BLOCK_BYTES = 1 << 22
EXACT_ENTRIES = 1 << 14
TOP = np.iinfo(np.int64).max
LARGEST_PRICE: dict[str, Any] = {"i": 1 << 61, "f": float(np.finfo(np.float64).max) / 64}
"""Larger prices are dropped, so that no difference overflows."""
Heard = Callable[[float], None]


@dataclass(frozen=True)
class Lines:
    """The smallest c - v of each line that must be paired: high + low, both (n_problems, n_lines), low 0 for integers.

    `without`, of the same shape, says which lines have no permitted entry.
    """

    high: Array
    low: Array
    without: Array


def usable(price: Array, may_stay_free: bool) -> Array:
    """`price` with 0 for what is no number or beyond use, and at most 0 where its lines may stay free."""
    kept = np.abs(price) <= LARGEST_PRICE[price.dtype.kind]  # False for NaN; -2^63 is its own absolute value
    if price.dtype.kind == "i":
        kept &= price > -TOP
    price = np.where(kept, price, np.zeros((), price.dtype))
    return np.minimum(price, 0) if may_stay_free else price


def smallest(weights: Array, sign: int, price: Array, heard: Heard) -> Lines:
    """The lines of problems (n_problems, n_rows, n_cols) at `price` (n_problems, longer side), which is `usable`."""
    axis = 1 if weights.shape[1] > weights.shape[2] else 2
    shape = (len(weights), weights.shape[3 - axis])
    exact = price.dtype.kind == "i"
    high, low = np.full(shape, TOP if exact else np.inf, price.dtype), np.zeros(shape, price.dtype)
    for k, rows, fraction in _blocks(weights.shape):
        block = weights[k, rows]
        least = _differences(block, sign, price[k, rows, None] if axis == 1 else price[k, None, :])
        best = least.min(axis=axis)
        errors = np.zeros_like(best) if exact else _least_errors(block, sign, price[k], rows, least, best, axis)
        lines = (k, slice(None) if axis == 1 else rows)
        before, error = high[lines], low[lines]
        low[lines] = np.where(best < before, errors, np.where(best == before, np.minimum(errors, error), error))
        high[lines] = np.minimum(before, best)
        heard(fraction)
    return Lines(high, low, high == (TOP if exact else np.inf))


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, float]]:
    """Problems and their rows a block at a time, and the fraction that is done after it."""
    batch, n_rows, n_cols = shape
    most = BLOCK_BYTES // 8
    if n_rows * n_cols <= most:
        step = most // (n_rows * n_cols)
        for first in range(0, batch, step):
            yield slice(first, first + step), slice(0, n_rows), min(1.0, (first + step) / batch)
        return
    step = max(1, most // n_cols)
    for k in range(batch):
        for first in range(0, n_rows, step):
            yield slice(k, k + 1), slice(first, first + step), (k + min(1.0, (first + step) / n_rows)) / batch


def _differences(block: Array, sign: int, price: Array) -> Array:
    """c - v of a block, rounded to nearest; TOP or inf for what is forbidden."""
    values = block.astype(price.dtype)
    if sign < 0:
        np.negative(values, out=values)
    values -= price
    if block.dtype == np.int64 and int(block.min()) == FORBIDDEN:
        values[block == FORBIDDEN] = TOP
    return values


def _least_errors(block: Array, sign: int, price: Array, rows: slice, least: Array, best: Array, axis: int) -> Array:
    """The smallest rounding error among the differences that attain `best`, line by line: the exact minimum's."""
    errors = np.full(best.shape, np.inf)
    finite = np.where(np.isfinite(best), best, np.nan)
    k, i, j = np.unravel_index(np.flatnonzero(least == np.expand_dims(finite, axis)), least.shape)
    line, other = (j, i + rows.start) if axis == 1 else (i, j)
    _, error = two_sum(sign * block[k, i, j].astype(np.float64), -price[k, other])
    np.minimum.at(errors, (k, line), error)
    return np.where(np.isinf(best), 0.0, errors)


def violations(lines: Lines, claimed: Array, given: Array, may_stay_free: bool) -> Array:
    """By how much the duals `claimed` break c - v, and the prices `given` 0, at most: (n_problems,).

    The largest number where a dual is none.
    """
    worst = TOP if claimed.dtype.kind == "i" else np.inf
    sane = usable(claimed, False)
    over = np.where(lines.without, 0, sane - np.where(lines.without, 0, lines.high))
    most = np.maximum(np.where(sane == claimed, over, worst).max(axis=1), 0)
    return np.asarray(np.maximum(most, np.fmax.reduce(given, axis=1)) if may_stay_free else most)


def bound(lines: Lines, price: Array, k: int) -> Number | None:
    """The bound of problem k in min form.

    None where a line has no permitted entry or one that is no number, or where the sum leaves float64.
    """
    if lines.without[k].any() or not np.isfinite(lines.high[k]).all():
        return None
    if price.dtype.kind == "i":
        return exact_sum(lines.high[k]) + exact_sum(price[k])
    total = sum_down(np.concatenate([lines.high[k], lines.low[k], price[k]]))
    return total if np.isfinite(total) else None


def exact_sum(values: Array) -> int:
    """The sum of int64 as a Python integer: 32-bit halves apart, which stay exact for 2^31 values."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def finer_bound(weights: Array, sign: int, words: Array, may_stay_free: bool, heard: Heard) -> float | None:
    """As `bound`, of one problem (n_rows, n_cols) of floats at prices that are sums of `words` (several, longer side).

    None where the words are no numbers, a line has no permitted entry, or the sum leaves float64.
    """
    if not (np.abs(words) <= LARGEST_PRICE["f"]).all():
        return None
    entries = weights.T if weights.shape[0] > weights.shape[1] else weights
    if weights.size <= EXACT_ENTRIES:
        return _rational_bound(entries, sign, words, may_stay_free)
    first, second = two_sum(words[0], words[1])
    if may_stay_free:
        above = (first > 0) | ((first == 0) & (second > 0))
        first, second = np.where(above, 0.0, first), np.where(above, 0.0, second)
    terms = [first, second]
    step = max(1, BLOCK_BYTES // (8 * entries.shape[1]))
    for begin in range(0, len(entries), step):
        high, low = two_sum(sign * entries[begin : begin + step].astype(np.float64), -first)
        barred = np.isinf(high)
        low = np.where(barred, 0.0, sub_down(low, second))
        high, low = two_sum(high, low)
        best = high.min(axis=1, keepdims=True)
        if np.isinf(best).any():
            return None
        terms += [best[:, 0], np.where(high == best, low, np.inf).min(axis=1)]
        heard(min(1.0, (begin + step) / len(entries)))
    total = sum_down(np.concatenate(terms))
    return total if np.isfinite(total) else None


def _rational_bound(entries: Array, sign: int, words: Array, may_stay_free: bool) -> float | None:
    prices = [sum(map(Fraction, column)) for column in words.T.tolist()]
    if may_stay_free:
        prices = [min(price, Fraction(0)) for price in prices]
    total = sum(prices, Fraction(0))
    for entry, allowed in zip(entries.tolist(), permitted(entries), strict=True):
        if not allowed.any():
            return None
        total += min(sign * Fraction(entry[j]) - prices[j] for j in np.flatnonzero(allowed).tolist())
    bounded = down(total)
    return bounded if np.isfinite(bounded) else None


def natural_scale(weights: Array) -> float:
    """S: the sum over lines of the smallest non-zero permitted |entry|, rounded down; the smaller of rows and columns.

    Both sums are below the other's so that a problem and its transpose are judged alike, and a side whose lines need
    not all be paired does not loosen the judgement. A line without a non-zero entry counts 0.
    """
    of_rows, of_cols = np.full(weights.shape[0], np.inf), np.full(weights.shape[1], np.inf)
    step = max(1, BLOCK_BYTES // (8 * weights.shape[1]))
    for first in range(0, len(weights), step):
        sizes = np.abs(weights[first : first + step].astype(np.float64))
        sizes[sizes == 0] = np.inf
        of_rows[first : first + step] = sizes.min(axis=1)
        np.minimum(of_cols, sizes.min(axis=0), out=of_cols)
    return min(sum_down(side[np.isfinite(side)]) for side in (of_rows, of_cols))
