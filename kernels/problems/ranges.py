"""The least and the largest number of an array: by NumPy in two readings, or by compiled loops in one.

Who only takes jobs loads no numba. Who solves them has `kernels.ranging` put its loops here as it warms up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.problems.arrays import Amounts, Costs

FEW = 1 << 13
"""Entries up to which NumPy finds the places of both sooner."""
Ends = tuple[int | float, int | float]


def by_numpy(array: Costs) -> Ends:
    """The least and the largest entry; both are NaN where there is one."""
    return array.min().item(), array.max().item()


def largest_by_numpy(array: Costs) -> float:
    """The largest magnitude of floats, infinities left out."""
    return float(np.abs(np.where(np.isinf(array), 0, array)).max())


ends_of: Callable[[Costs], Ends] = by_numpy
"""The same of a contiguous array; at least one of the two is NaN where there is one."""
largest_of: Callable[[Costs], float] = largest_by_numpy
"""The same of a contiguous array without NaN."""
Beside = Callable[[], float | None]
"""What is done with costs while they are read: the largest magnitude, or None where they are not all finite."""
beside: Callable[[Costs, bool, Amounts, Any], Beside | None] | None = None
"""Makes that of costs, whether they are to be maximised, prices to start from, and what came as duals of rows."""


def largest_finite(array: Costs) -> float:
    """The largest magnitude of floats without NaN, infinities left out; 0 where nothing is left."""
    return largest_of(array) if array.flags.c_contiguous and array.flags.aligned else largest_by_numpy(array)


def extremes(array: Costs) -> Ends:
    """The least and the largest entry of an array of any size; at least one of the two is NaN where there is one."""
    if array.size <= FEW:
        return array.item(array.argmin()), array.item(array.argmax())
    return ends_of(array) if array.flags.c_contiguous and array.flags.aligned else by_numpy(array)
