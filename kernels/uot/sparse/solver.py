"""Entropic transport on the stored entries of a sparse cost, on either device."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats
from kernels.problems.sparse_transport import SparseTransport
from kernels.solution import Solution, Termination
from kernels.uot.outer import REMEMBERED, Outcome, Rules, iterate, schedule
from kernels.uot.sparse.flow import Network
from kernels.uot.sparse.plan import finished
from kernels.uot.sparse.support import Reach, impossible, nothing, support
from kernels.uot.sparse.sweeps import HOST, SparseMarginals, SparseSweeps, Sweeper
from kernels.uot.sparse.value import marginals_of, value_of
from kernels.uot.stages import in_proportion

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

MARGIN = 0.5  # of the tolerance, aimed at: the certificate adds what rounding may hide
FINER = 0.1  # of the aim before, where the plan that meets its exact sides costs more than was expected
ATTEMPTS, OFTEN = 12, 3  # to find such a plan; and of these, one that may take augmenting paths


@dataclass(frozen=True)
class Found:
    """Potentials and plan of a problem whose every line has mass and an entry, on the host, and how they came."""

    f: Floats
    g: Floats
    plan: Floats
    termination: Termination
    iterations: int
    facts: dict[str, Any]


def solve(
    problem: SparseTransport, options: "TransportOptions", deadline: Deadline, device: Sweeper = HOST
) -> Solution:
    """Solve entropic transport on the entries of a CSR cost by accelerated Sinkhorn sweeps in logarithms.

    Problem:
        `SparseTransport`. Not solved: other marginals than KL and exact ones; reg = 0; a batch.
    Args:
        options: `TransportOptions`; `tolerance`, `iterations`, `acceleration`.
        deadline: polled after every sweep, and between the phases of a flow.
        device: whose arrays the sweeps work on; all else runs on the host.
    Returns:
        f (m,), g (n,) float64; entry_values (nnz,) float64, the mass of each stored entry in the order of the cost;
        row_marginal (m,), column_marginal (n,), its sums. Rows and columns with mass and no entry have +inf, those
        without mass 0. hall_rows or hall_columns in place of all these: lines with more mass than what they may use.
    Guarantee:
        "gap_reached": primal value of the plan minus dual value of f, g is at most tolerance times the larger of both,
        as the certificate has to confirm. Deterministic for any number of threads.
    Numerics:
        float64 throughout. A line's largest term is 1 before it is summed, so no reg is too small for it.
    Complexity:
        A sweep takes 2 nnz exponentials. Bytes: 24 nnz for the entries by row and by column, about 60 nnz while a plan
        is finished, some 40 vectors. Two exact sides take a maximum flow first: some tens of passes over the entries.
    Errors:
        none; impossible problems end as "infeasible".
    Source:
        Chizat, Peyre, Schmitzer, Vialard, Scaling algorithms for unbalanced optimal transport problems (2018),
        algorithm 1; Schmitzer, Stabilized sparse scaling algorithms (2019), section 3.3, for entries that are absent;
        Dinic, Algorithm for solution of a problem of maximum flow (1970), for the flow.
    """
    spelled = ["inf" if math.isinf(one) else one for one in problem.reg_m]
    told = {"tolerance": options.tolerance, "reg": problem.reg, "reg_m": spelled, **problem.told}
    part = support(problem)
    network = None if part.empty else Network(part.reduced)
    witness = impossible(part, network, deadline)
    if witness is not None:
        return Solution(Termination.INFEASIBLE, device.name, dict(witness), facts=told)
    if network is None:
        arrays, termination = nothing(part)
        return Solution(termination, device.name, arrays, facts=told)
    found = _found(network, part.left, options, deadline, device)
    return Solution(found.termination, device.name, _arrays(part, found), found.iterations, facts=told | found.facts)


def _arrays(part: Reach, found: Found) -> dict[str, Floats]:
    f, g = part.spread_out(found.f, found.g)
    plan = np.zeros(part.problem.nnz)
    plan[part.entries] = found.plan
    rows, columns = marginals_of(part.problem, plan)
    return {"f": f, "g": g, "entry_values": plan, "row_marginal": rows, "column_marginal": columns}


def _found(network: Network, left: float, options: "TransportOptions", deadline: Deadline, device: Sweeper) -> Found:
    """Sweep until the plan itself, made to meet its exact sides, is as good as was asked."""
    problem = network.problem
    held = SparseMarginals(device.xp, problem, left)
    sweeps = SparseSweeps(device, network, held)
    given = in_proportion(replace(problem.plain(problem.values[None]), g0=problem.g0)).g0
    stages = schedule(problem.reg, held.spread, given is not None) if options.acceleration else [problem.reg]
    memory = REMEMBERED if options.acceleration else 0
    rules = Rules(MARGIN * options.tolerance, deadline, memory=memory, translate=options.acceleration)
    g = device.xp.asarray(np.zeros(problem.b.size) if given is None else given)
    done = rejected = 0
    gone: tuple[float, ...] = ()
    for attempt in range(ATTEMPTS):
        limit, doubted = options.iterations - done, attempt == 0 and given is not None
        outcome = iterate(held, sweeps, g, rules, stages=stages, limit=limit, doubted=doubted)
        done, rejected, gone = done + outcome.iterations, rejected + outcome.rejected, gone or outcome.stages
        reached = outcome.termination is Termination.GAP_REACHED and done < options.iterations
        last = not reached or attempt == ATTEMPTS - 1
        f, g_host = _potentials(sweeps, outcome)
        plan = finished(network, f, g_host, deadline, last or attempt % OFTEN == OFTEN - 1)
        gap = math.inf
        if plan is not None and (not held.exact or network.meets(plan)):
            gap = _relative(value_of(problem, plan) + left, outcome.state.dual)
        if gap <= options.tolerance or last:
            break
        rules = replace(rules, tolerance=FINER * rules.tolerance, before=done)
        stages, g = stages[-1:], outcome.state.g
    assert plan is not None
    facts = {"stages": list(gone), "rejected": rejected, "storage": "float64", "gap": gap}
    return Found(f, g_host, plan, _claim(outcome, gap <= options.tolerance, done >= options.iterations), done, facts)


def _claim(outcome: Outcome, reached: bool, spent: bool) -> Termination:
    if reached:
        return Termination.GAP_REACHED
    if outcome.termination is Termination.GAP_REACHED:
        return Termination.ITERATION_LIMIT if spent else Termination.CONVERGED
    return outcome.termination


def _potentials(sweeps: SparseSweeps, outcome: Outcome) -> tuple[Floats, Floats]:
    """On the host; exact columns beside relaxed rows take the last half of a sweep."""
    held, xp = sweeps.held, sweeps.held.xp
    exact = np.isinf(held.strengths)
    f, g = outcome.state.f, outcome.state.g
    if exact[1] and not exact[0]:
        f, h = sweeps.sweep(g)
        g = held.next_g(h, sweeps.reg)
    first, second = (np.asarray(one if xp is np else one.get()) for one in (f, g))
    middle = (second.max() / 2 + second.min() / 2) if exact.all() else 0.0
    return first + middle, second - middle


def _relative(objective: float, bound: float) -> float:
    scale = max(abs(objective), abs(bound))
    if not math.isfinite(scale):
        return math.inf
    return max(0.0, objective - bound) / scale if scale else 0.0
