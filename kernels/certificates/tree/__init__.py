"""Checks a quadratic assignment whose solver left the log of its branch and bound; all else as relaxed does.

The log is an array of the answer, `tree`. That its tree covers every permutation is checked (cover.py), and its leaves
are proved again (recheck.py): all of them where there is time, and then the answer is proved optimal. Else some, drawn
at random, and the answer says so: `verified` stays false. What is believed: the two exact parts above, and nothing of
the solver. Its prices are not even in the log.

Floats that are too fine for integers are rounded to them, by up to a known error. Leaves are then closed by that much
more, and what lies within the error is priced in fractions. So floats are proved without any slack.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from kernels.certificates import quadratic, relaxed
from kernels.certificates.quadratic_bounds import nearest
from kernels.certificates.quadratic_exact import ENUMERATED, Whole, integers, lowest, whole
from kernels.certificates.tree.cover import Refused, Tree, read
from kernels.certificates.tree.recheck import OutOfTime, Recheck, Unproved, prove_all, prove_some
from kernels.problems import Array, QuadraticAssignment
from kernels.solution import Certificate, Solution, Termination, unheard

ARRAY, NAME = "tree", "branch and bound"
CHECK_S, LONGEST_S = 10.0, 600.0
"""Seconds for the leaves where the solver does not say how long there is, and at most."""
SHARE_OF_ALL = 0.75
"""Of the time, for all leaves; the rest is for a sample."""
SAMPLE = 64


def certify(
    problem: QuadraticAssignment, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """The certificate of relaxed, and what the log proves.

    Complexity: a bound for each node of the tree, O(m^5) times the sweeps of an ascent with m facilities left.
    """
    log = solution.arrays.get(ARRAY)
    if log is None or problem.n <= ENUMERATED or solution.termination is Termination.INFEASIBLE:
        return relaxed.certify(problem, solution, progress)
    base = relaxed.certify(problem, solution, lambda share: progress(share / 2))
    if not base.holds or base.objective is None or base.facts.get("verified"):
        return base
    told: dict[str, Any] = {"bytes": int(log.size), "whole": False}
    try:
        tree = read(log, problem)
        told |= {"leaves": len(tree.leaves), "twins": tree.twins, "open": tree.opened}
        if tree.opened == 0:
            value = _proved(problem, solution, tree, told, lambda share: progress(0.5 + share / 2))
            if told["whole"]:
                return _optimal(problem, solution, base, value, told)
    except (Refused, Unproved) as why:
        told["refused"] = str(why)
    except OutOfTime:
        pass
    progress(1.0)
    found = replace(base, facts=base.facts | {ARRAY: told}, proved=_words(base.proved, told))
    if solution.termination is Termination.OPTIMAL and _said(solution).get("resumed"):
        return replace(found, termination=Termination.CONVERGED)  # the log came with the problem: its word is nobody's
    return found


def _proved(
    problem: QuadraticAssignment, solution: Solution, tree: Tree, told: dict[str, Any], heard: Callable[[float], None]
) -> Fraction:
    """What the answer costs, and every other permutation at least where `told` says that the whole tree was proved.

    Raises:
        Unproved, OutOfTime.
    """
    begun, seconds = time.monotonic(), _seconds(solution)
    from kernels.certificates.tree import loops  # compiled code, loaded when first used

    answer, ends_at = solution.arrays["permutation"], begun + SHARE_OF_ALL * seconds
    checks = [rechecker(problem, answer, tree, ends_at) for _ in range(loops.threads())]
    try:
        prove_all(checks, tree, heard)
    except OutOfTime:
        for check in checks:
            check.ends_at = min(begun + seconds, time.monotonic() + (1 - SHARE_OF_ALL) * seconds)
        drawn = np.random.default_rng().permutation(tree.leaves)[:SAMPLE].tolist()
        told["sampled"] = prove_some(checks, tree, drawn)
    else:
        told |= {"whole": True, "check_s": round(time.monotonic() - begun, 3)}
    return checks[0].answer


def rechecker(problem: QuadraticAssignment, permutation: Array, tree: Tree, ends_at: float) -> Recheck:
    """Ready to prove that nothing costs less than that permutation.

    Raises:
        Unproved: the problem's numbers are beyond these integers, or the tree is that of another answer.
    """
    price = _pricer(problem)
    answer = price(permutation.tolist())
    rounding = tree.exponents != (0, 0)
    near = nearest(problem, np.array(tree.exponents)) if rounding and not problem.integer else None
    data: Whole | None = whole(problem) if near is None else near[0]
    if data is None:
        raise Unproved("its numbers have too many bits to be checked in int64")
    if near is None:
        need = answer / data.number(1)
        step, own = data.step, int(need)
    else:
        need, step = answer * Fraction(2) ** near[2] + near[1], 1
        own = int((data.flow * data.distance[np.ix_(permutation, permutation)]).sum())
        own += int(data.linear[np.arange(problem.n), permutation].sum())
    if near is not None and abs(own - tree.incumbent) > 2 * near[1]:
        raise Unproved("the log's leaves were closed against another answer")
    if near is None and not _same_unit(own, tree.incumbent):
        raise Unproved("the log's leaves were closed against another answer")
    return Recheck(problem, data, ceil(need), step, price, answer, ends_at)


def _same_unit(own: int, said: int) -> bool:
    """Whether two objectives are one number but for a power of two: floats have integers of more than one unit."""
    if own == 0 or said == 0:
        return own == said
    odd = [abs(x) // (abs(x) & -abs(x)) for x in (own, said)]
    return odd[0] == odd[1] and (own > 0) == (said > 0)


def _seconds(solution: Solution) -> float:
    seconds = _said(solution).get("check_s")
    return min(float(seconds), LONGEST_S) if isinstance(seconds, int | float) and seconds > 0 else CHECK_S


def _said(solution: Solution) -> dict[str, Any]:
    said = solution.facts.get(ARRAY)
    return said if isinstance(said, dict) else {}


def _pricer(problem: QuadraticAssignment) -> Callable[[list[int]], Fraction]:
    """The cost of a permutation as a fraction, without any rounding."""
    n = problem.n
    linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
    parts = []
    for matrix in (problem.flow, problem.distance, linear):
        low = 0 if problem.integer else lowest(matrix) or 0
        parts.append((np.array(integers(matrix, low), object), Fraction(2) ** low))
    (flow, of_flow), (distance, of_distance), (costs, of_costs) = parts

    def price(p: list[int]) -> Fraction:
        pairs = int((flow * distance[np.ix_(p, p)]).sum())
        return pairs * of_flow * of_distance + int(costs[np.arange(n), p].sum()) * of_costs

    return price


def _optimal(
    problem: QuadraticAssignment, solution: Solution, base: Certificate, value: Fraction, told: dict[str, Any]
) -> Certificate:
    """The certificate of an answer whose whole tree was proved."""
    checked = {name: Fraction(number) for name, number in base.facts["bounds_checked"].items()} | {NAME: value}
    permutation, data = solution.arrays["permutation"], whole(problem)
    exact = quadratic._objective(problem, data, permutation)
    found = quadratic._concluded(problem, solution, permutation, exact, checked, data is not None)
    words = f"optimal: a tree covers every permutation, and each of its {told['leaves']} leaves was proved in integers"
    return replace(found, facts=found.facts | {ARRAY: told}, proved=words if found.facts["verified"] else found.proved)


def _words(proved: str, told: dict[str, Any]) -> str:
    """What is said of a tree that was not proved whole."""
    unchecked = ", which is not checked here"
    if "sampled" not in told:
        return proved
    some = f"its tree covers every permutation, and {told['sampled']} of {told['leaves']} leaves, sampled, were proved"
    if unchecked not in proved:  # the log came with the problem
        return f"{proved}; {some}"
    return proved.replace(unchecked, f": {some}")
