"""Float64 numbers rounded to a side, for the few that are left once a device has swept the many.

Sums are `math.fsum`'s, which is exact and rounds once (J. R. Shewchuk, "Adaptive precision floating-point arithmetic",
Discrete & Computational Geometry 18, 1997). Differences are moved by their own error, which TwoSum finds (D. E. Knuth,
"The Art of Computer Programming", volume 2, 4.2.2, theorem B).
"""

import math
from collections.abc import Sequence

import numpy as np

from kernels.problems import Array


def total(values: Sequence[float], side: int) -> float | None:
    """The exact sum rounded down (side -1) or up (side 1); None where it, or a part of it, leaves float64."""
    try:
        nearest = math.fsum(values)
        rest = math.fsum([*values, -nearest])
    except (OverflowError, ValueError):
        return None
    if not math.isfinite(nearest):
        return None
    return nearest if rest * side <= 0 else math.nextafter(nearest, side * math.inf)


def difference_up(x: Array, y: Array) -> Array:
    """x - y rounded up, element by element, where no difference leaves float64."""
    s = x - y
    t = s - x
    error = (x - (s - t)) + (-y - t)
    return np.where(error > 0, np.nextafter(s, np.inf), s)


def ratio_up(gap: float, scale: float) -> float:
    """gap / scale, both at least 0, not rounded down; 0 where the gap is."""
    if not gap:
        return 0.0
    return math.nextafter(gap / scale, math.inf) if scale else math.inf
