"""How an answer's words are earned: solve, certify, mend what came out loose, certify again.

The certificate has the last word on the termination: a solver may claim an optimum, the answer says so only when the
gap that other code worked out allows it.

Time: the solver is stopped at the limit less the expected certificate, and less what it takes to make an answer of
whatever it has by then; but never before it has a first answer. What comes out loose is mended only where a first
answer and another certificate still fit. So an answer is there by the later of the limit and (build + first answer +
one certificate).
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from kernels.card import Device, Estimate, OptionsOf, Problem, Solver
from kernels.deadline import Deadline, Phase
from kernels.on_device import Certifier
from kernels.solution import Certificate, Solution, Termination
from kernels.unproved import unproved

T = TypeVar("T")
APART = ("h2d", "d2h", "costs")
"""What a solver may count by itself: the ways to the device and back, and the costs of points."""
NEXT_TO_NONE_S = 0.25
"""So long a job may run past its limit for an answer where it has none yet."""


class Safely(Protocol):
    """Makes a call, and gives back what it gives."""

    def __call__(self, call: Callable[[], T], /) -> T:
        """Add to the call what its errors mean."""


def _plainly(call: Callable[[], T]) -> T:
    return call()


def _unheard(solution: Solution) -> None:
    return None


@dataclass(frozen=True)
class Asker:
    """What whoever asks for an answer has to do with it.

    Attributes:
        safely: makes each call of the card's code (a worker adds what CUDA's errors mean).
        needs: the card's estimate, where it is known already: how much of the limit the certificate needs.
        solved: hears of an answer that is about to be proved. It may not be the one that is returned.
    """

    safely: Safely = _plainly
    needs: Estimate | None = None
    solved: Callable[[Solution], object] = _unheard


NOBODY = Asker()


def solve_and_prove(
    card: Solver[Problem, OptionsOf],
    problem: Problem,
    options: OptionsOf,
    deadline: Deadline,
    device: Device,
    asker: Asker = NOBODY,
) -> tuple[Solution, Certificate]:
    """Solve `problem` and certify what comes back.

    Args:
        card: the solver.
        deadline: counts from the start of the job, so that building the problem is part of the limit.
        asker: who takes part.

    Returns:
        The solution, with the termination that its certificate earned, and the certificate. Its `timings_ms`
        hold `solve` and `certify`, of both rounds where it was mended.
    """
    safely, needs = asker.safely, asker.needs or card.estimate(problem, options, device)
    spent = {"solve": 0.0, "certify": 0.0}
    if getattr(options, "certificate", "full") == "none":
        deadline.reserve(needs.first_seconds)
        with _Spent(spent, "solve", deadline):
            found = safely(lambda: card.solve(problem, options, deadline, device))
        found.timings_ms |= _apart(spent, found)
        found.uploads.clear()
        return found, unproved(card, problem, found)

    there = Certifier(card, problem, device)

    def certified(found: Solution) -> Certificate:
        with _Spent(spent, "certify", deadline):
            return consistent(safely(lambda: there.certify(found, deadline.advance)))

    certify_s = needs.certify_seconds if there.seconds is None else min(there.seconds, needs.certify_seconds)
    deadline.reserve(certify_s + needs.first_seconds)  # what is stopped has yet to be made an answer
    with _Spent(spent, "solve", deadline):
        solution = safely(lambda: card.solve(problem, options, deadline, device))
    asker.solved(solution)
    certificate = certified(solution)
    took_s = 1e-3 * spent["certify"]
    loose = certificate.loose or certificate.termination is not None
    if loose and deadline.allows(needs.first_seconds + took_s):
        deadline.reserve(took_s + needs.first_seconds)
        with _Spent(spent, "solve", deadline):
            mended = _mended(card, problem, options, solution, deadline, device, safely)
        if mended is not None:
            again = certified(mended)
            if _better(mended, again, certificate):
                mended.timings_ms = solution.timings_ms | mended.timings_ms
                solution, certificate = mended, again
    unanswered = _unanswered(solution, certificate) if device == "gpu" else 0
    if unanswered and _cpu_is_near(card, problem, options, deadline):
        with _Spent(spent, "solve", deadline):
            other = card.solve(problem, options, deadline, "cpu")
        again = certified(other)
        if again.holds and _unanswered(other, again) < unanswered:
            other.method += " (cpu)"
            other.facts["solved_again"] = f"on the CPU, since of the GPU's answer was found: {certificate.proved}"[:300]
            solution, certificate = other, again
    if certificate.termination is not None:
        solution.termination = certificate.termination
    _say_of_each(solution, certificate)
    solution.timings_ms |= _apart(spent, solution)
    solution.uploads.clear()
    return solution, certificate


def consistent(certificate: Certificate) -> Certificate:
    """The same; one whose bound lies beyond its objective contradicts itself, and holds no longer."""
    if not certificate.holds or certificate.gap_abs is None or certificate.gap_abs >= 0:
        return certificate
    words = f"the bound {certificate.bound} lies beyond the objective {certificate.objective}: one of them is wrong"
    return replace(certificate, holds=False, proved=words)


def _apart(spent: Mapping[str, float], solution: Solution) -> dict[str, float]:
    """The same without what a solver counts by itself, so that an answer's times add up."""
    moved = sum(solution.timings_ms.get(name, 0.0) for name in APART)
    return {**spent, "solve": max(0.0, spent["solve"] - moved)}


def _say_of_each(solution: Solution, certificate: Certificate) -> None:
    """The words of a batch's problems are the certificate's too, wherever an answer lists them."""
    listed = certificate.facts.get("problems")
    words = listed.get("terminations") if isinstance(listed, dict) else None
    if words is not None and "terminations" in solution.facts:
        solution.facts["terminations"] = list(words)


def _unanswered(solution: Solution, certificate: Certificate) -> int:
    """How many problems have no objective, though the answer does not claim that there can be none.

    A batch has an objective as soon as one of its problems has; its facts list those of all.
    """
    if not certificate.holds:
        return sys.maxsize
    listed = certificate.facts.get("problems", {})
    words = listed.get("terminations", [solution.termination.value])
    objectives = listed.get("objectives", [certificate.objective])
    pairs = zip(words, objectives, strict=True)
    return sum(objective is None and word != Termination.INFEASIBLE.value for word, objective in pairs)


def _cpu_is_near(card: Solver[Problem, OptionsOf], problem: Problem, options: OptionsOf, deadline: Deadline) -> bool:
    """Whether the CPU can give a first answer in the time that is left, or in next to none."""
    if "cpu" not in card.suits(problem, options):
        return False
    needs = card.estimate(problem, options, "cpu")
    return needs.first_seconds + needs.certify_seconds <= max(NEXT_TO_NONE_S, deadline.remaining_s)


def _mended(
    card: Solver[Problem, OptionsOf],
    problem: Problem,
    options: OptionsOf,
    solution: Solution,
    deadline: Deadline,
    device: Device,
    safely: Safely,
) -> Solution | None:
    """What the card makes of a loose answer; None where it has nothing to try, or no room for it."""
    mend = card.mend
    if mend is None:
        return None
    try:
        return safely(lambda: mend(problem, options, solution, deadline, device))
    except MemoryError:  # there is an answer already
        return None


def _better(mended: Solution, new: Certificate, old: Certificate) -> bool:
    """Whether the mended answer says more: a smaller gap, or the proof that there is no answer."""
    if not new.holds or not old.holds:
        return bool(new.holds)
    if new.gap_abs is None:
        none_at_all = mended.termination is Termination.INFEASIBLE
        return new.termination is None and not new.loose and (none_at_all or old.gap_abs is None)
    return old.gap_abs is None or new.gap_abs <= old.gap_abs


class _Spent:
    """Enters a phase for a `with` block and adds its milliseconds to `spent[phase]`."""

    def __init__(self, spent: dict[str, float], phase: Phase, deadline: Deadline) -> None:
        self._spent, self._phase, self._deadline = spent, phase, deadline

    def __enter__(self) -> None:
        self._deadline.enter(self._phase)
        self._begun_s = self._deadline.elapsed_s

    def __exit__(self, *_: object) -> None:
        self._spent[self._phase] += 1e3 * (self._deadline.elapsed_s - self._begun_s)
