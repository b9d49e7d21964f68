"""From a problem to an answer whose words are earned: solve, certify, mend what came out loose, certify again.

The certificate has the last word on the termination: a solver may claim an optimum, the answer says so only when the
gap that other code worked out allows it.
"""

from collections.abc import Callable
from typing import Any

from kernels.card import Device, Solver
from kernels.deadline import Deadline
from kernels.solution import Certificate, Solution

Solve = Callable[[], Solution]


def solve_and_prove(
    card: Solver, problem: Any, options: Any, deadline: Deadline, device: Device, solve: Solve | None = None
) -> tuple[Solution, Certificate]:
    """Solve `problem` and certify what comes back.

    Args:
        card: the solver; its estimate says how much of the time limit the certificate needs.
        deadline: counts from the start of the job, so that building the problem is part of the limit.
        solve: runs the solver in place of `card.solve` (a worker adds what CUDA's errors mean).

    Returns:
        The solution, with the termination that its certificate earned, and the certificate. Its `timings_ms`
        hold `solve` and `certify`.
    """
    deadline.reserve(card.estimate(problem, options, device).certify_seconds)
    begun = deadline.elapsed_s
    solution = solve() if solve is not None else card.solve(problem, options, deadline, device)
    solution.timings_ms["solve"] = 1e3 * (deadline.elapsed_s - begun)
    certificate = _certify(card, problem, solution, deadline)
    if (certificate.loose or certificate.termination is not None) and card.mend is not None:
        mended = card.mend(problem, options, solution, deadline, device)
        if mended is not None:
            again = _certify(card, problem, mended, deadline)
            if again.holds and not _looser(again, certificate):
                solution, certificate = mended, again
    if certificate.termination is not None:
        solution.termination = certificate.termination
    return solution, certificate


def _certify(card: Solver, problem: Any, solution: Solution, deadline: Deadline) -> Certificate:
    deadline.enter("certify")
    begun = deadline.elapsed_s
    certificate = card.certify(problem, solution, deadline.advance)
    solution.timings_ms["certify"] = 1e3 * (deadline.elapsed_s - begun)
    deadline.enter("solve")
    return certificate


def _looser(new: Certificate, old: Certificate) -> bool:
    """True when the new certificate claims less than the old one."""
    if new.termination is None or not old.holds:
        return False
    return new.gap_abs is None or (old.gap_abs is not None and new.gap_abs > old.gap_abs)
