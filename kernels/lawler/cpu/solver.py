"""Lawler's quadratic assignment on the CPU: tabu searches on threads beside a dual ascent."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline
from kernels.lawler.cpu import small
from kernels.lawler.cpu.run import LawlerRun
from kernels.lawler.form import FoldedForm, form_of
from kernels.problems.lawler import LawlerAssignment
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lawler import LawlerOptions


def solve(problem: LawlerAssignment, options: "LawlerOptions", deadline: Deadline) -> Solution:
    """Minimise (or maximise) a quadratic assignment with general costs by tabu search, beside a lower bound.

    Problem: min over permutations p of sum_ik C[i, p_i, k, p_k]; fixed facilities are folded away first.

    Args:
        problem: `cost` (m, n, m, n) int64 or float64, `fixed`, `start`.
        options: see `LawlerOptions`.
        deadline: polled every 10 ms; without a limit there are 60 rounds of searches and 150 sweeps of the bound.

    Returns:
        `permutation` (n,) int64, facility -> place; on request also what proves the bound: `exponent` (1,), `rows` and
        `columns` (k, k, k), `prices` (k,) int64 of the k free facilities. Facts: rounds, restarts, moves, sweeps.

    Guarantee: exact for k <= 8 (every permutation). Beyond, heuristic with a proved bound; optimal where both meet.
        Deterministic per seed as long as no time limit cuts a round.
    Numerics: int64. Costs that do not fit 49 bits in all are rounded down to a power of two for the search and the
        bound; the certificate states the objective of the costs as they are.
    Complexity: an iteration of a search takes O(k^2) for all exchanges, a sweep of the bound k^2 assignment problems
        of order k - 1. Bytes: 40 n^4.
    Errors: none beyond those of building the problem.
    Differs: (1) tabu dates, tenures and population as in `qap`; (2) both halves of a pair are added up first, so that
        an exchange is priced with a constant number of operations.
    Source: Taillard, Robust taboo search for the quadratic assignment problem (1991); Lawler, The quadratic assignment
        problem (1963); Hahn and Grant, Lower bounds for the quadratic assignment problem based upon a dual
        formulation (1998).
    """
    form = form_of(problem)
    if form.k <= small.LARGEST_N:
        return enumerated(form, options, deadline)
    run = LawlerRun(form, options, deadline)
    run.first(np.arange(form.k) if problem.start is None else form.within(problem.start))
    run.go()
    return run.solution()


def enumerated(form: FoldedForm, options: "LawlerOptions", deadline: Deadline) -> Solution:
    """The best of all permutations."""
    permutation = form.permutation(small.cheapest(form.pairs, form.singles))
    facts = {"rounds": 0, "restarts": 0, "moves": 0, "sweeps": 0}
    return Solution(Termination.OPTIMAL, "enumeration", {"permutation": permutation}, seed=options.seed, facts=facts)


def warm_up() -> None:
    """Compile the walk, the search, and the bound of narrow and wide integers."""
    from kernels.lawler import LawlerOptions

    for n, most in ((4, 9), (9, 9), (9, 2**40)):
        cost = np.random.default_rng(0).integers(0, most, (n, n, n, n))
        options = LawlerOptions(starts=1, rounds=1, iterations=2, sweeps=2)
        solve(LawlerAssignment(cost), options, Deadline(60))
