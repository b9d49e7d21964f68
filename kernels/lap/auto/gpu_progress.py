"""What a search on the GPU can say of its answer while it runs: an objective that can be had, and a bound.

The bound comes from the prices between two launches: row minima of c - v, taken on the device in the same stream by
the kernel that certifies answers, and copied to page-locked memory. The host adds them up and rounds to the weak side,
so the bound is true whatever the prices are.

The objective comes from a copy of the pairs, which the copy engine makes beside the running search. Of a row that is
seen in two columns, while a path is being flipped, one is kept. Free rows then take their cheapest free columns.
"""

import math
from collections.abc import Callable
from typing import Any

import cupy
import cupyx
import numpy as np

from kernels.deadline import Deadline
from kernels.lap.auto.gpu_forest import Forest
from kernels.lap.proof.gpu_proof import row_minima
from kernels.problems.arrays import Amounts, Costs, Indices, Indices32, permitted
from kernels.solution import Number

LEAST_ENTRIES = 1 << 24
"""Smaller problems are solved in a few milliseconds: nobody watches them."""
EVERY_S = 0.25
"""Seconds between two looks at the pairs."""
MOST_READ = 1 << 24
"""Entries that the host may read to complete a pairing: some 20 ms. Where more rows are free, it waits."""


class DeviceWatch:
    """Reports of one search: `cost` (n_rows, n_cols) on the device, n_rows <= n_cols, and `lines`, it on the host.

    It is off where nobody listens, for small problems, and where the forest solves another form of them.
    """

    def __init__(self, forest: Forest, cost: Any, lines: Costs, maximize: bool, deadline: Deadline) -> None:
        self.on = deadline.heard and cost.size >= LEAST_ENTRIES and cost.shape == (forest.n_rows, forest.n_cols)
        self.objective: Number | None = None
        self.bound: Number | None = None
        self._forest, self._cost, self._lines, self._negate = forest, cost, lines, maximize
        self._sign = -1 if maximize else 1
        self._n_marks, self._next_s = 0, EVERY_S
        self._bounds: list[tuple[Any, Amounts, Amounts]] = []
        self._copied: Any = None
        if self.on:
            self._pairs: Indices32 = cupyx.empty_pinned(forest.n_cols, np.int32)
            self._aside = cupy.cuda.Stream(non_blocking=True)
            row_minima(cost[:1], maximize, forest.u, forest.v, forest.row_col)  # loaded before the search is running

    def begin(self) -> Callable[[], None]:
        """What a search from the start calls between its launches."""
        self._n_marks = 0
        return self._mark

    def _mark(self) -> None:
        """Behind every auction, enqueue what its prices are worth."""
        self._n_marks += 1
        if not self.on or self._n_marks % 2:  # auctions are every second launch
            return
        forest = self._forest
        minima = row_minima(self._cost, self._negate, forest.u, forest.v, forest.row_col)
        parts = [cupyx.empty_pinned(array.shape, array.dtype) for array in (minima, forest.v)]
        for array, pinned in zip((minima, forest.v), parts, strict=True):
            array.get(out=pinned, blocking=False)
        done = cupy.cuda.Event(disable_timing=True)
        done.record()
        self._bounds.append((done, parts[0], parts[1]))

    def look(self, elapsed_s: float) -> bool:
        """Take up what has come from the device, and ask for the pairs anew; whether there is anything to tell."""
        if not self.on:
            return False
        told = False
        while self._bounds and self._bounds[0][0].done:
            _, minima, v = self._bounds.pop(0)
            told |= self._take_bound(weak_sum(minima[:, 1], v, self._cost.dtype))
        if self._copied is not None and self._copied.done:
            self._copied = None
            found = completed(self._lines, self._pairs.astype(np.int64), self._sign)
            better = found is not None and (self.objective is None or self._sign * (found - self.objective) < 0)
            self.objective = found if better else self.objective
            told = True
        elif self._copied is None and elapsed_s >= self._next_s:
            self._next_s = elapsed_s + EVERY_S
            self._forest.col_row.get(stream=self._aside, out=self._pairs, blocking=False)
            self._copied = self._aside.record()
        return told

    def _take_bound(self, found: Number | None) -> bool:
        if found is None or (self.bound is not None and found <= self._sign * self.bound):
            return False
        self.bound = self._sign * found
        return True

    def close(self) -> None:
        """Wait for a copy that is still under way: its memory is given back after this."""
        if self.on:
            self._aside.synchronize()


def weak_sum(least: Amounts, v: Amounts, dtype: Any) -> Number | None:
    """Row minima, rounded, and prices added up to a bound of the minimisation: never above the exact sum.

    None where the prices bound nothing: a row without entries, or a price above 0 where columns may stay free.
    """
    if v.size > least.size and v.max() > 0:
        return None
    if least.dtype.kind == "i":
        return int(least.sum()) + int(v.sum())
    if not (np.isfinite(least).all() and np.isfinite(v).all()):
        return None
    lost = least.size * float(np.finfo(np.float32).tiny) if dtype == np.float32 else 0.0  # subnormals count as 0 there
    below = np.nextafter(least, -np.inf).tolist()
    return math.nextafter(math.fsum([*below, *v.tolist(), -lost]), -math.inf)


def completed(lines: Costs, col_row: Indices, sign: int) -> Number | None:
    """The objective of pairs seen from the columns, once free rows took their cheapest free columns, in order.

    None where a row could not, or where too many are free.
    """
    rows, at = np.unique(col_row, return_index=True)
    known = (rows >= 0) & (rows < lines.shape[0])
    rows, cols = rows[known], at[known]
    taken = lines[rows, cols]
    free = np.setdiff1d(np.arange(lines.shape[0]), rows)
    if free.size * lines.shape[1] > MOST_READ or not permitted(taken).all():
        return None
    total: Number = taken.astype(np.int64 if lines.dtype.kind == "i" else np.float64).sum().item()
    open_cols = np.ones(lines.shape[1], bool)
    open_cols[cols] = False
    for i in free.tolist():
        where = np.flatnonzero(open_cols)
        values = lines[i, where]
        j = int((values.argmin if sign > 0 else values.argmax)())
        if not permitted(values[j : j + 1])[0]:
            return None
        total += values[j].item()
        open_cols[where[j]] = False
    return total
