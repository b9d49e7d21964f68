"""Shortest augmenting paths by whole rows: for integers of 27 bits, for short rows, and for warm starts.

    start_prices        v_j = min_i c_ij                         (square problems that start cold; else v as given)
    seat_rows           warm starts: a row takes its best column where that is free; no price moves
    reduce_rows  twice  a free row takes its best column, whose price falls to the second best
    augment             Dijkstra's search from each row still free, then prices and pairs along the path

A shortlist of a row (`shortlist.py`) costs as much as ten looks at the whole row, which vector instructions read 8
to 16 entries at a time. So it pays only where rows are long and looked at often. Integers whose values tie make long
lists; they are read whole here, in int32 (`whole.py`).
"""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.seats import flip, seat_rows
from kernels.lap.cpu.shortlist import NIL, NO, jit
from kernels.lap.cpu.whole import STRIDE, Whole, free_low, inlined, new_whole, order, second_least, value_of, where_low
from kernels.problems.arrays import AnyIntegers, Costs, Indices

NO_PATH, TOO_WIDE = -2, -3
REDUCTIONS_PER_ROW = 2
"""In each of the two passes; the paths finish what is left."""
FEW = 8
"""From old prices, up to one free row in so many is left to the paths alone: reductions would move all others."""
REDUCTIONS, READ, PATHS = range(3)


@jit
def start_prices(s: Whole, first: int, last: int) -> None:
    """Lower each price to the least entry of its column among rows first to last - 1 (row 0 sets it)."""
    s = borrowed(s)
    v = s.v
    for i in range(first, last):
        row = s.cost[i]
        if i == 0:
            for j in range(v.size):
                v[j] = row[j]
        else:
            for j in range(v.size):
                v[j] = row[j] if row[j] < v[j] else v[j]
    if last == s.cost.shape[0]:
        for j in range(v.size):
            if v[j] >= s.inf:  # nobody may take column j; any finite price will do
                v[j] = 0


@jit
def reduce_rows(s: Whole, at: int, kept: int, n_free: int, steps: int) -> tuple[int, int]:
    """Augmenting row reduction of free[at:n_free]; see `cpu_path.reduce_rows`, which does the same on shortlists."""
    s = borrowed(s)
    value, free = s.v.dtype.type, s.free
    while at < n_free and steps > 0:
        i = free[at]
        at += 1
        steps -= 1
        s.counts[REDUCTIONS] += 1
        low = order(s, i)
        second, ties = second_least(s, low)
        falls = ties == 1
        j = where_low(s, low, 0) if falls else free_low(s, low)
        price = s.v[j]
        if falls:
            margin = value(value_of(s, second) - value(s.cost[i, j] - price))
            price = value(price - margin)
        if low == s.shut or (falls and second == s.shut) or price < s.floor:
            free[kept] = i
            kept += 1
            continue
        falls = price < s.v[j]
        s.v[j] = price
        driven_out = s.row_of[j]
        s.col_of[i], s.row_of[j] = j, i
        if driven_out >= 0:
            s.col_of[driven_out] = -1
            if falls:
                at -= 1
                free[at] = driven_out
            else:
                free[kept] = driven_out
                kept += 1
    return at, kept


@jit
def list_free(s: Whole) -> int:
    """Fill `free` with the rows that have no column; return how many."""
    s = borrowed(s)
    n_free = 0
    for i in range(s.col_of.size):
        if s.col_of[i] < 0:
            s.free[n_free] = i
            n_free += 1
    return n_free


@inlined
def least_label(s: Whole) -> Any:
    """Fill `block_min`; return the least label that is left to choose, as bits."""
    bits, closed, whole = s.key_bits, s.closed, s.v.size // STRIDE
    shut = bits.dtype.type(s.shut)
    low = shut
    for block in range(whole):
        least, first = shut, block * STRIDE
        for j in range(first, first + STRIDE):
            least = min(least, max(bits[j], closed[j]))
        s.block_min[block] = least
        low = min(low, least)
    least = shut
    for j in range(whole * STRIDE, s.v.size):
        least = min(least, max(bits[j], closed[j]))
    s.block_min[whole] = least
    return min(low, least)


@inlined
def begin(s: Whole, source: int) -> Any:
    """Label every column from row `source`, the nearest with 0; return the bits of the least label."""
    row, v, keys, parent, closed, here = s.cost[source], s.v, s.keys, s.parent, s.closed, np.int32(source)
    value = v.dtype.type
    low = order(s, source)
    if low == s.shut:
        return low
    own = value_of(s, low)
    for j in range(v.size):
        keys[j] = value(value(row[j] - v[j]) - own)
    for j in range(v.size):
        parent[j] = here
        closed[j] = 0
    return least_label(s)


@inlined
def relax(s: Whole, i: int, base: Any, own: Any) -> Any:
    """Offer labels from row i at distance `base`, whose pair is `own`; return the bits of the least label left."""
    row, v, keys, parent, here, value = s.cost[i], s.v, s.keys, s.parent, np.int32(i), s.v.dtype.type
    for j in range(v.size):
        length = value(base + value(value(row[j] - v[j]) - own))
        length = base if length < base else length
        key, before = keys[j], parent[j]
        parent[j] = here if length < key else before
        keys[j] = length if length < key else key
    return least_label(s)


@inlined
def gather(s: Whole, level: Any, n_ready: int) -> tuple[int, int]:
    """Close all columns at `level` and line them up in `scanned`; or return one that is free, else -1; and n_ready."""
    for block in range(s.block_min.size):
        if s.block_min[block] == level:
            for j in range(block * STRIDE, min(s.v.size, block * STRIDE + STRIDE)):
                if max(s.key_bits[j], s.closed[j]) == level:
                    if s.row_of[j] < 0:
                        return j, n_ready
                    s.closed[j] = s.shut
                    s.scanned[n_ready] = j
                    n_ready += 1
    return -1, n_ready


@jit
def find_path(s: Whole, source: int) -> tuple[int, int]:
    """Dijkstra's search from a free row: its nearest free column, or -1, and how many columns were scanned."""
    s = borrowed(s)
    value = s.v.dtype.type
    level = low = begin(s, source)
    at, n_ready = NIL, NIL
    while True:
        if at == n_ready or low == level:
            level = low
            if level == s.shut:
                return -1, n_ready
            end, n_ready = gather(s, level, n_ready)
            if end >= 0:
                s.counts[READ] += at + 1
                return end, n_ready
        j = s.scanned[at]
        at += 1
        i = s.row_of[j]
        low = relax(s, i, s.keys[j], value(s.cost[i, j] - s.v[j]))


@jit
def augment(s: Whole, first: int, last: int, work: int) -> int:
    """Assign free[first:last] along shortest paths until about `work` entries were read.

    Returns the index of the next free row; NO_PATH or TOO_WIDE where the search cannot go on here.
    """
    s = borrowed(s)
    for k in range(first, last):
        source = s.free[k]
        before = s.counts[READ]
        end, n_scanned = find_path(s, source)
        if end < 0:
            return NO_PATH
        for t in range(n_scanned):
            j = s.scanned[t]
            s.v[j] -= s.keys[end] - s.keys[j]
            if s.v[j] < s.floor:
                return TOO_WIDE
        flip(s, end, source)
        s.counts[PATHS] += 1
        work -= (s.counts[READ] - before) * s.v.size
        if work <= 0:
            return k + 1
    return last


@jit
def solve_whole(s: Whole, start: int, own: AnyIntegers) -> bool:
    """All steps without a look at the clock. `start`: -1 begins with row reductions, 0 with start_prices, 1 with seats.

    False where there is no full assignment, or int32 does not suffice.
    """
    s = borrowed(s)
    first = NIL
    every: Any = np.int64(1 << 62)
    n_rows = s.cost.shape[0]
    if start == 0:
        start_prices(s, first, n_rows)
    elif start == 1:
        seat_rows(s, first, n_rows, own)
    n_free = list_free(s)
    if start != 1 or n_free * FEW > n_rows:
        reduce_rows(s, first, first, n_free, REDUCTIONS_PER_ROW * n_rows)
        n_free = list_free(s)
        reduce_rows(s, first, first, n_free, REDUCTIONS_PER_ROW * n_rows)
    return augment(s, first, list_free(s), every) >= 0


def least_of_free(s: Whole, n_free: int) -> dict[int, Any]:
    """The least entry minus its price of each row in free[:n_free]; it stays a bound, as prices only fall."""
    return {i: (s.cost[i] - s.v).min().item() for i in s.free[:n_free].tolist()}


@jit
def close(s: Whole, u: Costs, complete: bool) -> None:
    """Fill the row duals: c - v where assigned (the row's minimum), the least of the row where not.

    With `complete`, rows that have no column then take their cheapest free one: no longer the best choice, but
    the duals stay feasible, so the answer has a bound.
    """
    s = borrowed(s)
    for i in range(u.size):
        if s.col_of[i] >= 0:
            u[i] = s.cost[i, s.col_of[i]] - s.v[s.col_of[i]]
            continue
        low, found, best = s.inf, -1, s.inf
        for j in range(s.v.size):
            reduced = s.v.dtype.type(s.cost[i, j] - s.v[j])
            low = min(low, reduced)
            if s.row_of[j] < 0 and reduced < best:
                found, best = j, reduced
        if low < s.inf:
            u[i] = low
        if complete and found >= 0:
            s.col_of[i], s.row_of[found] = found, i


@jit
def solve_at_once(
    cost: Costs, limits: Costs, bits: AnyIntegers, v: Costs, u: Costs, col_of: Indices, start: int, own: AnyIntegers
) -> tuple[bool, int, int, int]:
    """`solve_whole` and `close` of a new search, into v, u and col_of: whether it is solved, and `counts`.

    One call, as handing a state to Python and back takes longer than to solve 16 x 16. An array that Python made and
    lends takes 35 ns, one that it is given 300 ns, and a number of numpy's 240 ns.
    """
    s = new_whole(cost, limits, bits, v, col_of)
    solved = solve_whole(s, start, own)
    if solved:
        close(s, u, NO)
    return solved, s.counts[REDUCTIONS], s.counts[READ], s.counts[PATHS]
