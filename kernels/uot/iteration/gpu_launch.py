"""Launches of fused.cu, log.cu and points.cu: the buffers of a problem on the device, and what a launch says."""

import functools
from collections.abc import Mapping
from typing import Any

import cupy as cp
import numpy as np

from kernels import cuda, shelf
from kernels.problems.arrays import Floats
from kernels.problems.transport import UnbalancedTransport
from kernels.uot.gpu_upload import upload
from kernels.uot.iteration.gpu_geometry import (
    SHARED_BYTES,
    Forms,
    Geometry,
    NoGeometry,
    costs_geometry,
    geometry,
)
from kernels.uot.iteration.layout import COLUMNS_ONLY as COLUMNS_ONLY
from kernels.uot.iteration.layout import CONVERGED as CONVERGED
from kernels.uot.iteration.layout import DUAL as DUAL
from kernels.uot.iteration.layout import EMPTY_COLUMN as EMPTY_COLUMN
from kernels.uot.iteration.layout import GAP as GAP
from kernels.uot.iteration.layout import ITERATE_ARGS, LINES, MIXING, REFERENCE_OF_COSTS_ARGS
from kernels.uot.iteration.layout import ITERATIONS as ITERATIONS
from kernels.uot.iteration.layout import JUMPED as JUMPED
from kernels.uot.iteration.layout import PRIMAL as PRIMAL
from kernels.uot.iteration.layout import REASON as REASON
from kernels.uot.iteration.layout import REJECTED as REJECTED
from kernels.uot.iteration.layout import RUNNING as RUNNING
from kernels.uot.iteration.layout import STATUS as STATUS
from kernels.uot.iteration.layout import SWEEP_ONLY as SWEEP_ONLY
from kernels.uot.iteration.layout import TRANSLATION as TRANSLATION
from kernels.uot.iteration.layout import WHOLE as WHOLE

LOG2E = float(np.log2(np.e))
CHUNK_BYTES = 1 << 20  # of rows on the device on their way into panels, at least; else a 128th of the matrix
CLUSTERS = (16, 8, 4, 2, 1)  # blocks that share a row: the largest that the device can run
NON_PORTABLE = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
WORTH_COMPILING = 1 << 26  # entries from which sweeps in float64 take longer than NVRTC
STORES = ("-DSTORES_TERMS=1",)
SOURCES = {"fused": "uot/dense/fused.cu", "log": "uot/dense/log.cu", "points": "uot/points/points.cu"}
"""What a term is, by method: the sources that the iteration is compiled with."""


class Dense:
    """A matrix on the device with the vectors of its problem: what one persistent launch works on.

    Device bytes: the matrix (m n entries, rows padded to 16 bytes a block), 112 n bytes of messages between the teams,
    another 336 n for the acceleration where n is above 5120, and about 15 vectors.
    """

    def __init__(
        self,
        problem: UnbalancedTransport,
        method: str,
        storage: str,
        spread: float,
        processors: int,
        cut: Geometry | None = None,
        stores: bool = False,
    ) -> None:
        self.problem, self.method, self.storage, self.spread = problem, method, storage, spread
        self.m, self.n = problem.shape
        self.streams = stores
        self.status = cp.zeros(STATUS)
        self.cut = cut or self._fit(processors)
        if cut:
            self._fits()
        g = self.cut
        source = SOURCES[method]
        self.row_reference = None if method == "fused" else cuda.kernel(source, "row_reference", self._defines())
        self.masses = float(problem.a.sum()), float(problem.b.sum())
        self.matrix = self._matrix()
        self.log_a, self.log_b = cp.log2(cp.asarray(problem.a)), cp.full(g.ld, -cp.inf)
        self.log_b[: self.n] = cp.log2(cp.asarray(problem.b))
        self.beta_a: Any
        self.beta_b: Any
        self.beta_a, self.beta_b = (self.log_a, self.log_b[: self.n]) if self.product else (0.0, 0.0)
        self.log_a, self.log_b = self.log_a.astype(cp.float32), self.log_b.astype(cp.float32)
        self.potential = cp.zeros(self.m)
        self.values = cp.full((2, g.ld), -cp.inf, cp.float32)  # to be swept next, and swept last
        # Entries of the padding are read but never written: what lay there before could make them NaN.
        self.history = cp.zeros((1 if g.own_history else g.teams, LINES, g.ld), cp.float32)
        self.mixing = cp.empty(MIXING.dtype.itemsize // 8)
        fresh = np.zeros(self.mixing.size)
        fresh[_place_of("best")] = -1e300  # the best dual value so far
        self._fresh_mixing = cp.asarray(fresh)
        self._fresh_mixing[_place_of("mass")] = cp.exp2(self.log_b.astype(cp.float64)).sum()
        self.words = cp.zeros((2, g.teams, g.cluster, g.width + 2), cp.uint64)
        self.partial = self.words  # where several devices share a problem: gpu_ranks.py

    farthest = 0.0  # square of the farthest point's distance from the centre: exponents are rounded at that size

    @property
    def dimension(self) -> int:
        """Of point clouds; 0 for a matrix."""
        return 0

    @property
    def product(self) -> bool:
        """True for the reference measure a x b."""
        return self.problem.reference == "product"

    def _fit(self, processors: int) -> Geometry:
        """The geometry with the largest cluster, then the most teams, that the device runs at once.

        One that is compiled ahead comes first, with fewer teams if need be: NVRTC takes seconds. Where there are such
        forms but none fits, only a large problem is worth another: float64 sweeps end a small one sooner.
        """
        listed = shelf.all_ahead(cp.cuda.Device().compute_capability)
        waits = self.m * self.n >= WORTH_COMPILING or all(form.path != SOURCES[self.method] for form in listed)
        for among in (listed, None) if waits else (listed,):
            for cluster in CLUSTERS:
                most = processors // cluster
                for teams in range(most, most // 2, -1):  # a GPC holds whole clusters only
                    try:
                        self.cut = self._geometry(teams, cluster)
                    except NoGeometry:
                        break
                    if (among is None or self._form() in among) and self._fits():
                        return self.cut
        raise NoGeometry(f"{self.m} x {self.n} on this device")

    def _form(self) -> shelf.Form:
        return shelf.Form(SOURCES[self.method], self._defines())

    def _fits(self) -> bool:
        """Compile for the geometry if all of its blocks fit the device at once."""
        g = self.cut
        if not _meet(cp.cuda.Device().id, g.cluster, g.teams):
            return False
        self.iterate = cuda.kernel(SOURCES[self.method], "iterate", self._defines())
        _allow(self.iterate, g.cluster, g.shared)
        return True

    @property
    def stores(self) -> bool:
        """True where terms take the place of costs in shared memory, because the costs come again in the next sweep."""
        return self.method == "log" and not self.cut.keeps

    def _defines(self) -> tuple[str, ...]:
        return (*self.cut.defines, *STORES) if self.stores else self.cut.defines

    def _ahead(self, *more: str) -> Forms:
        """What this method's source is compiled with ahead, beside `more`."""
        return shelf.ahead(SOURCES[self.method], more, cp.cuda.Device().compute_capability)

    def _geometry(self, teams: int, cluster: int) -> Geometry:
        if self.method == "log" and not self.streams:
            return costs_geometry(self.m, self.n, teams, cluster, self._ahead(), self._ahead(*STORES))
        ahead = self._ahead(*STORES) if self.method == "log" else self._ahead()
        return geometry(self.m, self.n, self.storage, teams, cluster, stores=self.streams, ahead=ahead)

    def _matrix(self) -> Any:
        """The costs or their kernel in panels (cluster, m, width): what one block reads lies together."""
        cost, g = self.problem.cost, self.cut
        assert cost is not None
        kind = {"float32": cp.float32, "float16": cp.float16, "bfloat16": cp.uint16}[self.storage]
        panels = cp.empty((g.cluster, self.m, g.width), kind)
        direct = isinstance(cost, cp.ndarray) and cost.dtype == cp.float32 and self.n == g.ld
        step = max(1, max(CHUNK_BYTES, self.m * g.ld * 4 >> 7) // (4 * g.ld))
        chunk = None if direct else cp.empty((min(step, self.m), g.ld), cp.float32)
        for start in range(0, self.m, step):
            stop = min(self.m, start + step)
            if chunk is not None:
                upload(cost[start:stop], chunk[: stop - start])
            rows = cost[start:stop] if chunk is None else chunk[: stop - start]
            part = rows.reshape(stop - start, g.cluster, g.width).transpose(1, 0, 2)
            if self.method == "fused":
                _gibbs(part, LOG2E / self.problem.reg, self.storage == "bfloat16", panels[:, start:stop])
            else:
                panels[:, start:stop] = part
        return panels

    def stored(self, rows: slice) -> Any:
        """Rows of the stored matrix, (k, n) as they are stored."""
        part = self.matrix[:, rows]
        return part.transpose(1, 0, 2).reshape(part.shape[1], self.cut.ld)[:, : self.n]

    def begin(self, reg: float, g: Any) -> None:
        """Start a stage at `reg` from column potentials g (n,), in the units of the cost."""
        self.reg = reg
        self.status[:] = 0
        self.words[:] = 0
        self.mixing[:] = self._fresh_mixing
        self.values[0, : self.n] = cp.asarray(g) * (LOG2E / reg) + self.beta_b
        if self.row_reference is not None:
            self.refer()

    def refer(self) -> None:
        """Set the rows' references from the columns' values: one more read of the costs."""
        assert self.row_reference is not None
        r1 = self.problem.reg_m[0]
        power = 1.0 if np.isinf(r1) else r1 / (r1 + self.reg)
        self.status[REASON] = RUNNING
        vectors = {"log_a": self.log_a, "g": self.values, "potential": self.potential}
        shared = {"m": self.m, "n": self.n, "product": self.product, "power_a": power}
        blocks = min(self.cut.blocks, -(-self.m // 16))
        self.row_reference((blocks,), (512,), self._refers(vectors | shared))

    def _refers(self, shared: dict[str, Any]) -> tuple[Any, ...]:
        own = {"cost": self.matrix, "width": self.cut.width, "scale": LOG2E / self.reg}
        return REFERENCE_OF_COSTS_ARGS.packed(**shared, **own)

    def launch(
        self,
        iterations: int,
        tolerance: float,
        *,
        enough: float = 0.0,
        every: int = 4,
        mixes: bool = True,
    ) -> None:
        """Up to `iterations` sweeps, without waiting for them.

        It ends early at the relative gap `tolerance`, or at a gap of `enough` for each unit of the plan's mass.
        """
        self.start(self.arguments(iterations, tolerance, enough, every, mixes, WHOLE))

    def start(self, arguments: tuple[Any, ...]) -> None:
        """Queue a launch with what `arguments` returned."""
        self.iterate((self.cut.blocks,), (self.cut.block_threads,), arguments, shared_mem=self.cut.shared)

    def arguments(
        self, iterations: int, tolerance: float, enough: float, every: int, mixes: bool, part: int
    ) -> tuple[Any, ...]:
        """What `iterate` is given; to put it together takes longer than a launch."""
        p, g = self.problem, self.cut
        mass_a, mass_b = self.masses
        vectors = {"log_a": self.log_a, "log_b": self.log_b, "potential": self.potential, "g": self.values}
        buffers = {"matrix": self.matrix, "history": self.history, "memory": self.mixing, "words": self.words}
        buffers |= {"partial": self.partial, "status": self.status}
        sizes = {"m": self.m, "n": self.n, "ld": g.ld, "product": self.product, "dimension": self.dimension}
        sizes |= {"slots": g.slots, "flight": g.flight, "own_history": g.own_history}
        reals = {"eps": self.reg, "rho_a": p.reg_m[0], "rho_b": p.reg_m[1], "mass_a": mass_a, "mass_b": mass_b}
        reals |= {"mass_reference": mass_a * mass_b if self.product else 0.0, "spread": self.spread}
        aims = {"tolerance": tolerance, "enough": enough, "iterations": iterations, "every": every}
        return ITERATE_ARGS.packed(**vectors, **buffers, **sizes, **reals, **aims, mixes=mixes, part=part)

    def pair(self, status: Floats) -> tuple[Any, Any]:
        """The certified potentials f (m,), g (n,) in the units of the cost, on the device."""
        unit = self.reg / LOG2E
        values = self.values[1, : self.n].astype(cp.float64)
        f = (self.potential - self.beta_a + status[TRANSLATION]) * unit
        return f, (values - self.beta_b - status[TRANSLATION]) * unit


_gibbs = cp.ElementwiseKernel(
    "float32 c, float64 scale, bool bfloat16",
    "T k",
    """
    const float x = exp2f((float)(-c * scale));
    const unsigned u = __float_as_uint(x);  // bfloat16 is kept as the upper half of the word, rounded to even
    k = bfloat16 ? (T)((u + 0x7fff + ((u >> 16) & 1)) >> 16) : (T)x;
    """,
    "uot_gibbs",
)


def _place_of(field: str) -> int:
    """Of a field of Mixing, in doubles."""
    fields: Mapping[str, Any] = MIXING.dtype.fields or {}
    return int(fields[field][1]) // 8


def _allow(kernel: Any, cluster: int, shared: int) -> None:
    if cluster > 8:
        cp.cuda.driver.funcSetAttribute(kernel.kernel.ptr, NON_PORTABLE, 1)
    kernel.max_dynamic_shared_size_bytes = shared


@functools.cache
def _meet(device: int, cluster: int, teams: int) -> bool:
    """True when the device runs so many clusters at once, one block a multiprocessor: clusters.cu tries it."""
    kernel = cuda.kernel("uot/iteration/clusters.cu", "meet", (f"-DCS={cluster}",))
    _allow(kernel, cluster, SHARED_BYTES)
    try:
        kernel((cluster * teams,), (32,), (), shared_mem=SHARED_BYTES)
    except cp.cuda.driver.CUDADriverError:
        return False
    return True
