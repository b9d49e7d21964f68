"""What the CPU and the GPU solver share around their searches: the first start, the cheap bounds, the outcome."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Indices
from kernels.qap.bounds import lower as bounds
from kernels.qap.bounds import rlt1
from kernels.qap.bounds.lower import Bound
from kernels.qap.exact.proof import Proof
from kernels.qap.whole import in_integers
from kernels.solution import Number, Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions


T = TypeVar("T")
LONGEST_ASCENT = 2000
"""Sweeps of a dual ascent without a tree."""
POLL_S = 0.005
PROJECTION_S, RLT1_S = 1e-8, 1e-8
"""Seconds of a bound, divided by n^3 (of the ascent's beginning: n^4), on one busy core."""
CLOSE, CLOSE_BY_DATA = 2.0**-51, 5e-10
"""A gap of rounding on floats, half of what the certificate allows: of the absolute values that a permutation pays, and
of its objective or the smallest entry."""


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search came to: its best permutation, why it ended, iterations, facts, and its members."""

    permutation: Indices
    termination: Termination
    iterations: int
    facts: dict[str, Any]
    members: list[Indices]


class Watched(Deadline):
    """Another deadline whose progress carries the best bound, and which also ends once a proof has finished.

    `give_up_s`: seconds after which it ends where the deadline behind has no time limit. `before`: iterations that
    were reported already, from which the count goes on. `known`: an objective that is never reported to rise again.
    `kept_s`: of the time limit, what is kept for something else.
    """

    def __init__(
        self, deadline: Deadline, bound: Number | None, proof: Proof | None = None, give_up_s: float = float("inf"),
        before: int = 0, known: Number | None = None, kept_s: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self._before, self._known, self._kept_s = before, known, kept_s
        self._deadline, self._bound, self._proof, self._give_up_s = deadline, bound, proof, give_up_s

    @property
    def remaining_s(self) -> float:
        """Of the deadline behind, but for what is kept."""
        return max(0.0, self._deadline.remaining_s - self._kept_s)

    def expired(self) -> Termination | None:
        """OPTIMAL once the proof has finished; else of the deadline behind, or ITERATION_LIMIT once given up."""
        if self._proof is not None and self._proof.finished:
            return Termination.OPTIMAL
        given_up = self.remaining_s == float("inf") and self.elapsed_s > self._give_up_s
        if given_up:
            return Termination.ITERATION_LIMIT
        return self._deadline.expired() or (Termination.TIME_LIMIT if self.remaining_s == 0.0 else None)

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Pass on with the best bound, and tell the proof of the incumbent."""
        if objective is not None:
            objective = self._known = objective if self._known is None else min(objective, self._known)
        known = [self._bound, bound]
        if self._proof is not None:
            known.append(None if self._proof.bound is None else self._proof.bound.value)
            if objective is not None:
                self._proof.incumbent[0] = min(int(self._proof.incumbent[0]), int(objective))
        self._deadline.report(
            self._before + iteration, objective, max((b for b in known if b is not None), default=None), fraction
        )


def first_start(problem: QuadraticAssignment) -> Indices | None:
    """The given start or the identity where they are allowed, else any allowed permutation; None if there is none."""
    start = np.arange(problem.n) if problem.start is None else problem.start
    return start if problem.allows(start) else bounds.permitted_permutation(problem)


def first_bounds(
    problem: QuadraticAssignment,
    options: "QapOptions",
    deadline: Deadline,
    gilmore_lawler: Callable[[QuadraticAssignment], Bound] = bounds.gilmore_lawler,
    gilmore_lawler_s: float = 2e-9,
) -> list[Bound]:
    """Gilmore-Lawler and projection (4 ms at n = 100), and RLT1 where it is named, in its share of the time.

    A bound that would take half of what is left, or more, is left out. Nothing interrupts eigenvalues once they are
    begun, so they are worked out on a thread, and forgotten where time runs out meanwhile.
    `gilmore_lawler_s`: its seconds, divided by n^3.
    """
    found: list[Bound] = []

    def time_for(seconds: float) -> bool:
        return deadline.expired() is None and seconds < deadline.remaining_s / 2

    if options.wants("gilmore-lawler") and time_for(gilmore_lawler_s * problem.n**3):
        on_host = gilmore_lawler is bounds.gilmore_lawler
        bound = in_time(partial(gilmore_lawler, problem), deadline) if on_host else gilmore_lawler(problem)
        found += [] if bound is None else [bound]
    if options.wants("projection") and time_for(PROJECTION_S * problem.n**3):
        bound = in_time(partial(bounds.projection, problem), deadline)
        found += [] if bound is None else [bound]
    named = options.bounds != "auto" and "rlt1" in options.bounds
    if named and time_for(RLT1_S * problem.n**4):
        whole, near = in_integers(problem)
        if rlt1.fits(whole):
            bound = _ascended(whole, options, deadline)
            found.append(bound if near is None else near.bound(bound))
    return found


def in_time(work: Callable[[], T], deadline: Deadline) -> T | None:
    """What `work` returns, or None once the deadline has expired; then it goes on alone to its end, unheard."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # is raised again by whoever waits
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    while not wait([result], timeout=POLL_S).done:
        if deadline.expired() is not None:
            return None
    return result.result()


def _ascended(problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline) -> Bound:
    ascent, all_s = rlt1.DualAscent(problem), deadline.elapsed_s + deadline.remaining_s

    def ended() -> bool:
        return deadline.expired() is not None or deadline.elapsed_s > options.bound_share * all_s

    while not ascent.stalled() and ascent.sweeps < LONGEST_ASCENT:
        ascent.step(ended)
        if ended():
            break
    return ascent.bound()


def best_bound(proofs: list[Bound]) -> Number | None:
    """The greatest value, None without any."""
    return max((bound.value for bound in proofs), default=None)


def meets(problem: QuadraticAssignment, permutation: Indices, proofs: list[Bound]) -> bool:
    """True when the best bound leaves no gap to that permutation, or on floats none that its certificate minds."""
    if problem.integer:
        bound = best_bound(proofs)
        return bound is not None and problem.objective(permutation) <= bound
    gap = problem.objective(permutation) - max((proof.raw for proof in proofs), default=-np.inf)
    flow, distance = np.abs(problem.flow), np.abs(problem.distance)
    linear = np.zeros_like(flow) if problem.linear is None else np.abs(problem.linear)
    paid = (flow * distance[np.ix_(permutation, permutation)]).sum() + linear[np.arange(problem.n), permutation].sum()
    least = [float(m[m > 0].min(initial=np.inf)) for m in (flow, distance, linear)]
    entry = min((x for x in (least[0] * least[1], least[2]) if x < np.inf), default=0.0)
    return bool(gap <= CLOSE * paid and gap <= CLOSE_BY_DATA * max(abs(problem.objective(permutation)), entry))


def infeasible(problem: QuadraticAssignment, options: "QapOptions") -> Solution:
    """No permutation is allowed: the facilities and locations that show it."""
    assert problem.forbidden is not None
    none = Searched(np.empty(0, np.int64), Termination.INFEASIBLE, 0, {}, [])
    found = solution(options, none, [], 0.0)
    found.arrays = dict(zip(("hall_rows", "hall_cols"), bounds.hall_violator(problem.forbidden), strict=True))
    return found


def solution(
    options: "QapOptions", found: Searched, proofs: list[Bound], seconds: float, method: str | None = None
) -> Solution:
    """The outcome as data."""
    arrays = {"permutation": found.permutation}
    if options.population and found.members:
        arrays["population"] = np.array(found.members)
    best = max(proofs, key=lambda bound: bound.value, default=None)
    facts = {
        "bounds": {bound.name: bound.value for bound in proofs},
        "bound": None if best is None else best.name,
        "proved": False,
        **found.facts,
    }
    evidence = {f"{bound.name}:{key}": array for bound in proofs for key, array in bound.evidence.items()}
    timings = {"solve": 1000 * seconds}
    named, ended = method or options.method, found.termination
    return Solution(ended, named, arrays, found.iterations, options.seed, timings, facts, evidence)
