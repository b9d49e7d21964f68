"""Paths of wide problems from any old prices: spare rows of zeros make them square.

A wide problem is a square one with n_cols - n_rows spare rows, whose costs are 0: columns that stay free belong to
them. Then no column needs to be at the price of all free ones first (`near_wide.py`), and prices only fall. Spare rows
are alike, so they are not written out: a column of any of them has row n_rows. A search that comes to such a column
offers, from the first one alone, length + top - v_j to all columns. Here top is the price of columns of spare rows:

    seat_spare      spare rows take free columns at the highest price
    augment_spare   Dijkstra's search from each row still free, and from spare rows without a column, by whole rows

At the end every column has a row, all those of spare rows have one price, and no column has a higher one.
"""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.shortlist import NIL, inner, jit, wide
from kernels.lap.cpu.whole import Whole
from kernels.lap.cpu.whole_path import NO_PATH, PATHS, READ, TOO_WIDE, begin, gather, least_label, relax
from kernels.problems.arrays import Costs

NOBODY = -1


@jit
def seat_spare(s: Whole, top: Costs) -> int:
    """Let spare rows take free columns at the highest price, which goes into `top` (1,); how many have none then."""
    s = borrowed(s)
    spare = s.col_of.size
    left = s.v.size - spare
    top[0] = s.v.max()
    for j in range(s.v.size):
        if s.row_of[j] < 0 and s.v[j] == top[0] and left > 0:
            s.row_of[j] = spare
            left -= 1
    return left


@jit
def leave_spare(s: Whole) -> None:
    """Columns of spare rows are free again."""
    s = borrowed(s)
    for j in range(s.v.size):
        if s.row_of[j] == s.col_of.size:
            s.row_of[j] = NOBODY


@inner
def relax_spare(s: Whole, base: Any, top: Any) -> Any:
    """As `whole_path.relax` from a spare row at distance `base`."""
    v, keys, parent, here, value = s.v, s.keys, s.parent, np.int32(s.col_of.size), s.v.dtype.type
    for j in range(v.size):
        length = value(base + value(top - v[j]))
        key, before = keys[j], parent[j]
        parent[j] = here if length < key else before
        keys[j] = length if length < key else key
    return least_label(s)


@inner
def begin_spare(s: Whole, top: Any) -> Any:
    """As `whole_path.begin` from a spare row."""
    for j in range(s.v.size):
        s.keys[j], s.closed[j] = s.inf, 0
    return relax_spare(s, s.v.dtype.type(0), top)


@inner
def find_end(s: Whole, source: int, top: Any) -> tuple[int, int, int]:
    """The nearest free column, or -1; how many columns were scanned; the first one of a spare row, or -1."""
    s = borrowed(s)
    spare, value, entered = s.col_of.size, s.v.dtype.type, NIL - 1
    low = begin_spare(s, top) if source == spare else begin(s, source)
    level, at, n_ready = low, NIL, NIL
    while True:
        if at == n_ready or low == level:
            level = low
            if level == s.shut:
                return NIL - 1, n_ready, entered
            end, n_ready = gather(s, level, n_ready)
            if end >= 0:
                s.counts[READ] += at + 1
                return end, n_ready, entered
        j = wide(s.scanned[at])
        at += 1
        i = wide(s.row_of[j])
        if i < spare:
            low = relax(s, i, s.keys[j], value(s.cost[i, j] - s.v[j]))
        elif entered < 0 and source < spare:
            entered, low = j, relax_spare(s, s.keys[j], top)
        else:
            low = least_label(s)


@jit
def augment_spare(s: Whole, top: Costs, n_spare: int, first: int, last: int, work: int) -> int:
    """As `whole_path.augment` of `n_spare` spare rows, then of the rows in `free`."""
    s = borrowed(s)
    spare = s.col_of.size
    for k in range(first, last):
        source, before = spare if k < n_spare else wide(s.free[k - n_spare]), s.counts[READ]
        end, n_scanned, entered = find_end(s, source, top[0])
        if end < 0:
            return NO_PATH
        for t in range(n_scanned):
            j = s.scanned[t]
            s.v[j] -= s.keys[end] - s.keys[j]
            if s.v[j] < s.floor:
                return TOO_WIDE
        if source == spare:
            top[0] -= s.keys[end]
        elif entered >= 0:
            top[0] = s.v[entered]
        if s.parent[end] == spare:
            s.v[end] = top[0]  # what it differs by is rounding
        turn_spare(s, end, source, entered)
        s.counts[PATHS] += 1
        work -= (s.counts[READ] - before) * s.v.size
        if work <= 0:
            return k + 1
    return last


@inner
def turn_spare(s: Whole, end: int, source: int, entered: int) -> None:
    """As `seats.flip`, where a spare row on the way gives up column `entered`."""
    spare, j, i = s.col_of.size, wide(end), NIL - 1
    while i != source:
        i = wide(s.parent[j])
        s.row_of[j] = i
        if i == spare:
            j = wide(entered)
        else:
            s.col_of[i], j = j, wide(s.col_of[i])


def warm_up(s: Whole) -> None:
    """Compile the steps for the type of a search."""
    top = np.zeros(1, s.v.dtype)
    seat_spare(s, top)
    augment_spare(s, top, 0, 0, 0, 1)
    leave_spare(s)
