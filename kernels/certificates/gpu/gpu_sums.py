"""Launches of transport.cu: the two sweeps over the entries of one transport problem, or of a batch, and their sums."""

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.gpu_arrays import add_checksum, as_passed
from kernels.certificates.gpu.gpu_units import Units
from kernels.cuda import kernel
from kernels.problems import Array, UnbalancedTransport

SOURCE = "certificates/gpu/transport.cu"
BLOCK, COLUMNS, SETTLERS = 256, 128, 512
ROW_PIECE, COLUMN_PIECE = 4096, 256
"""Columns of a row that a warp adds up, rows of a column that a thread does."""
POINT_ROWS = 4
"""Rows of points that a warp takes together, as in the source."""
ROW_SUMS, COLUMN_SUMS = 5, 2
METRICS = {"sqeuclidean": 1, "euclidean": 2, "inner": 3}
CTYPES = {"float64": "double", "float32": "float"}
MOST_BATCH_BLOCKS = 65535

NUMBERS = ("batch", "m", "n", "dim", "metric", "product", "rests", "plan", "pieces", "piece")
REALS = ("reg", "unit_low", "unit_high", "r_a", "r_b", "scale")
VECTORS = ("a", "b", "f", "g", "w", "v", "log_w", "log_v", "rest_a", "rest_b", "shown_a", "shown_b")
PROBLEM = np.dtype(
    [(name, np.int32) for name in NUMBERS]
    + [(name, np.float64) for name in REALS]
    + [(name, np.uint64) for name in ("cost", "plan_array", "x", "y", *VECTORS)]
)
FACTS = (
    "primal",
    "dual",
    "price",
    "residual",
    "apart_a",
    "apart_b",
    "mass_a",
    "mass_b",
    "mass",
    "largest_f",
    "largest_g",
    "loss",
    "shown_a",
    "shown_b",
)


@dataclass(frozen=True)
class Swept:
    """FACTS of each problem (batch, len(FACTS)), whether its plan is none, the checksums of the geometry's arrays."""

    facts: Array
    bad: Array
    checksums: list[int]


@dataclass(frozen=True)
class Sides:
    """What the host brings: vectors (batch, m) and (batch, n) of float64 by VECTORS' names (None where there are none),
    the geometry's arrays on the device, as given, and the plan's, or None. `problem` and the potentials are in `units`,
    into which the sweep brings the geometry."""

    problem: UnbalancedTransport
    vectors: dict[str, Array | None]
    geometry: list[Any]
    plan: Any | None
    units: Units


def sweep(sides: Sides) -> Swept:
    """Launch everything and wait for it."""
    return _Sweep(sides).run()


class _Sweep:
    def __init__(self, sides: Sides) -> None:
        self.problem, self.plan, self.geometry, self.units = sides.problem, sides.plan, sides.geometry, sides.units
        self.batch, (self.m, self.n) = sides.problem.batch or 1, sides.problem.shape
        self.points = sides.problem.cost is None
        self.defines = (
            f"-DCOST={CTYPES[self.geometry[0].dtype.name]}",
            f"-DPOINTS={int(self.points)}",
        )
        # One word for each checksum; they start at 0.
        self.totals = cupy.zeros(len(self.geometry), np.uint64)
        self.bad = cupy.zeros(self.batch, np.int32)
        self.vectors = {
            name: None if vector is None else cupy.asarray(np.ascontiguousarray(vector, np.float64))
            for name, vector in sides.vectors.items()
        }
        for name, of in (("log_w", "w"), ("log_v", "v")):
            self.vectors[name] = self._logs(self.vectors[of])
        self.clouds = [self._laid_out(cloud, k) for k, cloud in enumerate(self.geometry)] if self.points else []
        self.struct = self._struct()

    def run(self) -> Swept:
        rows, cols = self._rows(), self._columns()
        facts = cupy.empty((self.batch, len(FACTS)), np.float64)
        self._kernel("settle")((self.batch,), (SETTLERS,), (as_passed(self.struct), rows, cols, facts))
        return Swept(facts.get(), self.bad.get(), self.totals.get().tolist())

    def _kernel(self, name: str) -> Any:
        return kernel(SOURCE, name, self.defines, cooperative=False)

    def _logs(self, weights: Any) -> Any:
        logs = cupy.empty(weights.shape, np.float64)
        self._kernel("log_weights")((_blocks(weights.size),), (BLOCK,), (weights, logs, np.int64(weights.size)))
        return logs

    def _laid_out(self, cloud: Any, k: int) -> Any:
        count, dim = cloud.shape
        add_checksum(cloud, self.totals[k : k + 1])
        laid = cupy.empty((dim, count), np.float64)
        numbers = (np.int32(count), np.int32(dim), np.float64(self.units.of_points))
        self._kernel("lay_out_points")((_blocks(cloud.size),), (BLOCK,), (cloud, laid, *numbers))
        return laid

    def _struct(self) -> Array:
        problem = self.problem
        inverse = 1.0 / problem.reg  # within half an ulp: its neighbours are on either side
        values = {
            "batch": self.batch,
            "m": self.m,
            "n": self.n,
            "dim": self.geometry[0].shape[1] if self.points else 0,
            "metric": METRICS[problem.metric] if self.points else 0,
            "product": problem.reference == "product",
            "rests": self.vectors["rest_a"] is not None,
            "plan": 0 if self.plan is None else self.plan.dtype.itemsize,
            "reg": problem.reg,
            "unit_low": np.nextafter(inverse, 0.0),
            "unit_high": np.nextafter(inverse, np.inf),
            "r_a": problem.reg_m[0],
            "r_b": problem.reg_m[1],
            "scale": self.units.of_costs,
        }
        arrays = {"cost": None if self.points else self.geometry[0], "plan_array": self.plan, **self.vectors}
        if self.points:
            arrays |= {"x": self.clouds[0], "y": self.clouds[1]}
        struct = np.zeros((), PROBLEM)
        for name, value in values.items():
            struct[name] = value
        for name, array in arrays.items():
            struct[name] = 0 if array is None else array.data.ptr
        return struct

    def _cut(self, extent: int, piece: int) -> tuple[Array, int]:
        struct, pieces = self.struct.copy(), -(-extent // piece)
        struct["pieces"], struct["piece"] = pieces, piece
        return struct, pieces

    def _rows(self) -> Any:
        struct, pieces = self._cut(self.n, ROW_PIECE)
        parts = cupy.empty((ROW_SUMS, self.batch, pieces, self.m), np.float64)
        groups = -(-self.m // (POINT_ROWS if self.points else 1))
        blocks = -(-self.batch * pieces * groups * 32 // BLOCK)
        # Points have their checksums already: nothing is added to them here.
        self._kernel("sums_of_rows")((blocks,), (BLOCK,), (as_passed(struct), parts, self.bad, self.totals))
        return self._joined(parts, ROW_SUMS, pieces, self.m)

    def _columns(self) -> Any:
        struct, pieces = self._cut(self.m, COLUMN_PIECE)
        parts = cupy.empty((COLUMN_SUMS, self.batch, pieces, self.n), np.float64)
        grid = (-(-self.n // COLUMNS), pieces, min(self.batch, MOST_BATCH_BLOCKS))
        self._kernel("sums_of_columns")(grid, (COLUMNS,), (as_passed(struct), parts))
        return self._joined(parts, COLUMN_SUMS, pieces, self.n)

    def _joined(self, parts: Any, count: int, pieces: int, lines: int) -> Any:
        sums = cupy.empty((count, self.batch, lines), np.float64)
        numbers = map(np.int32, (count, self.batch, pieces, lines))
        self._kernel("join_parts")((_blocks(sums.size),), (BLOCK,), (parts, sums, *numbers))
        return sums


def _blocks(items: int) -> int:
    return max(1, min(4096, -(-items // BLOCK)))
