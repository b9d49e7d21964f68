"""The proofs of all problems as one certificate, and what it says in words."""

from typing import Any

from kernels.certificates.assignment_groups import WORST
from kernels.certificates.rejecting.proof import finite
from kernels.certificates.rejecting.table import Sums, Table
from kernels.certificates.rounded import share_up, sum_down, sum_up
from kernels.problems import Rejecting
from kernels.solution import Certificate, Number, Solution, Termination


def certificate(problem: Rejecting, solution: Solution, proofs: Table) -> Certificate:
    """All proofs as one certificate; a batch's objective and bound are sums over the problems that have one.

    Where problems are and none has an objective there is no sum: 0 would be a value that nothing has.
    """
    exact, batch = problem.row_prices.dtype.kind == "i", problem.form != "one"
    sign = -1 if problem.maximize else 1
    sums = proofs.totals()
    objective, bound = sums.rounded or _summed(proofs, exact, batch, sign)
    gap: Number | None = None
    if objective is not None and bound is not None:
        gap = abs(objective - bound) if exact else sum_up([sign * objective, -sign * bound])
    words = set(proofs.ended)
    worst = max(words, key=WORST.index, default=Termination.OPTIMAL)
    broken = _broken(proofs, batch)
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=None if gap is None else share_up(gap, objective, bound),
        max_violation=sums.violation,
        holds=not broken,
        proved=broken or _claim(proofs, words, exact, batch, sums),
        facts={"unassigned": sums.unassigned, "left": sums.left, **(_of_each(proofs, words) if batch else {})},
        termination=None if worst is solution.termination else worst,
        loose=Termination.CONVERGED in words,
    )


def _summed(proofs: Table, exact: bool, batch: bool, sign: int) -> tuple[Number | None, Number | None]:
    """Objective and bound of all problems."""
    objectives, bounds = proofs.objectives, proofs.bounds
    if batch and proofs.open:
        known = [k for k, value in enumerate(objectives) if value is not None]
        objectives, bounds = [objectives[k] for k in known], [bounds[k] for k in known]
    if proofs.open and not objectives:
        return None, None
    return total(objectives, exact, sign), total(bounds, exact, -sign)


def _broken(proofs: Table, batch: bool) -> str:
    """What is wrong with the first problem whose answer is none; empty where all are answers."""
    if not proofs.whys:
        return ""
    k = min(proofs.whys)
    return f"problem {k}: {proofs.whys[k]}" if batch else proofs.whys[k]


def total(values: list[Number | None], exact: bool, side: int) -> Number | None:
    """The sum, rounded to `side` (floats); None where a value is missing or the sum leaves float64."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if exact:
        return sum(known)
    return finite(sum_up(known) if side > 0 else sum_down(known))


def _claim(proofs: Table, words: set[Termination], exact: bool, batch: bool, sums: Sums) -> str:
    """What is proved, in one line."""
    refuted = sorted(proofs.claims.items())
    if refuted and len(refuted) == len(proofs):
        more = f", and {len(refuted) - 1} more" if len(refuted) > 1 else ""
        return f"problem 0: {refuted[0][1]}{more}" if batch else refuted[0][1]
    arithmetic = "in exact integers" if exact else "without rounding but of the last sums, outward"
    claim = "optimal by duals" if words <= {Termination.OPTIMAL} else "a valid pairing and a dual bound"
    if sums.unassigned:
        claim = f"a valid pairing with {sums.unassigned} pairs missing, and a dual bound"
    also = "".join(f"; problem {k}: {said}" for k, said in refuted[:1])
    also += f", and {len(refuted) - 1} more" if len(refuted) > 1 else ""
    return f"{claim}, {sums.left} rows and columns left at their prices, recomputed {arithmetic}{also}"


def _of_each(proofs: Table, words: set[Termination]) -> dict[str, Any]:
    """What is told of each problem of a batch."""
    said = {word: word.value for word in words}
    alike = len(words) == 1
    terminations = [*said.values()] * len(proofs) if alike else [said[word] for word in proofs.ended]
    problems = {"objectives": proofs.objectives, "bounds": proofs.bounds, "gaps": proofs.gaps}
    return {"problems": {"terminations": terminations, **problems}}


def refused(why: str) -> Certificate:
    """What is no answer."""
    return Certificate(None, None, None, None, 0, False, why)
