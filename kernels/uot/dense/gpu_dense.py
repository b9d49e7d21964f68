"""Cost matrices on the GPU: stages of epsilon scaling, each a few persistent launches, then float64 where needed."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Termination
from kernels.uot.dense.gpu_exact import ExactSweeps
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.marginals import Marginals, ceiling
from kernels.uot.outer import REMEMBERED, STAGE_GAP, STALLED, Rules, iterate
from kernels.uot.points.gpu_clouds import PointClouds
from kernels.uot.rounding import SAFE, hidden_gap, off_by
from kernels.uot.stages import Run

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

LAUNCH_S = 0.01  # a launch should take no longer: then the deadline is looked at again
FIRST_SWEEPS = 16  # of a first launch: most problems end in it
RESCUES = 5  # by a float64 sweep
RE_REFERENCES = 100  # by new references, which cost one more read
SEEN = 1e-7  # of the dual value: a rise that float32 sums can show
NOISE_BELOW = 1e-3  # relative gap from which on it is held against float32's noise
STUCK = 2 * FIRST_SWEEPS  # sweeps without progress there, after which float32 has nothing left to find


def float32_noise(problem: UnbalancedTransport, run: Run, spread: float, farthest: float = 0.0) -> float:
    """Relative gap that rounding of exponents to float32 may hide: r KL ~ r mass delta^2, delta the exponent's ulp.

    `farthest` is the largest part that exponents are put together from: squared distances from the centre.
    """
    delta = _rounding(problem, run, spread, farthest)
    mass = max(float(problem.a.sum()), float(problem.b.sum()))
    return float(hidden_gap(delta, mass, spread, run.dual, problem.reg_m))


def _rounding(problem: UnbalancedTransport, run: Run, spread: float, farthest: float) -> float:
    """How far exponents of float32 may be off: by their own size, and by what exp2 and sums add."""
    return float(off_by(max(spread, farthest, float(np.abs(run.f).max()), float(np.abs(run.g).max())), problem.reg))


def _shown(problem: UnbalancedTransport, run: Run, spread: float, farthest: float) -> float:
    """Relative gap that rounding may show where none is left.

    Between two balanced sides a launch prices what columns miss, which never falls below rounding, as a repair does
    (repair_cost in marginals.cuh). Half of the mean error of a column is mass to be moved, and the mean is about a
    quarter of the largest.
    """
    noise = float32_noise(problem, run, spread, farthest) / 4
    if not np.isinf(problem.reg_m).all():
        return noise
    moved = _rounding(problem, run, spread, farthest) / 8
    price = float(problem.b.sum()) * moved * (3 * spread + problem.reg * math.log1p(1 / moved))
    return max(noise, price / max(abs(run.dual), 1e-300))


@dataclass(frozen=True)
class Begun:
    """Where sweeps go on from: the regs left, column potentials, how many sweeps are left and how many were made."""

    stages: list[float]
    g: Any
    left: int
    made: int = 0


def exact(
    problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, spread: float, begun: Begun
) -> Run:
    """Iterate in float64 on the device."""
    marginals, memory = Marginals(cp, problem, spread), REMEMBERED if options.acceleration else 0
    aim, before = SAFE * options.tolerance, begun.made
    rules = Rules(aim, deadline, memory=memory, translate=options.acceleration, before=before)
    sweeps, g = ExactSweeps(problem, marginals), cp.asarray(begun.g, dtype=cp.float64)
    doubted = problem.g0 is not None and not before
    outcome = iterate(marginals, sweeps, g, rules, stages=begun.stages, limit=begun.left, doubted=doubted)
    s, end = outcome.state, outcome.termination
    if s.relative_gap <= options.tolerance and end is not Termination.INFEASIBLE:
        end = Termination.GAP_REACHED
    swept, through = outcome.iterations, () if before else outcome.stages
    return Run(s.f.get(), s.g.get(), s.relative_gap, s.dual, end, swept, outcome.rejected, "float64", through)


def solve_dense(
    problem: UnbalancedTransport,
    options: "TransportOptions",
    deadline: Deadline,
    method: str,
    storage: str,
    spread: float,
    stages: list[float],
) -> Run:
    """Solve with float32 exponentials and finish in float64 where their noise may hide a gap above the tolerance."""
    kind = PointClouds if method == "points" else on.Dense
    dense = kind(problem, method, storage, spread, cuda.attribute("MultiProcessorCount"))
    run, done = _all_stages(dense, options, deadline, stages)
    left = options.iterations - done
    if run is None:  # out of float32's range again and again
        return exact(problem, options, deadline, spread, Begun(stages, cp.zeros(dense.n), max(1, left), done))
    unsure = run.gap + float32_noise(problem, run, spread, dense.farthest) > options.tolerance
    unsure |= storage != "float32"  # a 16-bit kernel is not the kernel: its gap says nothing of the problem's
    unsure |= run.termination is Termination.CONVERGED
    worth = run.termination in (Termination.CONVERGED, Termination.GAP_REACHED)
    if unsure and worth and left > 0 and not deadline.expired():
        del dense
        again = exact(problem, options, deadline, spread, Begun(stages[-1:], run.g, left, done))
        iterations, rejected = done + again.iterations, run.rejected + again.rejected
        return replace(again, iterations=iterations, rejected=rejected, storage=f"{storage}, then float64")
    if run.termination is Termination.CONVERGED:
        run = replace(run, termination=deadline.expired() or Termination.ITERATION_LIMIT)
    return run


def _all_stages(
    dense: on.Dense, options: "TransportOptions", deadline: Deadline, stages: list[float]
) -> tuple[Run | None, int]:
    """The run through all regs and its sweeps; None for it when float32 cannot hold the column values."""
    g = cp.zeros(dense.n) if dense.problem.g0 is None else cp.asarray(dense.problem.g0)
    done = rejected = 0
    for reg in stages:
        final = reg == stages[-1]
        if not final and (done >= options.iterations - 1 or deadline.expired()):
            continue
        reached = _stage(dense, options, deadline, Begun([reg], g, max(1, options.iterations - done), done), final)
        if reached is None:
            return None, done
        run = reached
        done, rejected, g = done + run.iterations, rejected + run.rejected, run.g
    on_host = {"f": cp.asnumpy(run.f), "g": cp.asnumpy(run.g), "storage": dense.storage}
    return replace(run, **on_host, iterations=done, rejected=rejected), done


def _stage(dense: on.Dense, options: "TransportOptions", deadline: Deadline, begun: Begun, final: bool) -> Run | None:
    """Launch until the gap, the limit or the deadline is reached; None when float32 cannot hold the column values.

    Launches double in length while that helps. "converged": float32 has nothing left to find, float64 may.
    """
    (reg,), limit, before = begun.stages, begun.left, begun.made
    aim, enough = SAFE * options.tolerance, 0.0 if final else STAGE_GAP * reg
    per_launch = max(FIRST_SWEEPS, int(LAUNCH_S / (1e-5 + dense.m * dense.n * 4 / 4e12)))
    most = ceiling(dense.problem, dense.spread) if final else math.inf
    dense.begin(reg, begun.g)
    best, highest, improved, rescues, sweeps = math.inf, -math.inf, 0, 0, FIRST_SWEEPS
    base = done = 0
    reached: Termination | None = None
    while reached is None and done < limit:
        dense.launch(min(sweeps, limit - done), aim, enough=enough, mixes=options.acceleration)
        status = dense.status.get()
        done, reason, sweeps = base + int(status[on.ITERATIONS]), int(status[on.REASON]), min(2 * sweeps, per_launch)
        if reason in (on.JUMPED, on.EMPTY_COLUMN) and done < limit and not deadline.expired():
            rescues += 1
            if not _rescue(dense, reg, status, rescues):
                return None
            base = base if reason == on.JUMPED and rescues <= RE_REFERENCES else done
            continue
        if reason == on.EMPTY_COLUMN:
            return None
        gap, dual = float(status[on.GAP]), float(status[on.DUAL])
        relative = gap / max(abs(dual), abs(dual + gap), 1e-300)
        if relative < 0.9 * best or dual > highest + SEEN * abs(dual):
            best, highest, improved = min(best, relative), max(highest, dual), done
        if final:
            deadline.report(before + done, dual + gap, dual)
        reached = Termination.GAP_REACHED if reason == on.CONVERGED else deadline.expired()
        idle, patience = done - improved, STUCK if final and relative <= NOISE_BELOW else STALLED
        if idle >= patience or (final and _in_the_noise(dense, status, relative, dual)):
            reached = reached or Termination.CONVERGED
        sweeps = min(sweeps, patience - idle) if 0 < idle < patience else sweeps
        reached = Termination.INFEASIBLE if dual > most else reached
    f, g = dense.pair(status)
    return Run(f, g, relative, dual, reached or Termination.ITERATION_LIMIT, done, int(status[on.REJECTED]))


def _in_the_noise(dense: on.Dense, status: Any, relative: float, dual: float) -> bool:
    """True where the gap is one that rounding to float32 alone may show."""
    if relative > NOISE_BELOW:
        return False
    f, g = dense.pair(status)
    run = Run(f, g, relative, dual, Termination.CONVERGED, 0)
    return relative <= _shown(dense.problem, run, dense.spread, dense.farthest)


def _rescue(dense: on.Dense, reg: float, status: Any, rescues: int) -> bool:
    """Get a launch that left float32's range going again: new references, or a start from a float64 sweep."""
    if status[on.REASON] == on.JUMPED and rescues <= RE_REFERENCES:
        dense.refer()
        return True
    if rescues > RESCUES or dense.method == "fused":
        return False
    dense.begin(reg, _robust(dense, reg, dense.pair(status)[1]))
    return True


def _robust(dense: on.Dense, reg: float, g: Any) -> Any:
    """One sweep in float64, which no starting point can overflow."""
    marginals = Marginals(cp, dense.problem, dense.spread)
    sweeps = ExactSweeps(dense.problem, marginals)
    sweeps.start(reg)
    if not bool(cp.isfinite(g).all()):
        g = cp.zeros(dense.n)
    f, h = sweeps.sweep(g)
    mapped = marginals.next_g(h, reg)
    return mapped - marginals.shift(f, mapped)
