"""The proof of one assignment in one compiled call: pairing, objective, bound and violation.

No fast mathematics: the sums are exact only if nobody reorders them. A sum of floats is kept in three words. Each term
goes into the first by TwoSum, what rounding leaves of that into the second, what it leaves there into the third; where
the third would round, the sum is given up. The words are then rounded once, to the side that is asked for.

Why the sign of one word says to which side of the first the exact sum lies: `rounded` makes the words high + middle +
low with middle at most half a step of high. Where middle is not 0 it is a multiple of the step of a number of which low
is at most half a step, so low is smaller; and both together are less than a step of high.
"""

from typing import Any

import numpy as np

from kernels.certificates.compiled import inlined, jit, two_sum
from kernels.certificates.swept.loops import sweep_floats, sweep_integers
from kernels.problems import Array
from kernels.problems.arrays import FORBIDDEN

LARGEST_TERM = 2.0**960
"""Larger ones could take a sum out of float64."""


@inlined
def added(words: tuple[float, float, float, float], term: float) -> tuple[float, float, float, float]:
    """A sum with one more term; the fourth word is 0 while the other three are exact."""
    first, left = two_sum(words[0], term)
    second, left = two_sum(words[1], left)
    third, left = two_sum(words[2], left)
    return first, second, third, words[3] + abs(left)


@inlined
def rounded(words: tuple[float, float, float, float], side: float) -> tuple[float, bool]:
    """The sum rounded towards `side` (-1, 1) infinity, and whether it is that of the exact sum."""
    middle, low = two_sum(words[1], words[2])
    high, middle = two_sum(words[0], middle)
    middle, low = two_sum(middle, low)
    high, middle = two_sum(high, middle)
    off = low if middle == 0.0 else middle
    beyond = off > 0.0 if side > 0.0 else off < 0.0
    return np.nextafter(high, side * np.inf) if beyond else high, words[3] == 0.0 and abs(high) <= LARGEST_TERM


@jit
def total(values: Array, side: float) -> tuple[float, bool]:
    """The sum of values (k,) rounded towards `side` infinity, and whether it is that of the exact sum."""
    words = (0.0, 0.0, 0.0, 0.0)
    for value in values:
        words = added(words, value)
    return rounded(words, side)


@jit
def prove_integers(
    weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, most: int
) -> tuple[bool, Any, Any, Any, Any, Any]:
    """(known, the sum of the pairs in two halves, the bound in min form in two halves, violation).

    Not known where a row has no column of its own, an entry is forbidden, a dual is beyond `most`, or a column that may
    stay free has a positive price.
    """
    price, high = np.empty(v.size, np.int64), np.empty(u.size, np.int64)
    if not priced(maximize, u, v, most, price):
        return False, np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    sweep_integers(0, u.size, weights, maximize, price, high)
    return sum_integers(weights, maximize, assignment, u, price, high)


@jit
def priced(maximize: bool, u: Array, v: Array, most: Any, price: Array) -> bool:
    """Fill `price` with v in min form. Are duals within `most`, and prices of what may stay free not above 0?"""
    sign, fine = price.dtype.type(-1 if maximize else 1), True
    for j in range(v.size):
        price[j] = sign * v[j]
        fine &= -most <= v[j] <= most
        fine &= u.size == v.size or price[j] <= 0
    for i in range(u.size):
        fine &= -most <= u[i] <= most
    return fine


@jit
def sum_integers(
    weights: Array, maximize: bool, assignment: Array, u: Array, price: Array, high: Array
) -> tuple[bool, Any, Any, Any, Any, Any]:
    """What `prove_integers` returns, of rows whose least entries at `price` are `high`."""
    sign, none, half = np.int64(-1 if maximize else 1), np.int64(0), np.int64(0xFFFFFFFF)
    taken = np.zeros(price.size, np.int8)
    pairs, rest, dual, more, violation = none, none, none, none, none
    for j in range(price.size):
        dual += price[j] >> 32
        more += price[j] & half
    for i in range(u.size):
        j = assignment[i]
        if j < 0 or j >= price.size or taken[j] or high[i] == FORBIDDEN:
            return False, none, none, none, none, none
        taken[j] = 1
        pair = np.int64(weights[i, j])
        pairs += pair >> 32
        rest += pair & half
        violation = max(violation, sign * u[i] - high[i])
        dual += high[i] >> 32
        more += high[i] & half
    return True, pairs, rest, dual, more, violation


@jit
def prove_floats(
    weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, most: float
) -> tuple[bool, float, float, float, float, float]:
    """(known, objective in min form rounded up, bound rounded down, gap rounded up, violation, size).

    `size` is the sum over the pairs of |c|, |least of the row| and |price|, rounded. Not known in the cases of
    `prove_integers`, where a row has no permitted entry or holds a NaN, and where a sum needs more than three words.
    """
    price, high, low = np.empty(v.size), np.empty(u.size), np.empty(u.size)
    if not priced(maximize, u, v, most, price):
        return False, 0.0, 0.0, 0.0, 0.0, 0.0
    sweep_floats(0, u.size, weights, maximize, price, high, low)
    return sum_floats(weights, maximize, assignment, u, price, high, low)


@jit
def sum_floats(
    weights: Array, maximize: bool, assignment: Array, u: Array, price: Array, high: Array, low: Array
) -> tuple[bool, float, float, float, float, float]:
    """What `prove_floats` returns, of rows whose least entries at `price` are `high` + `low`."""
    sign, nothing, size, violation = np.float64(-1.0 if maximize else 1.0), (0.0, 0.0, 0.0, 0.0), 0.0, 0.0
    pairs, dual, largest, taken = nothing, nothing, 0.0, np.zeros(price.size, np.int8)
    unknown = (False, 0.0, 0.0, 0.0, 0.0, 0.0)
    for j in range(price.size):
        largest = max(largest, abs(price[j]))
        dual = added(dual, price[j])
    for i in range(u.size):
        j = assignment[i]
        if j < 0 or j >= price.size or taken[j]:
            return unknown
        taken[j] = 1
        pair, least = sign * weights[i, j], high[i]
        if not (abs(least) < np.inf and abs(pair) < np.inf):
            return unknown
        largest = max(largest, max(abs(pair), abs(least)))
        violation = max(violation, sign * u[i] - least)
        size += abs(pair) + abs(least) + abs(price[j])
        pairs, dual = added(pairs, pair), added(added(dual, least), low[i])
    objective, sure = rounded(pairs, 1.0)
    bound, also = rounded(dual, -1.0)
    gap, left = two_sum(objective, -bound)
    gap = np.nextafter(gap, np.inf) if left > 0.0 else gap
    return sure and also and largest <= LARGEST_TERM, objective, bound, gap, violation, size


@jit
def prove_batch_of_integers(
    first: int, last: int, maximize: bool, weights: Array, assignment: Array, u: Array, v: Array, most: int,
    again: Array, known: Array, found: Array,
) -> None:  # fmt: skip
    """`prove_integers` of the problems from `first` to before `last` but those marked by `again`."""
    for k in range(first, last):
        if not again[k]:
            known[k], found[k, 0], found[k, 1], found[k, 2], found[k, 3], found[k, 4] = prove_integers(
                weights[k], maximize, assignment[k], u[k], v[k], most
            )


@jit
def prove_batch_of_floats(
    first: int, last: int, maximize: bool, weights: Array, assignment: Array, u: Array, v: Array, most: float,
    again: Array, known: Array, found: Array,
) -> None:  # fmt: skip
    """`prove_floats`, likewise."""
    for k in range(first, last):
        if not again[k]:
            known[k], found[k, 0], found[k, 1], found[k, 2], found[k, 3], found[k, 4] = prove_floats(
                weights[k], maximize, assignment[k], u[k], v[k], most
            )
