"""The sweep of a proof, compiled: the least of each row at its price, and what rounding took from it.

Nothing is rounded but each difference c - v, to nearest, as assignment_bound.py does it: there the reasons stand why a
row's exact minimum is among the entries whose rounded differences are least. Rows of LANES columns and more go by
vectors (vectors.py). No fast mathematics: TwoSum is written out, and is exact only if nobody reorders it.
"""

import numpy as np

from kernels.certificates.compiled import jit
from kernels.certificates.swept.vectors import LANES, ROWS, WIDE, narrow_rows, wide_rows
from kernels.problems import Array
from kernels.problems.arrays import FORBIDDEN


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
def sweep_floats(
    first: int, last: int, weights: Array, maximize: bool, price: Array, high: Array, low: Array
) -> None:  # fmt: skip
    """Fill `high` and `low` of the rows from `first` to before `last`; their sum is the exact least at `price`.

    `high` is inf where a row has no permitted entry, and NaN where the row or one that is looked at beside it holds a
    NaN. `weights` (n_rows, n_cols) is contiguous, prices are finite.
    """
    n_cols, every = price.size, np.int64(maximize)
    room = np.empty((n_cols // (WIDE if n_cols >= WIDE else LANES) + 2) * LANES * ROWS)
    for i in range(first, last, ROWS):
        if n_cols >= WIDE:
            wide_rows(weights, price, room, high, low, i, last, every)
        elif n_cols >= LANES:
            narrow_rows(weights, price, room, high, low, i, last, every)
        else:
            few_floats(i, min(i + ROWS, last), weights, maximize, price, high, low)


@jit
def few_floats(
    first: int, last: int, weights: Array, maximize: bool, price: Array, high: Array, low: Array
) -> None:  # fmt: skip
    """`sweep_floats`, entry by entry."""
    sign = np.float64(-1.0 if maximize else 1.0)
    for i in range(first, last):
        least, error = np.inf, np.inf
        for j in range(price.size):
            x, y = sign * weights[i, j], -price[j]
            net = x + y
            t = net - x
            rest = (x - (net - t)) + (y - t)
            if net < least or net != net:
                least, error = net, rest
            elif net == least:
                error = min(error, rest)
        high[i], low[i] = least, error


@jit
def sweep_integers(first: int, last: int, weights: Array, maximize: bool, price: Array, high: Array) -> None:
    """Fill `high` with the least of each row from `first` to before `last`. Prices lie within 2^61.

    `FORBIDDEN`, which no least is, where the row or one that is looked at beside it holds such an entry.
    """
    n_cols, every, none = price.size, np.int64(maximize), np.empty(0)
    for i in range(first, last, ROWS):
        if n_cols >= WIDE:
            wide_rows(weights, price, none, high, high, i, last, every)
        elif n_cols >= LANES:
            narrow_rows(weights, price, none, high, high, i, last, every)
        else:
            few_integers(i, min(i + ROWS, last), weights, maximize, price, high)


@jit
def few_integers(first: int, last: int, weights: Array, maximize: bool, price: Array, high: Array) -> None:
    """`sweep_integers`, entry by entry."""
    sign = np.int64(-1 if maximize else 1)
    for i in range(first, last):
        least, barred = np.int64(np.iinfo(np.int64).max), False
        for j in range(price.size):
            entry = np.int64(weights[i, j])
            barred |= entry == FORBIDDEN
            least = min(least, sign * entry - price[j])
        high[i] = np.int64(FORBIDDEN) if barred else least
