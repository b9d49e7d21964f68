"""The one sweep of a proof, compiled: the least of each row at its price, and what rounding took from it.

Nothing is rounded but each difference c - v, to nearest, as assignment_bound.py does it: there the reasons stand why a
row's exact minimum is among the entries whose rounded differences are least. LLVM vectorises the minimum of integers,
and not that of floats, so those are compared as the integers that their bits are, negative ones turned round.
No fast mathematics: TwoSum is written out, and is exact only if nobody reorders it.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from kernels.problems import Array
from kernels.problems.arrays import FORBIDDEN

F = TypeVar("F", bound=Callable[..., Any])
TURN = np.iinfo(np.int64).max
"""What turns the bits of a negative float round, so that they are ordered as the numbers are."""
INF_BITS = 0x7FF << 52


def jit(function: F) -> F:
    """Compile on first call, cached on disk, without the GIL."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@jit
def paired(weights: Array, assignment: Array, taken: Array, pairs: Array) -> bool:
    """Whether every row has a column of its own; `taken` are the columns' marks, `pairs` the entries of the pairs."""
    for i in range(assignment.size):
        j = assignment[i]
        if j < 0 or j >= taken.size or taken[j]:
            return False
        taken[j] = 1
        pairs[i] = weights[i, j]
    return True


@jit
def sweep_integers(weights: Array, maximize: bool, price: Array, high: Array) -> bool:
    """Fill `high` with the least of each row; False where an entry is forbidden. Prices lie within 2^61."""
    sign = np.int64(-1 if maximize else 1)
    for i in range(high.size):
        row, least, barred = weights[i], np.int64(np.iinfo(np.int64).max), np.int64(0)
        for j in range(price.size):
            entry = np.int64(row[j])
            barred += np.int64(1) if entry == FORBIDDEN else np.int64(0)
            least = min(least, sign * entry - price[j])
        if barred:
            return False
        high[i] = least
    return True


@jit
def sweep_floats(weights: Array, maximize: bool, price: Array, high: Array, low: Array, bits: Array) -> bool:
    """Fill `high` and `low`, whose sum is the exact least of each row; False where a row has no permitted entry.

    `bits` int64 (n_cols,): room for one row.
    """
    sign, reduced = np.float64(-1.0 if maximize else 1.0), bits.view(np.float64)
    for i in range(high.size):
        row, least = weights[i], INF_BITS
        for j in range(price.size):
            reduced[j] = sign * row[j] - price[j]
        for j in range(bits.size):
            bits[j] ^= TURN if bits[j] < 0 else 0
        for j in range(bits.size):
            least = min(least, bits[j])
        if least == INF_BITS:
            return False
        high[i], low[i] = least_error(row, sign, price, bits, least)
    return True


@jit
def least_error(row: Array, sign: float, price: Array, bits: Array, least: int) -> tuple[float, float]:
    """The number whose turned bits are `least`, and the smallest rounding error among the entries that attain it."""
    first, last = bits.size, 0
    for j in range(bits.size):
        first = min(first, j if bits[j] == least else bits.size)
        last = max(last, j if bits[j] == least else 0)
    best, error = 0.0, np.inf
    for j in range(first, last + 1):
        if bits[j] == least:
            x, y = sign * row[j], -price[j]
            best = x + y
            t = best - x
            error = min(error, (x - (best - t)) + (y - t))
    return best, error
