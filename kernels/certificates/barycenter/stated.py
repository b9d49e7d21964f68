"""What both proofs of barycenters state, from an upper and a lower number, and what they refuse."""

import math
from typing import Any

import numpy as np

from kernels.certificates.rounded import add_up, share_up, sub_up
from kernels.problems.arrays import Array
from kernels.solution import Certificate, Solution, Termination

UNIT = 2.0**-53
TINIEST = 2.0**-1040
"""More than what products lose that underflow, 2^-1075 each, be it 2^33 of them."""
MISSED = 2.0**-40
"""Of the mass: plans that miss their sides by more, beside what rounding may leave, have no objective."""
SURE = 1e-9
"""Relative gap up to which an answer without an entropic term is called optimal."""
ROUNDING = 2.0**-44
"""Of the largest cost: gaps below it are rounding, if they are also below SURE of the smallest."""

CLAIMS = (Termination.OPTIMAL, Termination.GAP_REACHED)


def misses(violation: float, m: int, n: int) -> bool:
    """Whether plans of m rows and n columns are further from their sides than sums of so many terms can tell."""
    return not violation <= MISSED + 8 * (m + n) * UNIT


def smallest(cost: Array) -> float:
    """The smallest size of a cost but 0, inf where there is none: a scale that no dear entry can lift."""
    return float(np.where(cost != 0, np.abs(cost), np.inf).min())


def refused(why: str) -> Certificate:
    """A certificate of no answer."""
    return Certificate(None, None, None, None, float("inf"), False, f"nothing: {why}")


def numbers(arrays: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array | str:
    """The array of that name in float64, or why it cannot be read. Infinities pass."""
    found = arrays.get(name)
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        return f"{name} is missing, or does not hold numbers"
    if found.shape != shape:
        return f"{name} has shape {found.shape}, expected {shape}"
    found = found.astype(np.float64)
    return f"{name} holds what is no number" if np.isnan(found).any() else found


def concluded(
    solution: Solution,
    objective: float,
    bound: float,
    price: float,
    violation: float,
    scales: tuple[float, float],
    proved: str,
) -> Certificate:
    """The certificate of an answer; `price` is what the missed mass is worth, `scales` largest and smallest cost."""
    if solution.termination is Termination.INFEASIBLE:
        return refused("a barycenter always exists")
    if not math.isfinite(bound):
        word = Termination.CONVERGED if solution.termination in CLAIMS else None
        return Certificate(objective, None, None, None, violation, True, proved, {}, word)
    apart = float(add_up(max(float(sub_up(objective, bound)), 0.0), price))
    relative = share_up(apart, objective, bound)
    largest, least = scales[0], scales[1] if math.isfinite(scales[1]) else 0.0
    small = apart <= min(ROUNDING * largest, SURE * max(abs(objective), least))
    claim, earned = solution.termination, None
    tolerance = solution.facts.get("tolerance")
    reached = small or (isinstance(tolerance, float) and relative <= tolerance)
    if claim is Termination.OPTIMAL and not (small or relative <= SURE):
        earned = Termination.GAP_REACHED if reached else Termination.CONVERGED
    if claim is Termination.GAP_REACHED and not reached:
        earned = Termination.CONVERGED
    facts: dict[str, Any] = {"price_of_missed_mass": price}
    return Certificate(objective, bound, apart, relative, violation, True, proved, facts, earned)
