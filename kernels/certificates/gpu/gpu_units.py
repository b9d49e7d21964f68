"""Units in which reg is near 1, so that no product of a transport certificate leaves float64's range.

Costs, reg, reg_m and potentials are multiplied by one power of two, coordinates by it or by its root: exactly, or this
certificate says nothing. Costs of a matrix are multiplied on the device, outward where they leave the normal numbers.
"""

import math
from dataclasses import dataclass

import numpy as np

from kernels.problems import Array, UnbalancedTransport

FAR = 64
"""Powers of two that reg may be from 1 without another unit."""


@dataclass(frozen=True)
class Units:
    """Costs are held times 2^-power. `power` is even: squares of coordinates have a unit too."""

    power: int
    euclidean: bool = False

    @property
    def of_costs(self) -> float:
        """What a cost is multiplied with."""
        return math.ldexp(1.0, -self.power)

    @property
    def of_points(self) -> float:
        """What a coordinate is multiplied with."""
        return math.ldexp(1.0, -self.power if self.euclidean else -self.power // 2)

    def into(self, values: Array) -> Array | None:
        """Potentials in these units; None where that is not exact."""
        return _times(values, self.of_costs)

    def back(self, value: float) -> float | None:
        """A value of these units as one of the problem's; None where that is not exact."""
        found = _times(np.array(value), math.ldexp(1.0, self.power))
        return None if found is None else float(found)

    def fits(self, problem: UnbalancedTransport) -> bool:
        """Whether the problem's numbers can be told in these units."""
        if not self.power:
            return True
        largest = max((abs(cost) for cost in problem.cost_bounds if math.isfinite(cost)), default=0.0)
        if not math.isfinite(largest * self.of_costs):  # a cost may not look forbidden
            return False
        numbers = np.array([problem.reg, *(r for r in problem.reg_m if math.isfinite(r))])
        clouds = [cloud for cloud in (problem.x, problem.y) if cloud is not None]
        scaled = [_times(numbers, self.of_costs), *(_times(cloud, self.of_points) for cloud in clouds)]
        return all(one is not None for one in scaled)


def units_of(problem: UnbalancedTransport) -> Units | None:
    """Those in which reg is from 1/2 to 4, or the problem's own where reg is not far from 1; None for a reg that is
    smaller than any unit."""
    power = 2 * (math.frexp(problem.reg)[1] // 2)
    if abs(power) > 1000:
        return None
    return Units(power if abs(power) > FAR else 0, problem.metric == "euclidean")


def _times(values: Array, factor: float) -> Array | None:
    wide = np.asarray(values, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        scaled = wide * factor
        exact = bool((scaled / factor == wide).all())
    return scaled if exact else None
