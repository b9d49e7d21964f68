"""Quadratic assignment on the GPU: the memetic population, or independent searches after Novoa and Qasem (2019)."""

import os
import time
from dataclasses import replace
from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Indices
from kernels.problems.quadratic import LARGEST_OBJECTIVE
from kernels.qap import outcome
from kernels.qap.bounds import gpu_bounds
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.relaxed import gpu_floor
from kernels.qap.exact import gpu_branch, kept
from kernels.qap.exact.proof import Proof, provable
from kernels.qap.form import penalised
from kernels.qap.memetic import gpu_memetic
from kernels.qap.multistart import gpu_multistart, gpu_wide
from kernels.qap.turns import EASY_N, kept_s, tree_goes_first
from kernels.qap.whole import in_integers, solve_as_integers
from kernels.solution import Number, Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions

SMALLEST = 10
"""Below this the CPU is at the end before a kernel has started, and a tile of exchanges would meet itself."""
LARGEST_N = 2048
"""Beyond this no tiling of the exchanges fits a block."""
GENERATIONS_BEFORE_PROOF = 60
GROWING, STEADY = gpu_memetic.Policy(), gpu_memetic.Policy(growth=1)
"""The second is for a search before something else. Where many members tie, as on a grid, each generation is an epoch of
its own, and 60 that grow take seconds."""
GENERATIONS_WITHOUT_LIMIT = 200
SHARE_OF_EASY, SHARE_OF_HARD = 0.05, 0.5
"""The population's share of the device beside a tree that is likely to end and one that is not."""
PROOF_WITHOUT_LIMIT_S = 20.0
LEAST_CHECK_S = 10.0
"""Of the time that is left, for the certificate of a tree, however soon it ended."""


def solve(problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline) -> Solution:
    """Minimise a quadratic assignment by a population of tabu searches on the device, beside certified lower bounds.

    Problem: min over permutations p of sum_ij F[i,j] D[p_i,p_j] + sum_i L[i,p_i]; F, D of any sign and symmetry.

    Args:
        problem: as for the CPU.
        options: see `QapOptions`; "tabu" and "2opt" run `starts` independent searches (6144 by default).
        deadline: passed on to searches under way, which look every 256 iterations (about 1 ms).

    Returns:
        as for the CPU; facts also hold the threads per block and the generations or rounds.

    Guarantee: heuristic, with a proved bound; optimal when the bound meets the objective. Deterministic per seed as
        long as the clock does not end it.
    Numerics: deltas in float32 or int32 where they are provably exact, else int64 or float64.
    Complexity: 3 n^2 / 2 products per iteration and block; 12 n^2 bytes of state per block, in shared memory as far as
        it goes (member.cuh), else in L1 and L2.
    Errors: as for the CPU.
    Differs: from (Novoa and Qasem 2019) as listed in multistart.cu.
    Source: Taillard (1991); Benlic and Hao (2015); Novoa and Qasem (2019).
    """
    from kernels.qap.cpu import solver as cpu

    start = outcome.first_start(problem)
    if not SMALLEST <= problem.n <= LARGEST_N or start is None or deadline.expired():
        return cpu.solve(problem, options, deadline)
    whole = solve_as_integers(solve, problem, options, deadline)
    if whole is not None:
        return whole
    began = time.perf_counter()
    proofs = outcome.first_bounds(problem, options, deadline, gpu_bounds.gilmore_lawler, 1e-10)
    bound = outcome.best_bound(proofs)
    deadline.report(0, problem.objective(start), bound)
    goals = [goal for goal in (_goal(problem, options), bound if problem.integer else None) if goal is not None]
    target = max(goals, default=None)
    if options.method in ("tabu", "2opt"):
        search = gpu_multistart.run
    elif problem.n > gpu_memetic.LARGEST_N:
        search = gpu_wide.evolve
    elif gpu_memetic.compiled(penalised(problem), deadline):
        search = _memetic
    else:  # out of time: the start is the answer
        ended, seconds = deadline.expired() or Termination.TIME_LIMIT, time.perf_counter() - began
        nothing = outcome.Searched(start, ended, 0, {"rounds": 0, "moves": 0}, [])
        return outcome.solution(options, nothing, proofs, seconds)
    data, near = in_integers(problem)
    proves = options.method == "auto" and options.rounds is None and options.wants("rlt1") and provable(data)
    first = proves and gpu_branch.fits(problem.n) and tree_goes_first(problem.n, deadline.remaining_s)
    if not first:
        short = partial(_memetic, policy=STEADY) if search is _memetic else search
        start, bound = _raised(problem, options, deadline, start, proofs, short, target)
    if problem.integer and bound is not None:
        target = bound if target is None else max(target, bound)
    watched = outcome.Watched(deadline, bound, known=problem.objective(start))
    found = search(problem, options, watched, start, target)
    permutation, termination, facts = found.permutation, found.termination, found.facts
    proof: Proof | None = None
    if not problem.allows(permutation) or problem.objective(permutation) > problem.objective(start):
        permutation = start
    if proves and termination is Termination.ITERATION_LIMIT:
        permutation, termination, facts, proof = _prove(problem, options, deadline, permutation, proofs, facts, first)
        proved = termination in (Termination.OPTIMAL, Termination.CONVERGED)
        left = first and not proved and deadline.expired() is None
        if left and gpu_floor.wanted(problem, options, deadline):
            _raise_floor(problem, options, deadline, permutation, proofs)
    if outcome.meets(problem, permutation, proofs):
        termination = Termination.OPTIMAL
    elif termination is Termination.GAP_REACHED and not _reached(problem, options, permutation):
        termination = Termination.CONVERGED  # the device's sums, which may be rounded, say that it was
    seconds = time.perf_counter() - began
    members = list(filter(problem.allows, found.members))
    searched = outcome.Searched(permutation, termination, found.iterations, facts, members)
    answer = outcome.solution(options, searched, proofs, seconds)
    check_s = deadline.remaining_s
    if proof is not None and proof.nodes:  # nobody waits longer for the check than for the answer
        check_s = min(check_s, max(LEAST_CHECK_S, seconds))
    kept.keep_tree(answer, problem, proof, near, options.log_bytes, check_s)
    return answer


def _raised(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, start: Indices, proofs: list[Bound],
    search: Any, target: Number | None,
) -> tuple[Indices, Number | None]:  # fmt: skip
    """A short search, then the semidefinite bound, which is put beside `proofs`: the best so far of both kinds."""
    bound = outcome.best_bound(proofs)
    if not gpu_floor.wanted(problem, options, deadline):
        return start, bound
    watched = outcome.Watched(deadline, bound, known=problem.objective(start))
    short = options.model_copy(update={"rounds": options.rounds or GENERATIONS_BEFORE_PROOF})
    found = search(problem, short, watched, start, target).permutation
    if problem.allows(found) and problem.objective(found) < problem.objective(start):
        start = found
    _raise_floor(problem, options, deadline, start, proofs)
    return start, outcome.best_bound(proofs)


def _raise_floor(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, best: Indices, proofs: list[Bound]
) -> None:
    """Put the semidefinite bound beside `proofs`."""
    bound = outcome.best_bound(proofs)
    try:
        raised = gpu_floor.raise_floor(problem, options, deadline, problem.objective(best), bound)
    except MemoryError:  # of the device: there are other bounds
        return
    if raised is not None:
        proofs.append(raised)


def warm_up() -> None:
    """Compile for one size, the tree and the bound; bring up the CPU twin, which takes the small ones."""
    from kernels.qap import QapOptions
    from kernels.qap.cpu import solver as cpu

    cpu.warm_up()
    gpu_branch.warm_up()
    rng = np.random.default_rng(0)
    problem = QuadraticAssignment(rng.integers(0, 9, (12, 12)), rng.integers(0, 9, (12, 12)))
    solve(problem, QapOptions(rounds=1), Deadline())
    gpu_floor.warm_up(problem)


def _goal(problem: QuadraticAssignment, options: "QapOptions") -> Number | None:
    """The target as a number of the problem's kind."""
    if options.target is None or not problem.integer:
        return options.target
    return floor(min(max(options.target, -LARGEST_OBJECTIVE), LARGEST_OBJECTIVE))


def _reached(problem: QuadraticAssignment, options: "QapOptions", permutation: Indices) -> bool:
    return options.target is not None and problem.objective(permutation) <= options.target


def _memetic(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, start: Indices, target: Number | None,
    policy: gpu_memetic.Policy = GROWING,
) -> outcome.Searched:  # fmt: skip
    """The population until the clock, the target or the generations: few where a proof is to follow."""
    rounds = options.rounds
    if rounds is None and options.method == "auto" and options.wants("rlt1") and provable(in_integers(problem)[0]):
        rounds, policy = GENERATIONS_BEFORE_PROOF, STEADY
    elif rounds is None and deadline.remaining_s == float("inf"):
        rounds = GENERATIONS_WITHOUT_LIMIT
    if options.tenure is not None:
        policy = replace(policy, tenure=(options.tenure[0] / problem.n, options.tenure[1] / problem.n))
    ends = gpu_memetic.Ends(target, rounds, options.deterministic)
    people = gpu_memetic.People(options.seed, options.starts, start, policy)
    found = gpu_memetic.evolve(penalised(problem), deadline, people, ends)
    facts = {"rounds": found.generations, "moves": found.moves * problem.n * (problem.n - 1) // 2}
    return outcome.Searched(found.permutation, found.termination, found.moves, facts, found.members)


def _prove(
    problem: QuadraticAssignment,
    options: "QapOptions",
    deadline: Deadline,
    best: Indices,
    proofs: list[Bound],
    facts: dict[str, Any],
    first: bool,
) -> tuple[Indices, Termination, dict[str, Any], Proof]:
    """Grow the tree on the device (on the host's threads where it does not fit) while the population goes on.

    A tree on the device needs the device: where it will end soon the population, which has found what there is, nearly
    always, keeps a small share of the time, else half of it. `first`: the semidefinite bound is still to come.
    """
    small, plant = first or problem.n <= EASY_N, gpu_branch.DeviceTree if gpu_branch.fits(problem.n) else None
    threads = len(os.sched_getaffinity(0))
    proof, near = kept.begun(problem, best, threads, options.log_bytes, plant)
    assert proof is not None  # whoever calls has asked whether there is a tree to be grown
    bound, known = outcome.best_bound(proofs), problem.objective(best)
    left_s = kept_s(problem.n, deadline.remaining_s) if first else 0.0
    watched = outcome.Watched(deadline, bound, proof, PROOF_WITHOUT_LIMIT_S, facts["rounds"], known, left_s)
    try:
        policy = STEADY if small else GROWING
        people = gpu_memetic.People(options.seed + 1, start=best, policy=policy)
        share = 1.0 if plant is None else SHARE_OF_EASY if small else SHARE_OF_HARD
        found = gpu_memetic.evolve(penalised(problem), watched, people, share=share)
    finally:
        proof.stop()
    if proof.bound is not None:
        proofs.append(proof.bound if near is None else near.bound(proof.bound))
    candidates = [best, found.permutation] + ([] if proof.best is None else [proof.best[1]])
    best = min((p for p in candidates if problem.allows(p)), key=problem.objective)
    seen = proof.finished and not proof.resumed  # what a log from outside closed nobody here has seen
    facts |= {"rounds": facts["rounds"] + found.generations, "nodes": proof.nodes, "proved": seen and near is None}
    exhausted = Termination.OPTIMAL if near is None else Termination.CONVERGED
    return best, exhausted if proof.finished else found.termination, facts, proof
