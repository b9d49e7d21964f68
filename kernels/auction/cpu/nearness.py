"""Rows and columns of a local graph numbered so that those which compete lie near each other in memory.

Points that know their neighbours, scanned in any order of theirs, lead each bid to a far-off line of memory. A walk
from row to row, along columns that they share, meets rows in an order in which the bids of one neighbourhood read the
same few lines. It would need the rows of each column. One row of most columns leads nearly as well: each row is that
of one of its columns.

A random graph has no such order. There a walk of some rows has soon met many more, and is given up. So is an order
that leaves the columns of a row far apart.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from kernels.auction.cpu.phases import Packed
from kernels.compiling import njit
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Indices32, Integers32, untouched

LEAST_ROWS = 1 << 14
"""Smaller graphs lie near the processor in any order."""
LOOK, MOST_MET = 2048, 3
"""After a walk of so many rows, it may have met so many halves as many. Neighbours in the plane: 1.1 to 1.2 times;
random graphs of four edges a row: 1.6."""
FAR = 8
"""In a good order the columns of a row lie, on average, within this part of all."""
SAMPLE, IN_ORDER = 512, 64
"""An order is good as it is where, of so many rows, half have their columns, and the first of the next row, within this
part of all columns."""


class Numbered(NamedTuple):
    """The graph with other numbers: rows[k] is the row at place k, columns[k] the column."""

    packed: Packed
    rows: Indices32
    columns: Indices32


def numbered(packed: Packed) -> Numbered | None:
    """The graph in the order of a walk; None where there is none, or nothing to gain."""
    n = packed.indptr.size - 1
    if n < LEAST_ROWS or _in_order(packed):
        return None
    rows, place, columns = np.empty(n, np.int32), np.full(n, UNASSIGNED, np.int32), np.empty(n, np.int32)
    indptr, edges = np.zeros(n + 1, np.int32), np.empty_like(packed.edges)
    if not walk(untouched(packed.indptr), packed.edges, rows, columns, place, indptr, edges):
        return None
    return Numbered(Packed(untouched(indptr), edges), rows, columns)


def _in_order(packed: Packed) -> bool:
    """Whether most rows know columns near each other, and near those of the next row."""
    n = packed.indptr.size - 1
    sample = np.linspace(0, n - 2, SAMPLE).astype(np.int64)
    first = packed.edges[packed.indptr[sample], 0]
    last = packed.edges[np.maximum(packed.indptr[sample + 1] - 1, 0), 0]
    following = packed.edges[np.minimum(packed.indptr[sample + 1], packed.edges.shape[0] - 1), 0]
    far = max(float(np.median(np.abs(last - first))), float(np.median(np.abs(following - first))))
    return far * IN_ORDER < n


@register_jitable(no_cfunc_wrapper=True)
def _number_columns(
    indptr: Indices32, edges: Indices32, waiting: Integers32, place: Indices32, columns: Indices32
) -> bool:
    """Give columns numbers in the order in which a walk, breadth first, meets them; False where it meets too many.

    It leads from a row to those of its columns, where they have one. A part that is left begins at its first row.
    """
    n = place.size
    some_row = np.full(n, UNASSIGNED, np.int32)
    for i in range(n):
        degree = indptr[i + 1] - indptr[i]
        if degree > 0:
            some_row[edges[indptr[i] + i % degree, 0]] = i
    queued = np.zeros(n, np.uint8)
    met, known, root = 0, 0, 0
    for k in range(n):
        if k == met:
            while queued[np.uint32(root)]:
                root += 1
            queued[np.uint32(root)] = 1
            waiting[met] = root
            met += 1
        row = np.uint32(waiting[k])
        for t in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint32(1)])):
            column = np.uint32(edges[t, 0])
            if place[column] < 0:
                place[column] = known
                columns[known] = column
                known += 1
                other = some_row[column]
                if other >= 0 and queued[np.uint32(other)] == 0:
                    queued[np.uint32(other)] = 1
                    waiting[met] = other
                    met += 1
        if k == LOOK and 2 * met > MOST_MET * LOOK:
            return False
    for j in range(n):
        if place[j] < 0:
            place[j] = known
            columns[known] = j
            known += 1
    return True


@register_jitable(no_cfunc_wrapper=True)
def _mean_reach(indptr: Indices32, edges: Indices32, place: Indices32) -> float:
    """How far apart the columns of a row are, on average over some rows."""
    n, sum_of_reaches = place.size, 0
    for sample in range(SAMPLE):
        i = sample * n // SAMPLE
        if indptr[i + 1] > indptr[i]:
            first = place[edges[indptr[i], 0]]
            low, high = first, first
            for t in range(indptr[i], indptr[i + 1]):
                low, high = min(low, place[edges[t, 0]]), max(high, place[edges[t, 0]])
            sum_of_reaches += high - low
    return sum_of_reaches / SAMPLE


@njit(cache=True, nogil=True)
def walk(
    indptr: Indices32,
    edges: Indices32,
    rows: Indices32,
    columns: Indices32,
    place: Indices32,
    new_indptr: Indices32,
    new_edges: Indices32,
) -> bool:
    """Number columns as a walk meets them and rows by one of their columns; write the graph with these numbers.

    False where there is no such walk. `place` is to hold the new numbers of columns, UNASSIGNED at first.
    """
    n = rows.size
    if not _number_columns(indptr, edges, rows, place, columns) or FAR * _mean_reach(indptr, edges, place) > n:
        return False
    starts = np.zeros(n + 1, np.int32)
    for k in range(2):  # count, then place
        for i in range(n):
            degree = indptr[i + 1] - indptr[i]
            at = place[edges[indptr[i] + i % degree, 0]] if degree > 0 else 0
            if k == 0:
                starts[at + 1] += 1
            else:
                rows[starts[at]] = i
                starts[at] += 1
        if k == 0:
            for j in range(n):
                starts[j + 1] += starts[j]
    to = np.uint64(0)
    for k in range(n):
        row = np.uint32(rows[k])
        for t in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint32(1)])):
            new_edges[to, 0] = place[np.uint32(edges[t, 0])]
            new_edges[to, 1] = edges[t, 1]
            to += np.uint64(1)
        new_indptr[k + 1] = to
    return True
