"""Launches of fused.cu, log.cu and points.cu: the buffers of a problem on the device, and what a launch says."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.problems.arrays import Array
from kernels.problems.transport import METRICS, UnbalancedTransport
from kernels.uot.gpu_geometry import MEMORY, STORAGE, Geometry, geometry, points_geometry

LOG2E = float(np.log2(np.e))
ALL_SUMS = 8 + 2 + 2 * MEMORY
STAGING_BYTES = 1 << 25
AHEAD = {4: 64, 2: 2}  # row groups of the next sweep that are fetched while columns are added up

# status[] and reasons, as in marginals.cuh
ITERATIONS, GAP, PRIMAL, DUAL, PARITY, SHIFT, SHIFT_CERTIFIED, REASON, JUMP, TRANSLATION, REJECTED, STATUS = range(12)
RUNNING, CONVERGED, JUMPED, EMPTY_COLUMN = range(4)
WHOLE, SWEEP_ONLY, COLUMNS_ONLY = range(3)  # as in iterate.cuh


def upload(rows: Array, into: Any) -> None:
    """Copy host rows (k, n) into the top left of the device matrix `into` through two pinned buffers."""
    k, n = rows.shape
    if isinstance(rows, cp.ndarray):  # already here, as in benchmarks
        into[:k, :n], into[:k, n:] = rows, 0
        return
    step = max(1, STAGING_BYTES // (into.shape[1] * into.dtype.itemsize))
    stream = cp.cuda.get_current_stream()
    pinned = [_pinned(min(step, k) * into.shape[1] * into.dtype.itemsize, slot, into.device.id) for slot in (0, 1)]
    events = [cp.cuda.Event(), cp.cuda.Event()]
    for number, start in enumerate(range(0, k, step)):
        stop = min(k, start + step)
        slot = number & 1
        if number > 1:
            events[slot].synchronize()  # the copy out of this buffer has ended
        buffer = pinned[slot][: (stop - start) * into.shape[1] * into.dtype.itemsize]
        staged = buffer.view(into.dtype).reshape(stop - start, into.shape[1])
        staged[:, :n] = rows[start:stop]
        staged[:, n:] = 0
        into[start:stop].set(staged)
        events[slot].record(stream)
    stream.synchronize()


@functools.lru_cache(maxsize=32)
def _pinned(size: int, slot: int, device: int) -> Array:
    memory = cp.cuda.alloc_pinned_memory(size)
    return np.frombuffer(memory, np.uint8, size)


class Dense:
    """A matrix on the device with the vectors of its problem: what one persistent launch works on.

    Device bytes: the matrix (m n entries, padded to 16 bytes a row), teams n floats of partial column sums (at most
    132 n), and about 20 vectors.
    """

    def __init__(
        self,
        problem: UnbalancedTransport,
        method: str,
        storage: str,
        spread: float,
        processors: int,
        cut: Geometry | None = None,
        stores: bool | None = None,
    ) -> None:
        self.problem, self.method, self.storage, self.spread = problem, method, storage, spread
        self.m, self.n = problem.shape
        self.stores = method == "log" and (self._streams(processors) if stores is None else stores)
        self.status = cp.zeros(STATUS)
        self.cut = cut or self._fit(processors)
        while not self._fits():  # a GPC holds whole clusters only
            processors -= self.cut.cluster
            self.cut = self._fit(processors)
        path = f"uot/{method}.cu"
        self.row_reference = None if method == "fused" else cuda.kernel(path, "row_reference", self._defines())
        self.ahead, g = AHEAD[STORAGE[storage][1]], self.cut
        self.masses = float(problem.a.sum()), float(problem.b.sum())
        self.matrix = self._matrix()
        self.log_a, self.log_b = cp.log2(cp.asarray(problem.a)), cp.full(g.ld, -cp.inf)
        self.log_b[: self.n] = cp.log2(cp.asarray(problem.b))
        self.beta_a: Any
        self.beta_b: Any
        self.beta_a, self.beta_b = (self.log_a, self.log_b[: self.n]) if self.product else (0.0, 0.0)
        self.log_a, self.log_b = self.log_a.astype(cp.float32), self.log_b.astype(cp.float32)
        self.potential = cp.zeros(self.m)
        self.values = cp.full((4, g.ld), -cp.inf, cp.float32)  # two of x, two of its image
        self.history = cp.empty((2 * MEMORY + 1, g.ld), cp.float32)
        self.mixing = cp.zeros(MEMORY * MEMORY + 3 * MEMORY + 3 + 2)
        self.partial = cp.empty((g.blocks // g.cluster, g.ld), cp.float32)
        self.sums = cp.zeros((2, g.blocks, ALL_SUMS), cp.float32)

    @property
    def product(self) -> bool:
        """True for the reference measure a x b."""
        return self.problem.reference == "product"

    def _fits(self) -> bool:
        """Compile for the geometry, and try whether all of its blocks fit the device at once."""
        g = self.cut
        self.iterate = cuda.kernel(f"uot/{self.method}.cu", "iterate", self._defines())
        self.iterate.max_dynamic_shared_size_bytes = g.shared
        self.status[REASON] = CONVERGED  # the trial returns at once
        nothing = (self.status,) * 11
        sizes, reals = (1, 1, 4, 0), (1.0,) * 8
        arguments = (*nothing, *map(np.int32, sizes), *map(np.float64, reals), *(np.int32(0),) * 8)
        try:
            self.iterate((g.blocks,), (g.threads + 32,), arguments, shared_mem=g.shared)
        except cp.cuda.driver.CUDADriverError:
            if g.blocks <= g.cluster:
                raise
            return False
        return True

    def _defines(self) -> tuple[str, ...]:
        return (*self.cut.defines, "-DSTORES_TERMS=1") if self.stores else self.cut.defines

    def _streams(self, processors: int) -> bool:
        return self.m * self.n * 4 > processors * 160_000  # more than shared memory holds

    def _fit(self, processors: int) -> Geometry:
        return geometry(self.m, self.n, self.storage, processors, stores=self.stores)

    def _matrix(self) -> Any:
        cost = self.problem.cost
        assert cost is not None
        shape = (self.cut.padded_rows, self.cut.ld)
        if self.storage == "float32":
            matrix = cp.empty(shape, cp.float32)
            upload(cost, matrix)
            matrix[self.m :] = 0
            if self.method == "fused":
                _gibbs(matrix[: self.m, : self.n], LOG2E / self.problem.reg, matrix[: self.m, : self.n])
            return matrix
        matrix = cp.zeros(shape, cp.float16 if self.storage == "float16" else cp.uint16)
        step = max(1, STAGING_BYTES // (4 * shape[1]))
        chunk = cp.empty((min(step, self.m), shape[1]), cp.float32)
        for start in range(0, self.m, step):
            stop = min(self.m, start + step)
            upload(cost[start:stop], chunk)
            part = chunk[: stop - start, : self.n]
            _gibbs(part, LOG2E / self.problem.reg, part)
            matrix[start:stop, : self.n] = part if self.storage == "float16" else _to_bfloat16(part)
        return matrix

    def begin(self, reg: float, g: Any) -> None:
        """Start a stage at `reg` from column potentials g (n,), in the units of the cost."""
        self.reg = reg
        self.status[:] = 0
        self.mixing[:] = 0
        self.mixing.view(cp.float64)[MEMORY * MEMORY + 3 * MEMORY + 1] = -1e300  # best dual value so far
        self.mixing[MEMORY * MEMORY + 3 * MEMORY + 2] = cp.exp2(self.log_b.astype(cp.float64)).sum()
        self.values[0, : self.n] = cp.asarray(g) * (LOG2E / reg) + self.beta_b
        if self.row_reference is not None:
            self.refer()

    def refer(self) -> None:
        """Set the rows' references from the columns' values: one more read of the costs."""
        assert self.row_reference is not None
        r1 = self.problem.reg_m[0]
        power = 1.0 if np.isinf(r1) else r1 / (r1 + self.reg)
        self.status[REASON] = RUNNING
        arguments = (self.matrix, self.log_a, self.values, self.status, self.potential)
        numbers = (np.int32(self.m), np.int32(self.n), np.int32(self.cut.ld), np.int32(self.product))
        blocks = min(self.cut.blocks, -(-self.m // 16))
        self.row_reference((blocks,), (512,), (*arguments, *numbers, np.float32(LOG2E / self.reg), np.float32(power)))

    def launch(
        self, iterations: int, tolerance: float, *, every: int = 4, mixes: bool = True, part: int = WHOLE
    ) -> None:
        """Up to `iterations` sweeps, ending early at the relative gap `tolerance`; does not wait for them."""
        p, g = self.problem, self.cut
        mass_a, mass_b = self.masses
        arrays = (self.matrix, self.log_a, self.log_b, self.potential, self.values, self.values[2:], self.history)
        scratch = (self.mixing, self.partial, self.sums, self.status)
        sizes = (self.m, self.n, g.ld, self.product)
        reals = (self.reg, *p.reg_m, mass_a, mass_b, mass_a * mass_b if self.product else 0.0, self.spread, tolerance)
        counts = (iterations, every, mixes, part, g.kept, g.ring, self.ahead, g.lanes)
        arguments = (*arrays, *scratch, *map(np.int32, sizes), *map(np.float64, reals), *map(np.int32, counts))
        self.iterate((g.blocks,), (g.threads + 32,), arguments, shared_mem=g.shared)

    def pair(self, status: Array) -> tuple[Any, Any]:
        """The certified potentials f (m,), g (n,) in the units of the cost, on the device."""
        unit = self.reg / LOG2E
        values = self.values[1 - int(status[PARITY]), : self.n].astype(cp.float64) - status[SHIFT_CERTIFIED]
        f = (self.potential - self.beta_a + status[TRANSLATION]) * unit
        return f, (values - self.beta_b - status[TRANSLATION]) * unit


class Points(Dense):
    """Two point clouds of dimension at most 3 in place of the matrix: O(m + n) device bytes."""

    def _fit(self, processors: int) -> Geometry:
        return points_geometry(self.m, self.n, self.problem.metric, processors)

    def _defines(self) -> tuple[str, ...]:
        return (*self.cut.defines, f"-DMETRIC={METRICS.index(self.problem.metric)}")

    def _matrix(self) -> Any:
        """Coordinates: m rows of three, then three rows of ld; about their common centre, for short squares."""
        assert self.problem.x is not None
        assert self.problem.y is not None
        x, y = (np.asarray(points, dtype=np.float64) for points in (self.problem.x, self.problem.y))
        if self.problem.metric != "inner":
            centre = (x.mean(0) + y.mean(0)) / 2
            x, y = x - centre, y - centre
        places = np.zeros((3, self.m)), np.zeros((3, self.cut.ld))
        places[0][: x.shape[1]], places[1][: x.shape[1], : self.n] = x.T, y.T
        self.places = cp.asarray(np.concatenate([places[0].T.ravel(), places[1].ravel()]))
        return cp.empty(self.places.size, cp.float32)

    def begin(self, reg: float, g: Any) -> None:
        """Start a stage at `reg`: scale the coordinates so that costs come in log2 units."""
        scale = LOG2E / reg
        self.matrix[:] = self.places * (scale if self.problem.metric == "euclidean" else scale**0.5)
        super().begin(reg, g)


_gibbs = cp.ElementwiseKernel("T c, float64 scale", "T k", "k = exp2f((float)(-c * scale))", "uot_gibbs")
_to_bfloat16 = cp.ElementwiseKernel(
    "float32 x",
    "uint16 y",
    "unsigned u = __float_as_uint(x); y = (u + 0x7fff + ((u >> 16) & 1)) >> 16",
    "uot_to_bfloat16",
)
