"""Pricing of a matrix in the memory of one GPU, or of several of one host: the twin of `dense.py`.

Rows are divided over the devices. Only prices go out, and short lists come back, so that the devices need not know of
each other. Each sweep is queued on all of them before the host waits for the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from kernels.cuda import attribute, kernel
from kernels.deadline import Deadline
from kernels.lap.columns.dense import TURN, Minima, SoftMinima, joined, nothing_found
from kernels.lap.columns.layout import (
    GATHER_ARGS,
    JOIN_PIECES_ARGS,
    LEAST_OF_COLUMNS_ARGS,
    PRICE_ROWS_ARGS,
    SOFT_MINIMA_OF_COLUMNS_ARGS,
    SOFT_MINIMA_OF_ROWS_ARGS,
    THREADS,
    TOGETHER,
    WARPS,
)
from kernels.lap.columns.level import Cheapest
from kernels.problems.arrays import Floats, Indices, Integers32

SOURCE = "lap/columns/price.cu"
CTYPES = {"float64": "double", "float32": "float", "int64": "long long", "int32": "int"}
WORD = 16
"""Bytes of a load."""
LOG2_E = 1.4426950408889634
BLOCKS = 16
"""Of a multiprocessor, at least, where each column's least cost is looked for."""


@dataclass(frozen=True)
class HeldRows:
    """Rows from `first` on, (held, n), in the memory of a device."""

    device: int
    first: int
    cost: Any

    @property
    def end(self) -> int:
        """Behind its last row."""
        return self.first + len(self.cost)


class DeviceSearch:
    """Rows of a matrix (m, n), m <= n, in parts by ascending rows, that look for columns; in min form."""

    def __init__(self, parts: list[HeldRows], maximize: bool) -> None:
        self.parts, self.negate = parts, int(maximize)
        first = parts[0].cost
        self.shape = (parts[-1].end, int(first.shape[1]))
        self.dtype: Any = np.dtype(np.int64 if first.dtype.kind == "i" else np.float64)
        value = "long long" if first.dtype.kind == "i" else "double"
        self._defines = (f"-DCOST={CTYPES[first.dtype.name]}", f"-DVALUE={value}")

    def cheapest(
        self, base: Floats, rise: Floats, rows: Indices, limits: Floats, most: int, deadline: Deadline
    ) -> Cheapest | None:
        """The `most` least columns of each of `rows` (ascending) below its limit; None once time is up."""
        if deadline.expired():
            return None
        v, found = base - rise, nothing_found(len(rows), most, self.dtype)
        waiting: list[tuple[HeldRows, slice, Any]] = []
        for part, asked in self._asked(rows):
            with cupy.cuda.Device(part.device):
                local = (rows[asked] - part.first).astype(np.int32)
                prices, there, below = (cupy.asarray(each) for each in (v, local, limits[asked]))
                waiting.append((part, asked, self._launch_price_rows(part, prices, there, below, most)))
        for part, asked, own in waiting:
            with cupy.cuda.Device(part.device):
                found.columns[asked], found.values[asked] = own.columns.get(), own.values.get()
                found.counts[asked] = own.counts.get()
        return found

    def edges(self, indptr: Indices, columns: Integers32, base: Floats) -> Floats:
        """s c_ij - base_j of every edge of a graph by rows."""
        rows, n = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), self.shape[1]
        costs = np.empty(len(columns), self.dtype)
        for part, asked in self._asked(rows):
            with cupy.cuda.Device(part.device):
                places = cupy.asarray((rows[asked] - part.first) * n + columns[asked])
                costs[asked] = self._launch_gather(part, places).get()
        return np.asarray((-costs if self.negate else costs) - base[columns])

    def minima(self) -> Minima:
        """The least cost of each column."""
        return self._least(self.negate)

    def largest(self) -> int:
        """The largest size of an entry, of integers."""
        least, most = self._least(0), self._least(1)
        return int(max(-least.values.min(), least.values.max(), -most.values.min(), most.values.max()))

    def soft_minima_of_rows(self, v: Floats, softness: float) -> SoftMinima:
        """Of c - v, over each row."""
        queued = []
        for part in self.parts:
            with cupy.cuda.Device(part.device):
                queued.append((part, self._launch_soft_minima_of_rows(part, cupy.asarray(v), softness)))
        own = list(self._fetched(queued))
        return SoftMinima(*(np.concatenate(each) for each in zip(*own, strict=True)))

    def soft_minima_of_columns(self, u: Floats, softness: float) -> SoftMinima:
        """Of c - u, over each column."""
        queued = []
        for part in self.parts:
            with cupy.cuda.Device(part.device):
                given = cupy.asarray(u[part.first : part.end])
                queued.append((part, self._launch_soft_minima_of_columns(part, given, softness)))
        return joined(SoftMinima(*map(np.concatenate, zip(*self._fetched(queued), strict=True))), softness)

    @staticmethod
    def _fetched(queued: list[tuple[HeldRows, Any]]) -> Iterator[SoftMinima]:
        for part, own in queued:
            with cupy.cuda.Device(part.device):
                yield SoftMinima(*(each.get() for each in own))

    def _least(self, negate: int) -> Minima:
        queued: list[tuple[HeldRows, Any, Any]] = []
        for part in self.parts:
            with cupy.cuda.Device(part.device):
                queued.append((part, *self._launch_least_of_columns(part, negate)))
        found: Minima | None = None
        for part, values, rows in queued:
            with cupy.cuda.Device(part.device):
                own = Minima(values[0].get(), rows[0].get().astype(np.int64) + part.first)
            if found is None:
                found = own
            else:
                less = own.values < found.values
                found.values[less], found.rows[less] = own.values[less], own.rows[less]
        assert found is not None
        return found

    def _asked(self, rows: Indices) -> Iterator[tuple[HeldRows, slice]]:
        """The parts that have some of these rows, and which."""
        for part in self.parts:
            asked = slice(*np.searchsorted(rows, [part.first, part.end]).tolist())
            if asked.stop > asked.start:
                yield part, asked

    def _kernel(self, name: str) -> Callable[..., None]:
        launch: Callable[..., None] = kernel(SOURCE, name, self._defines, cooperative=False)
        return launch

    def _launch_price_rows(self, part: HeldRows, v: Any, rows: Any, limits: Any, most: int) -> Cheapest:
        """A warp for TOGETHER rows."""
        k, n = len(rows), self.shape[1]
        columns, values, counts = (
            cupy.empty((k, most), np.int32),
            cupy.empty((k, most), self.dtype),
            cupy.empty(k, np.int32),
        )
        there = {"v": v, "rows": rows, "limits": limits}
        arguments = PRICE_ROWS_ARGS.packed(
            **there, cost=part.cost, columns=columns, values=values, counts=counts, n=n, turn=TURN, k=k, most=most,
            negate=self.negate, wide=_is_wide(part),
        )  # fmt: skip
        self._kernel("price_rows")((-(-k // (WARPS * TOGETHER)),), (THREADS,), arguments)
        return Cheapest(columns, values, counts)

    def _launch_least_of_columns(self, part: HeldRows, negate: int) -> tuple[Any, Any]:
        """A thread a column of as many rows as leave BLOCKS for each multiprocessor."""
        held, n = part.cost.shape
        across, pieces, piece = _pieces(held, n)
        values, rows = cupy.empty((pieces, n), self.dtype), cupy.empty((pieces, n), np.int32)
        both = {"values": values, "rows": rows, "n": n}
        arguments = LEAST_OF_COLUMNS_ARGS.packed(**both, cost=part.cost, held=held, piece=piece, negate=negate)
        self._kernel("least_of_columns")((across, pieces), (THREADS,), arguments)
        self._kernel("join_pieces")((across,), (THREADS,), JOIN_PIECES_ARGS.packed(**both, pieces=pieces))
        return values, rows

    def _launch_soft_minima_of_rows(self, part: HeldRows, v: Any, softness: float) -> SoftMinima:
        """A warp for TOGETHER rows."""
        held, n = part.cost.shape
        found = SoftMinima(cupy.empty(held, np.float64), cupy.empty(held, np.float64))
        arguments = SOFT_MINIMA_OF_ROWS_ARGS.packed(
            cost=part.cost, v=v, least=found.least, sums=found.sums, scale=LOG2_E / softness, n=n, held=held,
            negate=self.negate, wide=_is_wide(part),
        )  # fmt: skip
        self._kernel("soft_minima_of_rows")((-(-held // (WARPS * TOGETHER)),), (THREADS,), arguments)
        return found

    def _launch_soft_minima_of_columns(self, part: HeldRows, u: Any, softness: float) -> SoftMinima:
        """A thread a column of some rows."""
        held, n = part.cost.shape
        across, pieces, piece = _pieces(held, n)
        found = SoftMinima(cupy.empty((pieces, n), np.float64), cupy.empty((pieces, n), np.float64))
        arguments = SOFT_MINIMA_OF_COLUMNS_ARGS.packed(
            cost=part.cost, u=u, least=found.least, sums=found.sums, scale=LOG2_E / softness, n=n, held=held,
            piece=piece, negate=self.negate,
        )  # fmt: skip
        self._kernel("soft_minima_of_columns")((across, pieces), (THREADS,), arguments)
        return found

    def _launch_gather(self, part: HeldRows, places: Any) -> Any:
        found = cupy.empty(len(places), part.cost.dtype)
        arguments = GATHER_ARGS.packed(cost=part.cost, places=places, found=found, k=len(places))
        self._kernel("gather")((-(-len(places) // THREADS),), (THREADS,), arguments)
        return found


def _is_wide(part: HeldRows) -> bool:
    """Whether all rows begin at multiples of a load's bytes."""
    return bool(part.cost.shape[1] * part.cost.itemsize % WORD == 0 and part.cost.data.ptr % WORD == 0)


def _pieces(held: int, n: int) -> tuple[int, int, int]:
    """Blocks across all columns, pieces of the rows, and rows of a piece: BLOCKS for each multiprocessor."""
    across = -(-n // THREADS)
    pieces = min(held, max(1, BLOCKS * attribute("MultiProcessorCount") // across))
    piece = -(-held // pieces)
    return across, -(-held // piece), piece
