"""What the auction's kernels see: buffers in device memory, and the structs of `rows.cuh` and `paths.cu` over them."""

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from kernels import cuda
from kernels.auction.scaling import Arithmetic
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.points import METRICS, Points

BLOCK = 1024
LIST = 64
LONG = 65536
"""A row with so many edges is read by the whole grid, where there are few of them."""
NO_ROW = 2**64 - 1
TRACE = 1 << 22
"""Rounds whose bidders are recorded with `trace`."""
CTYPES = {"i4": "int", "i8": "long long", "f4": "float", "f8": "double"}


def _names(text: str) -> list[str]:
    return text.split()


AUCTION_POINTERS = _names(
    "indptr indices values targets list_columns list_benefits rest prices column_of held row_of queue next_queue "
    "offer_column offer_benefit offer_rise stale top_rise top_person kind_of kinds gathered depth place epsilons "
    "bidders state"
)
AUCTION_NUMBERS = _names("n_rows n_cols n_phases trace_size alone deterministic spread longest kind_mask dimension")
PIECE_POINTERS = _names("piece_rows piece_columns piece_benefits piece_rest")
AUCTION = np.dtype(
    [(name, np.uint64) for name in AUCTION_POINTERS]
    + [(name, np.int64) for name in AUCTION_NUMBERS]
    + [("scale", np.float64)]
    + [(name, np.uint64) for name in PIECE_POINTERS]
    + [("piece_count", np.int64)]
)
STATE = _names("phase opened rounds bids n_queue n_next n_stale readings opened_readings n_alike n_raised squabbles")

FOREST_POINTERS = _names("label stamp active whole whole_at tree tree_distance tree_column growth")
FOREST = np.dtype([(name, np.uint64) for name in FOREST_POINTERS] + [("row_bits", np.int64)])
GROWTH = _names("active_0 active_1 active_2 n_whole nearest farthest hidden outcome phases rounds scans readings")
RUNNING, COMPLETE, INFEASIBLE, TOO_FAR = range(4)


def _struct(dtype: np.dtype, buffers: dict[str, Any]) -> Array:
    """The struct `dtype`, its pointers set to the buffers of the same names (null where there is none)."""
    struct = np.zeros((), dtype)
    for name in dtype.names or ():
        if buffers.get(name) is not None:
            struct[name] = buffers[name].data.ptr
    return struct


def _path(file: str) -> str:
    return file if "/" in file else f"auction/{file}"


@dataclass
class Device:
    """One auction on the current device: its buffers by name, the struct over them, how its kernels are compiled."""

    buffers: dict[str, Any]
    struct: Array
    defines: tuple[str, ...]
    blocks: int

    def launch(self, file: str, name: str, *arguments: Any, blocks: int | None = None, block: int = BLOCK) -> None:
        """Launch kernel `name` of `file` (of auction/, if it names no folder) over the grid, this auction first."""
        kernel = cuda.kernel(_path(file), name, self.defines)
        kernel((blocks or self.blocks,), (block,), (self.struct, *arguments))

    def list_rows(self) -> None:
        """Read every row and list its best edges."""
        self.launch("auction.cu", "list_rows")
        if self.buffers["piece_rows"] is not None:
            self.launch("auction.cu", "list_pieces")

    def load(self, file: str, *names: str) -> None:
        """Compile and load kernels before they are first launched."""
        for name in names:
            cuda.kernel(_path(file), name, self.defines)

    def state(self) -> dict[str, int]:
        """The auction's counters, once everything launched has run."""
        return dict(zip(STATE, map(int, self.buffers["state"].get()), strict=True))

    def copy(self) -> "Device":
        """The same auction with its own lists, prices, matching and queue, to try something on."""
        own = _names("list_columns list_benefits rest prices column_of held row_of queue next_queue state")
        buffers = self.buffers | {name: self.buffers[name].copy() for name in own}
        struct = self.struct.copy()
        for name in own:
            struct[name] = buffers[name].data.ptr
        return Device(buffers, struct, self.defines, self.blocks)


def upload(weights: Array | Csr | Points, unit: Arithmetic, options: Any, spread: bool) -> Device:
    """Copy the graph to the device and lay out the buffers of an auction; the schedule is set by `schedule`.

    With `spread` rows list, of equal columns, the first from their own place on, and alike rows are found.
    """
    sparse = weights if isinstance(weights, Csr) else None
    points = weights if isinstance(weights, Points) else None
    m, n = (points.x.shape[0], points.y.shape[0]) if points else weights.shape  # type: ignore[union-attr]
    blocks = cuda.attribute("MultiProcessorCount")
    buffers = _graph(weights) | _matching(m, n) | _pieces(sparse, m, n, blocks) | (_kinds(m) if spread else {})
    buffers["bidders"] = cupy.zeros(TRACE, np.int32) if options.trace else None
    struct = _struct(AUCTION, buffers)
    struct["kind_mask"] = buffers["kinds"].size - 1 if spread else 0
    struct["longest"] = int(np.diff(sparse.indptr).max()) if sparse else n
    struct["piece_count"] = 0 if buffers["piece_rows"] is None else buffers["piece_rows"].size
    struct["spread"] = spread
    struct["n_rows"], struct["n_cols"], struct["trace_size"] = m, n, TRACE if options.trace else 0
    struct["alone"], struct["scale"] = int(unit.span), unit.scale
    struct["deterministic"] = options.deterministic
    struct["dimension"] = points.x.shape[1] if points else 0
    values = buffers["values"].dtype
    defines: tuple[str, ...] = (f"-DVALUE={CTYPES[values.str[1:]]}", f"-DFIXED_POINT={int(values.kind == 'f')}")
    if points:
        defines += (f"-DMETRIC={METRICS.index(points.metric) + 1}",)
    device = Device(buffers, struct, defines, blocks)
    if spread and not points:
        device.launch("auction.cu", "find_alike")
    return device


def _graph(weights: Array | Csr | Points) -> dict[str, Any]:
    """The benefits on the device: dense, as CSR, or as the points between which they are worked out."""
    if isinstance(weights, Csr):
        indices = weights.indices.astype(np.int32, copy=False)
        parts = {"indptr": weights.indptr, "indices": indices, "values": weights.values}
        if not indices.size:  # an empty array has no address, and without indices the kernels take a graph for dense
            parts |= {"indices": np.zeros(1, np.int32), "values": np.zeros(1, weights.values.dtype)}
        return {name: cupy.asarray(part) for name, part in parts.items()}
    if isinstance(weights, Points):
        return {"values": cupy.asarray(weights.x), "targets": cupy.asarray(weights.y)}
    return {"values": cupy.asarray(weights)}


def _matching(m: int, n: int) -> dict[str, Any]:
    """Lists, prices and matching of an auction before its first bid, and a round's queue and offers."""
    i4, i8 = np.int32, np.int64
    buffers = {
        "list_columns": cupy.empty((m, LIST), i4),
        "list_benefits": cupy.empty((m, LIST), i8),
        "rest": cupy.empty(m, i8),
        "prices": cupy.zeros(n, i8),
        "column_of": cupy.full(m, UNASSIGNED, i4),
        "held": cupy.zeros(m, i8),
        "row_of": cupy.full(n, UNASSIGNED, i4),
        "top_rise": cupy.zeros(n, np.uint64),
        "top_person": cupy.full(n, 2**31 - 1, i4),
        "state": cupy.zeros(len(STATE), i8),
    }
    buffers |= {name: cupy.empty(m, i4) for name in ("queue", "next_queue", "offer_column", "stale")}
    return buffers | {name: cupy.empty(m, i8) for name in ("offer_benefit", "offer_rise")}


def _pieces(sparse: Csr | None, m: int, n: int, blocks: int) -> dict[str, Any]:
    """Buffers for the rows that the whole grid lists: long ones, unless there are enough of them for every block."""
    degrees = np.diff(sparse.indptr) if sparse else np.full(min(m, blocks + 1), n)
    long_rows = np.flatnonzero(degrees >= LONG)
    if not 0 < long_rows.size <= blocks:
        return dict.fromkeys(PIECE_POINTERS)
    count = long_rows.size * blocks
    return {
        "piece_rows": cupy.asarray(long_rows.astype(np.int64)),
        "piece_columns": cupy.empty((count, LIST), np.int32),
        "piece_benefits": cupy.empty((count, LIST), np.int64),
        "piece_rest": cupy.empty(count, np.int64),
    }


def _kinds(m: int) -> dict[str, Any]:
    """Buffers for rows that are alike: a hash table at most half full, and where each of a kind stands."""
    size = 2 << m.bit_length()
    return {
        "kind_of": cupy.empty(m, np.int32),
        "kinds": cupy.zeros(size, np.uint64),
        "gathered": cupy.zeros(size, np.int32),
        "depth": cupy.full(size, 2**31 - 1, np.int32),
        "place": cupy.empty(m, np.int32),
    }


def schedule(device: Device, epsilons: list[float]) -> None:
    """Set the epsilons to run and start again with the first; matching and prices stay."""
    device.buffers["epsilons"] = cupy.asarray(np.array([int(e) for e in epsilons], np.int64))
    device.struct["epsilons"], device.struct["n_phases"] = device.buffers["epsilons"].data.ptr, len(epsilons)
    for name in ("phase", "opened", "n_queue"):
        device.buffers["state"][STATE.index(name)] = 0


def label_room(n_rows: int) -> int:
    """The largest span of scaled benefits that leaves a label room for 64 of them."""
    return int(2 ** (63 - n_rows.bit_length() - 6))


@dataclass
class Forest:
    """The labels of `paths.cu` for one auction."""

    buffers: dict[str, Any]
    struct: Array

    def growth(self) -> dict[str, int]:
        """The forest's counters, once everything launched has run."""
        return dict(zip(GROWTH, map(int, self.buffers["growth"].get()), strict=True))


def forest_of(device: Device) -> Forest:
    """Lay out the buffers of a forest over the rows and columns of `device`."""
    m, n = int(device.struct["n_rows"]), int(device.struct["n_cols"])
    i4, i8 = np.int32, np.int64
    buffers = {name: cupy.empty(m, i4) for name in ("whole", "tree_column")}
    buffers |= {name: cupy.empty(m, i8) for name in ("whole_at", "tree_distance")}
    buffers |= {
        "label": cupy.empty(n, np.uint64),
        "stamp": cupy.full(m, -1, i4),
        "active": cupy.empty((2, m), i4),
        "tree": cupy.empty(n, i4),
        "growth": cupy.zeros(len(GROWTH), i8),
    }
    struct = _struct(FOREST, buffers)
    struct["row_bits"] = m.bit_length()
    return Forest(buffers, struct)
