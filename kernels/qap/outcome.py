"""What the CPU and the GPU solver share around their searches: the first start, the cheap bounds, the outcome."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import Array, QuadraticAssignment
from kernels.qap import bounds
from kernels.qap.bounds import Bound
from kernels.solution import Number, Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions


class WithBound(Deadline):
    """Another deadline whose progress carries the best bound known so far."""

    def __init__(self, deadline: Deadline, bound: Number | None) -> None:
        super().__init__()
        self._deadline, self._bound = deadline, bound

    @property
    def remaining_s(self) -> float:
        """Of the deadline behind."""
        return self._deadline.remaining_s

    def expired(self) -> Termination | None:
        """Of the deadline behind."""
        return self._deadline.expired()

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Pass on, with the bound."""
        self._deadline.report(iteration, objective, self._bound if bound is None else bound, fraction)


def first_start(problem: QuadraticAssignment) -> Array | None:
    """The given start or the identity where they are allowed, else any allowed permutation; None if there is none."""
    start = np.arange(problem.n) if problem.start is None else problem.start
    return start if problem.allows(start) else bounds.allowed_permutation(problem)


def cheap_bounds(problem: QuadraticAssignment, options: "QapOptions") -> list[Bound]:
    """Gilmore-Lawler and projection, as asked: 4 ms at n = 100."""
    found = [bounds.gilmore_lawler(problem)] if options.wants("gilmore-lawler") else []
    if options.wants("projection") and (bound := bounds.projection(problem)) is not None:
        found.append(bound)
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
