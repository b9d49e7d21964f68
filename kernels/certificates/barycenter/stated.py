"""What both proofs of barycenters state, from an upper and a lower number, and what they refuse."""

import math
from typing import Any

import numpy as np

from kernels.certificates.rounded import add_up, div_up, mul_up, sub_up
from kernels.problems.arrays import Array
from kernels.solution import Certificate, Solution, Termination

UNIT = 2.0**-53
TINIEST = 2.0**-1000
"""More than what products lose that underflow: costs and reg are 0 or of ordinary size."""
MISSED = 2.0**-40
"""Of the mass: plans that miss their sides by more have no objective."""
SURE = 1e-9
"""Relative gap up to which an answer without an entropic term is called optimal."""
ROUNDING = 2.0**-44
"""Of the largest cost: gaps below it are rounding, however small the objective is."""

CLAIMS = (Termination.OPTIMAL, Termination.GAP_REACHED)


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
    solution: Solution, objective: float, bound: float, price: float, violation: float, scale: float, proved: str
) -> Certificate:
    """The certificate of an answer; `price` is what the missed mass is worth, `scale` the largest cost."""
    if solution.termination is Termination.INFEASIBLE:
        return refused("a barycenter always exists")
    if not math.isfinite(bound):
        word = Termination.CONVERGED if solution.termination in CLAIMS else None
        return Certificate(objective, None, None, None, violation, True, proved, {}, word)
    apart = float(add_up(max(float(sub_up(objective, bound)), 0.0), price))
    size = max(abs(objective), abs(bound))
    relative = float(div_up(apart, size)) if size and apart else float(apart > 0)
    small = apart <= float(mul_up(ROUNDING, scale))
    claim, earned = solution.termination, None
    tolerance = solution.facts.get("tolerance")
    reached = small or (isinstance(tolerance, float) and relative <= tolerance)
    if claim is Termination.OPTIMAL and not (small or relative <= SURE):
        earned = Termination.GAP_REACHED if reached else Termination.CONVERGED
    if claim is Termination.GAP_REACHED and not reached:
        earned = Termination.CONVERGED
    facts: dict[str, Any] = {"price_of_missed_mass": price}
    return Certificate(objective, bound, apart, relative, violation, True, proved, facts, earned)
