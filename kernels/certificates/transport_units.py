"""A transport problem in units in which reg is near 1, so that no product of its certificate leaves float64's range.

Costs, reg, reg_m and potentials are multiplied by one power of two, exactly wherever they stay normal; points by it or
by its root. The objective and its bound are multiplied back.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kernels.certificates.rounded import add_up, share_up
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Number

FAR = 64  # powers of two that reg may be from 1
SMALLEST = 2.0**-1074  # above 0


def near_one(
    problem: UnbalancedTransport, arrays: Mapping[str, Array]
) -> tuple[UnbalancedTransport, Mapping[str, Array], int]:
    """The problem and its arrays with costs times 2^-power, and the power, an even one."""
    power = 2 * (math.frexp(problem.reg)[1] // 2)
    if abs(power) <= FAR:
        return problem, arrays, 0
    root = power if problem.metric == "euclidean" else power // 2
    scaled = replace(
        problem,
        cost=None if problem.cost is None else np.ldexp(problem.cost.astype(np.float64), -power),
        x=None if problem.x is None else np.ldexp(problem.x.astype(np.float64), -root),
        y=None if problem.y is None else np.ldexp(problem.y.astype(np.float64), -root),
        reg=math.ldexp(problem.reg, -power),
        reg_m=(math.ldexp(problem.reg_m[0], -power), math.ldexp(problem.reg_m[1], -power)),
    )
    potentials = {name: np.ldexp(np.asarray(arrays[name], np.float64), -power) for name in ("f", "g") if name in arrays}
    return scaled, dict(arrays) | potentials, power


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
