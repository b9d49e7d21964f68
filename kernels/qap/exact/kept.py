"""A branch and bound beside a search: how it begins, from an earlier log or anew, and what the answer keeps of it."""

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Integers
from kernels.qap.exact.log import is_of, resumable
from kernels.qap.exact.planting import Planter
from kernels.qap.exact.proof import Proof, provable
from kernels.qap.whole import Rounded, in_integers
from kernels.solution import Solution

LEAST_CHECK_S, LONGEST_CHECK_S = 0.1, 120.0
"""For the certificate of a tree: what is left of the limit, within these."""


def begun(
    problem: QuadraticAssignment, record: Integers, threads: int, log_bytes: int, plant: Planter | None = None
) -> tuple[Proof | None, Rounded | None]:
    """A tree of the problem, or of its floats rounded to integers; no tree where there is none to be grown.

    A log that came with the problem is gone on with where the answer will have it: the certificate sees what is in it.
    """
    whole, near = in_integers(problem)
    if not provable(whole):
        return None, near
    start, slack = int(whole.objective(record)), 0 if near is None else near.error
    resumed = resumable(problem, start - 2 * slack, _exponents(near)) if log_bytes else None
    return Proof(whole, start, threads, plant, slack, log_bytes, resumed), near


def keep_tree(
    found: Solution, problem: QuadraticAssignment, proof: Proof | None, near: Rounded | None, log_bytes: int,
    remaining_s: float,
) -> None:  # fmt: skip
    """Put an ended proof into the answer: its log, and of rounded floats the bound of a whole tree that was grown here.

    A log that came with the problem is kept where no tree was grown.
    """
    if proof is not None and proof.finished and near is not None and not proof.resumed:
        found.facts["bounds"]["branch and bound"] = near.value(int(proof.incumbent[0]))
    log = None if proof is None else proof.log
    if not log_bytes:
        return
    if proof is None or log is None:
        if problem.log is not None and is_of(problem.log, problem):
            found.arrays["tree"] = problem.log
        return
    log.exponents = _exponents(near)
    found.arrays["tree"] = log.sealed(problem)
    seconds = min(max(remaining_s, LEAST_CHECK_S), LONGEST_CHECK_S)
    found.facts["tree"] = {"check_s": seconds, "resumed": proof.resumed}


def _exponents(near: Rounded | None) -> tuple[int, int]:
    return (0, 0) if near is None else near.exponents
