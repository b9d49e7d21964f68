"""Entropic unbalanced optimal transport on the GPU: one read of the costs per iteration, no host in the loop."""

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from kernels.deadline import Deadline
from kernels.gpu_room import bytes_free
from kernels.papers import SYSTEMS
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.problems.several import SeveralTransports
from kernels.problems.sparse_transport import SparseTransport
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.batch.gpu_batch import solve_batch, solve_stack
from kernels.uot.build import Transport
from kernels.uot.dense.gpu_dense import Begun, exact, solve_dense
from kernels.uot.dense.gpu_ranks import solve_ranks
from kernels.uot.gpu_answer import answer
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.gpu_geometry import NoGeometry
from kernels.uot.rounding import SAFE
from kernels.uot.several import told
from kernels.uot.sides import solver as sides
from kernels.uot.sparse import gpu_sparse
from kernels.uot.stages import Run, Steps, follow, wants_float64

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

RANKED = 4096
"""Rows and columns of the problem that warms several devices up."""
SMALL = 1 << 12  # entries below which float64 costs no time


def solve(problem: Transport, options: "TransportOptions", deadline: Deadline) -> Solution:
    """Solve entropic unbalanced optimal transport on the GPU by accelerated Sinkhorn sweeps, to a certified gap.

    Problem:
        as `kernels.uot.cpu.solver.solve`.
    Args:
        problem: as there; a batch of problems of up to 256 x 256 is solved at once, one block each.
        options: method "log" works the kernel out from the costs in every sweep and is what "auto" takes; "fused"
            stores exp(-C / reg) in `storage` (float32, float16, bfloat16); "points" is taken for point clouds;
            "map-uot" is the published system. storage "float64" sweeps in float64 throughout.
        deadline: polled between launches of about 10 ms.
    Returns:
        as `kernels.uot.cpu.solver.solve`. f and g are also the gradient of the optimum: for the product reference, its
        derivative in a_i is r1 (1 - exp(-f_i / r1)) + reg (sum b - (P 1)_i / a_i) (balanced: f_i in place of the first
        term), and the plan is its derivative in the costs.
    Guarantee:
        "gap_reached": primal value of the plan minus dual value of f, g is at most tolerance times the larger of both.
        Sums are taken in a fixed order: the same bits on every run of the same device ("map-uot" aside). A job of one
        problem that is solved with others has those of a batch (joint.py).
    Numerics:
        Exponents and row sums float32, relative to the last row sums, so that no reg is too small for them; sums over
        rows and blocks, potentials and the gap in float64. Terms below 2^-126 of their row flush to zero. Where float32
        may hide a gap above the tolerance, the last sweeps are float64.
    Complexity:
        One read of m n entries, one exponential each ("points": plus 2 d operations), no barrier of the grid; one
        launch and one look by the host per 16 sweeps or 10 ms. Device bytes beyond the costs: 112 n of messages
        between the clusters, 336 n for the acceleration where n is above 5120, and about 15 vectors.
    Errors:
        none; impossible problems end as "infeasible".
    Differs:
        1. from MAP-UOT: the matrix is read once and never written, and the iteration solves the relaxed problem.
        2. from `kernels.uot.cpu.solver`: Anderson acceleration remembers 5 sweeps; a step is undone by a simpler rule.
    Source:
        as `kernels.uot.cpu.solver.solve`.
    """
    assert not isinstance(problem, ExactTransport)  # the card sends it to the CPU
    if isinstance(problem, MarginalTransport):
        return sides.solve(problem, options, deadline, cp)
    if isinstance(problem, SparseTransport):
        return gpu_sparse.solve(problem, options, deadline)
    return told(problem, options, deadline, _solve, _stack)


def _stack(
    problem: SeveralTransports, options: "TransportOptions", deadline: Deadline
) -> Solution | list[Solution] | None:
    return solve_stack(problem, options, deadline, _solve)


def _solve(problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline) -> Solution:
    if problem.batch is not None:
        return solve_batch(problem, options, deadline, _solve)
    return follow(problem, options, deadline, Steps(SYSTEMS["map-uot", "gpu"], _find, answer))


def _find(
    problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, spread: float, stages: list[float]
) -> tuple[str, Run]:
    storage = _storage(problem, options, spread)
    method = "points" if problem.cost is None else "log"
    if method == "log" and _spread_over_devices(problem):
        return "log on several devices", _on_devices(problem, options, deadline, spread)
    if method == "log" and (options.method == "fused" or storage not in ("float32", "float64")):
        method, stages = "fused", stages[-1:]
    if storage != "float64":
        try:
            return method, solve_dense(problem, options, deadline, method, storage, spread, stages)
        except NoGeometry:
            pass  # rows too long for shared memory: block by block instead
    g = cp.zeros(problem.shape[1]) if problem.g0 is None else cp.asarray(problem.g0)
    method = "points" if problem.cost is None else "log"
    return method, exact(problem, options, deadline, spread, Begun(stages, g, options.iterations))


def _spread_over_devices(problem: UnbalancedTransport) -> bool:
    """True for costs that this device cannot hold, where there are more devices and the rows are relaxed."""
    m, n = problem.shape
    alone = cp.cuda.runtime.getDeviceCount() == 1 or np.isinf(problem.reg_m[0])
    return not alone and m * n * 4 > 0.9 * bytes_free()


def _on_devices(problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, spread: float) -> Run:
    devices = range(cp.cuda.runtime.getDeviceCount())
    f, g, status = solve_ranks(problem, options.iterations, SAFE * options.tolerance, deadline, spread, devices)
    gap, dual = float(status[on.GAP]), float(status[on.DUAL])
    done = status[on.REASON] == on.CONVERGED
    termination = Termination.GAP_REACHED if done else deadline.expired() or Termination.ITERATION_LIMIT
    return Run(f, g, gap / max(abs(dual), abs(dual + gap), 1e-300), dual, termination, int(status[on.ITERATIONS]))


def _storage(problem: UnbalancedTransport, options: "TransportOptions", spread: float) -> str:
    if wants_float64(problem, options, spread, _small(problem)):
        return "float64"
    return "float32" if options.storage == "auto" else str(options.storage)


def _small(problem: UnbalancedTransport) -> bool:
    m, n = problem.shape
    return m * n < SMALL


def warm_up() -> None:
    """Compile the kernels of common shapes (cached on disk) by solving small problems."""
    from kernels.uot import CARD, TransportOptions

    rng = np.random.default_rng(0)
    for n in (600, 2048, 4096):
        points = rng.random((n, 3), dtype=np.float32)
        options = TransportOptions.model_validate({"method": "log", "iterations": 20})
        solve(CARD.build({"cost": points @ points.T}, options), options, Deadline())
    if cp.cuda.runtime.getDeviceCount() > 1:  # contexts and communicators take seconds
        problem = CARD.build({"cost": rng.random((RANKED, RANKED), np.float32)}, options)
        assert isinstance(problem, UnbalancedTransport)
        _on_devices(problem, options, Deadline(), 1.0)
