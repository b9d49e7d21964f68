"""Pricing of a matrix on the host: the specification of `price.cu`.

    cheapest   for each row: the columns of least c - v below its limit, in ascending order
    minima     for each column: its least cost, and the row that has it
    soft_minima_of_rows, soft_minima_of_columns   least x and sum of e^(-(x - least) / softness), x = c - v or c - u

Of equals the first column wins that a row comes by. Rows begin to read at different columns, so that rows which are all
alike do not list the same few columns. Forbidden entries and columns with a price of -infinity are never found.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from kernels.compiling import njit
from kernels.deadline import Deadline
from kernels.lap.columns.level import FARTHEST, Cheapest, in_blocks
from kernels.problems.arrays import Costs, Floats, Indices, Integers32

BLOCK = 64
"""Rows priced by a thread between two looks at the deadline."""
TURN, ALIKE = 40504, 4
"""How far apart rows begin to read; so many rows begin together, whose costs a GPU reads side by side."""


class Minima(NamedTuple):
    """Of each column its least cost in min form and a row that has it; where it has none, the value is `top`."""

    values: Floats
    rows: Indices


class SoftMinima(NamedTuple):
    """Of each line its least x, and the sum of e^(-(x - least) / softness); +inf and 0 where nothing is permitted."""

    least: Floats
    sums: Floats

    def values(self, softness: float) -> Floats:
        """The soft minima, 0 where nothing is permitted."""
        known = self.sums > 0
        soft = np.where(known, self.least, 0.0)
        return np.asarray(soft - softness * np.log(self.sums, out=np.zeros_like(soft), where=known))


@njit(cache=True, nogil=True)
def price_rows(cost: Costs, sign: int, v: Floats, rows: Indices, limits: Floats, turn: int, found: Cheapest) -> None:
    """Find for each of `rows` the columns whose reduced cost is below its limit, the least ones first."""
    n, most = cost.shape[1], found.columns.shape[1]
    for q in range(rows.size):
        i, limit, count = rows[q], limits[q], 0
        j = turn * (i // ALIKE) % n
        for _ in range(n):
            value = sign * v.dtype.type(cost[i, j]) - v[j]
            if value < limit:
                count = min(count + 1, most)
                at = count - 1
                while at > 0 and found.values[q, at - 1] > value:
                    found.values[q, at], found.columns[q, at] = found.values[q, at - 1], found.columns[q, at - 1]
                    at -= 1
                found.values[q, at], found.columns[q, at] = value, j
                if count == most:
                    limit = found.values[q, most - 1]
            j = 0 if j + 1 == n else j + 1
        found.counts[q] = count


class DenseSearch:
    """Rows of a matrix (m, n), m <= n, that look for columns; in min form, so costs times `sign`."""

    def __init__(self, cost: Costs, maximize: bool) -> None:
        self.cost, self.sign, self.shape = cost, -1 if maximize else 1, cost.shape
        self.dtype: Any = np.dtype(np.int64 if cost.dtype.kind == "i" else np.float64)

    def cheapest(
        self, base: Floats, rise: Floats, rows: Indices, limits: Floats, most: int, deadline: Deadline
    ) -> Cheapest | None:
        """The `most` least columns of each of `rows` below its limit; None once time is up."""
        found, v = nothing_found(len(rows), most, self.dtype), base - rise

        def price(part: slice, own: Cheapest) -> None:
            price_rows(self.cost, self.sign, v, rows[part], limits[part], TURN, own)

        return in_blocks(found, BLOCK, numba.get_num_threads(), deadline, price)

    def edges(self, indptr: Indices, columns: Integers32, base: Floats) -> Floats:
        """s c_ij - base_j of every edge of a graph by rows."""
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return np.asarray(self.sign * self.cost[rows, columns].astype(self.dtype) - base[columns])

    def minima(self) -> Minima:
        """The least cost of each column."""
        if self.sign > 0:
            rows = self.cost.argmin(axis=0)
        else:
            rows = self.cost.argmax(axis=0)
        return Minima(self.sign * self.cost[rows, np.arange(self.shape[1])].astype(self.dtype), rows)

    def soft_minima_of_rows(self, v: Floats, softness: float) -> SoftMinima:
        """Of c - v, over each row."""
        found = [_soft(self._reals(first) - v, softness, 1) for first in range(0, self.shape[0], BLOCK)]
        return SoftMinima(*map(np.concatenate, zip(*found, strict=True)))

    def soft_minima_of_columns(self, u: Floats, softness: float) -> SoftMinima:
        """Of c - u, over each column."""
        blocks = range(0, self.shape[0], BLOCK)
        found = [_soft(self._reals(first) - u[first : first + BLOCK, None], softness, 0) for first in blocks]
        return joined(SoftMinima(*map(np.stack, zip(*found, strict=True))), softness)

    def _reals(self, first: int) -> Floats:
        return self.sign * self.cost[first : first + BLOCK].astype(np.float64)


def _soft(x: Floats, softness: float, axis: int) -> SoftMinima:
    """In place: new arrays of a block's size cost as much time as the exponentials."""
    least = x.min(axis=axis)
    x -= np.expand_dims(np.where(np.isfinite(least), least, 0.0), axis)
    x /= -softness
    return SoftMinima(least, np.exp(x, out=x).sum(axis=axis))


def joined(pieces: SoftMinima, softness: float) -> SoftMinima:
    """Soft minima of columns from those of pieces of their rows (pieces, n)."""
    least = pieces.least.min(axis=0)
    away = np.where(np.isfinite(pieces.least), pieces.least, 0.0) - np.where(np.isfinite(least), least, 0.0)
    shares = np.where(np.isfinite(pieces.least), np.exp(-np.maximum(away, 0.0) / softness), 0.0)
    return SoftMinima(least, (pieces.sums * shares).sum(axis=0))


def nothing_found(k: int, most: int, dtype: Any) -> Cheapest:
    """Room for what k rows find."""
    top = np.inf if dtype.kind == "f" else FARTHEST
    return Cheapest(np.zeros((k, most), np.int32), np.full((k, most), top, dtype), np.zeros(k, np.int32))
