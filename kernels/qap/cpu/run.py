"""One run of the CPU solver: tabu searches on threads, bred as a population, with bounds and a proof beside them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Amounts, Bytes, Indices, Integers
from kernels.problems.quadratic import objective_bound
from kernels.qap import outcome
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.relaxed.floor import WAIT_S, Floor, begin_floor
from kernels.qap.cpu import tabu
from kernels.qap.cpu.population import Number, Population
from kernels.qap.exact import kept
from kernels.qap.exact.proof import Proof
from kernels.qap.form import SearchForm, search_form
from kernels.qap.whole import Rounded
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
TREE_FIRST_N, TREE_ALONE_S = 22, 4.0
"""Up to here the tree begins, and has so many seconds before the semidefinite bound does; beyond, it waits for that."""


@dataclass
class SearchRun:
    """One solve under way: the threads, the population, the best bound."""

    problem: QuadraticAssignment
    options: "QapOptions"
    deadline: Deadline
    form: SearchForm = field(init=False)
    pool: ThreadPoolExecutor = field(init=False)
    population: Population = field(init=False)
    proofs: list[Bound] = field(default_factory=list)
    stop: Bytes = field(default_factory=lambda: np.zeros(1, np.uint8))
    rounds: int = 0
    iterations: int = 0
    termination: Termination | None = None
    proof: Proof | None = None
    rounded: Rounded | None = None
    taken: Bound | None = None
    floor: Floor | None = None
    tree_begun_s: float = 0.0

    def __post_init__(self) -> None:
        self.form = search_form(self.problem)
        self.threads = max(1, numba.get_num_threads())
        self.pool = ThreadPoolExecutor(self.threads)
        n, asked = self.problem.n, self.options
        self.size = asked.starts or max(8, 2 * self.threads)
        patience, apart = 12 + n // 4, 0 if asked.method in ("tabu", "2opt") else max(2, n // 10)
        self.population = Population(n, self.size, np.random.default_rng(asked.seed), patience, apart)
        bound = objective_bound(self.problem.flow, self.problem.distance, self.problem.linear)
        self.price = 2 * int(bound) + 1 if self.problem.integer else 4.0 * bound or 1.0
        self.number = np.int64 if self.form.dtype.kind == "i" else np.float64
        self.frequency = np.zeros((n, n), np.int32)
        self.shown: Number | None = None

    @property
    def cost(self) -> Number:
        """The search's best, penalties included."""
        assert self.population.record is not None
        return self.population.record[0]

    @property
    def record(self) -> Integers:
        """The search's best permutation."""
        assert self.population.record is not None
        return self.population.record[1]

    @property
    def exhausted(self) -> bool:
        """The tree has ended, and what it met has been taken in."""
        proof = self.proof
        if proof is None or not proof.finished:
            return False
        return proof.best is None or self.evaluate(proof.best[1]) >= self.cost

    @property
    def bound(self) -> Number | None:
        """The best bound so far."""
        return outcome.best_bound(self.proofs)

    def first(self, start: Indices) -> None:
        """A permitted start as it is: a limit of zero seconds still gets an answer."""
        self.population.insert([(self.evaluate(start), start)])
        self.report()

    def evaluate(self, permutation: Indices) -> Number:
        """The objective, and for each forbidden pair in use a price above what any permutation could save."""
        unmet = 0
        if self.problem.forbidden is not None:
            unmet = int(self.problem.forbidden[np.arange(self.problem.n), permutation].sum())
        return self.problem.objective(permutation) + unmet * self.price

    def bound_cheaply(self) -> None:
        """Gilmore-Lawler and projection, as asked; milliseconds at n = 100."""
        if self.termination or self.deadline.expired():
            return
        self.proofs = outcome.first_bounds(self.problem, self.options, self.deadline)
        self.report()
        if self.deadline.expired() is None and not outcome.meets(self.problem, self.record, self.proofs):
            self.raise_floor(first=True)

    def raise_floor(self, first: bool) -> None:
        """Start the semidefinite bound: first where it is named or no tree ends, else once a tree has had its time."""
        early = self.options.bounds != "auto" or self.problem.n > TREE_FIRST_N
        if self.floor is None and early == first:
            self.floor = begin_floor(self.problem, self.options, self.deadline, self.proofs)

    def prove(self) -> None:
        """Start the proof once the search has settled; exchange incumbents and bounds with it."""
        if self.take_floor():
            self.report()
        if self.problem.n <= EASY_N:
            settled = self.rounds >= ROUNDS_BEFORE_PROOF and self.population.stagnant > 2
        else:
            # the first seconds, or half of a short limit, are the search's alone
            searched = self.deadline.elapsed_s >= min(SEARCH_ALONE_S, self.deadline.remaining_s)
            settled = self.population.restarts > 0 and searched
        settled = settled or self.problem.log is not None  # a proof goes on, and began with a search
        small = self.problem.n <= TREE_FIRST_N
        wants_proof = self.options.method == "auto" and self.options.rounds is None and self.options.wants("rlt1")
        if self.proof is None and wants_proof and settled and (self.floor is None or self.floor.finished or small):
            self.begin_proof()
        if self.proof is None:
            return
        if self.deadline.elapsed_s > self.tree_begun_s + TREE_ALONE_S and not self.proof.finished:
            self.raise_floor(first=False)
        if self.proof.best is not None:
            met = self.proof.best[1]
            if self.evaluate(met) < self.cost:
                self.population.insert([(self.evaluate(met), met)])
                self.report()
        self.proof.incumbent[0] = min(int(self.proof.incumbent[0]), self.incumbent(self.proof))
        if self.take_bound(self.proof):
            self.report()

    def begin_proof(self) -> None:
        """A tree of the problem, or of its floats rounded to integers, where there is one to be grown."""
        begun_s = self.deadline.elapsed_s
        self.proof, self.rounded = kept.begun(self.problem, self.record, self.threads, self.options.log_bytes)
        self.tree_begun_s = self.tree_begun_s if self.proof is None else begun_s

    def incumbent(self, proof: Proof) -> int:
        """The record's objective in the proof's problem."""
        return int(proof.problem.objective(self.record))

    def take_bound(self, proof: Proof) -> bool:
        """Put the proof's bound in the place of its last one; True when it is new."""
        if proof.bound is None or proof.bound is self.taken:
            return False
        self.taken = proof.bound
        return self.replace_bound(proof.bound if self.rounded is None else self.rounded.bound(proof.bound))

    def take_floor(self) -> bool:
        """Put the floor's bounds in the place of its last ones; True when one is new."""
        found = {} if self.floor is None else self.floor.bounds
        return sum(map(self.replace_bound, found.values())) > 0

    def replace_bound(self, bound: Bound) -> bool:
        """Put it in the place of one with its name, unless that is as good; True when it was taken."""
        if any(known.name == bound.name and known.value >= bound.value for known in self.proofs):
            return False
        self.proofs = [known for known in self.proofs if known.name != bound.name] + [bound]
        return True

    def close(self) -> None:
        """Stop whatever still runs; a bound that came last still counts."""
        if self.floor is not None:
            if self.options.bounds != "auto" and not self.deadline.expired():
                self.floor.wait(min(WAIT_S, self.deadline.remaining_s))
            self.floor.stop()
            self.take_floor()
        if self.proof is not None:
            self.proof.stop()
            self.take_bound(self.proof)
        self.pool.shutdown(wait=True)

    def ended(self) -> Termination | None:
        """Why to stop now, if there is a reason."""
        target, record = self.options.target, self.population.record
        if self.termination is None and record is not None:
            if self.exhausted and self.rounded is not None:
                self.termination = Termination.CONVERGED
            elif self.exhausted or outcome.meets(self.problem, record[1], self.proofs):
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
        """One search per member of the population, in parallel; fewer once a proof or a floor has its own threads."""
        count = 1 if self.proof is not None and self.problem.n <= EASY_N else self.size
        if self.floor is not None and not self.floor.finished and self.population.restarts > 0:
            count = max(1, self.threads - 1)  # it has settled, and the floor works on one core
        starts = list(self.bred(count))
        seeds = self.population.rng.integers(1, 2**63, count, dtype=np.uint64)
        tasks = list(zip(starts, seeds, strict=False))
        parts = [tasks[k :: self.threads] for k in range(min(self.threads, len(tasks)))]  # a future each costs the lock
        found = self.watch([self.pool.submit(self.searches, part) for part in parts])
        outcomes = [found[k % len(parts)][k // len(parts)] for k in range(len(tasks))]
        done = [one for one in outcomes if one is not None]
        self.rounds += 1
        self.iterations += sum(iterations for iterations, _, _ in done)
        if self.population.insert([(cost, best) for _, cost, best in done], self.deadline.expired):
            self.report()

    def bred(self, count: int) -> Iterator[Indices]:
        """Starts of a round, fewer where time runs out meanwhile."""
        for k in range(count):
            if k % 64 == 63 and self.deadline.expired():
                return
            yield self.breed()

    def breed(self) -> Integers:
        """A random start for the methods of Novoa and Qasem (2019), a child for the memetic one."""
        if self.options.method in ("tabu", "2opt"):
            return self.population.rng.permutation(self.problem.n)
        return self.population.breed()

    def searches(self, tasks: list[tuple[Integers, np.uint64]]) -> list[tuple[int, Number, Integers] | None]:
        """One search after another, on one thread; None for those that time did not reach."""
        return [None if self.stop[0] else self.search(*task) for task in tasks]

    def search(self, start: Indices, seed: np.uint64) -> tuple[int, Number, Integers]:
        """One search from `start`; runs on a thread without the interpreter lock."""
        form, options = self.form, self.options
        state = np.array([seed], np.uint64)
        p, best = start.copy(), start.copy()
        slot: Amounts = np.zeros(1, self.number)
        largest = _largest(form.dtype)
        iterations, tenure, forced_after = self.settings(int(seed))
        floor = _least(self.number)
        if options.target is not None:
            integer = self.number is np.int64
            floor = np.int64(np.floor(np.clip(options.target, -(2.0**62), 2.0**62))) if integer else options.target
        cost = tabu.cost_of(form.flow, form.distance, form.linear, form.symmetric, start, self.number(0))
        done = tabu.search(
            form.flow, form.distance, form.linear, form.symmetric, p, best, self.number(cost), largest,
            state, iterations, tenure, forced_after, self.number(floor), slot, self.stop, self.frequency,
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
        """Tell the deadline the incumbent and the bound, and the permutation once for each incumbent."""
        if self.cost != self.shown:
            self.shown = self.cost
            self.deadline.show(self.record.tolist())
        self.deadline.report(self.iterations, self.cost, self.bound)

    def solution(self, seconds: float) -> Solution:
        """The outcome as data."""
        record = self.population.record
        assert record is not None
        assert self.termination is not None
        n, proof = self.problem.n, self.proof
        seen = self.exhausted and proof is not None and not proof.resumed  # of a log from outside nobody saw the leaves
        facts = {
            "rounds": self.rounds,
            "restarts": self.population.restarts,
            "moves": self.iterations * n * (n - 1) // 2,
            "proved": self.rounded is None and seen,
            "nodes": 0 if self.proof is None else self.proof.nodes,
        }
        members = list(filter(self.problem.allows, self.population.members))
        searched = outcome.Searched(record[1], self.termination, self.iterations, facts, members)
        found = outcome.solution(self.options, searched, self.proofs, seconds)
        kept.keep_tree(found, self.problem, self.proof, self.rounded, self.options.log_bytes, self.deadline.remaining_s)
        return found


def _largest(dtype: np.dtype) -> Any:
    return dtype.type(np.iinfo(dtype).max if dtype.kind == "i" else np.inf)


def _least(number: Any) -> Any:
    return number(-(2**62)) if number is np.int64 else -np.inf
