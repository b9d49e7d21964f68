"""Many small problems in one launch, one block each, each stopping by itself (batch.cu)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.problems.arrays import Floats, Records
from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.batch.answers import Answered, Stack, answers, joined
from kernels.uot.batch.gpu_steps import DeviceSteps
from kernels.uot.dense.gpu_dense import SAFE, hidden_gap, off_by
from kernels.uot.gpu_answer import BLOCK, answer
from kernels.uot.gpu_upload import together as sent
from kernels.uot.gpu_upload import uploaded
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.gpu_launch import LOG2E
from kernels.uot.iteration.layout import CONVERGED, ITEM, REASON, RUNNING, SOLVE_BATCH_ARGS, STATUS
from kernels.uot.stages import Run, batched, collect, in_proportion, together
from kernels.uot.support import Support
from kernels.uot.units import LARGEST_COST, near_one, unflushed

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

# rows and columns at most, then warps, rows of a warp, columns of a lane, rows of a warp whose costs are in registers,
# blocks of a processor
SHAPES = (
    (64, 64, 4, 16, 2, 16, 8),
    (128, 128, 8, 16, 4, 16, 2),
    (204, 224, 17, 12, 7, 0, 1),
    (256, 256, 16, 16, 8, 4, 1),
)
FIRST_SWEEPS, LAUNCH_SWEEPS = 32, 256  # between two looks at the deadline, doubling
STALLED = 256  # sweeps without a gap smaller by a tenth, after which a problem goes on in float64
EVERY = 8  # sweeps between two looks at the gap, inside the launch
AXES = ("sqeuclidean", "euclidean")
"""Metrics whose costs are worked out here."""
SAME_RATIO = 1e-12
"""Of strengths over reg: what a sum of roundings may make of one ratio."""
steps = DeviceSteps()
Solve = Callable[[UnbalancedTransport, Any, Deadline], Solution]


class Batch:
    """The problems on the device: costs (batch, m, n) float32 and their vectors.

    Args:
        problem: with or without its costs.
        cost: these costs on the device, (batch, m, n) in any float type.
        spread: (batch,), largest less least cost of each problem.
    """

    def __init__(self, problem: UnbalancedTransport, cost: Any, spread: Floats) -> None:
        self.problem, self.spread = problem, spread
        size, (m, n) = problem.batch or 0, problem.shape
        shape = next(s for s in SHAPES if m <= s[0] and n <= s[1])
        names = ("WARPS", "ROWS", "COLS", "HELD", "BLOCKS")
        defines = tuple(f"-D{name}={value}" for name, value in zip(names, shape[2:], strict=True))
        self.kernel = cuda.kernel("uot/batch/batch.cu", "solve_batch", defines, cooperative=False)
        self.threads = 32 * shape[2]
        self.shared = shape[2] * (shape[3] - shape[5]) * shape[4] * 32 * 4
        self.kernel.max_dynamic_shared_size_bytes = self.shared
        self.cost = cost.astype(cp.float32, copy=False)
        logs = np.log2(problem.a), np.log2(problem.b)
        of_masses = float(problem.reference == "product")
        self.beta_a, self.beta_b = (of_masses * log for log in logs)
        start = 0.0 if problem.g0 is None else problem.g0 * (LOG2E / problem.reg)
        g = np.where(problem.b > 0, start + self.beta_b, -np.inf)
        vectors = (one.astype(np.float32) for one in (*logs, g))
        self.log_a, self.log_b, self.g, self.items = sent(*vectors, self._items().view(np.uint8))
        self.potential, self.status = cp.zeros((size, m)), cp.zeros((size, STATUS))

    def _items(self) -> Records:
        p = self.problem
        size, (m, n) = p.batch or 0, p.shape
        items, k = np.zeros(size, ITEM.dtype), np.arange(size)
        items["cost"], items["row"], items["column"], items["m"], items["n"] = k * m * n, k * m, k * n, m, n
        items["mass_a"], items["mass_b"] = p.a.sum(1), p.b.sum(1)
        if p.reference == "product":
            items["mass_reference"] = items["mass_a"] * items["mass_b"]
        items["spread"] = self.spread
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

    def pairs(self, status: Floats) -> tuple[Floats, Floats]:
        """The certified potentials (batch, m) and (batch, n), in the units of the cost."""
        unit, shift = self.problem.reg / LOG2E, status[:, on.TRANSLATION, None]
        f, g = self.potential.get() - self.beta_a + shift, self.g.get().astype(np.float64) - self.beta_b - shift
        return f * unit, g * unit


def solve_batch(
    problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, solve: Solve
) -> Solution:
    """Solve the small problems in one launch after the other, and what is left over one by one with `solve`."""
    assert problem.cost is not None
    given = uploaded(np.ascontiguousarray(unflushed(problem.cost, problem.reg)))
    low, high = ends(given)
    if not (_suits(problem, options) and np.isfinite(high - low).all()):
        return batched(problem, options, deadline, solve)
    scaled, unit = near_one(in_proportion(problem))
    cost = given if unit == 1 else cp.asarray(scaled.cost)
    regs = np.full(problem.batch or 0, problem.reg)
    batch = Batch(scaled, cost, (high - low) / unit)
    work = Work(problem, given, low, np.full(len(regs), unit), batch, (problem.a, problem.b, regs), problem.reg_m)
    found = _together(work, options, deadline, solve)
    return found if isinstance(found, Solution) else collect(problem.shape[0], found, options)


def solve_stack(
    problem: SeveralTransports, options: "TransportOptions", deadline: Deadline, solve: Solve
) -> Solution | list[Solution] | None:
    """Solve problems of one shape, each with its own strengths, in one launch after the other.

    Each is taken in units of its reg, in which all must have the same strengths. None where that is not so, or where
    they are not for `solve_batch`. The solution of all, with arrays along a batch axis, or of each.
    """
    parts = list(problem.parts)
    first = parts[0]
    if problem.divergence or any(part.shape != first.shape or part.batch is not None for part in parts):
        return None
    if len({(part.cost is None, part.metric, part.reference, part.g0 is None) for part in parts}) > 1:
        return None
    ratios = np.array([[strength / part.reg for strength in part.reg_m] for part in parts])
    if not np.array_equal(np.isinf(ratios), np.isinf(np.broadcast_to(ratios[0], ratios.shape))):
        return None
    relaxed = ratios[:, np.isfinite(ratios[0])]
    if np.ptp(relaxed, axis=0).max(initial=0.0) > SAME_RATIO * relaxed.max(initial=1.0):
        return None
    regs = np.array([part.reg for part in parts])
    scaled = UnbalancedTransport(
        np.stack([part.a for part in parts]),
        np.stack([part.b for part in parts]),
        1.0,
        (float(ratios[0, 0]), float(ratios[0, 1])),
        reference=first.reference,
        g0=None if first.g0 is None else np.stack([part.g0 / part.reg for part in parts if part.g0 is not None]),
    )
    if not _suits(scaled, options) or (first.cost is None and first.metric not in AXES):
        return None
    given, units = _costs(parts, regs)
    low, high = ends(given)
    if not (np.maximum(abs(low), abs(high)) < LARGEST_COST * np.minimum(regs, 1)).all():
        return None
    batch = Batch(scaled, steps.in_units(given, units), (high - low) / regs)
    work = Work(problem, given, low, regs, batch, (scaled.a, scaled.b, regs), first.reg_m)
    return _together(work, options, deadline, solve)


def _costs(parts: list[UnbalancedTransport], regs: Floats) -> tuple[Any, Any]:
    """Of problems of one shape, (batch, m, n) on the device; of points in float64, from differences. And their regs."""
    if parts[0].cost is not None:
        stacked = np.stack([part.cost for part in parts if part.cost is not None])
        return cp.asarray(unflushed(stacked, min(part.reg for part in parts))), cp.asarray(regs)
    x, y = (np.stack([getattr(part, side) for part in parts]).astype(np.float64) for side in "xy")
    x, y, units = sent(x, y, regs)
    return steps.distances(x, y, parts[0].metric == "euclidean"), units


def ends(cost: Any) -> tuple[Floats, Floats]:
    """Least and largest cost of each problem, (batch,) in float64 on the host."""
    low, high = (end.get().astype(np.float64) for end in (cost.min(axis=(1, 2)), cost.max(axis=(1, 2))))
    return low, high


def _suits(problem: UnbalancedTransport, options: "TransportOptions") -> bool:
    """Whether problems of this shape, whose costs are finite, are solved together."""
    m, n = problem.shape
    fits = any(m <= s[0] and n <= s[1] for s in SHAPES) and bool((problem.a > 0).all() and (problem.b > 0).all())
    return fits and options.method != "map-uot" and options.storage != "float64" and options.tolerance >= 1e-7


@dataclass(frozen=True)
class Work:
    """Problems that are solved together.

    Attributes:
        problem: they.
        given: their costs on the device.
        low: the least cost of each.
        units: what potentials of `batch` are multiplied by to be theirs.
        vectors: a (batch, m), b (batch, n) and reg (batch,).
        reg_m: of one of them; the others have exact sides where it has.
    """

    problem: UnbalancedTransport | SeveralTransports
    given: Any
    low: Floats
    units: Floats
    batch: Batch
    vectors: tuple[Floats, Floats, Floats]
    reg_m: tuple[float, float]


def _together(work: Work, options: "TransportOptions", deadline: Deadline, solve: Solve) -> Solution | list[Solution]:
    """The solution of all, or of each where one of them needs more than the launches."""
    batch, units = work.batch, work.units
    limit, done, sweeps = options.iterations, 0, FIRST_SWEEPS
    best, idle = np.full(len(units), np.inf), np.zeros(len(units), np.int64)
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
    sure = gap + _hidden(batch, f, g, status[:, on.DUAL]) <= options.tolerance
    found = _answers(work, options, f * units[:, None], g * units[:, None])
    if found is not None and sure.all() and not found.strange.any():
        solution = together(
            [_end(one) for one in status], status[:, on.ITERATIONS].astype(int).tolist(), "batch", options
        )
        solution.arrays = found.arrays
        return solution
    parts = []
    for k, one in enumerate(status):
        run, arrays = _run(f[k], g[k], one), None if found is None else found.one(k)
        if sure[k] and arrays is not None:
            facts = {"tolerance": options.tolerance, "gap": run.gap}
            parts.append(Solution(run.termination, "batch", arrays, run.iterations, facts=facts))
            continue
        own = replace(run, f=run.f * units[k], g=run.g * units[k])
        parts.append(_one(work.problem.one(k), options, deadline, own, bool(sure[k]), solve))
    return parts


def _hidden(batch: Batch, f: Floats, g: Floats, dual: Floats) -> Floats:
    """Of each problem, the gap that rounding may hide."""
    problem = batch.problem
    reach = np.maximum(batch.spread, np.maximum(abs(f).max(axis=1), abs(g).max(axis=1)))
    mass = np.maximum(problem.a.sum(axis=1), problem.b.sum(axis=1))
    return np.asarray(hidden_gap(off_by(reach, problem.reg), mass, batch.spread, dual, problem.reg_m))


def _answers(work: Work, options: "TransportOptions", f: Floats, g: Floats) -> Answered | None:
    """Potentials and marginals; None where more than that is asked for."""
    if options.output == "plan" or options.top_k or options.gradients or options.barycentric:
        return None
    exact = bool(np.isinf(work.reg_m[0])), bool(np.isinf(work.reg_m[1]))
    step, found = max(1, BLOCK // (f.shape[1] * g.shape[1])), []
    for start in range(0, len(f), step):
        some = slice(start, start + step)
        a, b, reg = (one[some] for one in work.vectors)
        product = work.batch.problem.reference == "product"
        stack = Stack(work.given[some], a, b, reg, work.low[some], exact, product)
        found.append(answers(steps, sent, stack, f[some], g[some]))
    return joined(found)


def _relative(status: Floats) -> Floats:
    """Relative gaps from one status, or one for each problem."""
    gap, dual = status[..., on.GAP], status[..., on.DUAL]
    return np.asarray(gap / np.maximum(np.maximum(abs(dual), abs(dual + gap)), 1e-300))


def _run(f: Floats, g: Floats, status: Floats) -> Run:
    return Run(f, g, float(_relative(status)), float(status[on.DUAL]), _end(status), int(status[on.ITERATIONS]))


def _end(status: Floats) -> Termination:
    return Termination.ITERATION_LIMIT if status[REASON] == RUNNING else Termination.GAP_REACHED


def _one(
    problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, run: Run, sure: bool, solve: Solve
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
