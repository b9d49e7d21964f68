"""Quadratic assignment on the CPU: tabu searches on threads, bred as a population, with bounds and a proof."""

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from kernels.deadline import Deadline
from kernels.problems import Array, QuadraticAssignment
from kernels.qap import outcome, tabu
from kernels.qap.bounds import Bound
from kernels.qap.form import SearchForm, search_form
from kernels.qap.population import Number, Population
from kernels.qap.proof import Proof, provable
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions

POLL_S = 0.01
ROUNDS_WITHOUT_LIMIT = 60
EASY_N = 16
"""Up to here the search has nothing left to find after ROUNDS_BEFORE_PROOF rounds; beyond, it keeps its threads."""
ROUNDS_BEFORE_PROOF = 6
PROOF_WITHOUT_LIMIT_S = 20.0
SEARCH_ALONE_S = 3.0


def solve(problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline) -> Solution:
    """Minimise a quadratic assignment by tabu search over a population, beside certified lower bounds.

    Problem: min over permutations p of sum_ij F[i,j] D[p_i,p_j] + sum_i L[i,p_i]; F, D of any sign and symmetry.

    Args:
        problem: `flow`, `distance`, `linear` (n, n) int64 or float64; `forbidden` pairs (n, n) bool; `start` (n,).
        options: see `QapOptions`; method "auto" adds a branch and bound when n is small.
        deadline: polled every 10 ms; without a limit the search ends after a number of rounds without improvement.

    Returns:
        arrays `permutation` (n,) int64, facility -> location, and on request `population` (k, n) int64 by cost;
        evidence: the duals of the bounds; facts: bounds by name, rounds, restarts, moves, nodes.

    Guarantee: heuristic, with a proved bound; optimal when the bound meets the objective or the branch and bound has
        exhausted the tree. Deterministic per seed as long as no time limit cuts a round.
    Numerics: deltas in int32 where they provably fit, else int64 or float64; objectives in int64 or float64.
    Complexity: n(n-1)/2 exchanges per iteration, O(1) each; 24 n^2 bytes per thread.
    Errors: none beyond those of building the problem; a forbidden pair that cannot be avoided is `infeasible`.
    Differs: deltas from (Taillard 1991) as products of differences; population as in (Benlic and Hao 2015) with
        restarts; starts may be perturbed elites, where Novoa and Qasem (2019) start from random permutations alone.
    Source: Taillard, Robust taboo search for the quadratic assignment problem (1991); Novoa and Qasem, section 4.
    """
    began = time.perf_counter()
    run = _Run(problem, options, deadline)
    try:
        run.first()
        run.bound_cheaply()
        while run.ended() is None:
            run.round()
            run.prove()
    finally:
        run.close()
    return run.solution(time.perf_counter() - began)


def warm_up() -> None:
    """Compile every specialisation on tiny problems: narrow and wide integers with their proofs, floats."""
    rng = np.random.default_rng(0)
    for dtype, high in ((np.int64, 9), (np.int64, 2**20), (np.float64, 9)):
        flow, distance = rng.integers(0, high, (2, 6, 6)).astype(dtype)
        run = _Run(QuadraticAssignment(flow, distance), _default_options(), Deadline(60))
        run.first()
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


@dataclass
class _Run:
    """One solve under way: the threads, the population, the best bound."""

    problem: QuadraticAssignment
    options: "QapOptions"
    deadline: Deadline
    form: SearchForm = field(init=False)
    pool: ThreadPoolExecutor = field(init=False)
    population: Population = field(init=False)
    proofs: list[Bound] = field(default_factory=list)
    stop: Array = field(default_factory=lambda: np.zeros(1, np.uint8))
    rounds: int = 0
    iterations: int = 0
    termination: Termination | None = None
    proof: Proof | None = None

    def __post_init__(self) -> None:
        self.form = search_form(self.problem)
        self.threads = max(1, numba.get_num_threads())
        self.pool = ThreadPoolExecutor(self.threads)
        n, asked = self.problem.n, self.options
        self.size = asked.starts or max(8, 2 * self.threads)
        patience, apart = 12 + n // 4, 0 if asked.method in ("tabu", "2opt") else max(2, n // 10)
        self.population = Population(n, self.size, np.random.default_rng(asked.seed), patience, apart)
        self.number = np.int64 if self.form.dtype.kind == "i" else np.float64
        self.frequency = np.zeros((n, n), np.int32)

    @property
    def cost(self) -> Number:
        """The search's best, penalties included."""
        assert self.population.record is not None
        return self.population.record[0]

    @property
    def bound(self) -> Number | None:
        """The best bound so far."""
        return outcome.best_bound(self.proofs)

    def first(self) -> None:
        """The given start, or the identity, as it is: a limit of zero seconds still gets an answer."""
        start = outcome.first_start(self.problem)
        if start is None:
            self.termination, start = Termination.INFEASIBLE, np.arange(self.problem.n)
        self.population.insert([(self.evaluate(start), start)])
        self.report()

    def evaluate(self, permutation: Array) -> Number:
        """Cost of one permutation in the search's arithmetic."""
        form = self.form
        zero = self.number(0)
        return self.number(
            tabu.cost_of(form.flow, form.distance, form.linear, form.symmetric, permutation, zero)
        ).item()

    def bound_cheaply(self) -> None:
        """Gilmore-Lawler and projection, as asked; milliseconds at n = 100."""
        if self.termination or self.deadline.expired():
            return
        self.proofs = outcome.first_bounds(self.problem, self.options, self.deadline)
        self.report()

    def prove(self) -> None:
        """Start the proof once the search has settled; exchange incumbents and bounds with it."""
        if self.problem.n <= EASY_N:
            settled = self.rounds >= ROUNDS_BEFORE_PROOF and self.population.stagnant > 2
        else:
            # the first seconds, or half of a short limit, are the search's alone
            searched = self.deadline.elapsed_s >= min(SEARCH_ALONE_S, self.deadline.remaining_s)
            settled = self.population.restarts > 0 and searched
        allowed = self.options.method == "auto" and self.options.rounds is None and self.options.wants("rlt1")
        if self.proof is None and allowed and settled and provable(self.problem):
            self.proof = Proof(self.problem, int(self.cost), self.threads)
        if self.proof is None:
            return
        if self.proof.best is not None and self.proof.best[0] < self.cost:
            self.population.insert([self.proof.best])
            self.report()
        self.proof.incumbent[0] = min(int(self.proof.incumbent[0]), int(self.cost))
        if self.proof.bound is not None and all(bound is not self.proof.bound for bound in self.proofs):
            self.proofs = [bound for bound in self.proofs if bound.name != "rlt1"] + [self.proof.bound]
            self.report()

    def close(self) -> None:
        """Stop whatever still runs."""
        if self.proof is not None:
            self.proof.stop()
        self.pool.shutdown(wait=True)

    def ended(self) -> Termination | None:
        """Why to stop now, if there is a reason."""
        bound, target = self.bound, self.options.target
        if self.termination is None and self.population.record is not None:
            met = bound is not None and self.cost <= bound and self.problem.integer
            proof = self.proof
            exhausted = proof is not None and proof.finished and (proof.best is None or proof.best[0] >= self.cost)
            if self.problem.n == 1 or met or exhausted:
                self.termination = Termination.OPTIMAL
            elif target is not None and self.cost <= target:
                self.termination = Termination.GAP_REACHED
            else:
                self.termination = self.deadline.expired() or self.enough()
        return self.termination

    def enough(self) -> Termination | None:
        """ITERATION_LIMIT once the rounds asked for are done."""
        limit = self.options.rounds
        if limit is None and self.options.method in ("tabu", "2opt") and self.options.iterations is not None:
            limit = 1
        if limit is None and self.deadline.remaining_s == float("inf"):
            limit = ROUNDS_WITHOUT_LIMIT
            if self.proof is not None and self.deadline.elapsed_s < PROOF_WITHOUT_LIMIT_S:
                return None
        return Termination.ITERATION_LIMIT if limit is not None and self.rounds >= limit else None

    def round(self) -> None:
        """One search per member of the population, in parallel; one alone once a proof of small n has the threads."""
        count = 1 if self.proof is not None and self.problem.n <= EASY_N else self.size
        starts = [self.breed() for _ in range(count)]
        seeds = self.population.rng.integers(1, 2**63, count, dtype=np.uint64)
        tasks = list(zip(starts, seeds, strict=True))
        parts = [tasks[k :: self.threads] for k in range(min(self.threads, count))]  # a future each would cost the lock
        found = self.watch([self.pool.submit(self.searches, part) for part in parts])
        outcomes = [found[k % len(parts)][k // len(parts)] for k in range(count)]
        self.rounds += 1
        self.iterations += sum(done for done, _, _ in outcomes)
        if self.population.insert([(cost, best) for _, cost, best in outcomes]):
            self.report()

    def breed(self) -> Array:
        """A random start for the seed's methods, a child for the memetic one."""
        if self.options.method in ("tabu", "2opt"):
            return self.population.rng.permutation(self.problem.n)
        return self.population.breed()

    def searches(self, tasks: list[tuple[Array, np.uint64]]) -> list[tuple[int, Number, Array]]:
        """One search after another, on one thread."""
        return [self.search(*task) for task in tasks]

    def search(self, start: Array, seed: np.uint64) -> tuple[int, Number, Array]:
        """One search from `start`; runs on a thread without the interpreter lock."""
        n, form, options = self.problem.n, self.form, self.options
        state = np.array([seed], np.uint64)
        p, best = start.copy(), start.copy()
        if n < 2:
            return 0, self.evaluate(p), p
        slot, largest = np.zeros(1, self.number), _largest(form.dtype)
        iterations, tenure, aspiration = self.settings(int(seed))
        floor = _least(self.number) if options.target is None else self.number(np.floor(options.target))
        done = tabu.search(
            form.flow, form.distance, form.linear, form.symmetric, p, best, self.number(self.evaluate(start)), largest,
            state, iterations, tenure, aspiration, floor, slot, self.stop, self.frequency,
        )  # fmt: skip
        return done, self.evaluate(best), best

    def settings(self, seed: int) -> tuple[int, tuple[int, int], int]:
        """Iterations, tenure range and forced-move age; without a wish they vary from search to search."""
        n, options = self.problem.n, self.options
        if options.method == "2opt":
            return options.iterations or 1000 * n, (0, 0), 0
        iterations = options.iterations or max(500, 40 * n)
        if options.tenure is not None:
            return iterations, options.tenure, 0
        wide = max(1, n // 10), max(2, n // 3)
        tenure = (wide, (max(1, 9 * n // 10), max(2, 11 * n // 10)))[seed >> 5 & 1]
        return iterations, tenure, (0, 3 * n * n)[seed >> 6 & 1]

    def watch(self, futures: list["Future[Any]"]) -> list[Any]:
        """Wait for searches, passing on the deadline to them."""
        pending = set(futures)
        while pending:
            _, pending = wait(pending, timeout=POLL_S)
            if self.deadline.expired():
                self.stop[0] = 1
        return [future.result() for future in futures]

    def report(self) -> None:
        """Tell the deadline the incumbent and the bound."""
        self.deadline.report(self.iterations, self.cost, self.bound)

    def solution(self, seconds: float) -> Solution:
        """The outcome as data."""
        record = self.population.record
        assert record is not None
        assert self.termination is not None
        n = self.problem.n
        facts = {
            "rounds": self.rounds,
            "restarts": self.population.restarts,
            "moves": self.iterations * n * (n - 1) // 2,
            "proved": self.proof is not None and self.proof.finished,
            "nodes": 0 if self.proof is None else self.proof.nodes,
        }
        permutation = None if self.termination is Termination.INFEASIBLE else record[1]
        return outcome.solution(
            self.options, self.termination, permutation, self.proofs, self.iterations, seconds, facts,
            self.population.members,
        )  # fmt: skip


def _largest(dtype: np.dtype) -> Any:
    return dtype.type(np.iinfo(dtype).max if dtype.kind == "i" else np.inf)


def _least(number: Any) -> Any:
    return number(-(2**62)) if number is np.int64 else -np.inf
