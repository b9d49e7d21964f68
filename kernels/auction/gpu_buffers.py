"""What the auction's kernels see: buffers in device memory, and the structs of `layout.py` over them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels import cuda
from kernels.auction.layout import (
    AUCTION,
    AUGMENT_ROWS_ARGS,
    BEST_NETS_ARGS,
    BLOCK,
    GROWTH,
    LIST,
    LONG,
    PATH_FOREST,
    RUN_AUCTION_ARGS,
    STATE,
)
from kernels.auction.scaling import Arithmetic
from kernels.gpu_locked import uploaded
from kernels.problems import UNASSIGNED, Csr
from kernels.problems.arrays import Costs, Records
from kernels.problems.points import METRICS, Points

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

UNUSED = ("indptr", "indices", "targets", "kind_of", "kinds", "gathered", "depth", "place", "epsilons")
"""Pointers of `Auction` that stay null where nothing fills them; `epsilons` come with `schedule`."""
TRACE = 1 << 22
"""Rounds whose bidders are recorded with `trace`."""
CTYPES = {"i4": "int", "i8": "long long", "f4": "float", "f8": "double"}


def _path(file: str) -> str:
    return file if "/" in file else f"auction/{file}"


@dataclass
class Device:
    """One auction on the current device: its buffers by name, the struct over them, how its kernels are compiled."""

    buffers: dict[str, Any]
    struct: Records
    defines: tuple[str, ...]
    blocks: int

    def launch(
        self,
        file: str,
        name: str,
        arguments: tuple[Any] | None = None,
        /,
        *,
        blocks: int | None = None,
        block: int = BLOCK,
    ) -> None:
        """Launch kernel `name` of `file` (of auction/, if it names no folder); it takes `arguments` or the auction."""
        kernel = cuda.kernel(_path(file), name, self.defines)
        kernel((blocks or self.blocks,), (block,), arguments or (self.struct,))

    def run_rounds(self, *, limit: int, stop: int, patience: int) -> None:
        """Rounds until one of the limits of RUN_AUCTION_ARGS."""
        arguments = RUN_AUCTION_ARGS.packed(a=self.struct, limit=limit, stop=stop, patience=patience)
        self.launch("auction.cu", "run_auction", arguments)

    def best_nets(self) -> Any:
        """Each row's best net benefit, (m,) int64 on the device."""
        nets = cupy.empty(int(self.struct["n_rows"]), np.int64)
        self.launch("auction.cu", "best_nets", BEST_NETS_ARGS.packed(a=self.struct, nets=nets))
        return nets

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
        return dict(zip(STATE.names, map(int, self.buffers["state"].get()), strict=True))

    def copy(self) -> "Device":
        """The same auction with its own lists, prices, matching and queue, to try something on."""
        own = ["list_columns", "list_benefits", "rest", "prices", "column_of", "held", "row_of"]
        own += ["queue", "next_queue", "state"]
        buffers = self.buffers | {name: self.buffers[name].copy() for name in own}
        struct = self.struct.copy()
        for name in own:
            struct[name] = buffers[name].data.ptr
        return Device(buffers, struct, self.defines, self.blocks)


def upload(weights: Costs | Csr | Points, unit: Arithmetic, options: "AuctionOptions", spread: bool) -> Device:
    """Copy the graph to the device and lay out the buffers of an auction; the schedule is set by `schedule`.

    With `spread` rows list, of equal columns, the first from their own place on, and alike rows are found.
    """
    sparse = weights if isinstance(weights, Csr) else None
    points = weights if isinstance(weights, Points) else None
    m, n = (points.x.shape[0], points.y.shape[0]) if points else weights.shape  # type: ignore[union-attr]
    blocks = cuda.attribute("MultiProcessorCount")
    buffers = _graph(weights) | _matching(m, n) | _pieces(sparse, m, n, blocks) | (_kinds(m) if spread else {})
    buffers["bidders"] = cupy.zeros(TRACE, np.int32) if options.trace else None
    numbers = {"n_rows": m, "n_cols": n, "n_phases": 0, "trace_size": TRACE if options.trace else 0}
    numbers |= {"alone": int(unit.span), "scale": unit.scale, "deterministic": options.deterministic, "spread": spread}
    numbers |= {"longest": int(np.diff(sparse.indptr).max()) if sparse else n}
    numbers |= {"kind_mask": buffers["kinds"].size - 1 if spread else 0}
    numbers |= {"dimension": points.x.shape[1] if points else 0}
    pieces = {name: buffers[f"piece_{name}"] for name in ("rows", "columns", "benefits", "rest")}
    pieces["n_rows"] = 0 if pieces["rows"] is None else pieces["rows"].size
    struct = AUCTION.filled(dict.fromkeys(UNUSED) | buffers | numbers | {"pieces": pieces})
    values = buffers["values"].dtype
    defines: tuple[str, ...] = (f"-DVALUE={CTYPES[values.str[1:]]}", f"-DFIXED_POINT={int(values.kind == 'f')}")
    if points:
        defines += (f"-DMETRIC={METRICS.index(points.metric) + 1}",)
    device = Device(buffers, struct, defines, blocks)
    if spread and not points:
        device.launch("auction.cu", "find_alike")
    return device


def _graph(weights: Costs | Csr | Points) -> dict[str, Any]:
    """The benefits on the device: dense, as CSR, or as the points between which they are worked out."""
    if isinstance(weights, Csr):
        indices = weights.indices.astype(np.int32, copy=False)
        parts: dict[str, Costs] = {"indptr": weights.indptr, "indices": indices, "values": weights.values}
        if not indices.size:  # an empty array has no address, and without indices the kernels take a graph for dense
            parts |= {"indices": np.zeros(1, np.int32), "values": np.zeros(1, weights.values.dtype)}
        return {name: uploaded(part) for name, part in parts.items()}
    if isinstance(weights, Points):
        return {"values": cupy.asarray(weights.x), "targets": cupy.asarray(weights.y)}
    return {"values": uploaded(weights)}


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
        "top_row": cupy.full(n, 2**31 - 1, i4),
        "state": cupy.zeros(len(STATE.names), i8),
    }
    buffers |= {name: cupy.empty(m, i4) for name in ("queue", "next_queue", "offer_column", "stale")}
    return buffers | {name: cupy.empty(m, i8) for name in ("offer_benefit", "offer_rise")}


def _pieces(sparse: Csr | None, m: int, n: int, blocks: int) -> dict[str, Any]:
    """Buffers for the rows that the whole grid lists: long ones, unless there are enough of them for every block."""
    degrees = np.diff(sparse.indptr) if sparse else np.full(min(m, blocks + 1), n)
    long_rows = np.flatnonzero(degrees >= LONG)
    if not 0 < long_rows.size <= blocks:
        return dict.fromkeys(("piece_rows", "piece_columns", "piece_benefits", "piece_rest"))
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
        device.buffers["state"][STATE.names.index(name)] = 0


def label_room(n_rows: int) -> int:
    """The largest span of scaled benefits that leaves a label room for 64 of them."""
    return int(2 ** (63 - n_rows.bit_length() - 6))


@dataclass
class PathForest:
    """The labels of `paths.cu` for one auction."""

    buffers: dict[str, Any]
    struct: Records

    def augment(self, device: Device, most_forests: int) -> None:
        """Assign queued rows of `device` along shortest paths, for at most `most_forests` forests."""
        arguments = AUGMENT_ROWS_ARGS.packed(a=device.struct, f=self.struct, most_forests=most_forests)
        device.launch("paths.cu", "augment_rows", arguments)

    def growth(self) -> dict[str, int]:
        """The forest's counters, once everything launched has run."""
        found = self.buffers["growth"].get().view(GROWTH.dtype)[0]
        return {one.name: int(found[one.name]) for one in GROWTH.fields if not one.shape}


def forest_of(device: Device) -> PathForest:
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
        "growth": cupy.zeros(GROWTH.dtype.itemsize // 8, i8),
    }
    return PathForest(buffers, PATH_FOREST.filled(buffers | {"row_bits": m.bit_length()}))
