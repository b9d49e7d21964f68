"""Potentials behind the lower bound: those of a sample's exact transport, taken to all rows.

For any g, f_i = min_j (C_ij - g_j) makes f_i + g_j <= C_ij, and the other way round. The certificate works the columns'
out again, so f alone is evidence, and any f proves something.
"""

from typing import Any

from kernels.deadline import Deadline
from kernels.lowrank.costs import Costs
from kernels.lowrank.descent import Sums
from kernels.lowrank.starts import Sample


def potentials(costs: Costs, sample: Sample, deadline: Deadline, sums: Sums) -> tuple[Any, float | None]:
    """f of all rows, and the bound that it makes but for rounding; None where there was no time to work that out.

    The potentials of a sample hold within it: those of all columns make them hold everywhere, at two more passes.
    """
    xp = costs.xp
    f = xp.asarray(sample.f)
    if not sample.is_all:
        inner = (xp.asarray(sample.cost) - f[:, None]).min(axis=0)
        f = costs.over_columns(inner, xp.asarray(sample.columns))
    if deadline.expired() is not None:
        return f, None
    g = costs.over_rows(f)
    if not sample.is_all and deadline.expired() is None:
        f = costs.over_columns(g)
    return f, float((sums.a * f).sum() + (sums.b * g).sum())
