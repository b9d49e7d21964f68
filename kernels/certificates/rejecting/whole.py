"""The proofs of all problems as one certificate, and what it says in words."""

from typing import Any

from kernels.certificates.assignment_groups import WORST
from kernels.certificates.rejecting.proof import Proof, finite
from kernels.certificates.rounded import share_up, sum_down, sum_up
from kernels.problems import Rejecting
from kernels.solution import Certificate, Number, Solution, Termination


def certificate(problem: Rejecting, solution: Solution, proofs: list[Proof]) -> Certificate:
    """All proofs as one certificate; a batch's objective and bound are sums over the problems that have one.

    Where problems are and none has an objective there is no sum: 0 would be a value that nothing has.
    """
    exact, batch = problem.row_prices.dtype.kind == "i", problem.form != "one"
    sign = -1 if problem.maximize else 1
    solved = [proof for proof in proofs if proof.objective is not None] if batch else proofs
    any_ = bool(solved) or not proofs
    objective = total([proof.objective for proof in solved], exact, sign) if any_ else None
    bound = total([proof.bound for proof in solved], exact, -sign) if any_ else None
    gap: Number | None = None
    if objective is not None and bound is not None:
        gap = abs(objective - bound) if exact else sum_up([sign * objective, -sign * bound])
    worst = max((proof.ended for proof in proofs), key=WORST.index, default=Termination.OPTIMAL)
    broken = next((f"problem {k}: {p.why}" if batch else p.why for k, p in enumerate(proofs) if p.why), "")
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=None if gap is None else share_up(gap, objective, bound),
        max_violation=max((proof.violation for proof in proofs), default=0),
        holds=not broken,
        proved=broken or _claim(proofs, exact, batch),
        facts=_facts(proofs, batch),
        termination=None if worst is solution.termination else worst,
        loose=any(proof.ended is Termination.CONVERGED for proof in proofs),
    )


def total(values: list[Number | None], exact: bool, side: int) -> Number | None:
    """The sum, rounded to `side` (floats); None where a value is missing or the sum leaves float64."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if exact:
        return sum(known)
    return finite(sum_up(known) if side > 0 else sum_down(known))


def _claim(proofs: list[Proof], exact: bool, batch: bool) -> str:
    """What is proved, in one line."""
    refuted = [(k, proof.claim) for k, proof in enumerate(proofs) if proof.claim]
    if refuted and len(refuted) == len(proofs):
        more = f", and {len(refuted) - 1} more" if len(refuted) > 1 else ""
        return f"problem 0: {refuted[0][1]}{more}" if batch else refuted[0][1]
    arithmetic = "in exact integers" if exact else "without rounding but of the last sums, outward"
    optimal = {proof.ended for proof in proofs} <= {Termination.OPTIMAL}
    left, missing = sum(proof.left for proof in proofs), sum(proof.unassigned for proof in proofs)
    claim = "optimal by duals" if optimal else "a valid pairing and a dual bound"
    claim = f"a valid pairing with {missing} pairs missing, and a dual bound" if missing else claim
    also = "".join(f"; problem {k}: {words}" for k, words in refuted[:1])
    also += f", and {len(refuted) - 1} more" if len(refuted) > 1 else ""
    return f"{claim}, {left} rows and columns left at their prices, recomputed {arithmetic}{also}"


def _facts(proofs: list[Proof], batch: bool) -> dict[str, Any]:
    told = [(p.objective, p.bound, p.gap, p.ended.value, p.unassigned, p.left) for p in proofs]
    objectives, bounds, gaps, words, unassigned, left = map(list, zip(*told, strict=True)) if told else ([],) * 6
    facts: dict[str, Any] = {"unassigned": sum(unassigned), "left": sum(left)}
    if batch:
        facts["problems"] = {"terminations": words, "objectives": objectives, "bounds": bounds, "gaps": gaps}
    return facts


def refused(why: str) -> Certificate:
    """What is no answer."""
    return Certificate(None, None, None, None, 0, False, why)
