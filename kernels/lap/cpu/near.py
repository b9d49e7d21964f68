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

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.seats import ROUNDING, flip, take_free
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.whole import Whole, inlined, order, value_of
from kernels.problems import Array

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
LARGEST_WINDOW: dict[str, float | int] = {"f8": np.inf, "i4": 1 << 26, "i8": 1 << 56}
"""Windows beyond this are whole rows; their sums stay within the type."""


class Near(NamedTuple):
    """Lists by row, and the heap of a search."""

    cols: Array
    costs: Array
    held: Array  # columns; CROWDED where the window holds more than CAPACITY
    ties: Array  # so many entries, the first ones, are least
    bound: Array  # entries that are not listed, less their prices, are not below this
    paid: Array  # the cost of the row's pair
    limit: Array  # of the rows of a search: the label at which they are to be read again; inf once they were read whole
    again: Array  # how often they were
    window: Array  # its width, the least step by which it grows, and the largest
    minima: Array  # of `reduced_bits`, over the columns STEP apart
    heap_keys: Array
    heap_items: Array
    seen: Array  # CROWDS, GAVE_UP


def new_near(cost: Array, v: Array, bits: Any) -> Near | None:
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
        np.zeros(n_rows, np.int8), np.array([width, step, largest]).astype(v.dtype),
        np.empty(STEP, bits), np.empty(ROOM * n_cols, v.dtype), np.empty(ROOM * n_cols, np.int32),
        np.zeros(2, np.int64),
    )  # fmt: skip


@inlined
def as_value(s: Whole, bits: Any) -> Any:
    """`value_of`, with `reduced_bits` as they were."""
    kept = s.reduced_bits[0]
    value = value_of(s, bits)
    s.reduced_bits[0] = kept
    return value


@inlined
def as_bits(s: Whole, value: Any) -> Any:
    """The other way round."""
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
def list_row(s: Whole, near: Near, i: int, least: Any) -> None:
    """List row i, which stands in `reduced_bits` with its `least`, ties first; the window learns from it.

    Overwrites `scanned`, whose turn comes later.
    """
    value, n, bits = s.v.dtype.type, s.v.size, s.reduced_bits
    window, found, listed = near.window[0], n + 1, s.scanned
    for narrower in (4, 256, 1):
        bound = value(least + window)
        limit, found = as_bits(s, bound), 0
        for k in range(min(STEP, n)):
            if near.minima[k] <= limit:
                for j in range(k, n, STEP):  # a branch for each entry would often be guessed wrong
                    listed[found] = j
                    found += 1 if bits[j] <= limit else 0
                if found > CAPACITY:
                    break
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
        low = order(s, i) if crowded else order_steps(s, near, i)
        if low == s.shut:
            continue
        if not crowded:
            list_row(s, near, i, as_value(s, low))
        if near.held[i] == CROWDED:
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
