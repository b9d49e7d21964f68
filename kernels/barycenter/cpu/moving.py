"""A barycenter whose points move: exact transports to all measures and new points by turns."""

from itertools import combinations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats
from kernels.problems.barycenter import FreeBarycenter
from kernels.problems.exact_transport import exact_transport
from kernels.problems.worked_out import worked_out
from kernels.solution import Solution, Termination
from kernels.uot.cpu.exact import solve as transport

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions

MOST_PAIRS = 1 << 28
"""Entries of the costs between pairs of measures that are looked at for the bound."""
WHOLE = SimpleNamespace(output="plan", iterations=1 << 20)
"""Options of a transport that runs to its end."""


def move(problem: FreeBarycenter, options: "BarycenterOptions", deadline: Deadline) -> Solution:
    """Alternate between the plans of fixed points and the best points for fixed plans; both lower the cost."""
    w, points = problem.weights, problem.start
    best, plan, done = np.inf, np.empty(0), 0
    word = Termination.ITERATION_LIMIT
    while done < options.iterations:
        plans = []
        for k in range(len(w)):
            stopped = deadline.expired() if plan.size else None
            if stopped:
                break
            plans.append(_plan(points, problem.clouds[k], problem.masses[k]))
        else:
            done += 1
            plan, before = np.stack(plans), best
            points = np.tensordot(w, plan @ problem.clouds, axes=1) * (len(points) / w.sum())
            best = _cost(problem, points, plan)
            deadline.report(done, best)
            if before - best <= options.tolerance * abs(best):
                word = Termination.CONVERGED
                break
            continue
        word = stopped
        break
    arrays = {"points": points, "plan": plan, "pair_potentials": _pairs(problem, deadline)}
    facts = {"tolerance": float(options.tolerance)}
    return Solution(word, "free, exact transports", arrays, done, seed=options.seed, facts=facts)


def _plan(points: Floats, cloud: Floats, masses: Floats) -> Floats:
    even = np.full(len(points), 1.0 / len(points))
    return transport(_problem(points, cloud, even, masses), WHOLE, Deadline()).arrays["plan"]


def _problem(x: Floats, y: Floats, a: Floats, b: Floats) -> Any:
    return exact_transport({"cost": worked_out(x, y, "sqeuclidean"), "a": a, "b": b}, "sqeuclidean")


def _cost(problem: FreeBarycenter, points: Floats, plan: Floats) -> float:
    costs = (worked_out(points, cloud, "sqeuclidean") for cloud in problem.clouds)
    return float(sum(w * (P * cost).sum() for w, P, cost in zip(problem.weights, plan, costs, strict=True)))


def _pairs(problem: FreeBarycenter, deadline: Deadline) -> Floats:
    """Potentials g of each pair's second measure; where time or room ends, those of the distance of the means.

    With z the difference of both means, |x - y|^2 >= 2 <x - y, z> - |z|^2, so g_j = -2 <y_j, z> gives |z|^2 at least.
    """
    k, _, n = problem.sizes
    means = (problem.masses[:, None] @ problem.clouds)[:, 0]
    found = np.zeros((k * (k - 1) // 2, n))
    room = MOST_PAIRS
    for at, (i, j) in enumerate(combinations(range(k), 2)):
        found[at] = -2 * problem.clouds[j] @ (means[i] - means[j])
        room -= n * n
        if room < 0 or deadline.expired():
            continue
        pair = _problem(problem.clouds[i], problem.clouds[j], problem.masses[i], problem.masses[j])
        found[at] = transport(pair, WHOLE, Deadline()).arrays["g"]
    return found
