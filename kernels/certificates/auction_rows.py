"""The benefits of an auction read in blocks of rows, for its certificate: net benefits, their maxima, chosen pairs."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernels.certificates.threads import in_threads
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.solution import Number

ENTRIES = 1 << 17
"""Entries looked at together: 1 MiB of float64 stays near the processor between the passes over it."""


@dataclass(frozen=True)
class Proof:
    """What one arithmetic found: numbers to state, and whether they make an optimum.

    `bound` and `gap` are None where a row has neither an entry nor a reject price. `short` is by how much a reported
    profit falls short of its row's best net benefit, `off` by how much it differs. `slack` is the largest gap that
    counts as none, `rounding` the largest difference of profits that does (0 in integers). `finite` says that all
    prices and profits are numbers.
    """

    objective: Number
    bound: Number | None
    gap: Number | None
    short: Number
    off: Number
    slack: Number
    rounding: Number
    finite: bool

    @property
    def closed(self) -> bool:
        """Whether prices and profits prove an optimum."""
        return self.gap is not None and self.gap <= self.slack and self.off <= self.rounding and self.finite


class Block(NamedTuple):
    """Consecutive rows: `values` (rows, n_cols), or flat with the `columns` of the entries and `sizes` of the rows."""

    values: Array
    columns: Array | None = None
    sizes: Array | None = None

    @property
    def n_rows(self) -> int:
        """How many rows these are."""
        return len(self.values) if self.sizes is None else self.sizes.size

    def nets(self, prices: Array) -> Array:
        """Benefits minus prices, in the shape of `values`."""
        return np.asarray(self.values - (prices if self.columns is None else prices.take(self.columns)))

    def maxima(self, entries: Array, empty: Any) -> Array:
        """The largest of each row's `entries` (in the shape of `values`); `empty` for a row without any."""
        if self.sizes is None:
            return np.asarray(entries.max(axis=1))
        return run_maxima(entries, self.sizes, empty)

    def spread(self, per_row: Array) -> Array:
        """`per_row` beside every entry of its row."""
        return per_row[:, None] if self.sizes is None else np.repeat(per_row, self.sizes)

    def where(self, mask: Array) -> tuple[Array, Array, Array]:
        """Rows (of the block), columns and values of the entries of `mask`, rows ascending."""
        at = np.flatnonzero(mask)
        if self.sizes is None:
            rows, columns = np.divmod(at, self.values.shape[1])
            return rows, columns, self.values[rows, columns]
        assert self.columns is not None
        return np.repeat(np.arange(self.sizes.size), self.sizes)[at], self.columns[at], self.values[at]


def run_maxima(entries: Array, sizes: Array, empty: Any) -> Array:
    """The largest of each run of `sizes` entries; `empty` for a run of none."""
    found = np.full(sizes.size, empty, entries.dtype)
    some = sizes > 0
    if some.any():
        found[some] = np.maximum.reduceat(entries, np.concatenate([[0], np.cumsum(sizes[some])[:-1]]))
    return found


def ends_of(weights: Array | Csr) -> list[int]:
    """0 and the ends of the blocks of rows, of some ENTRIES each."""
    if not isinstance(weights, Csr):
        return ends_of_rows(*weights.shape)
    ends, n_rows = [0], int(weights.shape[0])
    while ends[-1] < n_rows:
        last = int(np.searchsorted(weights.indptr, weights.indptr[ends[-1]] + ENTRIES, side="right")) - 1
        ends.append(min(n_rows, max(ends[-1] + 1, last)))
    return ends


def ends_of_rows(n_rows: int, each: int) -> list[int]:
    """The same where every row has as many entries."""
    return [*range(0, n_rows, max(1, ENTRIES // each)), n_rows]


def block_of(weights: Array | Csr, first: int, last: int, dtype: Any) -> Block:
    """The rows from `first` to before `last`, in `dtype`."""
    if not isinstance(weights, Csr):
        return Block(weights[first:last].astype(dtype, copy=False))
    edges = slice(int(weights.indptr[first]), int(weights.indptr[last]))
    sizes = np.diff(weights.indptr[first : last + 1])
    return Block(weights.values[edges].astype(dtype, copy=False), weights.indices[edges], sizes)


def over(ends: list[int], work: Callable[[int, int], None], progress: Callable[[float], None]) -> None:
    """`work(first, last)` for each block of rows, by several threads: NumPy gives way to others within an array.

    `progress` hears which fraction of the rows is done, in the thread that calls.
    """
    caller, counting, done = threading.get_ident(), threading.Lock(), 0

    def counted(first: int, last: int) -> None:
        nonlocal done
        work(first, last)
        with counting:
            done += last - first
        if threading.get_ident() == caller:
            progress(done / ends[-1])

    in_threads(counted, ends, ())
    progress(1.0)


def values_at(weights: Array | Csr, rows: Array, columns: Array) -> tuple[Array, bool]:
    """The entries (rows, columns), and whether all of them are permitted."""
    if not isinstance(weights, Csr):
        values = weights[rows, columns]
        return values, bool(np.isfinite(values).all())
    low, high = weights.indptr[rows], weights.indptr[rows + 1]
    ends = high
    while (low < high).any():  # a bisection of every row at once: columns ascend
        middle = (low + high) // 2
        at = np.minimum(middle, max(0, weights.indices.size - 1))
        below = (low < high) & (weights.indices[at] < columns)
        low, high = np.where(below, middle + 1, low), np.where((low < high) & ~below, middle, high)
    inside = low < ends
    if not inside.all() or not (weights.indices[low] == columns).all():
        return np.zeros(rows.size, weights.values.dtype), False
    return weights.values[low], True


def fault_of(assignment: Array, shape: tuple[int, int]) -> str:
    """Why this is no assignment, whatever the benefits are; empty when it is one."""
    n_rows, n_cols = shape
    if assignment.shape != (n_rows,) or assignment.dtype.kind not in "iu":
        return f"not an assignment: expected {n_rows} integers"
    columns = assignment[assignment != UNASSIGNED]
    if ((columns < 0) | (columns >= n_cols)).any():
        return "not an assignment: a column is out of range"
    taken = np.zeros(n_cols, bool)
    taken[columns] = True
    if np.count_nonzero(taken) < columns.size:
        return "not an assignment: a column has two rows"
    return ""
