"""Benefits as whole numbers of 32 bits for the phases, and whole prices from theirs.

Integers of a small span are multiplied by a *grain*, so that epsilon can fall well below one. Phases that end at such
an epsilon leave prices in grains, and `whole_prices` rounds them in a way that keeps nearly every row at its best.

Why a place to round at can be chosen: let a row hold column j within epsilon of its best, at prices p in grains. For
each of its other columns k, with the whole number d = b_ij - b_ik,

    p_j - p_k <= grain * d + epsilon,      and P_j - P_k <= d     is wanted for P = floor((p + lift) / grain).

The wanted inequality follows unless (p_k + lift) mod grain lies in its last epsilon numbers. So what a `lift` spoils is
seen from the remainders of the prices alone. There are grain / epsilon windows to choose from. With n columns one of
them holds at most n * epsilon / grain prices, and far fewer where ties let prices move together.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.auction.cpu.phases import BENEFIT, COLUMN, SPAN, Packed
from kernels.problems import Csr
from kernels.problems.arrays import AnyIndices, untouched

LEAST_GRAIN, ROWS_A_GRAIN, TIES = 64, 32, 2**16
"""The grain that is wanted is a power of two: the first at least; where ties make trees large, up to a 32nd of the
rows, but no more than make TIES of the span."""
FINE = 16
"""From this grain on, phases go on to an epsilon of 1: the prices' roundings then leave few rows to the finish."""
ENTRIES = 1 << 16
"""Edges packed together, so that what is in between stays near the processor."""


class Grain(NamedTuple):
    """What benefits (and prices) of a problem are multiplied by; the unit that one of the phases' numbers is then worth
    where the span is too wide for grains of its own: a power of two, or any number for floats."""

    grain: int
    unit: float

    @property
    def is_fine(self) -> bool:
        """Whether epsilon may fall so far below one that rounding leaves hardly anything to do."""
        return self.grain >= FINE


def grain_of(span: float, n: int, floats: bool) -> Grain:
    """The finest grain that is worth it for benefits of this span and n rows."""
    if floats:
        return Grain(1, float(span) / SPAN)
    wide = int(span)
    if wide > SPAN:
        return Grain(1, 1 << (wide.bit_length() - (SPAN.bit_length() - 1)))
    wanted = max(LEAST_GRAIN, min(2 * _power_below(n // ROWS_A_GRAIN), _power_below(TIES // max(1, wide))))
    return Grain(min(wanted, _power_below(SPAN // max(1, wide))), 1)


def _power_below(number: int) -> int:
    """The largest power of two that is not above it; 1 where there is none."""
    return 1 << max(0, number.bit_length() - 1)


def packed(graph: Csr, grain: Grain, low: float) -> Packed:
    """Columns beside benefits less the smallest one, `low`, as the phases read them."""
    edges = np.empty((graph.values.size, 2), np.int32)
    edges[:, COLUMN] = graph.indices
    for first in range(0, edges.shape[0], ENTRIES):
        values: Any = graph.values[first : first + ENTRIES]
        to = edges[first : first + ENTRIES, BENEFIT]
        if values.dtype.kind == "f":
            to[:] = np.minimum((values - low) * (1 / grain.unit), SPAN)
        elif grain.unit > 1:
            to[:] = (values - np.int64(low)) >> (int(grain.unit).bit_length() - 1)
        else:
            to[:] = (values - np.int64(low)) * grain.grain
    return Packed(untouched(graph.indptr.astype(np.int32)), edges)


def whole_prices(prices: AnyIndices, grain: int, epsilon: int) -> AnyIndices:
    """Prices in grains, rounded down to whole ones where it spoils the fewest pairs that are within epsilon."""
    if grain == 1:
        return prices
    lift = 0
    if epsilon < grain:
        remainders = np.bincount(prices % grain, minlength=grain)
        sums = np.concatenate([[0], np.cumsum(np.concatenate([remainders, remainders[:epsilon]]))])
        spoilt = sums[epsilon : epsilon + grain] - sums[:grain]
        lift = -(int(spoilt.argmin()) + epsilon) % grain
    return (prices + lift) // grain
