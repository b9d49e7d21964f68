"""One run on the CPU: tabu searches on threads, bred as a population, beside a bound that rises."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from kernels.deadline import Deadline
from kernels.lawler.ascent import RisingBound
from kernels.lawler.cpu import tabu
from kernels.lawler.form import FoldedForm
from kernels.problems.arrays import Bytes, Indices
from kernels.qap.cpu.population import Population
from kernels.solution import Number, Solution, Termination

if TYPE_CHECKING:
    from kernels.lawler import LawlerOptions

POLL_S = 0.01
ROUNDS_WITHOUT_LIMIT = 60
SEARCHED = 3
"""Rounds of searches that have all threads, before the bound takes one."""
SWEEPS_WITHOUT_LIMIT = 150

Found = tuple[int, int, Indices]
"""Of a search: its iterations, its cost, its permutation."""


class LawlerRun:
    """One solve under way: the threads, the population, the ascent."""

    def __init__(self, form: FoldedForm, options: "LawlerOptions", deadline: Deadline) -> None:
        self.form, self.options, self.deadline = form, options, deadline
        self.threads = max(1, numba.get_num_threads())
        self.pool = ThreadPoolExecutor(self.threads + 1)  # searches never wait for the bound
        self.size = options.starts or max(8, 2 * self.threads)
        k = form.k
        self.population = Population(
            k, self.size, np.random.default_rng(options.seed), patience=12 + k // 4, apart=max(2, k // 10)
        )
        self.stop: Bytes = np.zeros(1, np.uint8)
        self.ascent: RisingBound | None = None
        self.climbing: Future[None] | None = None
        self.rounds = self.iterations = 0
        self.termination: Termination | None = None
        self.told: tuple[Any, Any] = (None, None)

    @property
    def record(self) -> tuple[int, Indices]:
        """The least cost and its permutation."""
        found = self.population.record
        assert found is not None
        return int(found[0]), found[1]

    @property
    def bound(self) -> int | None:
        """In the form's integers."""
        return None if self.ascent is None else self.ascent.value

    def first(self, start: Indices) -> None:
        """A start as it is: a limit of zero seconds still gets an answer."""
        self.population.insert([(self.price(start), start)])
        self.report()

    def price(self, p: Indices) -> int:
        """Its cost in the form's integers."""
        return int(tabu.cost_of(self.form.pairs, self.form.singles, p)) + self.form.constant

    def go(self) -> None:
        """Search and bound until there is a reason to end."""
        try:
            while self.ended() is None:
                if self.searching:
                    self.round()
                else:
                    self.listen()
                self.begin_ascent()
        finally:
            self.close()

    @property
    def searching(self) -> bool:
        """Whether another round of searches is due; without a limit of time, so many are."""
        limit = self.options.rounds
        if limit is None and self.deadline.remaining_s == float("inf"):
            limit = ROUNDS_WITHOUT_LIMIT
        return limit is None or self.rounds < limit

    @property
    def climbs(self) -> bool:
        """Whether the bound is on its way."""
        return self.climbing is not None and not self.climbing.done()

    def ended(self) -> Termination | None:
        """Why to stop now, if there is a reason."""
        cost, target = self.record[0], self.options.target
        if self.termination is None:
            if self.bound is not None and self.bound >= cost:
                self.termination = Termination.OPTIMAL
            elif target is not None and self.reaches(target):
                self.termination = Termination.GAP_REACHED
            elif (word := self.deadline.expired()) is not None:
                self.termination = word
            elif not self.searching and not self.climbs and (self.climbing or self.options.sweeps == 0):
                self.termination = Termination.ITERATION_LIMIT
        return self.termination

    def reaches(self, target: float) -> bool:
        """Whether the record is as good as that."""
        found = self.form.number(self.record[0])
        return found >= target if self.form.problem.maximize else found <= target

    def begin_ascent(self) -> None:
        """Start the bound once the search has had its first rounds."""
        if self.climbing is not None or self.options.sweeps == 0 or (self.searching and self.rounds < SEARCHED):
            return
        most = self.options.sweeps
        if most is None:
            most = SWEEPS_WITHOUT_LIMIT if self.deadline.remaining_s == float("inf") else 1 << 30
        self.ascent = RisingBound(self.form)
        self.climbing = self.pool.submit(self.ascent.climb, most)

    def round(self) -> None:
        """A search per member of the population, in parallel."""
        count = self.size  # whether the bound is still on its way or not: a seed gives the same answer
        starts = [self.population.breed() for _ in range(count)]
        seeds = self.population.rng.integers(1, 2**63, count, dtype=np.uint64)
        lanes = max(1, self.threads - 1) if self.climbs else self.threads
        tasks = list(zip(starts, seeds, strict=True))
        parts = [tasks[at::lanes] for at in range(min(lanes, count))]
        found = self.watch([self.pool.submit(self.searches, part) for part in parts])
        done = [one for at in range(count) if (one := found[at % len(parts)][at // len(parts)]) is not None]
        self.rounds += 1
        self.iterations += sum(iterations for iterations, _, _ in done)
        self.population.insert([(cost, best) for _, cost, best in done], self.deadline.expired)
        self.report()

    def searches(self, tasks: list[tuple[Indices, np.uint64]]) -> list[Found | None]:
        """One search after another, on one thread; None for those that time did not reach."""
        return [None if self.stop[0] else self.search(*task) for task in tasks]

    def search(self, start: Indices, seed: np.uint64) -> Found:
        """One search from `start`; runs without the interpreter lock."""
        k = self.form.k
        p, best = start.astype(np.int64), np.empty(k, np.int64)
        tenure = ((max(1, k // 10), max(2, k // 3)), (max(1, 9 * k // 10), max(2, 11 * k // 10)))[int(seed) >> 5 & 1]
        iterations = self.options.iterations or max(500, 40 * k)
        state = np.array([seed], np.uint64)
        done, cost = tabu.search(self.form.pairs, self.form.singles, p, best, state, iterations, tenure, self.stop)
        return int(done), int(cost) + self.form.constant, best

    def watch(self, futures: list["Future[list[Found | None]]"]) -> list[list[Found | None]]:
        """Wait for searches; they hear of the deadline, and of a bound that has met the record."""
        pending = set(futures)
        while pending:
            _, pending = wait(pending, timeout=POLL_S)
            if self.ended():
                self.stop[0] = 1
        return [future.result() for future in futures]

    def listen(self) -> None:
        """Wait for the bound for a moment."""
        if self.climbing is not None:
            wait([self.climbing], timeout=POLL_S)
        self.report()

    def close(self) -> None:
        """Stop whatever still runs."""
        self.stop[0] = 1
        if self.ascent is not None:
            self.ascent.stop()
        self.pool.shutdown(wait=True)
        if self.climbing is not None:
            self.climbing.result()

    def report(self) -> None:
        """Tell the deadline what is new, and the permutation once for each incumbent."""
        cost, p = self.record
        if self.told == (cost, self.bound):
            return
        if cost != self.told[0]:
            self.deadline.show(self.form.permutation(p).tolist())
        self.told = cost, self.bound
        bound: Number | None = None if self.bound is None else self.form.number(self.bound)
        self.deadline.report(self.iterations, self.form.number(cost), bound)

    def solution(self) -> Solution:
        """The outcome as data."""
        assert self.termination is not None
        k, ascent = self.form.k, self.ascent
        facts: dict[str, Any] = {
            "rounds": self.rounds,
            "restarts": self.population.restarts,
            "moves": self.iterations * k * (k - 1) // 2,
            "sweeps": 0 if ascent is None else ascent.sweeps,
        }
        arrays = {"permutation": self.form.permutation(self.record[1])}
        evidence = {} if ascent is None else ascent.multipliers()
        if self.options.duals:
            arrays |= evidence
        return Solution(
            self.termination, "tabu", arrays, self.iterations, self.options.seed, facts=facts, evidence=evidence
        )
