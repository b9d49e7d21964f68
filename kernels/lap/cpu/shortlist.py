"""The state of one solve, and the shortlist of each row: its few cheapest entries and a bound on all the others.

Prices `v` only ever fall while a problem is being solved, so `cost[i, j] - v[j]` only grows. A row that once
kept its cheapest entries, and a bound below which no other entry lay, may go on looking at those entries alone
for as long as what it looks for is not above the bound. That is exact, and turns a sweep over n columns into a
look at a few dozen. Everything here is compiled by numba and runs without the GIL.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Amount, Amounts, Indices, Indices32, Integers, Integers32

BLOCK = 32
"""Columns per block minimum: four AVX-512 registers of float64."""
WIDTH = 24
"""Entries that a shortlist aims at: its bound is the WIDTH-th smallest block minimum."""
CAPACITY = 64
"""Entries that a shortlist can hold."""

F = TypeVar("F", bound=Callable[..., Any])
LOOP: dict[str, Any] = {"fastmath": {"nnan", "nsz"}, "error_model": "numpy"}


def jit(function: F) -> F:
    """Compile on first call, cached on disk, without the GIL.

    No NaN reaches the loops and the sign of zero decides nothing, which lets LLVM vectorise a minimum. Sums are never
    reordered, so results do not depend on the machine's vector width.
    """
    return njit(cache=True, nogil=True, **LOOP)(function)


def inner(function: F) -> F:
    """Compile with whatever compiled function calls it. Called from Python it is plain Python, and slow.

    A function that Python can call needs two more, one to take its arguments apart and one for C. With a `State` they
    take as long to compile as the function itself.
    """
    return register_jitable(no_cfunc_wrapper=True, **LOOP)(function)


NIL: Any = np.int64(0)
NO: Any = np.bool_(False)
"""Numbers for compiled code to hand on: one that is told as a literal compiles the function that takes it once more."""


@inner
def wide(number: Any) -> Any:
    """A number as int64: a function that is handed int32 beside int64 is compiled for both."""
    return np.int64(number)


class State(NamedTuple):
    """One problem with n_rows <= n_cols, everything that its solve reads and writes.

    Weights are sign * cost; `inf` (float +inf, or a power of two for integers) is above every finite sum, and every sum
    with a forbidden entry is above it (`masks.py`). `rows` may be wider than n_cols (a ragged batch). Arrays by column:
    v, row_of, distance, parent, place; by row: col_of, list_cols, list_weights, list_count, list_bound.
    """

    cost: Amounts
    n_rows: int
    n_cols: int
    sign: Amount
    inf: Amount
    shut: Amount  # a price so low that no length through it is below inf
    v: Amounts  # price of each column, never rising
    col_of: Indices  # the column of each row, -1 for none
    row_of: Indices
    free: Indices  # rows without a column, in working order
    list_cols: Indices32  # (n_rows, CAPACITY) int32
    list_weights: Amounts  # (n_rows, CAPACITY)
    list_count: Integers32
    list_bound: Amounts  # no unlisted entry minus its price is below this; inf when every permitted entry is listed
    reduced: Amounts  # one row minus prices
    block_min: Amounts
    scratch: Amounts
    picks: Integers32
    sweeps: Integers32  # of each row in searches, so far
    distance: Amounts  # of each column from the free row of the search; inf when not reached
    parent: Indices32  # the row before each reached column
    keys: Amounts  # heap of columns to scan and (as n_cols + row) rows to sweep
    items: Indices32
    place: Indices32  # where an item sits in the heap, -1 when it does not
    reached: Indices32
    scanned: Indices32
    counts: Integers  # lists rebuilt, row reductions, rows scanned, rows swept, paths, and what path.py names


@jit
def new_state(cost: Amounts, n_rows: int, n_cols: int, sign: Amount, inf: Amount, v: Amounts) -> State:
    """Allocate the state of cost[:n_rows, :n_cols] with prices `v` (kept, not copied)."""
    items = n_rows + n_cols
    return State(
        cost, n_rows, n_cols, sign, inf, -inf - min(inf, 1 << 61), v,
        np.full(n_rows, -1, np.int64), np.full(n_cols, -1, np.int64), np.arange(n_rows),
        np.empty((n_rows, CAPACITY), np.int32), np.empty((n_rows, CAPACITY), v.dtype),
        np.zeros(n_rows, np.int32), np.empty(n_rows, v.dtype),
        np.empty(n_cols, v.dtype), np.empty(n_cols // BLOCK + 1, v.dtype),
        np.empty(n_cols + CAPACITY, v.dtype), np.empty(n_cols + 1, np.int32), np.zeros(n_rows, np.int32),
        np.full(n_cols, inf, v.dtype), np.empty(n_cols, np.int32),
        np.empty(items, v.dtype), np.empty(items, np.int32), np.full(items, -1, np.int32),
        np.empty(n_cols, np.int32), np.empty(n_cols, np.int32), np.zeros(9, np.int64),
    )  # fmt: skip


@inner
def reduce_row(s: State, i: int) -> int:
    """Fill `reduced` with row i minus prices, and its block minima; return the number of blocks."""
    row, v, reduced, sign = s.cost[i], s.v, s.reduced, s.sign
    whole = s.n_cols // BLOCK
    for block in range(whole):
        first = block * BLOCK
        low = s.inf
        for j in range(first, first + BLOCK):
            value = row[j] * sign - v[j]
            reduced[j] = value
            low = min(low, value)
        s.block_min[block] = low
    if whole * BLOCK == s.n_cols:
        return whole
    low = s.inf
    for j in range(whole * BLOCK, s.n_cols):
        value = row[j] * sign - v[j]
        reduced[j] = value
        low = min(low, value)
    s.block_min[whole] = low
    return whole + 1


@inner
def nth_smallest(values: Amounts, count: int, nth: int) -> Any:
    """The nth smallest (from 0) of values[:count], which it reorders (Hoare's selection)."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if nth <= right:
            high = right
        elif nth >= left:
            low = left
        else:
            break
    return values[nth]


@inner
def list_reduced(s: State, i: int, blocks: int) -> None:
    """Make row i's shortlist from `reduced` and `block_min`.

    Ties at the bound are taken from block i on, so that the rows of a constant matrix list different columns.
    """
    reduced, picks, scratch = s.reduced, s.picks, s.scratch
    bound = s.inf
    if s.n_cols > CAPACITY:
        for block in range(blocks):
            scratch[block] = s.block_min[block]
        bound = nth_smallest(scratch, blocks, min(WIDTH, blocks) - 1)
    found = 0
    for step in range(blocks):
        block = (i + step) % blocks
        if s.block_min[block] <= bound:
            for j in range(block * BLOCK, min(s.n_cols, block * BLOCK + BLOCK)):
                picks[found] = j  # overwritten unless it counts; without a branch to predict
                found += reduced[j] <= bound and reduced[j] < s.inf
    if found > CAPACITY:
        found, bound = keep_cheapest(s, found)
    for t in range(found):
        s.list_cols[i, t] = picks[t]
        s.list_weights[i, t] = s.cost[i, picks[t]] * s.sign
    s.list_count[i] = found
    s.list_bound[i] = bound


@inner
def keep_cheapest(s: State, found: int) -> tuple[int, Any]:
    """Cut picks[:found] down to CAPACITY: all below the new bound, then ties at it; return (CAPACITY, bound)."""
    reduced, picks, scratch = s.reduced, s.picks, s.scratch
    for t in range(found):
        scratch[t] = reduced[picks[t]]
    bound = nth_smallest(scratch, found, CAPACITY - 1)
    below = 0
    for t in range(found):
        below += reduced[picks[t]] < bound
    kept, ties = 0, CAPACITY - below
    for t in range(found):
        j = picks[t]
        if reduced[j] < bound or (reduced[j] == bound and ties > 0):
            ties -= reduced[j] == bound
            picks[kept] = j
            kept += 1
    return kept, bound


@jit
def list_rows(s: State, first: int, last: int) -> None:
    """Make the shortlists of rows first to last - 1 at the present prices."""
    for i in range(first, last):
        list_reduced(s, i, reduce_row(s, i))
