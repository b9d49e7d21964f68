"""A transport problem in units in which reg is near 1, so that no product of its certificate leaves float64's range.

Costs, reg, reg_m and potentials are multiplied by one power of two, exactly wherever they stay normal; points by it or
by its root. The objective and its bound are multiplied back.

reg_m may be so much smaller than reg that it does not stay normal. A plan costs the more, the larger reg_m is, so the
bound takes it rounded down, and the objective rounded up. Costs or reg_m may be so much larger than reg that they would
leave float64: then the units stay as they are. No float64 tells exponents in such a problem, and no number is lost.
They stay where a side has no mass, too: nothing is multiplied with reg there.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernels.certificates.rounded import add_up, share_up
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Number

FAR = 64  # powers of two that reg may be from 1
SMALLEST = 2.0**-1074  # above 0
TOP = 1000
"""Powers of two that a number may have in other units."""


class Scaled(NamedTuple):
    """A problem and the arrays of its answer with costs times 2^-power, `power` even.

    Its reg_m are rounded down, where they are rounded, and `above` are the same rounded up.
    """

    problem: UnbalancedTransport
    arrays: Mapping[str, Array]
    power: int
    above: tuple[float, float]


def near_one(problem: UnbalancedTransport, arrays: Mapping[str, Array]) -> Scaled:
    """The problem and its arrays in units in which reg is near 1, or in its own where those would not hold it."""
    power = 2 * (math.frexp(problem.reg)[1] // 2)
    if abs(power) <= FAR or not _holds(problem, power):
        return Scaled(problem, arrays, 0, problem.reg_m)
    root = power if problem.metric == "euclidean" else power // 2
    (low_a, high_a), (low_b, high_b) = (_either_way(strength, power) for strength in problem.reg_m)
    scaled = replace(
        problem,
        cost=None if problem.cost is None else np.ldexp(problem.cost.astype(np.float64), -power),
        x=None if problem.x is None else np.ldexp(problem.x.astype(np.float64), -root),
        y=None if problem.y is None else np.ldexp(problem.y.astype(np.float64), -root),
        reg=math.ldexp(problem.reg, -power),
        reg_m=(low_a, low_b),
    )
    with np.errstate(over="ignore"):  # any potentials bound the optimum
        potentials = {
            name: np.ldexp(np.asarray(arrays[name], np.float64), -power) for name in ("f", "g") if name in arrays
        }
    return Scaled(scaled, dict(arrays) | potentials, power, (high_a, high_b))


def _holds(problem: UnbalancedTransport, power: int) -> bool:
    """Whether it is worth it, and costs and strengths times 2^-power stay far below float64's largest number."""
    if not (problem.a.any() and problem.b.any()):
        return False
    sizes = [abs(one) for one in (*problem.cost_bounds, *problem.reg_m) if math.isfinite(one)]
    largest = max(sizes, default=0.0)
    return not largest or math.frexp(largest)[1] - power <= TOP


def _either_way(strength: float, power: int) -> tuple[float, float]:
    """strength 2^-power rounded down and up."""
    moved = math.ldexp(strength, -power)
    back = math.ldexp(moved, power)
    return (
        math.nextafter(moved, 0.0) if back > strength else moved,
        math.nextafter(moved, math.inf) if back < strength else moved,
    )


def back(certificate: Certificate, power: int) -> Certificate:
    """The certificate in the problem's own units, rounded to the weak side where they leave the normal numbers.

    There objective and bound move apart by up to a smallest number each, which the gap has to cover. So its share is
    worked out from what is stated, and the word that it earns follows from that share.
    """
    if not power:
        return certificate
    objective, apart = _times(certificate.objective, power, 1)
    bound, below = _times(certificate.bound, power, -1)
    gap, _ = _times(certificate.gap_abs, power, 1)
    gap = None if gap is None else add_up(gap, SMALLEST * (apart + below)).item()
    known = None not in (gap, objective, bound)
    return replace(
        certificate,
        objective=objective,
        bound=bound,
        gap_abs=gap if known else None,
        gap_rel=share_up(gap, objective, bound) if known else None,
    )


def _times(value: Number | None, power: int, side: int) -> tuple[float | None, bool]:
    """value 2^power rounded to a side, and whether it was rounded; None where it is too large for float64."""
    if value is None:
        return None, False
    try:
        moved = math.ldexp(value, power)
    except OverflowError:
        return None, False
    if math.ldexp(moved, -power) == value:
        return moved, False
    return math.nextafter(moved, side * math.inf), True
