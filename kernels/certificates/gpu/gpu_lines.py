"""Launches of assignment.cu: line minima and sums of one assignment problem, or of a batch."""

import math
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.gpu_arrays import as_passed
from kernels.cuda import kernel
from kernels.problems import Array

SOURCE = "certificates/gpu/assignment.cu"
CTYPES = {"float64": "double", "float32": "float", "int64": "long long", "int32": "int"}
BLOCK = 256
WEIGH_BLOCK = {True: 256, False: 1024}
"""Threads that add up one problem: of a batch, and of one alone."""
ROW_PIECE, COLUMN_PIECE = 4096, 128
"""Entries of a line that one warp, or one thread, reads at least; longer lines are cut into about as many pieces."""
MOST_BATCH_BLOCKS = 65535

SHAPE = np.dtype([(name, np.int32) for name in ("batch", "max_rows", "max_cols", "sign", "auction", "pieces", "piece")])
ANSWER = np.dtype(
    [
        (name, np.uint64)
        for name in ("u", "v", "price_u", "price_v", "part_high", "part_low", "cost", "assignment", "reject")
    ]
)
FACTS = ("objective", "objective_low", "bound", "bound_low", "sizes", "violation", "off", "missing", "fault", "without")
WORDS = ("objective", "bound")
COUNTS = ("missing", "fault", "without")


@dataclass(frozen=True)
class Lines:
    """A batch of answers on the device.

    `cost` (batch, max_rows, max_cols), contiguous and aligned to 8 bytes; `u` (batch, max_rows) and `v` (batch,
    max_cols) float64, or int64 for integers; `assignment` (batch, max_rows) int64; `sizes` (batch, 2) int32 or None.
    `auction`: every row is a line, every column may stay free. `reject` (max_rows,) is what a row without a column
    costs, in min form; for a batch of one.
    """

    cost: Any
    sign: int
    u: Any
    v: Any
    assignment: Any
    sizes: Any = None
    auction: bool = False
    reject: Any = None


@dataclass(frozen=True)
class Weighed:
    """What weigh found of each problem (arrays by FACTS; `objective` and `bound` lists, in min form), and the checksum.

    Floats: `objective` is at least, `bound` at most the exact value. Integers are exact.
    """

    facts: dict[str, Array]
    objective: list[Any]
    bound: list[Any]
    checksum: int


def weigh(lines: Lines, both_ways: tuple[bool, bool]) -> Weighed:
    """Sweep the costs once. `both_ways`: whether some problems' lines are rows, and whether some are columns."""
    exact = lines.u.dtype.kind == "i"
    batch, rows, cols = lines.cost.shape
    pieces = max(
        _pieces(cols, ROW_PIECE) if both_ways[0] else 1,
        _pieces(rows, COLUMN_PIECE) if both_ways[1] else 1,
    )
    defines = (
        f"-DCOST={CTYPES[lines.cost.dtype.name]}",
        f"-DVALUE={'long long' if exact else 'double'}",
        f"-DFLOATS={int(not exact)}",
    )
    shape = np.zeros((), SHAPE)
    for name, value in zip(SHAPE.names or (), (batch, rows, cols, lines.sign, lines.auction, pieces, 0), strict=True):
        shape[name] = value
    value = np.int64 if exact else np.float64
    # The last word is the checksum; it starts at 0.
    proof = cupy.zeros(batch * len(FACTS) + 1, np.int64)
    buffers = {
        "u": lines.u,
        "v": lines.v,
        "price_u": cupy.empty((batch, rows), value),
        "price_v": cupy.empty((batch, cols), value),
        "part_high": cupy.empty((batch, pieces, max(rows, cols)), value),
        "part_low": None if exact else cupy.empty((batch, pieces, max(rows, cols)), np.float64),
        "cost": lines.cost,
        "assignment": lines.assignment,
        "reject": lines.reject,
    }
    _Launch(lines, shape, defines, buffers, proof[-1:]).all(both_ways, proof)
    found = proof.get()
    return _read(found[:-1].reshape(batch, len(FACTS)), int(found[-1]) % 2**64, exact)


def _pieces(extent: int, least: int) -> int:
    """Pieces of a line: about as many as each has entries of `least`."""
    return -(-extent // max(least, least // 32 * math.isqrt(extent)))


@dataclass(frozen=True)
class _Launch:
    lines: Lines
    shape: Array
    defines: tuple[str, ...]
    buffers: dict[str, Any]
    checksum: Any

    def all(self, both_ways: tuple[bool, bool], proof: Any) -> None:
        """Every kernel, in order; nothing waits."""
        self._cut_prices("u", 0)
        self._cut_prices("v", 1)
        if both_ways[0]:
            self._least_of_rows()
        if both_ways[1]:
            self._least_of_columns()
        self._weigh(proof)

    def _kernel(self, name: str) -> Any:
        return kernel(SOURCE, name, self.defines, cooperative=False)

    @property
    def _sizes(self) -> Any:
        return np.uint64(0) if self.lines.sizes is None else self.lines.sizes

    def _cut_prices(self, side: str, code: int) -> None:
        given, price = self.buffers[side], self.buffers[f"price_{side}"]
        blocks = min(4096, -(-given.size // BLOCK))
        shape = as_passed(self.shape)
        self._kernel("cut_prices")((blocks,), (BLOCK,), (shape, self._sizes, given, price, np.int32(code)))

    def _least_of_rows(self) -> None:
        batch, rows, cols = self.lines.cost.shape
        pieces = int(self.shape["pieces"])
        shape = self._cut(cols)
        blocks = -(-batch * rows * pieces * 32 // BLOCK)
        self._kernel("least_of_rows")((blocks,), (BLOCK,), (as_passed(shape), *self._swept("price_v")))

    def _least_of_columns(self) -> None:
        batch, rows, cols = self.lines.cost.shape
        shape = self._cut(rows)
        grid = (-(-cols // BLOCK), int(shape["pieces"]), min(batch, MOST_BATCH_BLOCKS))
        self._kernel("least_of_columns")(grid, (BLOCK,), (as_passed(shape), *self._swept("price_u")))

    def _cut(self, extent: int) -> Array:
        shape = self.shape.copy()
        shape["piece"] = -(-extent // int(shape["pieces"]))
        return shape

    def _swept(self, price: str) -> tuple[Any, ...]:
        low = np.uint64(0) if self.buffers["part_low"] is None else self.buffers["part_low"]
        return (self._sizes, self.lines.cost, self.buffers[price], self.buffers["part_high"], low, self.checksum)

    def _weigh(self, proof: Any) -> None:
        batch, _, cols = self.lines.cost.shape
        answer = np.zeros((), ANSWER)
        for name, buffer in self.buffers.items():
            answer[name] = 0 if buffer is None else buffer.data.ptr
        taken = cupy.zeros((batch, cols), np.int32)
        block = WEIGH_BLOCK[batch > 1]
        told = as_passed(self.shape), self._sizes, as_passed(answer), taken, proof
        self._kernel("weigh")((batch,), (block,), told)


def _read(proof: Array, checksum: int, exact: bool) -> Weighed:
    facts = {name: np.ascontiguousarray(proof[:, k]) for k, name in enumerate(FACTS)}
    if exact:
        words = [
            [(high << 32) + low for high, low in zip(facts[name].tolist(), facts[f"{name}_low"].tolist(), strict=True)]
            for name in WORDS
        ]
        return Weighed(facts, words[0], words[1], checksum)
    facts = {name: values if name in COUNTS else values.view(np.float64) for name, values in facts.items()}
    return Weighed(facts, facts["objective"].tolist(), facts["bound"].tolist(), checksum)
