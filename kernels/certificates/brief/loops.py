"""The proof of one assignment in one compiled call: pairing, objective, bound and violation.

No fast mathematics: the sums are exact only if nobody reorders them. A sum of floats is kept in three words. Each term
goes into the first by TwoSum, what rounding leaves of that into the second, what it leaves there into the third; where
the third would round, the sum is given up. The words are then rounded once, to the side that is asked for.

Why the sign of one word says to which side of the first the exact sum lies: `rounded` makes the words high + middle +
low with middle at most half a step of high. Where middle is not 0 it is a multiple of the step of a number of which low
is at most half a step, so low is smaller; and both together are less than a step of high.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from kernels.certificates.swept.loops import INF_BITS, TURN, jit, least_error
from kernels.problems import Array
from kernels.problems.arrays import FORBIDDEN

F = TypeVar("F", bound=Callable[..., Any])
LARGEST_TERM = 2.0**960
"""Larger ones could take a sum out of float64."""


def inlined(function: F) -> F:
    """Compile into whatever compiled function calls it."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function))


@inlined
def two_sum(x: float, y: float) -> tuple[float, float]:
    """x + y rounded to nearest, and what is left (Knuth)."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


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
def prove_integers(
    weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, most: int
) -> tuple[bool, Any, Any, Any, Any, Any]:
    """(known, the sum of the pairs in two halves, the bound in min form in two halves, violation).

    Not known where a row has no column of its own, an entry is forbidden, a dual is beyond `most`, or a column that may
    stay free has a positive price.
    """
    sign, none = np.int64(-1 if maximize else 1), np.int64(0)
    price, taken, half = np.empty(v.size, np.int64), np.zeros(v.size, np.int8), np.int64(0xFFFFFFFF)
    pairs, rest, dual, more, violation = none, none, none, none, none
    for j in range(v.size):
        if v[j] > most or v[j] < -most or (u.size < v.size and sign * v[j] > 0):
            return False, none, none, none, none, none
        price[j] = sign * v[j]
        dual += price[j] >> 32
        more += price[j] & half
    for i in range(u.size):
        j = assignment[i]
        if j < 0 or j >= v.size or taken[j] or u[i] > most or u[i] < -most:
            return False, none, none, none, none, none
        taken[j] = 1
        row, least, barred = weights[i], np.int64(np.iinfo(np.int64).max), none
        pairs += np.int64(row[j]) >> 32
        rest += np.int64(row[j]) & half
        for k in range(price.size):
            entry = np.int64(row[k])
            barred += np.int64(1) if entry == FORBIDDEN else none
            least = min(least, sign * entry - price[k])
        if barred:
            return False, none, none, none, none, none
        violation = max(violation, sign * u[i] - least)
        dual += least >> 32
        more += least & half
    return True, pairs, rest, dual, more, violation


@jit
def prove_floats(
    weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, most: float
) -> tuple[bool, float, float, float, float, float]:
    """(known, objective in min form rounded up, bound rounded down, gap rounded up, violation, size).

    `size` is the sum over the pairs of |c|, |least of the row| and |price|, rounded. Not known in the cases of
    `prove_integers`, where a row has no permitted entry, and where a sum needs more than three words.
    """
    sign, nothing, size, violation = np.float64(-1.0 if maximize else 1.0), (0.0, 0.0, 0.0, 0.0), 0.0, 0.0
    price, taken, bits = np.empty(v.size), np.zeros(v.size, np.int8), np.empty(v.size, np.int64)
    reduced, pairs, dual, largest = bits.view(np.float64), nothing, nothing, 0.0
    unknown = (False, 0.0, 0.0, 0.0, 0.0, 0.0)
    for j in range(v.size):
        if not abs(v[j]) <= most or (u.size < v.size and sign * v[j] > 0.0):
            return unknown
        price[j] = sign * v[j]
        largest = max(largest, abs(v[j]))
        dual = added(dual, price[j])
    for i in range(u.size):
        j = assignment[i]
        if j < 0 or j >= v.size or taken[j] or not abs(u[i]) <= most:
            return unknown
        taken[j] = 1
        row, least = weights[i], INF_BITS
        for k in range(price.size):
            reduced[k] = sign * row[k] - price[k]
        for k in range(bits.size):
            bits[k] ^= TURN if bits[k] < 0 else 0
        for k in range(bits.size):
            least = min(least, bits[k])
        high, low = least_of(row, sign, price, bits, least, j)
        pair = sign * row[j]
        if least == INF_BITS or not abs(pair) < np.inf:
            return unknown
        largest = max(largest, max(abs(pair), abs(high)))
        violation = max(violation, sign * u[i] - high)
        size += abs(pair) + abs(high) + abs(price[j])
        pairs, dual = added(pairs, pair), added(added(dual, high), low)
    objective, sure = rounded(pairs, 1.0)
    bound, also = rounded(dual, -1.0)
    gap, left = two_sum(objective, -bound)
    gap = np.nextafter(gap, np.inf) if left > 0.0 else gap
    return sure and also and largest <= LARGEST_TERM, objective, bound, gap, violation, size


@inlined
def least_of(row: Array, sign: float, price: Array, bits: Array, least: int, own: int) -> tuple[float, float]:
    """As `least_error`, which need not be asked where the row's own column is the only one at its least."""
    ties = np.int64(0)
    for k in range(bits.size):
        ties += np.int64(1) if bits[k] == least else np.int64(0)
    if ties == 1 and bits[own] == least:
        return two_sum(sign * row[own], -price[own])
    return least_error(row, sign, price, bits, least)


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
