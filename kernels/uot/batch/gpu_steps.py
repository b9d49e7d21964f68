"""The steps of `steps.py`, one kernel each: on a stack of small problems a launch costs more than its work."""

from typing import Any

import cupy as cp

from kernels.uot.batch.steps import LARGEST_EXPONENT
from kernels.uot.repair import LOST

_distance = cp.ElementwiseKernel(
    "raw float64 x, raw float64 y, int64 m, int64 n, int64 d, bool root",
    "float64 away",
    """
    const long long problem = i / (m * n), row = i / n % m, column = i % n;
    const long long from = (problem * m + row) * d, to = (problem * n + column) * d;
    double sum = 0;
    for (long long k = 0; k < d; ++k) {
        const double apart = x[from + k] - y[to + k];
        sum = __dadd_rn(sum, __dmul_rn(apart, apart));  // not fused: the sums of steps.py
    }
    away = root ? sqrt(sum) : sum;
    """,
    "uot_distances_of_stacks",
)
_in_units = cp.ElementwiseKernel("C cost, float64 unit", "float32 one", "one = (float)(cost / unit)", "uot_in_units")
_entry = cp.ElementwiseKernel(
    "float64 row, float64 column, C cost, float64 scale",
    "float64 entry",
    f"entry = exp2(fmin(__dsub_rn(row + column, __dmul_rn((double)cost, scale)), {LARGEST_EXPONENT}))",
    "uot_entries_of_stacks",
)
_factor = cp.ElementwiseKernel(
    "float64 wanted, float64 found, bool capped",
    "float64 factor, bool lost",
    f"""
    const double ratio = found > 0 ? wanted / found : 1.0;
    factor = capped ? fmin(ratio, 1.0) : ratio;
    lost = !(found > {LOST!r} * wanted && found < wanted / {LOST!r});
    """,
    "uot_factors_of_stacks",
)


class DeviceSteps:
    """As `steps.StackSteps`, of arrays on a device."""

    xp = cp

    def distances(self, x: Any, y: Any, root: bool) -> Any:
        """See there."""
        (batch, m, d), n = x.shape, y.shape[1]
        return _distance(x, y, m, n, d, root, cp.empty((batch, m, n)))

    def in_units(self, cost: Any, units: Any) -> Any:
        """See there."""
        return _in_units(cost, units[:, None, None])

    def plan(self, cost: Any, row: Any, column: Any, scale: Any) -> Any:
        """See there."""
        return _entry(row[:, :, None], column[:, None, :], cost, scale[:, :, None])

    def factors(self, wanted: Any, found: Any, capped: bool) -> tuple[Any, Any]:
        """See there."""
        factor, lost = _factor(wanted, found, capped)
        return factor, lost
