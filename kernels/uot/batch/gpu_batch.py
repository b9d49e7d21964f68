"""Many small problems in one launch, one block each, each stopping by itself (batch.cu)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.problems.arrays import Array
from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.dense.gpu_dense import SAFE, float32_noise
from kernels.uot.gpu_answer import answer
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.gpu_launch import LOG2E
from kernels.uot.iteration.layout import CONVERGED, ITEM, REASON, RUNNING, SOLVE_BATCH_ARGS, STATUS
from kernels.uot.stages import Run, batched, collect, in_proportion
from kernels.uot.support import Support
from kernels.uot.units import fits_float32, near_one

# rows and columns at most, then warps, rows of a warp, columns of a lane, costs in registers, blocks of a processor
SHAPES = ((64, 64, 4, 16, 2, 1, 8), (128, 128, 8, 16, 4, 1, 2), (204, 224, 17, 12, 7, 0, 1))
FIRST_SWEEPS, LAUNCH_SWEEPS = 32, 256  # between two looks at the deadline, doubling
STALLED = 256  # sweeps without a gap smaller by a tenth, after which a problem goes on in float64
EVERY = 8  # sweeps between two looks at the gap, inside the launch
SAME_RATIO = 1e-12
"""Of strengths over reg: what a sum of roundings may make of one ratio."""
Solve = Callable[[UnbalancedTransport, Any, Deadline], Solution]


class Batch:
    """The problems on the device: costs (batch, m, n) float32 and their vectors."""

    def __init__(self, problem: UnbalancedTransport) -> None:
        self.problem = problem
        size, (m, n) = problem.batch or 0, problem.shape
        shape = next(s for s in SHAPES if m <= s[0] and n <= s[1])
        names = ("WARPS", "ROWS", "COLS", "IN_REGISTERS", "BLOCKS")
        defines = tuple(f"-D{name}={value}" for name, value in zip(names, shape[2:], strict=True))
        self.kernel = cuda.kernel("uot/batch/batch.cu", "solve_batch", defines, cooperative=False)
        self.threads = 32 * shape[2]
        self.shared = 0 if shape[5] else shape[2] * shape[3] * shape[4] * 32 * 4
        self.kernel.max_dynamic_shared_size_bytes = self.shared
        self.cost = cp.asarray(problem.cost).astype(cp.float32)
        a, b = cp.asarray(problem.a), cp.asarray(problem.b)
        log_a, log_b = cp.log2(a), cp.log2(b)
        self.beta_a, self.beta_b = (log_a, log_b) if problem.reference == "product" else (0 * a, 0 * b)
        self.log_a, self.log_b = log_a.astype(cp.float32), log_b.astype(cp.float32)
        self.potential = cp.zeros((size, m))
        start = 0.0 if problem.g0 is None else cp.asarray(problem.g0) * (LOG2E / problem.reg)
        self.g = cp.where(b > 0, start + self.beta_b, -cp.inf).astype(cp.float32)
        self.status = cp.zeros((size, STATUS))
        self.items = cp.asarray(self._items().view(np.uint8))

    def _items(self) -> Array:
        p = self.problem
        assert p.cost is not None
        size, (m, n) = p.batch or 0, p.shape
        items, k = np.zeros(size, ITEM.dtype), np.arange(size)
        items["cost"], items["row"], items["column"], items["m"], items["n"] = k * m * n, k * m, k * n, m, n
        items["mass_a"], items["mass_b"] = p.a.sum(1), p.b.sum(1)
        if p.reference == "product":
            items["mass_reference"] = items["mass_a"] * items["mass_b"]
        items["spread"] = p.cost.max(axis=(1, 2)) - p.cost.min(axis=(1, 2))
        return items

    def launch(self, iterations: int, tolerance: float, every: int = EVERY) -> None:
        """Up to `iterations` sweeps of every problem that has not ended."""
        p = self.problem
        rho_a, rho_b = p.reg_m
        arguments = SOLVE_BATCH_ARGS.packed(
            cost=self.cost,
            log_a=self.log_a,
            log_b=self.log_b,
            items=self.items,
            potential=self.potential,
            g=self.g,
            status=self.status,
            product=p.reference == "product",
            eps=p.reg,
            rho_a=rho_a,
            rho_b=rho_b,
            tolerance=tolerance,
            iterations=iterations,
            every=every,
        )
        self.kernel((p.batch or 0,), (self.threads,), arguments, shared_mem=self.shared)

    def pairs(self, status: Array) -> tuple[Array, Array]:
        """The certified potentials (batch, m) and (batch, n), in the units of the cost."""
        unit, shift = self.problem.reg / LOG2E, cp.asarray(status[:, on.TRANSLATION, None])
        f, g = (self.potential - self.beta_a + shift) * unit, (self.g.astype(cp.float64) - self.beta_b - shift) * unit
        return f.get(), g.get()


def solve_batch(problem: UnbalancedTransport, options: Any, deadline: Deadline, solve: Solve) -> Solution:
    """Solve the small problems in one launch after the other, and what is left over one by one with `solve`."""
    if not _suits(problem, options):
        return batched(problem, options, deadline, solve)
    scaled, unit = near_one(in_proportion(problem))
    each = [problem.one(k) for k in range(problem.batch or 0)]
    parts = _together(scaled, np.full(len(each), unit), each, options, deadline, solve)
    return collect(problem.shape[0], parts, options)


def solve_stack(problem: SeveralTransports, options: Any, deadline: Deadline, solve: Solve) -> list[Solution] | None:
    """Solve problems of one shape, each with its own strengths, in one launch after the other.

    Each is taken in units of its reg, in which all must have the same strengths. None where that is not so, or where
    they are not for `solve_batch`.
    """
    first = problem.parts[0]
    if problem.form != "stack" or problem.divergence or first.cost is None:
        return None
    ratios = np.array([[strength / part.reg for strength in part.reg_m] for part in problem.parts])
    if not np.array_equal(np.isinf(ratios), np.isinf(np.broadcast_to(ratios[0], ratios.shape))):
        return None
    relaxed = ratios[:, np.isfinite(ratios[0])]
    if np.ptp(relaxed, axis=0).max(initial=0.0) > SAME_RATIO * relaxed.max(initial=1.0):
        return None
    scaled = UnbalancedTransport(
        np.stack([part.a for part in problem.parts]),
        np.stack([part.b for part in problem.parts]),
        1.0,
        (float(ratios[0, 0]), float(ratios[0, 1])),
        np.stack([np.asarray(part.cost, np.float64) / part.reg for part in problem.parts]),
        reference=first.reference,
        g0=None
        if first.g0 is None
        else np.stack([part.g0 / part.reg for part in problem.parts if part.g0 is not None]),
    )
    if not _suits(scaled, options) or not fits_float32(scaled):
        return None
    units = np.array([part.reg for part in problem.parts])
    return _together(scaled, units, list(problem.parts), options, deadline, solve)


def _suits(problem: UnbalancedTransport, options: Any) -> bool:
    m, n = problem.shape
    assert problem.cost is not None
    plain = np.isfinite(problem.cost).all() and (problem.a > 0).all() and (problem.b > 0).all()
    fits = any(m <= s[0] and n <= s[1] for s in SHAPES) and bool(plain)
    return fits and options.method != "map-uot" and options.storage != "float64" and options.tolerance >= 1e-7


def _together(
    scaled: UnbalancedTransport,
    units: Array,
    each: list[UnbalancedTransport],
    options: Any,
    deadline: Deadline,
    solve: Solve,
) -> list[Solution]:
    """The solutions of `each`, whose potentials are those of the batch `scaled` times their units."""
    batch = Batch(scaled)
    limit, done, sweeps = options.iterations, 0, FIRST_SWEEPS
    best, idle = np.full(len(each), np.inf), np.zeros(len(each), np.int64)
    while True:
        sweeps = min(sweeps, limit - done)
        batch.launch(sweeps, SAFE * options.tolerance)
        done += sweeps
        status = batch.status.get()
        gap = _relative(status)
        idle = np.where(gap < 0.9 * best, 0, idle + sweeps)
        best = np.minimum(best, gap)
        ended = (status[:, REASON] == CONVERGED) | (idle >= STALLED)
        if done >= limit or ended.all() or deadline.expired():
            break
        sweeps = min(2 * sweeps, LAUNCH_SWEEPS)
    f, g = batch.pairs(status)
    spread = np.ptp(scaled.cost, axis=(1, 2)) if scaled.cost is not None else np.zeros(len(f))
    parts = []
    for k in range(len(f)):
        run = _run(f[k], g[k], status[k])
        hidden = float32_noise(scaled.one(k), run, float(spread[k]))
        run = replace(run, f=run.f * units[k], g=run.g * units[k])
        parts.append(_one(each[k], options, deadline, run, run.gap + hidden <= options.tolerance, solve))
    return parts


def _relative(status: Array) -> Array:
    """Relative gaps from one status, or one for each problem."""
    gap, dual = status[..., on.GAP], status[..., on.DUAL]
    return np.asarray(gap / np.maximum(np.maximum(abs(dual), abs(dual + gap)), 1e-300))


def _run(f: Array, g: Array, status: Array) -> Run:
    ended = Termination.ITERATION_LIMIT if status[REASON] == RUNNING else Termination.GAP_REACHED
    return Run(f, g, float(_relative(status)), float(status[on.DUAL]), ended, int(status[on.ITERATIONS]))


def _one(
    problem: UnbalancedTransport, options: Any, deadline: Deadline, run: Run, sure: bool, solve: Solve
) -> Solution:
    """The answer of one problem, after some more sweeps in float64 where float32 may hide a gap above the tolerance."""
    ended = run.termination
    if not sure and run.iterations < options.iterations and not deadline.expired():
        left = {"storage": "float64", "iterations": options.iterations - run.iterations}
        again = solve(replace(problem, f0=run.f, g0=run.g), options.model_copy(update=left), deadline)
        again.iterations += run.iterations
        return again
    if not sure:
        ended = deadline.expired() or Termination.ITERATION_LIMIT
    everything = np.ones(problem.a.size, bool), np.ones(problem.b.size, bool)
    whole = Support(problem, *everything, ~everything[0], ~everything[1])
    facts = {"tolerance": options.tolerance, "gap": run.gap}
    solution = answer(whole, options, (run.f, run.g), ended, "batch", facts, deadline)
    solution.iterations = run.iterations
    return solution
