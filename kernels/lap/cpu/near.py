"""Warm starts: each row keeps its columns near the least, and paths are searched among these alone.

    seat_and_list   one sweep: rows list what lies within a window above their least, and take columns at the least
    augment_near    Dijkstra's search from each row still free, over the lists (`near_path.py`)

Old prices put every row but the changed ones at its least, so a path is short and runs through near columns. A list is
read in a tenth of the time of a row. What a row has not listed is beyond its bound, and stays there, as prices only
fall. So a row that was reached waits in the heap at the label that its bound gives, beside the columns at theirs. Where
it comes out first, it is read once more over a wider window. Once a search reads too many rows again, it and all later
ones are left to whole rows (`whole_path.py`), and so are costs that tie too much to be listed.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.cpython.unsafe.numbers import trailing_zeros

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.seats import ROUNDING, flip, take_free
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.vectors import VectorCode, compiled
from kernels.lap.cpu.whole import Whole, inlined, order
from kernels.problems.arrays import AnyIntegers, Costs, Flags, Indices32, Integers, Integers32

CAPACITY = 16
"""Columns that a list can hold."""
STEP = 128
"""Columns so far apart share one minimum when a row is listed. Loops of 32 LLVM unrolls, and these it vectorises."""
FEWEST, MOST = 6, 10
"""The window grows where fewer columns are listed, and shrinks where there are more."""
AIM = 8
"""Columns that the first window holds, in the middle one of three rows."""
ROOM = 8
"""Labels a column that the heap of a search has room for."""
CROWDED, MOST_CROWDS = -1, 16
"""After so many rows, and half of all, that have more columns near their least than a list holds, none is listed."""
CROWDS, GAVE_UP = range(2)
BOUND = 3
LANES = 64
"""Entries that are compared together."""
LARGEST_WINDOW: dict[str, float | int] = {"f8": np.inf, "i4": 1 << 26, "i8": 1 << 56}
"""Windows beyond this are whole rows; their sums stay within the type."""


def _reduced_least(to: VectorCode) -> Any:
    cost, v = range(2)
    begin, length = to.given[2:]
    low = to.variable(to.minus(to.load(cost, begin), to.load(v, to.whole(0))))
    with to.loop(length, None, LANES) as (j, _):
        to.lower(low, to.minus(to.load(cost, to.builder.add(begin, j)), to.load(v, j)))
    return to.smallest(to.builder.load(low))


def _within(to: VectorCode) -> Any:
    cost, v, bounds = range(3)
    begin, first, place = to.given[3:]
    x = to.minus(to.load(cost, to.builder.add(begin, first)), to.load(v, first))
    hits = to.at_most(x, to.spread(to.one(bounds, place)))
    return to.builder.bitcast(hits, ir.IntType(LANES))


reduced_least = compiled(_reduced_least, "cost v begin length", LANES, returned=None)
"""The least of a row less the prices."""
within = compiled(_within, "cost v bounds begin first place", LANES, returned=types.uint64)
"""Which of LANES entries, less their prices, are at most the bound, as bits."""


class Near(NamedTuple):
    """Lists by row, and the heap of a search."""

    cols: Indices32
    costs: Costs
    held: Integers32  # columns; CROWDED where the window holds more than CAPACITY
    ties: Integers32  # so many entries, the first ones, are least
    bound: Costs  # entries that are not listed, less their prices, are not below this
    paid: Costs  # the cost of the row's pair
    limit: Costs  # of the rows of a search: the label at which they are to be read again; inf once they were read whole
    again: Flags  # how often they were
    window: Costs  # its width, the least step by which it grows, the largest; BOUND: up to where a row is listed
    minima: AnyIntegers  # of `reduced_bits`, over the columns STEP apart
    heap_keys: Costs
    heap_items: Indices32
    seen: Integers  # CROWDS, GAVE_UP


def new_near(cost: Costs, v: Costs, bits: Any) -> Near | None:
    """Empty lists for `cost` at prices `v`, and a window that three of its rows suggest; None where these tie too much.

    `bits`: the integers' type.
    """
    n_rows, n_cols = cost.shape
    found, largest = [], LARGEST_WINDOW[v.dtype.str[1:]]
    for i in (0, n_rows // 2, n_rows - 1):
        nearest = np.partition(cost[i] - v, min(AIM, n_cols - 1))[: AIM + 1]
        nearest = nearest[nearest < np.inf]
        found.append(float(nearest.max()) - float(nearest.min()) if nearest.size else 0.0)
    width = min(sorted(found)[1], float(largest))
    if width == 0:
        return None
    step = 1 if v.dtype.kind == "i" else max(width / 64, 2.0**-40 * float(np.abs(v).max()))
    return Near(
        np.empty((n_rows, CAPACITY), np.int32), np.empty((n_rows, CAPACITY), v.dtype), np.zeros(n_rows, np.int32),
        np.zeros(n_rows, np.int32), np.zeros(n_rows, v.dtype), np.zeros(n_rows, v.dtype), np.zeros(n_rows, v.dtype),
        np.zeros(n_rows, np.int8), np.array([width, step, largest, 0]).astype(v.dtype),
        np.empty(STEP, bits), np.empty(ROOM * n_cols, v.dtype), np.empty(ROOM * n_cols, np.int32),
        np.zeros(2, np.int64),
    )  # fmt: skip


@inlined
def as_bits(s: Whole, value: Any) -> Any:
    """A number as it would stand in `reduced_bits`, which are left as they were."""
    kept = s.reduced_bits[0]
    s.reduced[0] = value
    bits = s.reduced_bits[0]
    s.reduced_bits[0] = kept
    return bits ^ (s.flip if bits < 0 else s.reduced_bits.dtype.type(0))


@inlined
def order_steps(s: Whole, near: Near, i: int) -> Any:
    """As `whole.order`, and fill `minima`."""
    low, bits, minima = order(s, i), s.reduced_bits, near.minima
    for k in range(STEP):
        minima[k] = s.shut
    for t in range(bits.size // STEP):
        first = t * STEP
        for k in range(STEP):
            minima[k] = min(minima[k], bits[first + k])
    for j in range(bits.size // STEP * STEP, bits.size):
        minima[j % STEP] = min(minima[j % STEP], bits[j])
    return low


@inner
def least_entry(s: Whole, i: int) -> Any:
    """The least of row i minus the prices; `inf` where nothing is permitted.

    It writes nothing: a row, the prices and another row would not fit into the first cache together.
    """
    n, least = s.v.size, s.inf
    whole = n & -LANES
    if whole:
        least = min(least, reduced_least(s.cost, s.v, i * n, whole))
    for j in range(whole, n):
        least = min(least, s.v.dtype.type(s.cost[i, j] - s.v[j]))
    return least


@inner
def entries_within(s: Whole, near: Near, i: int, bound: Any) -> int:
    """Columns of row i up to `bound`, into `scanned`; where they are more than CAPACITY, so many and some more."""
    n, found, one = s.v.size, 0, np.uint64(1)
    near.window[BOUND] = bound
    for first in range(0, n & -LANES, LANES):
        hits = within(s.cost, s.v, near.window, i * n, first, BOUND)
        for _ in range(2):  # written without a branch, which would be guessed wrong half of the time
            s.scanned[found] = first + trailing_zeros(hits)
            found += 1 if hits != 0 else 0
            hits &= hits - one
        while hits != 0:
            s.scanned[found] = first + trailing_zeros(hits)
            hits &= hits - one
            found += 1
        if found > CAPACITY:
            return found
    for j in range(n & -LANES, n):
        if s.v.dtype.type(s.cost[i, j] - s.v[j]) <= bound:
            s.scanned[found] = j
            found += 1
    return found


@inner
def list_row(s: Whole, near: Near, i: int, least: Any) -> None:
    """List row i, whose least entry is `least`, ties first; the window learns from it.

    Overwrites `scanned`, whose turn comes later.
    """
    value, listed = s.v.dtype.type, s.scanned
    window, found, bound = near.window[0], 0, least
    for narrower in (4, 256, 1):
        bound = value(least + window)
        found = entries_within(s, near, i, bound)
        if found <= CAPACITY:
            break
        window = value(window / narrower)
    if window < near.window[0]:
        near.window[0] = value(near.window[0] - near.window[0] / 8)
    elif found > MOST:
        near.window[0] = value(near.window[0] - near.window[0] / 16)
    elif found < FEWEST:
        near.window[0] = min(near.window[2], value(near.window[0] + near.window[0] / 16 + near.window[1]))
    near.held[i], near.bound[i], near.ties[i] = found, bound, 0
    if found > CAPACITY:
        near.held[i], near.bound[i] = CROWDED, least
        return
    for t in range(found):
        near.cols[i, t], near.costs[i, t] = listed[t], s.cost[i, listed[t]]
    put_ties_first(s, near, i, least)


@inner
def put_ties_first(s: Whole, near: Near, i: int, least: Any) -> None:
    """Ties are what lies at the least, up to half of what the certificate allows for rounding."""
    cols, costs, ties = near.cols[i], near.costs[i], 0
    for t in range(near.held[i]):
        over = s.v.dtype.type(s.v.dtype.type(costs[t] - s.v[cols[t]]) - least)
        if over <= 0 or (s.flip != 0 and over <= ROUNDING * (abs(least) + abs(costs[t]))):
            cols[t], cols[ties] = cols[ties], cols[t]
            costs[t], costs[ties] = costs[ties], costs[t]
            ties += 1
    near.ties[i] = ties


@jit
def seat_and_list(s: Whole, near: Near, first: int, last: int) -> None:
    """List each row, and let it take its column if only one is least. After the last row the others take theirs."""
    s, near = borrowed(s), borrowed(near)
    for i in range(first, last):
        near.held[i], near.bound[i], near.ties[i] = CROWDED, s.inf, 0
        crowded = near.seen[CROWDS] > MOST_CROWDS and near.seen[CROWDS] * 2 > i
        if not crowded:
            least = least_entry(s, i)
            if least >= s.inf:
                continue
            list_row(s, near, i, least)
        if near.held[i] == CROWDED:
            low = order(s, i)
            if low == s.shut:
                continue
            near.seen[CROWDS] += 1
            take_free(s, i, low)
        elif near.ties[i] == 1 and s.row_of[near.cols[i, 0]] < 0:
            s.col_of[i], s.row_of[near.cols[i, 0]] = near.cols[i, 0], i
    if last == s.col_of.size:
        for i in range(last):
            for t in range(near.ties[i]):
                if s.col_of[i] < 0 and s.row_of[near.cols[i, t]] < 0:
                    s.col_of[i], s.row_of[near.cols[i, t]] = near.cols[i, t], i
        match_near(s, near)
        for i in range(last):
            if s.col_of[i] >= 0:
                near.paid[i] = cost_of_pair(s, near, i)


@inner
def cost_of_pair(s: Whole, near: Near, i: int) -> Any:
    """The cost of row i's pair, which nearly always is listed: the matrix itself is far away."""
    for t in range(near.held[i]):
        if near.cols[i, t] == s.col_of[i]:
            return near.costs[i, t]
    return s.cost[i, s.col_of[i]]


@inner
def match_near(s: Whole, near: Near) -> None:
    """As `seats.match_ties`, over the lists."""
    seen, dead, queue = np.zeros(s.v.size, np.int32), np.int32(1 << 30), np.empty(s.col_of.size, np.int32)
    for source in range(s.col_of.size):
        if s.col_of[source] >= 0:
            continue
        queue[0], at, n_queued, end, stamp = source, 0, 1, -1, np.int32(source + 1)
        while at < n_queued and end < 0:
            i = queue[at]
            at += 1
            for t in range(near.ties[i]):
                j = near.cols[i, t]
                if seen[j] == stamp or seen[j] == dead:
                    continue
                seen[j], s.parent[j] = stamp, i
                if s.row_of[j] < 0:
                    end = j
                    break
                queue[n_queued] = s.row_of[j]
                n_queued += 1
        if end >= 0:
            flip(s, end, source)
        else:
            for k in range(1, n_queued):
                seen[s.col_of[queue[k]]] = dead
