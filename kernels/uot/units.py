"""A problem whose costs leave the range of float32, in units in which reg is near 1.

Costs, reg, reg_m and potentials are multiplied by one power of two, exactly wherever they stay normal, points by it or
by its root; so a solve takes the same steps whatever the units are. Where costs or reg_m are so much larger than reg
that they would leave float64, the units stay as they are.
"""

import math
from dataclasses import replace

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Array, Reals
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Number, Termination

SMALLEST_REG, LARGEST_COST = 1e-24, 1e36  # that float32 takes
TOP = 1000
"""Powers of two that a number may have in other units."""
NOTICED = 2.0**-60  # reg below which costs count that are subnormal in float32


def fits_float32(problem: UnbalancedTransport) -> bool:
    """True where costs over reg keep their digits in float32, and neither they nor 1 / reg leave its range."""
    largest = max(map(abs, problem.cost_bounds))
    return SMALLEST_REG < problem.reg < 1 / SMALLEST_REG and largest < LARGEST_COST


def near_one(problem: UnbalancedTransport) -> tuple[UnbalancedTransport, float]:
    """The problem in units of a power of two near reg, where its own leave float32, and that unit."""
    power = 2 * (math.frexp(problem.reg)[1] // 2)
    largest = max(abs(one) for one in (0.0, *problem.cost_bounds, *problem.reg_m) if math.isfinite(one))
    if fits_float32(problem) or (largest and math.frexp(largest)[1] - power > TOP):
        return problem, 1.0
    root = power if problem.metric == "euclidean" else power // 2

    def scaled(array: Array | None, by: int) -> Array | None:
        return None if array is None else np.ldexp(array, -by)

    moved = replace(
        problem,
        cost=scaled(problem.cost, power),
        x=scaled(problem.x, root),
        y=scaled(problem.y, root),
        f0=scaled(problem.f0, power),
        g0=scaled(problem.g0, power),
        reg=math.ldexp(problem.reg, -power),
        reg_m=(math.ldexp(problem.reg_m[0], -power), math.ldexp(problem.reg_m[1], -power)),
    )
    return moved, 2.0**power


def unflushed(cost: Reals, reg: float) -> Reals:
    """Costs in a type of which a device loses nothing that counts beside `reg`.

    A device may take float32 numbers below 2^-126 for zeros. float64 holds them as normal numbers.
    """
    return cost.astype(np.float64 if reg < NOTICED else cost.dtype, copy=False)


class Translated(Deadline):
    """A deadline that hears of values in other units."""

    def __init__(self, deadline: Deadline, unit: float) -> None:
        self._heard, self._unit = deadline, unit

    def expired(self) -> Termination | None:
        """As the deadline behind says."""
        return self._heard.expired()

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Pass on, in the units of the job."""
        known = (None if value is None else value * self._unit for value in (objective, bound))
        self._heard.report(iteration, next(known), next(known), fraction)
