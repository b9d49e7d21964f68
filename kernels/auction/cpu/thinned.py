"""The edges of a sparse graph that are worth a bid: phases (`phases.py`) need not be exact, so they read no others.

A row of many edges keeps its KEPT to 2 KEPT best ones, as far as a few guesses at a threshold find it. Beside these it
keeps edges to columns that few rows know, and every column keeps its best edge: so nearly always an assignment is left.
Where none is, phases end by their limit of bids. The exact finish reads whole rows, and finds what was left out.
"""

import numba
import numpy as np

from kernels.auction.cpu.phases import Packed
from kernels.problems import Array
from kernels.problems.arrays import untouched

KEPT = 16
"""Edges that a row keeps at least."""
GUESSES = 8
"""Thresholds tried for a row."""


def thinned(packed: Packed, n_cols: int) -> Packed:
    """`packed` without the edges that are hardly worth a bid; `packed` itself where rows have few edges."""
    indptr, edges = packed
    if edges.shape[0] <= 2 * KEPT * (indptr.size - 1):
        return packed
    best, rows = np.zeros(n_cols, np.int32), np.zeros(n_cols, np.int32)
    kept_indptr, kept = np.zeros(indptr.size, np.int64), np.empty((edges.shape[0], 2), np.int32)
    thin_rows(untouched(indptr), edges, best, rows, kept_indptr, kept)
    return Packed(untouched(kept_indptr), kept[: kept_indptr[-1]])


@numba.njit(cache=True, nogil=True)
def thin_rows(indptr: Array, edges: Array, best: Array, rows: Array, kept_indptr: Array, kept: Array) -> None:
    """Write the edges that stay to `kept`, row by row; `best` and `rows` are work space by column, zeros at first."""
    for t in range(edges.shape[0]):
        column = edges[t, 0]
        best[column] = max(best[column], edges[t, 1])
        rows[column] += 1
    size = 0
    for i in range(indptr.size - 1):
        start, end = indptr[i], indptr[i + 1]
        floor = np.int64(0)
        if end - start > 2 * KEPT:
            low, high = edges[start, 1], edges[start, 1]
            for t in range(start, end):
                low, high = min(low, edges[t, 1]), max(high, edges[t, 1])
            below, above = np.int64(low), np.int64(high) + 1  # at least KEPT lie from `below` on, too few from `above`
            many = end - start
            for _ in range(GUESSES):
                if many <= 2 * KEPT or above - below < 2:
                    break
                guess = above - max(1, (above - below) * 3 * KEPT // (2 * many))
                if guess <= below:
                    guess = (above + below) // 2
                count = 0
                for t in range(start, end):
                    count += edges[t, 1] >= guess
                if count >= KEPT:
                    below, many = guess, count
                else:
                    above = guess
            floor = below
        for t in range(start, end):
            column, benefit = edges[t, 0], edges[t, 1]
            if benefit >= floor or benefit == best[column] or rows[column] <= KEPT:
                kept[size, 0], kept[size, 1] = column, benefit
                size += 1
        kept_indptr[i + 1] = size
