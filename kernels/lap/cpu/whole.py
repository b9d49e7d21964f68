"""The state of a search by whole rows, and what is read of one row: its least entries at the present prices.

Why int32 suffices. Let costs lie within +-NARROW. No row prefers column k to its own column j, so v_k - v_j is at most
2 NARROW; and while column k is free its price is the one that it began with. So no price falls below -3 NARROW from a
cold start. Old prices may begin at -4 NARROW, and are watched: a search that would go below ends with TOO_WIDE, and the
caller starts again in int64. So c - v lies within +-5 NARROW. Without forbidden entries each column is reached at once
from the source, so labels lie within 10 NARROW, and sums on the way to them within 20 NARROW < 2^31.

All loops over a row are written without branches, so that they vectorise; the casts keep numba from widening int32.
LLVM vectorises the minimum of integers, and not that of floats: so floats are compared as the integers that their bits
are, once `order` has flipped those of negative ones. Labels are never negative, and need no flip.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.compiling import njit
from kernels.lap.cpu.shortlist import NIL, F, jit
from kernels.problems.arrays import AnyIntegers, Costs, Indices, Indices32, Integers

NARROW = 1 << 26
STRIDE = 64
"""Columns that are compared together when the nearest one is looked for."""


def inlined(function: F) -> F:
    """As `jit`, and always inlined: handing the state over takes 200 ns, which is longer than reading a row."""
    options: dict[str, Any] = {"fastmath": {"nnan", "nsz"}, "error_model": "numpy", "forceinline": True}
    return njit(cache=True, nogil=True, **options)(function)


class Whole(NamedTuple):
    """One problem with n_rows <= n_cols, to be minimised. By column: v to scanned; by row: col_of, free."""

    cost: Costs
    inf: Any  # above every label
    shut: Any  # `inf`, in the integers of key_bits
    flip: Any  # what turns the bits of a negative float round; 0 for integers
    floor: Any  # the least price that is taken
    v: Costs
    row_of: Indices32  # int32, -1 for none
    reduced: Costs  # a row minus the prices
    reduced_bits: AnyIntegers  # the same memory as integers
    keys: Costs  # labels of the search
    key_bits: AnyIntegers  # the same memory as integers
    closed: AnyIntegers  # 0, or `shut` once a column was scanned: max(key_bits, closed) is what is left to choose from
    block_min: AnyIntegers  # of max(key_bits, closed), over STRIDE columns each
    parent: Indices32
    scanned: Indices32
    col_of: Indices
    free: Indices
    counts: Integers  # what whole_path.py names


@jit
def new_whole(cost: Costs, limits: Costs, bits: AnyIntegers, v: Costs, col_of: Indices) -> Whole:
    """Lay out a search with prices `v` and columns of the rows `col_of`, both of which it keeps.

    Args:
        limits: `inf` and `floor`, of the prices' type.
        bits: `shut` and `flip`, of the integers' type.
        col_of: to be filled; -1 at first.
    """
    n_cols = v.size
    reduced_bits, key_bits = np.empty(n_cols, bits.dtype), np.empty(n_cols, bits.dtype)
    col_of[:] = -1
    return Whole(
        cost, limits[0] + NIL, bits[0] + NIL, bits[1] + NIL, limits[1] + NIL, v, np.full(n_cols, -1, np.int32),
        reduced_bits.view(v.dtype), reduced_bits, key_bits.view(v.dtype), key_bits, np.empty(n_cols, bits.dtype),
        np.empty(n_cols // STRIDE + 1, bits.dtype), np.empty(n_cols, np.int32), np.empty(n_cols, np.int32),
        col_of, np.arange(col_of.size), np.zeros(3, np.int64),
    )  # fmt: skip


@inlined
def order(s: Whole, i: int) -> Any:
    """Fill `reduced_bits` with row i minus the prices, as integers in the same order; return the least."""
    row, v, reduced, bits = s.cost[i], s.v, s.reduced, s.reduced_bits
    value, whole = v.dtype.type, bits.dtype.type
    flip, low, none = whole(s.flip), whole(s.shut), whole(0)
    for j in range(v.size):
        reduced[j] = value(row[j] - v[j])
    for j in range(v.size):
        placed = whole(bits[j] ^ (flip if bits[j] < none else none))
        bits[j] = placed
        low = min(low, placed)
    return low


@inlined
def second_least(s: Whole, low: Any) -> tuple[Any, Any]:
    """The least of `reduced_bits` above `low`, and how many are `low`."""
    bits, ties, one, none = s.reduced_bits, np.int32(0), np.int32(1), np.int32(0)
    shut = bits.dtype.type(s.shut)
    second = shut
    for j in range(bits.size):
        second = min(second, shut if bits[j] == low else bits[j])
        ties += one if bits[j] == low else none
    return second, ties


@inlined
def where_low(s: Whole, low: Any, first: int) -> int:
    """The first column from `first` on whose `reduced_bits` are `low`; the number of columns if there is none.

    Callers give 0 as a literal: compiled for any number, the loop is not vectorised, and takes half as long again.
    """
    bits, n, one, none = s.reduced_bits, s.v.size, np.int32(1), np.int32(0)
    while first + STRIDE <= n:
        hits = none
        for j in range(first, first + STRIDE):
            hits += one if bits[j] == low else none
        if hits:
            break
        first += STRIDE
    while first < n and bits[first] != low:
        first += 1
    return first


@inlined
def free_low(s: Whole, low: Any) -> int:
    """A column at `low`: the first one that is free, else the second of all (the only one if there is no second)."""
    bits, row_of, n, one, none = s.reduced_bits, s.row_of, s.v.size, np.int32(1), np.int32(0)
    first = 0
    while first + STRIDE <= n:
        hits = none
        for j in range(first, first + STRIDE):
            hits += one if (bits[j] == low) & (row_of[j] < none) else none
        if hits:
            break
        first += STRIDE
    for j in range(first, n):
        if bits[j] == low and row_of[j] < 0:
            return j
    first = where_low(s, low, 0)
    second = where_low(s, low, first + 1)
    return second if second < n else first


@inlined
def value_of(s: Whole, bits: Any) -> Any:
    """The number that stands in `reduced_bits` as `bits`; overwrites the first."""
    s.reduced_bits[0] = bits ^ (s.flip if bits < 0 else s.reduced_bits.dtype.type(0))
    return s.reduced[0]
