"""What the CPU and the GPU solver share around their searches: the first start, the cheap bounds, the outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import Array, QuadraticAssignment
from kernels.qap import bounds, rlt1
from kernels.qap.bounds import Bound
from kernels.qap.proof import Proof
from kernels.solution import Number, Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions


LONGEST_ASCENT = 2000
"""Sweeps of a dual ascent without a tree."""


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search on the device came to: its best permutation, why it ended, iterations, facts, and its members."""

    permutation: Array
    termination: Termination
    iterations: int
    facts: dict[str, Any]
    members: list[Array]


class Watched(Deadline):
    """Another deadline whose progress carries the best bound, and which also ends once a proof has finished.

    `give_up_s`: seconds after which it ends where the deadline behind has no time limit.
    """

    def __init__(
        self, deadline: Deadline, bound: Number | None, proof: Proof | None = None, give_up_s: float = float("inf")
    ) -> None:
        super().__init__()
        self._deadline, self._bound, self._proof, self._give_up_s = deadline, bound, proof, give_up_s

    @property
    def remaining_s(self) -> float:
        """Of the deadline behind."""
        return self._deadline.remaining_s

    def expired(self) -> Termination | None:
        """OPTIMAL once the proof has finished; else of the deadline behind, or ITERATION_LIMIT once given up."""
        if self._proof is not None and self._proof.finished:
            return Termination.OPTIMAL
        given_up = self.remaining_s == float("inf") and self.elapsed_s > self._give_up_s
        return Termination.ITERATION_LIMIT if given_up else self._deadline.expired()

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Pass on with the best bound, and tell the proof of the incumbent."""
        known = [self._bound, bound]
        if self._proof is not None:
            known.append(None if self._proof.bound is None else self._proof.bound.value)
            if objective is not None:
                self._proof.incumbent[0] = min(int(self._proof.incumbent[0]), int(objective))
        self._deadline.report(iteration, objective, max((b for b in known if b is not None), default=None), fraction)


def first_start(problem: QuadraticAssignment) -> Array | None:
    """The given start or the identity where they are allowed, else any allowed permutation; None if there is none."""
    start = np.arange(problem.n) if problem.start is None else problem.start
    return start if problem.allows(start) else bounds.allowed_permutation(problem)


def first_bounds(
    problem: QuadraticAssignment,
    options: "QapOptions",
    deadline: Deadline,
    gilmore_lawler: Callable[[QuadraticAssignment], Bound] = bounds.gilmore_lawler,
) -> list[Bound]:
    """Gilmore-Lawler and projection (4 ms at n = 100), and RLT1 where it is named, in its share of the time."""
    found = [gilmore_lawler(problem)] if options.wants("gilmore-lawler") else []
    if options.wants("projection") and (bound := bounds.projection(problem)) is not None:
        found.append(bound)
    if options.bounds != "auto" and "rlt1" in options.bounds and rlt1.fits(problem):
        ascent = rlt1.Ascent(problem)
        while not ascent.stalled() and ascent.sweeps < LONGEST_ASCENT and not deadline.expired():
            ascent.step()
            if deadline.elapsed_s > options.bound_share * (deadline.elapsed_s + deadline.remaining_s):
                break
        found.append(ascent.bound())
    return found


def best_bound(proofs: list[Bound]) -> Number | None:
    """The greatest value, None without any."""
    return max((bound.value for bound in proofs), default=None)


def solution(
    options: "QapOptions",
    termination: Termination,
    permutation: Array | None,
    proofs: list[Bound],
    iterations: int,
    seconds: float,
    facts: dict[str, Any],
    population: list[Array] | None = None,
) -> Solution:
    """The outcome as data; a solver that found no allowed permutation passes None."""
    arrays = {} if permutation is None else {"permutation": permutation}
    if options.population and population:
        arrays["population"] = np.array(population)
    best = max(proofs, key=lambda bound: bound.value, default=None)
    facts = {
        "bounds": {bound.name: bound.value for bound in proofs},
        "bound": None if best is None else best.name,
        "proved": False,
        **facts,
    }
    evidence = {f"{bound.name}:{key}": array for bound in proofs for key, array in bound.evidence.items()}
    timings = {"solve": 1000 * seconds}
    return Solution(termination, options.method, arrays, iterations, options.seed, timings, facts, evidence)
