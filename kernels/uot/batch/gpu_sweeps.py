"""Sweeps of many small problems, one block each in one launch, and their answers: whoever asked for them.

The problems may be those of one job or of several (their *members*). A block knows nothing of the others, and each
member is swept as if it were alone: launches are cut alike, and it is over when its own problems have ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.gpu_locked import uploaded
from kernels.problems.arrays import Floats, Indices, Mask, Records
from kernels.problems.transport import UnbalancedTransport
from kernels.uot.batch.answers import Answered, Stack, answers, joined
from kernels.uot.batch.gpu_steps import DeviceSteps
from kernels.uot.batch.suited import SHAPES, vectors_alone
from kernels.uot.gpu_answer import BLOCK
from kernels.uot.gpu_upload import back
from kernels.uot.gpu_upload import together as sent
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.layout import CONVERGED, ITEM, REASON, SOLVE_BATCH_ARGS, STATUS
from kernels.uot.rounding import LOG2E, SAFE, hidden_gap, off_by
from kernels.uot.units import LARGEST_COST, unflushed

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

FIRST_SWEEPS, LAUNCH_SWEEPS = 32, 256  # between two looks at the deadline, doubling
STALLED = 256  # sweeps without a gap smaller by a tenth, after which a problem goes on in float64
EVERY = 8  # sweeps between two looks at the gap, inside the launch
ALONE = np.zeros(1, np.int64)
"""Where the one member begins."""
steps = DeviceSteps()


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
        potential, g = back(self.potential, self.g)
        f, g = potential - self.beta_a + shift, g.astype(np.float64) - self.beta_b - shift
        return f * unit, g * unit


@dataclass(frozen=True)
class Work:
    """Problems that are solved together.

    Attributes:
        given: their costs on the device.
        low: the least cost of each.
        units: what potentials of `batch` are multiplied by to be theirs.
        vectors: a (batch, m), b (batch, n) and reg (batch,).
        exact: which of their sides are exact.
    """

    given: Any
    low: Floats
    units: Floats
    batch: Batch
    vectors: tuple[Floats, Floats, Floats]
    exact: tuple[bool, bool]


@dataclass(frozen=True)
class Swept:
    """Problems after their sweeps.

    Attributes:
        status: of each, (batch, STATUS).
        gap: the relative gap of each.
        f, g: potentials in the units of `Work.batch`.
        sure: whose gap is small enough, with what rounding may hide.
        through: of each member, whether all of its problems have converged, none of them after the member would have
            been over by itself.
        found: potentials and marginals; None where more than that is asked for.
    """

    status: Floats
    gap: Floats
    f: Floats
    g: Floats
    sure: Mask
    through: Mask
    found: Answered | None


def work_of_batch(
    scaled: UnbalancedTransport, costs: tuple[Any, Any], unit: float, problem: UnbalancedTransport
) -> Work:
    """Problems with the same strengths, whose costs are finite.

    Args:
        scaled: they, in units of `unit`, with or without their costs.
        costs: of those, and as they came, on the device.
        problem: they, as they came.
    """
    cost, given = costs
    low, high = ends(given)
    batch, regs = Batch(scaled, cost, (high - low) / unit), np.full(len(low), problem.reg)
    return Work(given, low, np.full(len(low), unit), batch, (problem.a, problem.b, regs), _exact(problem.reg_m))


def work_of_batches(problems: Sequence[UnbalancedTransport]) -> tuple[Work, Mask]:
    """Batches of one shape and type with the same strengths, whose numbers float32 holds.

    Returns:
        Their problems one after the other, and whose costs are finite.
    """
    first = problems[0]
    each = [uploaded(np.ascontiguousarray(unflushed(one.cost, one.reg))) for one in problems if one.cost is not None]
    given = cp.concatenate(each)
    a, b = (np.concatenate([getattr(one, side) for one in problems]) for side in "ab")
    whole = UnbalancedTransport(a, b, first.reg, first.reg_m, reference=first.reference)
    with np.errstate(invalid="ignore"):
        work = work_of_batch(whole, (given, given), 1.0, whole)
    return work, np.isfinite(work.batch.spread)


def work_of_stack(parts: Sequence[UnbalancedTransport]) -> tuple[Work, Mask]:
    """Problems of one shape and kind, each in units of its reg, in which all have the strengths of the first.

    Returns:
        They, and whose costs float32 holds.
    """
    first, regs = parts[0], np.array([part.reg for part in parts])
    scaled = UnbalancedTransport(
        np.stack([part.a for part in parts]),
        np.stack([part.b for part in parts]),
        1.0,
        (first.reg_m[0] / first.reg, first.reg_m[1] / first.reg),
        reference=first.reference,
        g0=None if first.g0 is None else np.stack([part.g0 / part.reg for part in parts if part.g0 is not None]),
    )
    given, units = _costs(parts, regs)
    low, high = ends(given)
    held: Mask = np.maximum(abs(low), abs(high)) < LARGEST_COST * np.minimum(regs, 1)
    with np.errstate(invalid="ignore"):
        batch = Batch(scaled, steps.in_units(given, units), (high - low) / regs)
    return Work(given, low, regs, batch, (scaled.a, scaled.b, regs), _exact(scaled.reg_m)), held


def _costs(parts: Sequence[UnbalancedTransport], regs: Floats) -> tuple[Any, Any]:
    """Of problems of one shape, (batch, m, n) on the device; of points in float64, from differences. And their regs."""
    if parts[0].cost is not None:
        stacked = np.stack([part.cost for part in parts if part.cost is not None])
        return cp.asarray(unflushed(stacked, min(part.reg for part in parts))), cp.asarray(regs)
    x, y = (np.stack([getattr(part, side) for part in parts]).astype(np.float64) for side in "xy")
    x, y, units = sent(x, y, regs)
    return steps.distances(x, y, parts[0].metric == "euclidean"), units


def ends(cost: Any) -> tuple[Floats, Floats]:
    """Least and largest cost of each problem, (batch,) in float64 on the host."""
    low, high = (end.astype(np.float64) for end in back(cost.min(axis=(1, 2)), cost.max(axis=(1, 2))))
    return low, high


def _exact(reg_m: tuple[float, float]) -> tuple[bool, bool]:
    return bool(np.isinf(reg_m[0])), bool(np.isinf(reg_m[1]))


def swept(
    work: Work, options: "TransportOptions", deadline: Deadline, starts: Indices = ALONE, limit: int | None = None
) -> Swept:
    """Sweep until every member is over, or the deadline; then work out the answers.

    Args:
        starts: the first problem of each member.
        limit: sweeps at most, where these are fewer than the options allow.
    """
    batch, units = work.batch, work.units
    most, done, sweeps = options.iterations if limit is None else limit, 0, FIRST_SWEEPS
    best, idle = np.full(len(units), np.inf), np.zeros(len(units), np.int64)
    stalled = np.zeros(len(starts), bool)
    while True:
        sweeps = min(sweeps, most - done)
        batch.launch(sweeps, SAFE * options.tolerance)
        done += sweeps
        status = batch.status.get()
        gap = relative(status)
        idle = np.where(gap < 0.9 * best, 0, idle + sweeps)
        best = np.minimum(best, gap)
        converged = status[:, REASON] == CONVERGED
        through = np.logical_and.reduceat(converged, starts)
        stalled |= np.logical_and.reduceat(converged | (idle >= STALLED), starts) & ~through
        if done >= most or (through | stalled).all() or deadline.expired():
            break
        sweeps = min(2 * sweeps, LAUNCH_SWEEPS)
    f, g = batch.pairs(status)
    sure: Mask = gap + _hidden(batch, f, g, status[:, on.DUAL]) <= options.tolerance
    found = _answers(work, options, f * units[:, None], g * units[:, None])
    return Swept(status, gap, f, g, sure, through & ~stalled, found)


def _hidden(batch: Batch, f: Floats, g: Floats, dual: Floats) -> Floats:
    """Of each problem, the gap that rounding may hide."""
    problem = batch.problem
    reach = np.maximum(batch.spread, np.maximum(abs(f).max(axis=1), abs(g).max(axis=1)))
    mass = np.maximum(problem.a.sum(axis=1), problem.b.sum(axis=1))
    return np.asarray(hidden_gap(off_by(reach, problem.reg), mass, batch.spread, dual, problem.reg_m))


def _answers(work: Work, options: "TransportOptions", f: Floats, g: Floats) -> Answered | None:
    """Potentials and marginals; None where more than that is asked for."""
    if not vectors_alone(options):
        return None
    step, found = max(1, BLOCK // (f.shape[1] * g.shape[1])), []
    for start in range(0, len(f), step):
        some = slice(start, start + step)
        a, b, reg = (one[some] for one in work.vectors)
        product = work.batch.problem.reference == "product"
        stack = Stack(work.given[some], a, b, reg, work.low[some], work.exact, product)
        found.append(answers(steps, sent, stack, f[some], g[some], back))
    return joined(found)


def relative(status: Floats) -> Floats:
    """Relative gaps from one status, or one for each problem."""
    gap, dual = status[..., on.GAP], status[..., on.DUAL]
    return np.asarray(gap / np.maximum(np.maximum(abs(dual), abs(dual + gap)), 1e-300))
