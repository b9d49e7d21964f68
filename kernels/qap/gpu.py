"""Quadratic assignment on the GPU: the memetic population, or the independent searches of the seed's systems."""

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import Array, QuadraticAssignment
from kernels.qap import gpu_bounds, gpu_memetic, gpu_multistart, gpu_tree, gpu_wide, outcome
from kernels.qap.bounds import Bound
from kernels.qap.form import penalised
from kernels.qap.proof import Proof, provable
from kernels.solution import Number, Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions

SMALLEST = 10
"""Below this the CPU is at the end before a kernel has started, and a tile of exchanges would meet itself."""
LARGEST_N = 2048
"""Beyond this no tiling of the exchanges fits a block."""
GENERATIONS_BEFORE_PROOF = 60
GENERATIONS_WITHOUT_LIMIT = 200
GENERATIONS_A_TURN = 10
REST, LONGEST_REST_S = 20.0, 0.25
"""Beside a tree the population rests this many times as long as it worked, but a quarter of a second at most."""
PROOF_WITHOUT_LIMIT_S = 20.0


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
    Complexity: 2 n^2 products per iteration and block; 8 n^2 bytes of shared memory per block (n <= 128).
    Errors: as for the CPU.
    Differs: from (Novoa and Qasem 2019) as listed in multistart.cu.
    Source: Taillard (1991); Benlic and Hao (2015); Novoa and Qasem (2019).
    """
    from kernels.qap import cpu

    start = outcome.first_start(problem)
    if not SMALLEST <= problem.n <= LARGEST_N or start is None or deadline.expired():
        return cpu.solve(problem, options, deadline)
    began = time.perf_counter()
    proofs = outcome.first_bounds(problem, options, deadline, gpu_bounds.gilmore_lawler)
    bound = outcome.best_bound(proofs)
    deadline.report(0, problem.objective(start), bound)
    goals = [goal for goal in (options.target, bound if problem.integer else None) if goal is not None]
    target = max(goals, default=None)
    if options.method in ("tabu", "2opt"):
        search = gpu_multistart.run
    else:
        search = _memetic if problem.n <= gpu_memetic.LARGEST_N else gpu_wide.evolve
    found = search(problem, options, outcome.Watched(deadline, bound), start, target)
    permutation, termination, facts = found.permutation, found.termination, found.facts
    if not problem.allows(permutation) or problem.objective(permutation) > problem.objective(start):
        permutation = start
    proves = options.method == "auto" and options.rounds is None and options.wants("rlt1") and provable(problem)
    if proves and termination is Termination.ITERATION_LIMIT:
        permutation, termination, facts = _prove(problem, options, deadline, permutation, proofs, facts)
    bound = outcome.best_bound(proofs)
    if problem.integer and bound is not None and problem.objective(permutation) <= bound:
        termination = Termination.OPTIMAL
    seconds = time.perf_counter() - began
    return outcome.solution(
        options, termination, permutation, proofs, found.iterations, seconds, facts, found.members
    )  # fmt: skip


def warm_up() -> None:
    """Compile for one size and bring up the CPU twin, which takes the small ones."""
    from kernels.qap import QapOptions, cpu

    cpu.warm_up()
    rng = np.random.default_rng(0)
    problem = QuadraticAssignment(rng.integers(0, 9, (12, 12)), rng.integers(0, 9, (12, 12)))
    solve(problem, QapOptions(rounds=1), Deadline())


def _memetic(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, start: Array, target: Number | None
) -> outcome.Searched:
    """The population until the clock, the target or the generations: few where a proof is to follow."""
    rounds, policy = options.rounds, gpu_memetic.Policy()
    if rounds is None and options.method == "auto" and options.wants("rlt1") and provable(problem):
        rounds, policy = GENERATIONS_BEFORE_PROOF, gpu_memetic.Policy(growth=1)
    elif rounds is None and deadline.remaining_s == float("inf"):
        rounds = GENERATIONS_WITHOUT_LIMIT
    if options.tenure is not None:
        policy = replace(policy, tenure=(options.tenure[0] / problem.n, options.tenure[1] / problem.n))
    found = gpu_memetic.evolve(
        penalised(problem), deadline, seed=options.seed, members=options.starts, target=target, generation_limit=rounds,
        start=start, policy=policy, deterministic=options.deterministic,
    )  # fmt: skip
    facts = {"rounds": found.generations, "moves": found.moves * problem.n * (problem.n - 1) // 2}
    return outcome.Searched(found.permutation, found.termination, found.moves, facts, found.members)


def _prove(
    problem: QuadraticAssignment,
    options: "QapOptions",
    deadline: Deadline,
    best: Array,
    proofs: list[Bound],
    facts: dict[str, Any],
) -> tuple[Array, Termination, dict[str, Any]]:
    """Grow the tree on the device (on the host's threads where it does not fit) while the population goes on.

    The population takes turns: it has found what it will find, nearly always, and the tree needs the device.
    """
    plant = gpu_tree.Tree if gpu_tree.fits(problem) else None
    proof = Proof(problem, int(problem.objective(best)), len(os.sched_getaffinity(0)), plant)
    watched = outcome.Watched(deadline, outcome.best_bound(proofs), proof)
    ended: Termination | None = None
    candidates, rounds = [best], 0
    try:
        while (ended := watched.expired()) is None and not _given_up(deadline):
            began = time.perf_counter()
            found = gpu_memetic.evolve(
                penalised(problem), watched, seed=options.seed + 1 + rounds, start=candidates[-1],
                generation_limit=GENERATIONS_A_TURN, policy=gpu_memetic.Policy(growth=1),
            )  # fmt: skip
            rounds += found.generations
            if problem.allows(found.permutation):
                candidates.append(min((candidates[-1], found.permutation), key=problem.objective))
            proof.wait(min(REST * (time.perf_counter() - began), deadline.remaining_s, LONGEST_REST_S))
            watched.report(rounds, problem.objective(candidates[-1]))
    finally:
        proof.stop()
    if proof.bound is not None:
        proofs.append(proof.bound)
    candidates += [] if proof.best is None else [proof.best[1]]
    best = min((p for p in candidates if problem.allows(p)), key=problem.objective)
    facts |= {"rounds": facts["rounds"] + rounds, "nodes": proof.nodes, "proved": proof.finished}
    ended = Termination.OPTIMAL if proof.finished else ended or Termination.ITERATION_LIMIT
    return best, ended, facts


def _given_up(deadline: Deadline) -> bool:
    return deadline.remaining_s == float("inf") and deadline.elapsed_s > PROOF_WITHOUT_LIMIT_S
