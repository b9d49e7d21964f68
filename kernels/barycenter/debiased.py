"""Debiased barycenters: the same projections, with one more potential that takes the smear of the entropic term away.

With H (m,) the potential of the barycenter with itself over reg, K = exp(-C / reg) / m^2 and log K e^H its smoothing:

    repeat
      step         G so that every column of every plan is right; log (K v_k) of what follows
      meet         log b = H + sum_k w_k log (K v_k), and F_k = log b - log (K v_k): all plans get the row sums b
      itself       H = (H + log b - log (K e^H)) / 2: the plan exp(H + H' - C / reg) / m^2 gets the row sums b
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.barycenter.projections import LOOK, hosted, log_sum, make_step
from kernels.deadline import Deadline
from kernels.problems.barycenter import Barycenter
from kernels.solution import Solution, Termination
from kernels.stages import Schedule

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions

STAGE = 3 * LOOK
"""Iterations at each reg on the way to the one asked for."""


def debias(xp: Any, problem: Barycenter, options: "BarycenterOptions", deadline: Deadline) -> Solution:
    """Iterate until the barycenter stays where it is, on the device of `xp`."""
    k, m, _ = problem.sizes
    F, H = xp.zeros((k, m)), xp.zeros(m)
    done, word, before = 0, None, problem.reg
    for reg in Schedule(problem.reg, float(problem.cost.max() - problem.cost.min())):
        F, H = F * (before / reg if done else 1.0), H * (before / reg if done else 1.0)
        last, before = reg == problem.reg, reg
        F, H, spent, word = _at(xp, problem, reg, (F, H), _left(options, done, last), options.tolerance, deadline)
        done += spent
        if word is not None and not last:
            break
    F, H = F * (before / problem.reg), H * (before / problem.reg)
    G, rows = make_step(xp, problem, problem.reg)(F)
    sums = xp.asarray(problem.weights) @ xp.exp(rows)
    b, f, g, h = (hosted(xp, one) for one in (sums, problem.reg * F, problem.reg * G, problem.reg * H))
    arrays = {"barycenter": b / b.sum(), "f": f, "g": g, "h": h}
    facts = {"reg": problem.reg, "tolerance": float(options.tolerance)}
    return Solution(word or Termination.ITERATION_LIMIT, "entropic, debiased", arrays, done, facts=facts)


def _left(options: "BarycenterOptions", done: int, last: bool) -> int:
    left = max(1, options.iterations - done)
    return left if last else min(STAGE, left)


def _at(
    xp: Any, problem: Barycenter, reg: float, start: tuple[Any, Any], most: int, tolerance: float, deadline: Deadline
) -> tuple[Any, Any, int, Termination | None]:
    """(F, H, iterations, why it ended; None where that is their number) at one reg."""
    (F, H), w, last = start, xp.asarray(problem.weights), None
    step, terms = make_step(xp, problem, reg), -xp.asarray(problem.cost) / reg - 2 * np.log(problem.sizes[1])
    for done in range(1, most + 1):
        _, rows = step(F)
        smoothed = rows - F
        log_b = H + w @ smoothed
        F = log_b - smoothed
        H = (H + log_b - log_sum(xp, terms + H[:, None], 0)) / 2
        if done % LOOK:
            continue
        b = xp.exp(log_b)
        apart = float((w[:, None] * xp.abs(xp.exp(rows) - b)).sum())
        moved = np.inf if last is None else float(xp.abs(b - last).sum())
        deadline.report(done)
        if max(apart, moved) <= tolerance:
            return F, H, done, Termination.CONVERGED if reg == problem.reg else None
        last, stopped = b, deadline.expired()
        if stopped:
            return F, H, done, stopped
    return F, H, most, None
