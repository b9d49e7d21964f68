"""A partial assignment made whole when time is up: greedily, then along alternating paths, whatever the benefits.

Rows take, one after the other, the free column of the highest benefit. Where that leaves rows without a free column, a
matching of largest size (Hopcroft and Karp 1973, SciPy's) shows paths that seat them, or rows that see too few columns.
Both devices use this; it costs one look at the rows that are left, and one at all edges where greed got stuck.
A graph may have more than 2^32 edges: greed makes nothing that has an entry for each, nor do paths where SciPy cannot
number them.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from kernels.problems import UNASSIGNED, Csr
from kernels.problems.arrays import Costs, Indices, Integers, Mask
from kernels.problems.points import Points

TOGETHER = 40
"""Rounds in which rows of a sparse graph choose at once, before the last ones choose one after the other."""
LONG = 512
"""Edges from which on a row takes no longer by itself than among others."""
AT_ONCE = 1 << 22
"""Edges of rows that choose at once which are looked at in one go."""
MOST_OF_SCIPY = 2**31 - 1
"""Edges that SciPy's matching can number."""


def complete(weights: Costs | Csr | Points, column_of: Indices, reject: Costs | None) -> Indices | None:
    """Seat the rows of `column_of` (an output) that have no column; with `reject`, or stay out where that is better.

    Columns beyond the last one of `weights` stand for staying out and are left as they are.

    Returns:
        None, or the rows of a Hall violator when no assignment of all rows exists.
    """
    n_cols = weights.y.shape[0] if isinstance(weights, Points) else weights.shape[1]
    free = np.ones(n_cols, bool)
    free[column_of[(column_of >= 0) & (column_of < n_cols)]] = False
    if isinstance(weights, Csr):
        _choose_together(weights, column_of, free, reject)
    _choose_in_turn(weights, column_of, free, reject)
    if reject is not None or not (column_of == UNASSIGNED).any():
        return None
    assert not isinstance(weights, Points)  # every column suits every row, so greed seats all
    return _follow_paths(weights, column_of)


def _choose_together(graph: Csr, column_of: Indices, free: Mask, reject: Costs | None) -> None:
    """Rounds in which every row left names its best free column, and the lowest row that named one gets it."""
    rows = np.flatnonzero((column_of == UNASSIGNED) & (np.diff(graph.indptr) < LONG))
    for _ in range(TOGETHER):
        named = [_names(graph, some, free, reject) for some in _pieces(graph, rows)]
        if not named:
            return
        rows, columns = (np.concatenate(part) for part in zip(*named, strict=True))
        taken, winner = np.unique(columns, return_index=True)
        column_of[rows[winner]], free[taken] = taken, False
        rows = np.delete(rows, winner)


def _pieces(graph: Csr, rows: Indices) -> Iterator[Indices]:
    """The rows, some AT_ONCE edges at a time."""
    ends = np.cumsum(graph.indptr[rows + 1] - graph.indptr[rows])
    cuts = np.searchsorted(ends, np.arange(0, ends.max(initial=0), AT_ONCE), side="right")
    return (some for some in np.split(rows, cuts) if some.size)


def _names(graph: Csr, rows: Indices, free: Mask, reject: Costs | None) -> tuple[Indices, Indices]:
    """Which of the rows have a free column that they want, and the best one of each; of equals the lowest."""
    starts = graph.indptr[rows]
    sizes = graph.indptr[rows + 1] - starts
    which = np.repeat(np.arange(rows.size), sizes)
    edges = np.arange(which.size) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    wanted = free[graph.indices[edges]]
    if reject is not None:
        wanted &= graph.values[edges] > reject[rows[which]]
    edges, which = edges[wanted], which[wanted]
    if not edges.size:
        return rows[:0], rows[:0]
    places, first = np.unique(which, return_index=True)
    values = graph.values[edges]
    best = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, first), np.diff([*first, edges.size])))
    best = best[np.unique(which[best], return_index=True)[1]]
    return rows[places], graph.indices[edges[best]].astype(np.int64)


def _choose_in_turn(weights: Costs | Csr | Points, column_of: Indices, free: Mask, reject: Costs | None) -> None:
    for i in np.flatnonzero(column_of == UNASSIGNED):
        if isinstance(weights, Csr):
            start, end = weights.indptr[i], weights.indptr[i + 1]
            columns, values = weights.indices[start:end], weights.values[start:end]
            open_ = free[columns]
            columns, values = columns[open_], values[open_]
        else:
            columns = np.flatnonzero(free)
            row = weights.benefits(np.array([i]))[0] if isinstance(weights, Points) else weights[i]
            values = row[columns]
        if not columns.size:
            continue
        at = int(values.argmax())
        if np.isfinite(values[at]) and (reject is None or values[at] > reject[i]):
            column_of[i] = columns[at]
            free[columns[at]] = False


def _follow_paths(weights: Costs | Csr, column_of: Indices) -> Indices | None:
    """Seat who is left along the paths in which a largest matching differs from `column_of`: no two of them meet."""
    if isinstance(weights, Csr):
        if weights.indices.size > MOST_OF_SCIPY:
            return _follow_one_by_one(weights, column_of)
        edges = csr_array((np.ones(weights.indices.size, np.int8), weights.indices, weights.indptr), weights.shape)
    else:
        edges = csr_array(np.isfinite(weights).astype(np.int8))
    largest = maximum_bipartite_matching(edges, perm_type="column").astype(np.int64)
    if (largest < 0).any():
        return _violator(edges, largest)
    row_of = np.full(edges.shape[1], UNASSIGNED)
    row_of[column_of[column_of >= 0]] = np.flatnonzero(column_of >= 0)
    for root in np.flatnonzero(column_of == UNASSIGNED):
        i = root
        while i != UNASSIGNED:
            j = largest[i]
            column_of[i], row_of[j], i = j, i, row_of[j]
    return None


def _follow_one_by_one(graph: Csr, column_of: Indices) -> Indices | None:
    """The same for graphs of any size: a path from each row that is left, breadth first, a row in memory at a time."""
    row_of = np.full(graph.shape[1], UNASSIGNED)
    row_of[column_of[column_of >= 0]] = np.flatnonzero(column_of >= 0)
    for root in np.flatnonzero(column_of == UNASSIGNED).tolist():
        named_by = np.full(graph.shape[1], UNASSIGNED)
        reached, j = [root], UNASSIGNED
        for i in reached:  # and the owners of its columns, which come behind
            columns = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
            columns = columns[named_by[columns] == UNASSIGNED]
            named_by[columns] = i
            open_ = np.flatnonzero(row_of[columns] == UNASSIGNED)
            if open_.size:
                j = int(columns[open_[0]])
                break
            reached += row_of[columns].tolist()
        if j == UNASSIGNED:
            return np.sort(np.array(reached))
        while j != UNASSIGNED:
            i = int(named_by[j])
            column_of[i], row_of[j], j = j, i, int(column_of[i])
    return None


def _violator(edges: csr_array, largest: Integers) -> Integers:
    """The rows that alternating paths reach from a row without a column: they see just their own columns."""
    row_of = np.full(edges.shape[1], UNASSIGNED)
    row_of[largest[largest >= 0]] = np.flatnonzero(largest >= 0)
    reached = np.zeros(edges.shape[0], bool)
    rows = np.flatnonzero(largest < 0)[:1]
    while rows.size:
        reached[rows] = True
        columns = np.concatenate([edges.indices[edges.indptr[i] : edges.indptr[i + 1]] for i in rows])
        owners = np.unique(row_of[columns])
        rows = owners[(owners >= 0) & ~reached[owners]]
    return np.flatnonzero(reached)
