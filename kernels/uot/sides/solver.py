"""Transport that holds its marginals by a part of the mass, total variation or squares, on either device."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats, Mask
from kernels.problems.marginal_transport import MarginalTransport
from kernels.solution import Solution, Termination
from kernels.uot.outer import REMEMBERED, Outcome, Rules, iterate, schedule
from kernels.uot.sides import exact
from kernels.uot.sides.penalties import SideMarginals
from kernels.uot.sides.plan import finished
from kernels.uot.sides.sweeps import StoredKernel
from kernels.uot.support import Support, support

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

MARGIN = 0.5  # of the tolerance, aimed at: the certificate adds what rounding may hide


def solve(problem: MarginalTransport, options: "TransportOptions", deadline: Deadline, xp: Any = np) -> Solution:
    """Solve by accelerated Sinkhorn sweeps with limits on the potentials, or by the network simplex where reg is 0.

    Problem:
        `MarginalTransport`. Not solved: squares without an entropic term; a batch.
    Args:
        options: `TransportOptions`; `tolerance`, `iterations`, `acceleration`, `output`.
        deadline: polled after every sweep.
        xp: numpy or cupy, whose matrix products the sweeps are made of.
    Returns:
        f (m,), g (n,) float64 and plan (m, n) float64; what the simplex returns stands in exact.py. A part of the mass
        is met up to rounding. hall_rows in place of all these where forbidden entries leave no way for it.
    Guarantee:
        "gap_reached": primal value of the plan minus dual value of f, g is at most tolerance times the larger of both,
        as the certificate has to confirm.
    Numerics:
        float64; entries below 2^-1022 of their row's sum are dropped. Lines without mass carry nothing.
    Complexity:
        A sweep reads a kernel of 8 m n bytes twice. Bytes: the costs, the kernel and the plan.
    Errors:
        none; impossible problems end as "infeasible".
    Source:
        Chizat, Peyre, Schmitzer, Vialard, Scaling algorithms for unbalanced optimal transport problems (2018); Benamou,
        Carlier, Cuturi, Nenna, Peyre, Iterative Bregman projections (2015), section 5, for a part of the mass, whose
        three projections are two exact steps here.
    """
    if not problem.reg:
        return exact.solve(problem, options, deadline)
    told = {"tolerance": options.tolerance, "reg": problem.reg, **problem.told}
    if problem.kind != "partial":
        told["reg_m"] = list(problem.strengths)
    elif none := _impossible(problem, options, deadline):
        return replace(none, facts=told)
    part = support(problem.entropic)
    if part.empty:
        nothing = np.empty(0), np.empty(0)
        return _answer(problem, part, nothing, Termination.GAP_REACHED, 0, told, np)
    reduced = part.reduced
    assert reduced.cost is not None
    kept = replace(problem, cost=reduced.cost.astype(np.float64), a=reduced.a, b=reduced.b)
    outcome = _iterated(xp, kept, options, deadline)
    state = outcome.state
    facts = told | {"stages": list(outcome.stages), "rejected": outcome.rejected, "gap": state.relative_gap}
    found = tuple(np.asarray(one if xp is np else one.get()) for one in (state.f, state.g))
    claim = outcome.termination
    if claim is Termination.GAP_REACHED and state.relative_gap > options.tolerance:
        claim = Termination.ITERATION_LIMIT
    return _answer(problem, part, (found[0], found[1]), claim, outcome.iterations, facts, xp)


def _iterated(xp: Any, problem: MarginalTransport, options: "TransportOptions", deadline: Deadline) -> Outcome:
    low, high = problem.entropic.cost_bounds
    held = SideMarginals(xp, problem, high - low)
    stages = schedule(problem.reg, high - low, False) if options.acceleration else [problem.reg]
    rules = Rules(
        MARGIN * options.tolerance,
        deadline,
        memory=REMEMBERED if options.acceleration else 0,
        translate=options.acceleration,
    )
    start = xp.zeros(problem.shape[1])
    return iterate(held, StoredKernel(xp, problem, held), start, rules, stages=stages, limit=options.iterations)


def _impossible(problem: MarginalTransport, options: "TransportOptions", deadline: Deadline) -> Solution | None:
    """The answer where forbidden entries leave no way for the mass: the simplex finds one if there is."""
    if problem.permitted.all():
        return None
    free = np.where(problem.permitted, 0.0, np.inf)
    found = exact.solve(replace(problem, cost=free, reg=0.0), options, deadline)
    return found if found.termination is Termination.INFEASIBLE else None


def _answer(
    problem: MarginalTransport,
    part: Support,
    potentials: tuple[Floats, Floats],
    termination: Termination,
    iterations: int,
    facts: dict[str, Any],
    xp: Any,
) -> Solution:
    """Potentials of all lines, and the plan that meets what it has to."""
    m, n = problem.shape
    f, g = np.zeros(m), np.zeros(n)
    f[part.rows], g[part.columns] = potentials
    for potential, off, side in ((f, part.unreachable_rows, 0), (g, part.unreachable_columns, 1)):
        potential[off] = _unreached(problem, potential, ~off, side)[off]
    plan = finished(xp, problem, f, g)
    return Solution(termination, "stored", {"f": f, "g": g, "plan": plan}, iterations, facts=facts)


def _unreached(problem: MarginalTransport, potential: Floats, others: Mask, side: int) -> Floats:
    """The best potentials of lines whose every entry is forbidden: all their mass is left."""
    masses = (problem.a, problem.b)[side]
    if problem.kind == "tv":
        return np.full(masses.size, problem.strengths[side])
    if problem.kind == "l2":
        return np.asarray(problem.strengths[side] * masses)
    held = potential[others & (masses > 0)]
    return np.full(masses.size, held.max() if held.size else 0.0)
