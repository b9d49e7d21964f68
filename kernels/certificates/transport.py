"""Proof for unbalanced optimal transport: what the returned plan costs at most, and what any plan costs at least.

Weak duality makes the dual value a lower bound on the optimum for any potentials f, g:

    D(f, g) = r1 <a, 1 - exp(-f / r1)> + r2 <b, 1 - exp(-g / r2)> - reg (sum P(f, g) - sum a sum b),

with <a, f> in place of the first term when r1 is inf, and without sum a sum b for the uniform reference. `bound` is at
most D, `objective` at least the primal value of the plan as it was returned, in its own dtype: float64 throughout, with
every error bounded and turned to the weak side. The bounds and their sources stand where the arithmetic is:
transport_elementary.py (exp, log), transport_points.py (costs), transport_answer.py (exponents), transport_sums.py,
transport_divergence.py and transport_bound.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.certificates.rounded import share_up, sum_down, sum_up
from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_bound import dual_value, gaps, price, primal_value, residual
from kernels.certificates.transport_form import by_problem, claims_of, malformed, tolerance_of
from kernels.certificates.transport_infeasible import certify_infeasible
from kernels.certificates.transport_shown import Shown
from kernels.certificates.transport_sums import Sums, measure
from kernels.certificates.transport_units import back, near_one
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Solution, Termination, unheard

FAINT = 1e-6  # of the given mass: a plan below it is as good as empty, and the answer says so
WORST = (
    Termination.OPTIMAL,
    Termination.GAP_REACHED,
    Termination.CONVERGED,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.STOPPED,
    Termination.INFEASIBLE,
)
"""From the best word to the worst; a batch has its worst problem's."""


def certify(
    problem: UnbalancedTransport, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """Recompute primal, dual and marginals of one problem, or of each problem of a batch."""
    tolerance = tolerance_of(solution)
    if problem.batch is None:
        return _one(problem, solution.arrays, solution.termination, tolerance, progress)
    claims, each = claims_of(solution, problem.batch), by_problem(solution.arrays, problem.batch)
    if claims is None or each is None:
        return _refused("the batch has not an ending and a line of each array for each problem")
    parts = []
    for k, (claim, arrays) in enumerate(zip(claims, each, strict=True)):
        parts.append(_one(problem.one(k), arrays, claim, tolerance, unheard))
        progress((k + 1) / len(claims))
    whole = _together(parts, claims, solution.termination)
    return replace(whole, facts=whole.facts | _factor(problem))


def _refused(why: str) -> Certificate:
    return Certificate(None, None, None, None, float("inf"), False, f"nothing: {why}")


def _one(
    problem: UnbalancedTransport,
    arrays: dict[str, Array],
    claim: Termination,
    tolerance: float,
    progress: Callable[[float], None],
) -> Certificate:
    if wrong := malformed(problem, arrays, potentials=claim is not Termination.INFEASIBLE):
        return _refused(wrong)
    if claim is Termination.INFEASIBLE:
        return replace(certify_infeasible(problem, arrays), facts=_factor(problem))
    problem, given, power, above = near_one(problem, arrays)
    answer, shown = Answer(problem, given, above), Shown(arrays)
    sums = measure(answer, shown, progress)
    objective, bound = primal_value(answer, sums), dual_value(answer, sums)
    gap, relative = gaps(objective, bound, price(answer, sums))
    certificate = Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=relative,
        max_violation=residual(answer, sums) if sums.valid else float("inf"),
        holds=sums.valid and (not answer.implicit or (answer.usable and sums.finite)),
        proved=_words(problem, objective is not None, answer.implicit),
        facts=_facts(answer, sums, shown),
    )
    found = back(certificate, power)
    return replace(found, termination=_earned(claim, found.gap_rel, tolerance))


def _earned(claim: Termination, relative: float | None, tolerance: float) -> Termination | None:
    """The word that the gap earns, None where that is the claim."""
    reached = relative is not None and relative <= tolerance
    if claim in (Termination.GAP_REACHED, Termination.OPTIMAL):
        return None if reached else Termination.CONVERGED
    return Termination.GAP_REACHED if reached and claim is Termination.CONVERGED else None


def _facts(answer: Answer, sums: Sums, shown: Shown) -> dict[str, Any]:
    problem = answer.problem
    mass = float(((sums.rows[0] + sums.rows[1]) / 2).sum())
    given = float(min(problem.a.sum(), problem.b.sum()))
    facts: dict[str, Any] = {"mass": mass if np.isfinite(mass) else None}
    if mass < FAINT * given:
        facts["warning"] = (
            f"the plan carries {mass:.3g} of a given mass of {given:.3g}: at this reg_m it is cheaper to give up the"
            " mass than to move it; a larger reg_m, or costs of smaller scale, moves more"
        )
    return facts | _factor(problem) | shown.facts(sums.rows, sums.columns)


def _factor(problem: UnbalancedTransport) -> dict[str, Any]:
    """What b was multiplied with, where it may have been."""
    factor = problem.mass_factor
    if not np.isinf(problem.reg_m).all():
        return {}
    return {"mass_factor": list(factor) if isinstance(factor, tuple) else factor}


def _words(problem: UnbalancedTransport, settled: bool, implicit: bool) -> str:
    plan = "the plan that the potentials stand for" if implicit else "the returned plan"
    bound = "bound = dual value of f, g rounded down"
    arithmetic = "in float64 with every rounding bounded"
    sides = " and ".join(
        name for name, strength in zip(("rows", "columns"), problem.reg_m, strict=True) if np.isinf(strength)
    )
    if not sides:
        return f"objective = primal value of {plan} rounded up, {bound}, {arithmetic}; no constraint to violate"
    violation = f"violation = L1 distance of its balanced {sides} from the given masses"
    if settled:
        gap = "the gap holds what that may cost at f, g"
        return f"objective = primal value of {plan} rounded up, {bound}, {arithmetic}; {violation}, and {gap}"
    return f"{bound}, {arithmetic}; {plan} does not meet its balanced {sides}, so that it has no objective; {violation}"


def _together(parts: list[Certificate], claims: list[Termination], claim: Termination) -> Certificate:
    """One certificate for a batch: sums over the problems that have an objective, and each problem's own values."""
    ends = [part.termination or word for part, word in zip(parts, claims, strict=True)]
    solved = [part for part in parts if part.objective is not None]
    bounded = bool(solved) and all(part.bound is not None for part in solved)
    objective = sum_up([part.objective for part in solved]) if solved else None
    bound = sum_down([part.bound for part in solved]) if bounded else None
    gap, relative = gaps(objective, bound, 0.0)
    if gap is not None and objective is not None and bound is not None:
        gap = max(gap, sum_up([part.gap_abs for part in solved]))
        relative = share_up(gap, objective, bound)
    worst = max(ends, key=WORST.index)
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=relative,
        max_violation=max(part.max_violation for part in parts),
        holds=all(part.holds for part in parts),
        proved=f"for each of {len(parts)} problems: {parts[0].proved}; objective, bound: sums over those with one",
        facts=_facts_together(parts, ends),
        termination=None if worst is claim else worst,
    )


def _facts_together(parts: list[Certificate], ends: list[Termination]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "problems": {
            "terminations": [end.value for end in ends],
            "objectives": [part.objective for part in parts],
            "bounds": [part.bound for part in parts],
            "gaps": [part.gap_abs for part in parts],
            "gaps_rel": [part.gap_rel for part in parts],
            "violations": [part.max_violation for part in parts],
            "masses": [part.facts.get("mass") for part in parts],
            "proved": [part.proved for part in parts] if len({part.proved for part in parts}) > 1 else parts[0].proved,
        },
        "largest_gap_rel": max((part.gap_rel for part in parts if part.gap_rel is not None), default=None),
    }
    faint = [k for k, part in enumerate(parts) if "warning" in part.facts]
    if faint:
        more = f", and {len(faint) - 1} more" if len(faint) > 1 else ""
        facts["warning"] = f"problem {faint[0]}: {parts[faint[0]].facts['warning']}{more}"
    return facts
