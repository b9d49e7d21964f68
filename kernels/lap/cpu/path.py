"""The three steps of the algorithm of Jonker and Volgenant on shortlists; `solver.py` says how they follow each other.

Invariant between steps: col_of and row_of agree; every assigned row's entry is one of its smallest reduced
entries (cost[i, j] - v[j]); prices have only fallen, so list_bound still bounds what is not listed; and when
n_rows < n_cols, v <= 0 with equality in free columns.
"""

from typing import Any

from kernels.lap.cpu.dense import find_path_by_rows
from kernels.lap.cpu.heap import pop, push
from kernels.lap.cpu.shortlist import BLOCK, State, inner, jit, list_reduced, reduce_row
from kernels.problems.arrays import Amount, Amounts

REBUILT, REDUCTIONS, SCANNED, SWEPT, PATHS, TREE, SOURCE, BY_ROWS, STREAK = range(9)
GAVE_UP = -2
NARROW = 2048
"""Columns up to which a whole row is swept sooner than its shortlist is scanned into a heap."""


@jit
def reduce_columns(s: State, first: int, last: int) -> None:
    """Lower each price to the smallest entry of its column among rows first to last - 1 (row 0 sets it)."""
    v, sign = s.v, s.sign
    for i in range(first, last):
        row = s.cost[i]
        if i == 0:
            for j in range(s.n_cols):
                v[j] = row[j] * sign
        else:
            for j in range(s.n_cols):
                v[j] = min(v[j], row[j] * sign)
    if last == s.n_rows:
        for j in range(s.n_cols):
            if v[j] >= s.inf:  # nobody may take column j; any finite price will do
                v[j] = 0


@inner
def two_best(s: State, i: int) -> tuple[Any, int, Any, int]:
    """The smallest and second smallest reduced entry of row i's shortlist, with their columns."""
    best, best_col, second, second_col = s.inf, -1, s.inf, -1
    for t in range(s.list_count[i]):
        j = s.list_cols[i, t]
        value = s.list_weights[i, t] - s.v[j]
        if value < best:
            second, second_col = best, best_col
            best, best_col = value, j
        elif value < second:
            second, second_col = value, j
    return best, best_col, second, second_col


@jit
def reduce_rows(s: State, at: int, kept: int, n_free: int, steps: int) -> tuple[int, int]:
    """Augmenting row reduction of free[at:n_free]: each takes its best column and lowers its price to the second best.

    A row that drives another out hands on its turn when the price fell, else the other waits in free[:kept].
    Ends after `steps` rows; returns the new (at, kept).
    """
    while at < n_free and steps > 0:
        i = s.free[at]
        at += 1
        steps -= 1
        s.counts[REDUCTIONS] += 1
        best, j, second, other = two_best(s, i)
        if second > s.list_bound[i]:
            list_reduced(s, i, reduce_row(s, i))
            s.counts[REBUILT] += 1
            best, j, second, other = two_best(s, i)
        price, waits = s.v[j], second == s.inf
        if not waits:
            price -= second - best
            waits = price < s.shut / 32
        if waits:  # no second choice, or a war of integers over too few columns: left to the paths
            s.free[kept] = i
            kept += 1
            continue
        falls = price < s.v[j]
        if falls:
            s.v[j] = price
        elif s.row_of[j] >= 0:
            j = other
        driven_out = s.row_of[j]
        s.col_of[i], s.row_of[j] = j, i
        if driven_out >= 0:
            s.col_of[driven_out] = -1
            if falls:
                at -= 1
                s.free[at] = driven_out
            else:
                s.free[kept] = driven_out
                kept += 1
    return at, kept


@inner
def origin(s: State, i: int, source: int) -> tuple[Any, Any]:
    """(distance of row i, its own reduced entry): a path through i costs distance + reduced[j] - own."""
    if i == source:
        return s.v[0] * 0, s.v[0] * 0
    j = s.col_of[i]
    return s.distance[j], s.cost[i, j] * s.sign - s.v[j]


@inner
def reach(s: State, i: int, j: int, length: Amount, size: int, n_reached: int) -> tuple[int, int]:
    """Record a shorter way of `length` to column j through row i; return the heap's size and n_reached."""
    if s.distance[j] == s.inf:
        s.reached[n_reached] = j
        n_reached += 1
    s.distance[j] = length
    s.parent[j] = i
    if s.row_of[j] >= 0:
        size = push(s.keys, s.items, s.place, size, length, j)
    return size, n_reached


@inner
def scan(s: State, i: int, source: int, floor: Amount, end: int, size: int, n_reached: int) -> tuple[int, int, int]:
    """Reach columns through row i's shortlist; return the nearest free column (or -1), size, n_reached."""
    base, own = origin(s, i, source)
    best = s.inf if end < 0 else s.distance[end]
    for t in range(s.list_count[i]):
        j = s.list_cols[i, t]
        length = max(floor, base + ((s.list_weights[i, t] - s.v[j]) - own))
        if length < best and length < s.distance[j]:
            size, n_reached = reach(s, i, j, length, size, n_reached)
            if s.row_of[j] < 0:
                best, end = length, j
    return end, size, n_reached


@inner
def sweep(s: State, i: int, source: int, floor: Amount, end: int, size: int, n_reached: int) -> tuple[int, int, int]:
    """Reach columns through all of row i; returns as `scan`.

    Its shortlist is renewed at the 1st, 2nd, 4th, 8th ... sweep: where lists never suffice, renewing them costs most.
    """
    base, own = origin(s, i, source)
    best = s.inf if end < 0 else s.distance[end]
    blocks = reduce_row(s, i)
    for block in range(blocks):
        if s.block_min[block] == s.inf or base + (s.block_min[block] - own) >= best:
            continue
        for j in range(block * BLOCK, min(s.n_cols, block * BLOCK + BLOCK)):
            length = max(floor, base + (s.reduced[j] - own))
            if length < best and length < s.distance[j] and s.reduced[j] < s.inf:
                size, n_reached = reach(s, i, j, length, size, n_reached)
                if s.row_of[j] < 0:
                    best, end = length, j
    s.sweeps[i] += 1
    if s.sweeps[i] & (s.sweeps[i] - 1) == 0:
        list_reduced(s, i, blocks)
    return end, size, n_reached


@inner
def find_path(s: State, source: int) -> tuple[int, int, int]:
    """Dijkstra's search from free row `source`; return (its free column or -1, n_reached, n_scanned).

    GAVE_UP in place of the column says: better search by rows, since most needed a sweep or rows are short.
    A row is first scanned by its shortlist and put back into the heap for a sweep, at the least length that an unlisted
    entry could give. Most sweeps never come up.
    """
    size = n_reached = n_scanned = n_swept = 0
    end, i, floor = -1, source, -s.inf
    while True:
        s.counts[SCANNED] += 1
        end, size, n_reached = scan(s, i, source, floor, end, size, n_reached)
        if s.list_bound[i] < s.inf:
            base, own = origin(s, i, source)
            later = max(floor, base + (s.list_bound[i] - own))
            if end < 0 or later < s.distance[end]:
                size = push(s.keys, s.items, s.place, size, later, s.n_cols + i)
        while True:
            give_up = (n_swept > 8 and 2 * n_swept > n_scanned) or (n_scanned > 32 and s.n_cols <= NARROW)
            if size == 0 or give_up or (end >= 0 and s.keys[0] >= s.distance[end]):
                for t in range(size):
                    s.place[s.items[t]] = -1
                return GAVE_UP if give_up else end, n_reached, n_scanned
            floor = s.keys[0]
            item, size = pop(s.keys, s.items, s.place, size)
            if item < s.n_cols:
                break
            s.counts[SWEPT] += 1
            n_swept += 1
            end, size, n_reached = sweep(s, item - s.n_cols, source, floor, end, size, n_reached)
        s.scanned[n_scanned] = item
        n_scanned += 1
        i = s.row_of[item]


@jit
def augment(s: State, first: int, n_free: int, work: int) -> int:
    """Assign free[first:n_free] along shortest paths until about `work` entries were read.

    Returns the index of the next free row, or ~index of a row that no path leads away from: the problem is then
    infeasible, and the counts[TREE] columns in `scanned` are all that the tree's rows may take.
    """
    for k in range(first, n_free):
        before = s.counts[SCANNED] * 32 + (s.counts[SWEPT] + s.counts[BY_ROWS]) * s.n_cols
        source = s.free[k]
        end, n_reached, n_scanned = GAVE_UP, 0, 0
        if s.counts[STREAK] == 0:
            end, n_reached, n_scanned = find_path(s, source)
            for t in range(n_reached):
                if end == GAVE_UP:
                    s.distance[s.reached[t]] = s.inf
        if end == GAVE_UP:
            s.counts[STREAK] = (s.counts[STREAK] or 16) - 1
            n_reached = 0
            end, n_scanned = find_path_by_rows(s, source)
            s.counts[BY_ROWS] += n_scanned + 1
        if end < 0:
            s.counts[TREE], s.counts[SOURCE] = n_scanned, source
            return ~k
        for t in range(n_scanned):
            j = s.scanned[t]
            s.v[j] -= s.distance[end] - s.distance[j]
        j = end
        i = -1
        while i != source:
            i = s.parent[j]
            s.row_of[j] = i
            s.col_of[i], j = j, s.col_of[i]
        for t in range(n_reached):
            s.distance[s.reached[t]] = s.inf
        for t in range(n_scanned):
            s.distance[s.scanned[t]] = s.inf
        s.distance[end] = s.inf
        s.counts[PATHS] += 1
        work -= s.counts[SCANNED] * 32 + (s.counts[SWEPT] + s.counts[BY_ROWS]) * s.n_cols - before
        if work <= 0:
            return k + 1
    return n_free


@jit
def close(s: State, u: Amounts, complete: bool) -> None:
    """Fill the row duals: c - v where assigned (the row's minimum), one sweep of the row where not.

    With `complete`, rows that have no column then take their cheapest free one: no longer the best choice, but
    the duals stay feasible, so the answer has a bound.
    """
    for i in range(s.n_rows):
        if s.col_of[i] >= 0:
            u[i] = s.cost[i, s.col_of[i]] * s.sign - s.v[s.col_of[i]]
    for i in range(s.n_rows):
        if s.col_of[i] >= 0:
            continue
        blocks = reduce_row(s, i)
        low, best, best_col = s.inf, s.inf, -1
        for block in range(blocks):
            low = min(low, s.block_min[block])
        u[i] = low if low < s.inf else s.v[0] * 0
        if complete:
            for j in range(s.n_cols):
                if s.row_of[j] < 0 and s.reduced[j] < best:
                    best, best_col = s.reduced[j], j
            if best_col >= 0:
                s.col_of[i], s.row_of[best_col] = best_col, i
