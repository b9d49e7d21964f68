"""Transport on the entries of a sparse cost on the GPU: its sweeps run there, its flows and its plan on the host."""

from typing import TYPE_CHECKING, Any

import cupy

from kernels.cuda import attribute, kernel
from kernels.deadline import Deadline
from kernels.problems.sparse_transport import SparseTransport
from kernels.solution import Solution
from kernels.uot.sparse import solver
from kernels.uot.sparse.flow import Lines
from kernels.uot.sparse.layout import SOFT_MAXIMA_ARGS, THREADS
from kernels.uot.sparse.sweeps import Sweeper

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

BLOCKS = 16
"""Of each multiprocessor at most: enough warps to hide the reads of one another."""


def solve(problem: SparseTransport, options: "TransportOptions", deadline: Deadline) -> Solution:
    """Solve entropic transport on the entries of a CSR cost on the GPU.

    Problem, arguments, returns, guarantee, numerics, source:
        as `kernels.uot.sparse.solver.solve`.
    Complexity:
        Two launches a sweep with 2 nnz exponentials, and CuPy's operations on vectors; the host looks at each sweep.
        Device bytes: 24 nnz and some 40 vectors.
    Errors:
        MemoryError where the device is too small.
    """
    return solver.solve(problem, options, deadline, Sweeper("log", cupy, _uploaded, _soft))


def _uploaded(lines: Lines) -> Lines:
    return Lines(cupy.asarray(lines.indptr), cupy.asarray(lines.ends), cupy.asarray(lines.cost))


def _soft(lines: Any, scale: float, values: Any) -> Any:
    out = cupy.empty(lines.count)
    _launch_soft_maxima(lines, scale, values, out)
    return out


def _launch_soft_maxima(lines: Any, scale: float, values: Any, out: Any) -> None:
    """One warp a line."""
    launch = kernel("uot/sparse/soft.cu", "soft_maxima", cooperative=False)
    blocks = min(-(-lines.count * 32 // THREADS), BLOCKS * attribute("MultiProcessorCount"))
    arrays = {"starts": lines.indptr, "ends": lines.ends, "cost": lines.cost, "value": values, "out": out}
    launch((blocks,), (THREADS,), SOFT_MAXIMA_ARGS.packed(**arrays, count=lines.count, scale=scale))
