"""Forbidden entries of integers as numbers that every search stays away from.

Floats have an infinity, and a search over them needs no more. Integers have none: `FORBIDDEN` becomes a number that is
large when minimising, and there are two such numbers.

- `opened`: 2^62, for the CPU. The problem keeps the sums of duals and path lengths below 2^58 where entries are
  forbidden, so that any sum with a forbidden entry stays above the CPU's infinity, 2^60, and inside int64.
- `priced`: a cost so large that one forbidden pair outweighs any assignment without, for the GPU, whose kernels know
  of no forbidden integers. Exact, but the room in int64 shrinks with the square of the lines; where it is too small
  the CPU solves instead.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from kernels.lap.complete import complete
from kernels.lap.members import Members
from kernels.problems import FORBIDDEN, UNASSIGNED, Assignment
from kernels.problems.arrays import Amount, Amounts, Costs, Indices32, is_masked
from kernels.problems.assignment import HEADROOM
from kernels.solution import Solution, Termination

BEYOND = 1 << 62
INF, MASKED_INF = 1 << 62, 1 << 60
"""The CPU's infinity among integers: above every sum, of weights without and with forbidden entries."""
Weights = TypeVar("Weights", Amounts, Costs)


def infinity(exact: bool, masked: bool) -> Amount:
    """What lies above every path length, in the dtype of the duals."""
    if not exact:
        return np.float64(np.inf)
    return np.int64(MASKED_INF if masked else INF)


def opened(weights: Weights, maximize: bool) -> tuple[Weights, bool]:
    """`weights` with 2^62 (-2^62 when maximising) in place of `FORBIDDEN`, and whether there was any."""
    if not is_masked(weights):
        return weights, False
    return np.where(weights == FORBIDDEN, -BEYOND if maximize else BEYOND, weights), True


def solve_priced(problem: Assignment, solve: Callable[[Assignment], Solution]) -> Solution | None:
    """Let `solve`, which knows of no forbidden integers, solve a problem that has some; None where there is no room.

    A forbidden pair in its answer says that fewer pairs cannot be avoided, or that it was stopped. It is dropped, and
    alternating paths replace it or find the Hall violator.
    """
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    prices = priced(weights if problem.sizes is None else _without_padding(weights, problem.sizes), problem.maximize)
    if prices is None:
        return None
    solution = solve(replace(problem, weights=prices))
    if weights.ndim == 2:
        return solution if solution.termination is Termination.INFEASIBLE else _dropped(weights, problem, solution)
    members = Members(problem)
    words = tuple(Termination)
    codes = solution.evidence["ended"].tolist()
    for k, (rows, cols) in enumerate(members.sizes.tolist()):
        extents = {"assignment": rows, "u": rows, "v": cols}
        arrays = {name: solution.arrays[name][k, :extent].copy() for name, extent in extents.items()}
        members.take(k, _dropped(members[k][0], problem, Solution(words[codes[k]], solution.method, arrays)))
    facts = {name: fact for name, fact in solution.facts.items() if name != "device_proof"}  # of the priced problem
    rest = {"seed": solution.seed, "timings_ms": solution.timings_ms, "facts": facts}
    return members.solution(solution.method, solution.iterations, **rest)


def _without_padding(weights: Costs, sizes: Indices32) -> Costs:
    inside = [np.arange(extent) < sizes[:, side, None] for side, extent in enumerate(weights.shape[1:])]
    return np.where(inside[0][:, :, None] & inside[1][:, None, :], weights, 0)


def _dropped(weights: Costs, problem: Assignment, solution: Solution) -> Solution:
    """The answer without its forbidden pairs, completed; or the proof that there is none."""
    assignment = solution.arrays["assignment"]
    rows = np.flatnonzero(assignment != UNASSIGNED)
    assignment[rows[weights[rows, assignment[rows]] == FORBIDDEN]] = UNASSIGNED
    solution.facts.pop("device_proof", None)
    if violator := complete(weights, problem.maximize, assignment):
        solution.termination, solution.arrays = Termination.INFEASIBLE, violator
    return solution


def priced(weights: Costs, maximize: bool) -> Costs | None:
    """`weights` (..., n_rows, n_cols) with a cost beyond every assignment in place of `FORBIDDEN`; None: no room."""
    barred = weights == FORBIDDEN
    n_rows, n_cols = weights.shape[-2:]
    known = weights[~barred]
    largest = max(-int(known.min()), int(known.max())) if known.size else 0
    price = 2 * min(n_rows, n_cols) * largest + 1
    if price * HEADROOM * (n_rows + n_cols) >= 1 << 63:
        return None
    return np.where(barred, -price if maximize else price, weights)
