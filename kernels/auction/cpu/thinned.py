"""The edges of a sparse graph that are worth a bid: phases (`phases.py`) need not be exact, so they read no others.

A row of many edges keeps its KEPT to 2 KEPT best ones, as far as a few guesses at a threshold find it. Beside these it
keeps edges to columns that few rows know, and every column keeps its best edge: so nearly always an assignment is left.
Where none is, phases end by their limit of bids. The exact finish reads whole rows, and finds what was left out.
"""

import numpy as np

from kernels.auction.cpu.phases import ONE, TWO, Packed
from kernels.compiling import njit
from kernels.problems.arrays import Indices32, Integers32, untouched

KEPT = 16
"""Edges that a row keeps at least."""
GUESSES = 8
"""Thresholds tried for a row."""


def thinned(packed: Packed, n_cols: int) -> Packed:
    """`packed` without the edges that are hardly worth a bid; `packed` itself where rows have few edges."""
    indptr, edges = packed
    if edges.shape[0] <= 2 * KEPT * (indptr.size - 1):
        return packed
    kept_indptr, kept = np.zeros(indptr.size, np.int32), np.empty((edges.shape[0], 2), np.int32)
    thin_rows(untouched(indptr), edges.reshape(-1), np.zeros(2 * n_cols, np.int32), kept_indptr, kept.reshape(-1))
    return Packed(untouched(kept_indptr), kept[: kept_indptr[-1]])


@njit(inline="always")
def _count(edges: Integers32, start: int, end: int, guess: int | np.int64) -> int:
    """How many edges of a row are worth as much."""
    count = 0
    for t in range(np.uint64(start), np.uint64(end)):
        count += edges[TWO * t + ONE] >= guess
    return count


@njit(inline="always")
def _floor_of(edges: Integers32, start: int, end: int) -> int:
    """A benefit that at least KEPT edges of a row reach, and few more if some guesses find it."""
    low = high = int(edges[2 * start + 1])
    for t in range(np.uint64(start), np.uint64(end)):
        benefit = int(edges[TWO * t + ONE])
        low, high = min(low, benefit), max(high, benefit)
    below, above = low, high + 1  # at least KEPT lie from `below` on, too few from `above`
    many = end - start
    for _ in range(GUESSES):
        if many <= 2 * KEPT or above - below < 2:
            break
        guess = above - max(1, (above - below) * 3 * KEPT // (2 * many))
        if guess <= below:
            guess = (above + below) // 2
        count = _count(edges, start, end, guess)
        if count >= KEPT:
            below, many = guess, count
        else:
            above = guess
    return below


@njit(cache=True, nogil=True)
def thin_rows(
    indptr: Indices32, edges: Indices32, limits: Integers32, kept_indptr: Indices32, kept: Integers32
) -> None:
    """Write the edges that stay to `kept`, row by row; `limits` is work space, two zeros for each column.

    A column's limit is its best benefit, and 0 where few rows know it: its edges from there on stay, whatever the row
    thinks of them. The floor of the row before is tried first, as rows are often alike.
    """
    for t in range(np.uint64(edges.size // 2)):
        at, benefit = TWO * np.uint64(np.uint32(edges[TWO * t])), edges[TWO * t + ONE]
        limits[at] = max(limits[at], benefit)
        limits[at + ONE] += 1
    for j in range(limits.size // 2):
        if limits[2 * j + 1] <= KEPT:
            limits[2 * j] = 0
    least: int | np.int64
    floor: int | np.int64
    to, floor = np.uint64(0), np.int64(0)
    for i in range(indptr.size - 1):
        start, end = indptr[i], indptr[i + 1]
        if end - start <= 2 * KEPT:
            least = np.int64(0)
        else:
            if not KEPT <= _count(edges, start, end, floor) <= 2 * KEPT:
                floor = _floor_of(edges, start, end)
            least = floor
        for t in range(np.uint64(start), np.uint64(end)):
            column, benefit = edges[TWO * t], edges[TWO * t + ONE]
            kept[TWO * to], kept[TWO * to + ONE] = column, benefit  # the next one overwrites what does not stay
            to += np.uint64(benefit >= min(least, np.int64(limits[TWO * np.uint64(np.uint32(column))])))
        kept_indptr[i + 1] = to
