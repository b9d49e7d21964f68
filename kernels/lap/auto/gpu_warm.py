"""Warm starts on the GPU: prices out of whichever duals were given, and wide problems made square for them."""

import math
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from kernels.lap.warm import cut
from kernels.problems.arrays import Costs
from kernels.problems.seen import Seen

ROWS_AT_ONCE = 1024
WIDEST = 9 / 8
"""Columns a row up to which a wide problem is made square for its warm start. At 900 x 1000 that saves a quarter to a
half of the time of distances (sqeuclid 6.3 ms cold, 4.8 warm, 3.2 warm with 1% of noise); at 1500 x 2000 free columns
are so near that a cold start is four times faster (3.4 ms for 13.2)."""


ROUNDED = 2.0**-30
"""Far more than a solve in float64 loses, and far less than costs change by."""


@dataclass(frozen=True)
class Start:
    """Where a search begins, on the device, as duals of the minimisation.

    Attributes:
        v: (n_cols,) prices.
        own: (n_cols,) old duals of rows, those of `squared` too, each of which tells a row its earlier column. None
            where only one side was given.
    """

    v: Any
    own: Any = None

    def n_changed(self, least: Any) -> int:
        """Of `least`, min_j c_ij - v_j of every row, how many are not at the row's old dual, and by more than rounding.

        The device is waited for.
        """
        if least.dtype.kind == "i":
            return int((least != self.own).sum())
        return int((abs(least - self.own) > ROUNDED * (abs(self.v).max() + abs(least))).sum())


def start_at(cost: Any, maximize: bool, u0: Costs | None, v0: Costs | None, seen: Seen | None = None) -> Start | None:
    """What to start from; None for a cold start. `seen` as for `prices`."""
    v = prices(cost, maximize, u0, v0, seen)
    if u0 is None or v0 is None:
        return None if v is None else Start(v)
    exact = v.dtype.kind == "i"
    own = cupy.asarray(cut(u0, 1 << 60 if exact else math.inf, exact))  # only compared, so that any number will do
    own = -own if maximize else own
    n_rows, n_cols = cost.shape
    if n_rows < n_cols:  # rows of zeros are at -max v
        own = cupy.concatenate([own, cupy.zeros(n_cols - n_rows, v.dtype) - v.max()])
    return Start(v, own)


def prices(cost: Any, maximize: bool, u0: Costs | None, v0: Costs | None, seen: Seen | None = None) -> Any:
    """Prices to start from, (n_cols,) on the device; None for a cold start. At most 0 where columns may stay free.

    `seen`: of the costs as they came, which spares the device three readings of them.
    """
    if u0 is None and v0 is None:
        return None
    sign = -1 if maximize else 1
    value = np.dtype(np.int64 if cost.dtype.kind == "i" else np.float64)
    exact = value.kind == "i"
    most = 4 * (_largest(cost) if seen is None else seen.largest)
    if v0 is not None:
        v = sign * cupy.asarray(cut(v0, most, exact))
    else:
        assert u0 is not None
        u = sign * cupy.asarray(cut(u0, most, exact))
        v = cupy.full(cost.shape[1], most, value)
        for first in range(0, cost.shape[0], ROWS_AT_ONCE):
            block = sign * cost[first : first + ROWS_AT_ONCE].astype(value) - u[first : first + ROWS_AT_ONCE, None]
            cupy.minimum(v, block.min(axis=0), out=v)
        v = cupy.clip(v, -most, most)
    return cupy.minimum(v, 0) if cost.shape[0] < cost.shape[1] else v


def _largest(cost: Any) -> int | float:
    """max |cost| of what is permitted, found block by block; the device is waited for once."""
    ends = []
    for first in range(0, cost.shape[0], ROWS_AT_ONCE):
        block = cost[first : first + ROWS_AT_ONCE]
        known = cupy.where(cupy.isfinite(block), block, 0) if block.dtype.kind == "f" else block
        ends += [known.max(), known.min()]
    found = cupy.stack(ends).get()
    largest: int | float = max(0, found.max().item(), -found.min().item())
    return largest


def squared(cost: Any) -> Any:
    """A wide matrix with rows of zeros below it, which take the columns that stay free.

    Prices that start from anywhere are right for a square problem, while those of free columns of a wide one must be 0.
    """
    n_rows, n_cols = cost.shape
    return cupy.concatenate([cost, cupy.zeros((n_cols - n_rows, n_cols), cost.dtype)])


def cut_back(forest: Any, n_rows: int) -> None:
    """Drop the rows of zeros from an answer: all of them have the dual -max v, which moves to the other rows."""
    most = forest.v.max()
    forest.u += most
    forest.v -= most
    forest.u, forest.row_col = forest.u[:n_rows], forest.row_col[:n_rows]
    forest.col_row[forest.col_row >= n_rows] = -1
    forest.n_rows = n_rows
