"""Many small problems in one launch, one block each, each stopping by itself (batch.cu)."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from kernels.deadline import Deadline
from kernels.gpu_locked import uploaded
from kernels.problems.arrays import Floats
from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.batch.gpu_sweeps import Work, ends, relative, swept, work_of_batch, work_of_stack
from kernels.uot.batch.suited import fits, has_mass, stackable, suits
from kernels.uot.gpu_answer import answer
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.layout import REASON, RUNNING
from kernels.uot.stages import Run, batched, collect, in_proportion, together
from kernels.uot.support import Support
from kernels.uot.units import near_one, unflushed

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

Solve = Callable[[UnbalancedTransport, Any, Deadline], Solution]


def solve_batch(
    problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, solve: Solve
) -> Solution:
    """Solve the small problems in one launch after the other, and what is left over one by one with `solve`."""
    assert problem.cost is not None
    given = uploaded(np.ascontiguousarray(unflushed(problem.cost, problem.reg)))
    low, high = ends(given)
    if not (suits(problem, options) and np.isfinite(high - low).all()):
        return batched(problem, options, deadline, solve)
    scaled, unit = near_one(in_proportion(problem))
    cost = given if unit == 1 else cp.asarray(scaled.cost)
    work = work_of_batch(scaled, (cost, given), unit, problem)
    found = _together(problem, work, options, deadline, solve)
    return found if isinstance(found, Solution) else collect(problem.shape[0], found, options)


def solve_stack(
    problem: SeveralTransports, options: "TransportOptions", deadline: Deadline, solve: Solve
) -> Solution | list[Solution] | None:
    """Solve problems of one shape, each with its own strengths, in one launch after the other.

    Each is taken in units of its reg, in which all must have the same strengths. None where that is not so, or where
    they are not for `solve_batch`. The solution of all, with arrays along a batch axis, or of each.
    """
    if not (stackable(problem) and fits(problem.shape, options) and has_mass(problem.parts)):
        return None
    work, held = work_of_stack(problem.parts)
    return _together(problem, work, options, deadline, solve) if held.all() else None


def _together(
    problem: UnbalancedTransport | SeveralTransports,
    work: Work,
    options: "TransportOptions",
    deadline: Deadline,
    solve: Solve,
) -> Solution | list[Solution]:
    """The solution of all, or of each where one of them needs more than the launches."""
    done, units = swept(work, options, deadline), work.units
    found, status = done.found, done.status
    if found is not None and done.sure.all() and not found.strange.any():
        solution = together(
            [_end(one) for one in status], status[:, on.ITERATIONS].astype(int).tolist(), "batch", options
        )
        solution.arrays = found.arrays
        return solution
    parts = []
    for k, one in enumerate(status):
        run, arrays = _run(done.f[k], done.g[k], one), None if found is None else found.one(k)
        if done.sure[k] and arrays is not None:
            facts = {"tolerance": options.tolerance, "gap": run.gap}
            parts.append(Solution(run.termination, "batch", arrays, run.iterations, facts=facts))
            continue
        own = replace(run, f=run.f * units[k], g=run.g * units[k])
        parts.append(_one(problem.one(k), options, deadline, own, bool(done.sure[k]), solve))
    return parts


def _run(f: Floats, g: Floats, status: Floats) -> Run:
    return Run(f, g, float(relative(status)), float(status[on.DUAL]), _end(status), int(status[on.ITERATIONS]))


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
