"""Steps of answers and of costs over whole stacks, written against the array API that numpy and cupy share.

`gpu_steps.py` has the same as one kernel each.
"""

from typing import Any

import numpy as np

from kernels.uot.repair import LOST

LARGEST_EXPONENT = 1000.0
"""Of 2, of an entry of a plan: a first answer may be far off."""


class StackSteps:
    """Each over arrays (batch, m, n) and vectors (batch, m) or (batch, n) of one array module.

    Args:
        xp: numpy, or what stands for it.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def distances(self, x: Any, y: Any, root: bool) -> Any:
        """Squared distances of points (batch, m, d) and (batch, n, d), in float64 from differences; their roots."""
        found = self.xp.zeros((len(x), x.shape[1], y.shape[1]))
        for k in range(x.shape[2]):
            away = x[:, :, None, k] - y[:, None, :, k]
            found += away * away
        return self.xp.sqrt(found) if root else found

    def in_units(self, cost: Any, units: Any) -> Any:
        """Each problem's costs over its unit, in float32."""
        return (cost / units[:, None, None]).astype(np.float32)

    def plan(self, cost: Any, row: Any, column: Any, scale: Any) -> Any:
        """2^(row + column - cost scale) in float64."""
        exponent = row[:, :, None] + column[:, None, :] - cost.astype(np.float64) * scale[:, :, None]
        return self.xp.exp2(self.xp.minimum(exponent, LARGEST_EXPONENT))

    def factors(self, wanted: Any, found: Any, capped: bool) -> tuple[Any, Any]:
        """wanted / found, 1 where nothing was found, at most 1 if `capped`; and which sums left float64's range."""
        xp = self.xp
        factor = xp.where(found > 0, wanted / xp.where(found > 0, found, 1.0), 1.0)
        lost = ~((found > LOST * wanted) & (found < wanted / LOST))
        return (xp.minimum(factor, 1) if capped else factor), lost
