"""Quadratic assignment on the CPU: tabu searches on threads, bred as a population, with bounds and a proof."""

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.qap import outcome
from kernels.qap.bounds.relaxed import leaders
from kernels.qap.cpu.run import POLL_S, SearchRun
from kernels.qap.exact import small
from kernels.qap.exact.proof import Proof
from kernels.qap.whole import solve_as_integers
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.qap import QapOptions


def solve(problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline) -> Solution:
    """Minimise a quadratic assignment by tabu search over a population, beside certified lower bounds.

    Problem: min over permutations p of sum_ij F[i,j] D[p_i,p_j] + sum_i L[i,p_i]; F, D of any sign and symmetry.

    Args:
        problem: `flow`, `distance`, `linear` (n, n) int64 or float64; `forbidden` pairs (n, n) bool; `start` (n,).
        options: see `QapOptions`; method "auto" adds a branch and bound when n is small.
        deadline: polled every 10 ms; without a limit the search ends after a number of rounds without improvement.

    Returns:
        arrays `permutation` (n,) int64, facility -> location, and on request `population` (k, n) int64 by cost;
        infeasible: `hall_rows`, `hall_cols`; evidence: the duals of the bounds; facts: bounds by name, rounds,
        restarts, moves, nodes.

    Guarantee: exact for n <= 8 (every permutation, whatever the method). Beyond, heuristic with a proved bound; optimal
        when the bound meets the objective or the branch and bound has exhausted the tree. The answer uses no forbidden
        pair at any time. Deterministic per seed as long as no time limit cuts a round.
    Numerics: deltas in int32 where they provably fit, else int64 or float64; objectives in int64 or float64. Floats
        that are integers of up to 52 bits times a power of two are solved as integers.
    Complexity: n(n-1)/2 exchanges per iteration, O(1) each; 24 n^2 bytes per thread.
    Errors: none beyond those of building the problem; a forbidden pair that cannot be avoided is `infeasible`.
    Differs: deltas from (Taillard 1991) as products of differences; population as in (Benlic and Hao 2015) with
        restarts; starts may be perturbed elites, where Novoa and Qasem (2019) start from random permutations alone.
    Source: Taillard, Robust taboo search for the quadratic assignment problem (1991); Novoa and Qasem, section 4.
    """
    found = solve_as_integers(solve, problem, options, deadline)
    if found is not None:
        return found
    start = outcome.first_start(problem)
    if start is None:
        return outcome.infeasible(problem, options)
    if problem.n <= small.LARGEST_N:
        return small.solve(problem, options, deadline)
    began = time.perf_counter()
    run = SearchRun(problem, options, deadline)
    try:
        run.first(start)
        run.bound_cheaply()
        while run.ended() is None:
            run.round()
            run.prove()
    finally:
        run.close()
    return run.solution(time.perf_counter() - began)


def warm_up() -> None:
    """Compile every specialisation on tiny problems: narrow and wide integers with their proofs, floats."""
    for dtype, high in ((np.int64, 9), (np.int64, 2**20), (np.float64, 9)):
        warm_up_for(dtype, high)
    leaders.warm_up()


def warm_up_for(dtype: Any, high: int) -> None:
    """Compile what problems of this type need whose entries are below `high`, the proof of integers with it."""
    flow, distance = np.random.default_rng(0).integers(0, high, (2, 6, 6)).astype(dtype)
    run = SearchRun(QuadraticAssignment(flow, distance), _default_options(), Deadline(60))
    run.first(np.arange(6))
    run.round()
    if dtype is np.int64:
        run.proof = Proof(run.problem, 2 * int(run.cost), 1)  # a poor incumbent, so that there is a tree
        while not run.proof.finished and not run.deadline.expired():
            time.sleep(POLL_S)
    run.close()
    outcome.first_bounds(run.problem, run.options, run.deadline)


def _default_options() -> "QapOptions":
    from kernels.qap import QapOptions

    return QapOptions()
