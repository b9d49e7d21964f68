"""Sparse benefits: what a CSR graph must satisfy, and the auction's problem.

Graphs may have more than 2^32 edges, so checks go over them in pieces: nothing is made that has an entry for each edge.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernels.problems.arrays import (
    PIECE,
    AnyIndices,
    Array,
    Costs,
    Csr,
    Indices,
    Indices32,
    InvalidProblem,
    finite,
    numeric,
    permitted,
)
from kernels.problems.assignment import Assignment
from kernels.problems.ranges import extremes
from kernels.problems.seen import seen_of

MOST_WEIGHT = 2**61
"""Sums of benefits and prices must stay below this to be exact in int64."""


@dataclass(frozen=True, eq=False)
class Auction(Assignment):
    """An assignment to maximise, with an earlier job's prices (n_cols,) >= 0 and assignment (n_rows,).

    Without `reject`, n_rows <= n_cols. With it, reject[i] is what an unassigned row adds to the objective.
    """

    prices0: Costs | None = None
    assignment0: AnyIndices | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """n_rows, n_cols."""
        n_rows, n_cols = self.weights.shape
        return int(n_rows), int(n_cols)


def summed(field: str, graph: Csr) -> Csr:
    """`graph` with one entry for those that name the same row and column: their sum, added in the order given.

    Raises:
        InvalidProblem: as `sparse`, or a sum that leaves int64.
    """
    n_rows, n_cols = _extents(field, graph)
    indptr = _row_pointers(field, graph.indptr, n_rows, graph.indices.size)
    indices = _column_indices(field, graph.indices, n_cols)
    values = graph.values
    if values.shape != indices.shape or not values.size:
        return graph
    values = finite(f"{field}.values", numeric(f"{field}.values", values, ndim=(1,)))
    dtype = np.dtype(np.int64) if values.dtype.kind == "i" else values.dtype
    if dtype.kind == "i":
        low, high = extremes(values)
        if max(high, -low) > MOST_WEIGHT // values.size:
            raise InvalidProblem(f"{field}.values", "holds integers so large that sums of them could leave int64")
    starts, end = np.zeros(n_rows + 1, np.int64), 0
    columns, totals = np.empty(indices.size, np.int32), np.empty(indices.size, dtype)  # as far as they are written to
    for first, last in row_blocks(indptr):
        edges = slice(int(indptr[first]), int(indptr[last]))
        places = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1])) * n_cols + indices[edges]
        kept, which = np.unique(places, return_inverse=True)
        sums = np.zeros(kept.size, dtype)
        np.add.at(sums, which, values[edges])
        here, end = slice(end, end + kept.size), end + kept.size
        columns[here], totals[here] = kept % n_cols, sums
        starts[first + 1 : last + 1] = np.bincount(kept // n_cols, minlength=last - first)
    return Csr(np.cumsum(starts), columns[:end], totals[:end], graph.shape)


def row_blocks(indptr: Indices) -> Iterator[tuple[int, int]]:
    """Pieces of consecutive rows, first and one after the last, of about PIECE edges; a longer row has its own."""
    first, n_rows = 0, indptr.size - 1
    while first < n_rows:
        last = int(np.searchsorted(indptr, indptr[first] + PIECE, side="right")) - 1
        last = min(n_rows, max(first + 1, last))
        yield first, last
        first = last


def sparse(field: str, graph: Csr) -> Csr:
    """Return `graph` with int64 indptr, int32 indices that ascend in every row, and numeric finite values.

    Unsorted rows are sorted (in a copy).

    Raises:
        InvalidProblem: a shape, row pointer, column index or value that a CSR graph cannot have.
    """
    graph = stored(field, graph)
    indices, values = graph.indices, graph.values
    if indices.size:
        indices, values = _ascending(field, graph.indptr, graph.indices.astype(np.int32, copy=False), values)
    return Csr(graph.indptr, indices, values, graph.shape)


def stored(field: str, graph: Csr) -> Csr:
    """Return `graph` with int64 indptr, int32 indices and numeric finite values, each row in the order given.

    Raises:
        InvalidProblem: as `sparse`, but for columns that a row lists twice.
    """
    n_rows, n_cols = _extents(field, graph)
    indptr = _row_pointers(field, graph.indptr, n_rows, graph.indices.size)
    if graph.values.shape != graph.indices.shape:
        raise InvalidProblem(
            field, f"has {graph.values.size} values for {graph.indices.size} indices; expected one value an index"
        )
    indices = _column_indices(field, graph.indices, n_cols)
    values = graph.values
    if values.size:
        values = finite(f"{field}.values", numeric(f"{field}.values", values, ndim=(1,)))
    else:  # nothing to check, but a type that solvers know
        values = values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
    return Csr(indptr, indices, values, (int(n_rows), int(n_cols)))


def _extents(field: str, graph: Csr) -> tuple[int, int]:
    """Rows and columns, whose product fits int64. Nobody has looked at them: they came as numbers of a JSON."""
    n_rows, n_cols = graph.shape
    if n_rows < 1 or n_cols < 1:
        raise InvalidProblem(field, f"has shape {n_rows} x {n_cols}; expected at least one row and one column")
    if n_cols >= 2**31 or n_rows >= 2**31:
        raise InvalidProblem(field, f"has shape {n_rows} x {n_cols}; expected less than 2**31 rows and columns")
    return n_rows, n_cols


def _row_pointers(field: str, indptr: Array, n_rows: int, n_edges: int) -> Indices:
    name = f"{field}.indptr"
    if indptr.shape != (n_rows + 1,) or indptr.dtype.kind not in "iu":
        raise InvalidProblem(name, f"has shape {indptr.shape} and dtype {indptr.dtype}; expected {n_rows + 1} integers")
    indptr = indptr.astype(np.int64, copy=False)
    if indptr[0] != 0 or indptr[-1] != n_edges:
        raise InvalidProblem(name, f"runs from {indptr[0]} to {indptr[-1]}; expected 0 to {n_edges}, the indices given")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])  # a difference could leave int64, and look like a rise
    if falls.size:
        i = int(falls[0])
        raise InvalidProblem(name, f"falls from {indptr[i]} to {indptr[i + 1]} at row {i}; expected it never to fall")
    return indptr


def _column_indices(field: str, indices: Array, n_cols: int) -> Indices32:
    name = f"{field}.indices"
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise InvalidProblem(name, f"has shape {indices.shape} and dtype {indices.dtype}; expected a list of integers")
    for first in range(0, indices.size, PIECE):
        piece = indices[first : first + PIECE]
        if piece.min() < 0 or piece.max() >= n_cols:
            at = first + int(((piece < 0) | (piece >= n_cols)).argmax())
            raise InvalidProblem(name, f"holds {indices[at]} at [{at}]; expected columns 0 to {n_cols - 1}")
    return indices.astype(np.int32, copy=False)


def _ascending(field: str, indptr: Indices, indices: Indices32, values: Costs) -> tuple[Indices32, Costs]:
    sorted_indices, sorted_values = indices, values
    for first, last in row_blocks(indptr):
        edges = slice(int(indptr[first]), int(indptr[last]))
        starts = indptr[first : last + 1] - indptr[first]
        order = _order(field, first, starts, indices[edges])
        if order is None:
            continue
        if sorted_indices is indices:
            sorted_indices, sorted_values = indices.copy(), values.copy()
        sorted_indices[edges], sorted_values[edges] = indices[edges][order], values[edges][order]
    return sorted_indices, sorted_values


def _order(field: str, first: int, starts: Indices, columns: Indices32) -> Indices | None:
    """The order in which the columns of some rows ascend, those from the `first` on; None where they do."""
    ends = starts[1:-1]
    ends = ends[(ends > 0) & (ends < columns.size)] - 1
    wrong = columns[1:] <= columns[:-1]
    wrong[ends] = False
    if not wrong.any():
        return None
    row = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((columns, row))
    columns = columns[order]
    twice = np.flatnonzero((columns[1:] == columns[:-1]) & (row[1:] == row[:-1]))
    if twice.size:
        at = int(twice[0])
        raise InvalidProblem(
            f"{field}.indices",
            f"lists column {columns[at]} twice in row {first + int(row[at])}; expected each edge once, or "
            "`sum_duplicates`",
        )
    return order


def exact_sums(field: str, values: Costs, n_cols: int) -> None:
    """Refuse integers whose assignment and prices could leave int64, and floats whose sums could leave float64.

    Raises:
        InvalidProblem: max |value| times (n_cols + 2) passes 2**61, or 1e300 for floats.
    """
    seen = seen_of(values)
    if seen is not None and seen.masked:
        seen = None
    if values.dtype.kind == "f" and values.size:
        most = 1e300 / (n_cols + 2)
        if (_largest_finite(values) if seen is None else seen.largest) > most:
            raise InvalidProblem(field, f"holds values beyond {most:.1e} in size, whose sums could leave float64")
    if values.dtype.kind == "i" and values.size:
        low, high = extremes(values) if seen is None else (0, int(seen.largest))
        largest = max(abs(low), abs(high))
        if largest * (n_cols + 2) > MOST_WEIGHT:
            raise InvalidProblem(
                field,
                f"holds {largest} in size; expected at most {MOST_WEIGHT // (n_cols + 2)}, so that sums fit int64",
            )


def _largest_finite(values: Costs) -> float:
    """The largest size of the floats that are finite, 0 where none is."""
    low, high = extremes(values)
    if np.isfinite(low) and np.isfinite(high):  # the common case, and no second reading
        return float(max(-low, high))
    flat, largest = values.reshape(-1), 0.0
    for first in range(0, flat.size, PIECE):
        piece = flat[first : first + PIECE]
        largest = max(largest, float(np.abs(piece[np.isfinite(piece)]).max(initial=0)))
    return largest


def is_complete(weights: Costs | Csr) -> bool:
    """Whether every row may take every column."""
    if isinstance(weights, Csr):
        return int(weights.indices.size) == weights.shape[0] * weights.shape[1]
    return weights.dtype.kind == "i" or bool(weights.min() > -np.inf)


def edges_of(benefit: Costs) -> Csr:
    """The entries of a dense matrix that are permitted, as CSR; integers beside forbidden entries stay exact."""
    n_rows, n_cols = benefit.shape
    permitted_pairs = permitted(benefit)
    indptr = np.concatenate([[0], np.cumsum(permitted_pairs.sum(1, dtype=np.int64))])
    columns = np.broadcast_to(np.arange(n_cols, dtype=np.int32), benefit.shape)
    return Csr(indptr, columns[permitted_pairs], benefit[permitted_pairs], (n_rows, n_cols))


def with_private_columns(problem: Auction) -> Costs | Csr:
    """The benefits as they are, or, with `reject`, as CSR with a column n_cols + i for row i alone, worth reject[i]."""
    if problem.reject is None:
        return problem.weights
    graph = problem.weights if isinstance(problem.weights, Csr) else edges_of(problem.weights)
    n_rows, n_cols = graph.shape
    ends = graph.indptr[1:]
    dtype = np.result_type(graph.values, problem.reject)
    return Csr(
        graph.indptr + np.arange(n_rows + 1),
        np.insert(graph.indices, ends, np.arange(n_cols, n_cols + n_rows, dtype=np.int32)),
        np.insert(graph.values.astype(dtype, copy=False), ends, problem.reject),
        (n_rows, n_cols + n_rows),
    )
