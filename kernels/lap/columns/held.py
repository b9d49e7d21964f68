"""Lists that hold a pairing of all rows, or the rows for which there is none in the whole matrix.

repeat
    pair      as many rows as the lists allow (Hopcroft and Karp 1973)
    reach     rows that alternating paths from a free row lead to; they list fewer columns than they are
    look      for columns that these rows have elsewhere: none is a Hall violator
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from kernels.deadline import Deadline
from kernels.lap.columns.level import FARTHEST, MORE, Pricer, distinct, keys_of, unlimited
from kernels.problems.arrays import Indices, Integers, Integers32


class DenseCosts(Pricer, Protocol):
    """A search through a matrix: its shape, rows first, and the type of its reduced costs."""

    shape: tuple[int, int]
    dtype: Any


class Violator(NamedTuple):
    """Rows whose permitted entries lie in these columns, of which there are fewer."""

    rows: Indices
    cols: Indices


def hold_pairing(search: DenseCosts, keys: Integers, deadline: Deadline) -> Integers | Violator | None:
    """The keys, and more where they hold no pairing of all rows; None once time is up."""
    m, n = search.shape
    while True:
        indptr = np.searchsorted(keys, np.arange(m + 1) * n)
        indices = (keys % n).astype(np.int32)
        graph = csr_array((np.ones(len(keys), np.int8), indices, indptr.astype(np.int32)), (m, n))
        column_of = maximum_bipartite_matching(graph, perm_type="column").astype(np.int64)
        if (column_of >= 0).all():
            return keys
        beside = _beside(search, column_of)
        keys = distinct(keys, beside)
        if len(beside) == np.count_nonzero(column_of < 0):
            return keys
        stuck = _reached(indptr, indices, column_of, n)
        closed = np.zeros(n, search.dtype)
        closed[stuck.cols] = -np.inf if search.dtype.kind == "f" else -2 * FARTHEST
        zeros, limits = np.zeros(n, search.dtype), unlimited(len(stuck.rows), search.dtype)
        found = search.cheapest(closed, zeros, stuck.rows, limits, MORE, deadline)
        if found is None:
            return None
        if not found.counts.any():
            return stuck
        keys = distinct(keys, keys_of(stuck.rows, found, n))


def _beside(search: DenseCosts, column_of: Indices) -> Integers:
    """The permitted ones of the entries that pair the free rows with as many free columns, as keys."""
    n = search.shape[1]
    free = column_of < 0
    rows, cols = np.flatnonzero(free), np.setdiff1d(np.arange(n), column_of[~free])[: np.count_nonzero(free)]
    indptr = np.append(0, np.cumsum(free))
    costs = search.edges(indptr, cols.astype(np.int32), np.zeros(n, search.dtype))
    permitted = costs < unlimited(1, search.dtype)
    return np.asarray((rows * n + cols)[permitted])


def _reached(indptr: Indices, indices: Integers32, column_of: Indices, n: int) -> Violator:
    """Rows and columns that alternating paths from all free rows lead to; no free column is among them."""
    row_of = np.full(n, -1)
    paired = np.flatnonzero(column_of >= 0)
    row_of[column_of[paired]] = paired
    seen = np.zeros(n, bool)
    front = rows = np.flatnonzero(column_of < 0)
    while len(front):
        lengths = indptr[front + 1] - indptr[front]
        at = np.repeat(indptr[front] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        cols = np.unique(indices[at])
        cols = cols[~seen[cols]]
        seen[cols] = True
        front = row_of[cols]
        rows = np.append(rows, front)
    return Violator(np.sort(rows), np.flatnonzero(seen))
