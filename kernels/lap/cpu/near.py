"""Warm starts: each row keeps its columns near the least, and paths are searched among these alone.

    list_rows       one sweep by threads: each row lists what lies within a window above its least
    seat_listed     rows take columns at their least
    augment_near    Dijkstra's search from each row still free, over the lists (`near_path.py`)

Old prices put every row but the changed ones at its least, so a path is short and runs through near columns. A list is
read in a tenth of the time of a row. What a row has not listed is beyond its bound, and stays there, as prices only
fall. So a row that was reached has a limit: the label that its bound gives. Where the search comes to it, the row is
read once more and its list made longer. Once a search reads too many rows again that no list holds, it and all later
ones are left to whole rows (`whole_path.py`), and so are costs that tie too much to be listed.

An old dual tells where the least of its row will be. So a row that did not change is read once: its least and what lies
below the window's end are found together. Where the least is elsewhere, the row is read again. An old dual is a guess:
garbage costs a second reading of a row, and after half of the rows nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.cpython.unsafe.numbers import trailing_zeros

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.seats import ROUNDING
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.threads import in_threads
from kernels.lap.cpu.vectors import VectorCode, compiled
from kernels.lap.cpu.whole import Whole, inlined
from kernels.problems.arrays import Costs, Indices32, Integers, Integers32, Words
from kernels.solution import Termination

CAPACITY = 16
"""Columns that a first list can hold."""
LONGEST, ROOM_LONGER = 64, 16
"""Columns that a list made longer can hold, and room for these in all, a row."""
FEWEST, MOST = 6, 10
"""The window grows where fewer columns are listed, and shrinks where there are more."""
AIM = 8
"""Columns that the first window holds, in the middle one of three rows."""
ROOM = 8
"""Labels a column that the heap of a search has room for."""
CROWDED, MOST_CROWDS = -1, 16
"""After so many rows of a piece, and half, with more columns near their least than a list holds, none is listed."""
MOST_MISSES = 16
"""After so many rows of a piece, and half, whose least is not where an old dual says, no old dual is asked."""
PIECE = 1 << 18
"""Entries of the rows that are listed together. Each piece learns its own window, so that threads change no answer."""
A_THREAD = 1 << 20
"""Entries for each thread that takes pieces."""
CROWDS, GAVE_UP, MISSES, USED = range(4)
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


def _least_and_within(to: VectorCode) -> Any:
    cost, v, bounds, marks = range(4)
    begin, length, place = to.given[4:]
    low = to.variable(to.minus(to.load(cost, begin), to.load(v, to.whole(0))))
    bound = to.spread(to.one(bounds, place))
    with to.loop(length, None, LANES) as (j, _):
        x = to.minus(to.load(cost, to.builder.add(begin, j)), to.load(v, j))
        to.lower(low, x)
        hits = to.builder.bitcast(to.at_most(x, bound), ir.IntType(LANES))
        to.builder.store(hits, to.builder.gep(to.given[marks], [to.builder.udiv(j, to.whole(LANES))]))
    return to.smallest(to.builder.load(low))


reduced_least = compiled(_reduced_least, "cost v begin length", LANES, returned=None)
"""The least of a row less the prices."""
within = compiled(_within, "cost v bounds begin first place", LANES, returned=types.uint64)
"""Which of LANES entries, less their prices, are at most the bound, as bits."""
least_and_within = compiled(_least_and_within, "cost v bounds marks begin length place", LANES, returned=None)
"""Both in one reading of a row: the least, and the bits of each LANES entries into `marks`."""


class Near(NamedTuple):
    """Lists by row, and the heap of a search."""

    cols: Indices32  # of all rows one after the other, CAPACITY for each; longer lists behind them
    costs: Costs
    start: Integers32  # where the list of a row begins
    held: Integers32  # columns; CROWDED where the window holds more than CAPACITY
    ties: Integers32  # so many entries, the first ones, are least
    bound: Costs  # entries that are not listed, less their prices, are not below this
    paid: Costs  # the cost of the row's pair
    told: Costs  # the least of each row as an old dual has it; empty where nobody knows
    limit: Costs  # of a search's source and then of the rows of `scanned`: the label at which they are to be read again
    window: Costs  # its width, the least step by which it grows, the largest; BOUND: up to where a row is listed
    marks: Words  # which entries of a row are within the bound
    picked: Indices32  # columns within it
    heap_keys: Costs
    heap_items: Indices32
    seen: Integers  # CROWDS, GAVE_UP, MISSES; USED: of `cols`


def new_near(cost: Costs, v: Costs, told: Costs) -> Near | None:
    """Empty lists for `cost` at prices `v`, and a window that three of its rows suggest; None where these tie too much.

    `told`: (n_rows,) old duals, of the type of `v`, or none.
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
    room = n_rows * (CAPACITY + ROOM_LONGER)
    return Near(
        np.empty(room, np.int32), np.empty(room, v.dtype), np.arange(0, n_rows * CAPACITY, CAPACITY, dtype=np.int32),
        np.zeros(n_rows, np.int32), np.zeros(n_rows, np.int32), np.zeros(n_rows, v.dtype), np.zeros(n_rows, v.dtype),
        told, np.empty(n_cols + 1, v.dtype), np.array([width, step, largest, 0]).astype(v.dtype),
        np.zeros(n_cols // LANES + 1, np.uint64), np.empty(n_cols + 2 * LANES, np.int32),
        np.empty(ROOM * n_cols, v.dtype), np.empty(ROOM * n_cols, np.int32),
        np.array([0, 0, 0, n_rows * CAPACITY]),
    )  # fmt: skip


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
def entries_within(s: Whole, near: Near, i: int, bound: Any, most: int) -> int:
    """Columns of row i up to `bound`, into `picked`; where they are more than `most`, so many and some more."""
    s, near = borrowed(s), borrowed(near)
    n, found = s.v.size, 0
    near.window[BOUND] = bound
    for first in range(0, n & -LANES, LANES):
        found = pick(near.picked, within(s.cost, s.v, near.window, i * n, first, BOUND), first, found)
        if found > most:
            return found
    return pick_rest(s, near, i, bound, found)


@inlined
def pick(picked: Indices32, hits: Any, first: int, found: int) -> int:
    """The columns of `hits`, counted from `first`, into `picked`; how many there are then."""
    one = np.uint64(1)
    for _ in range(2):  # written without a branch, which would be guessed wrong half of the time
        picked[found] = first + trailing_zeros(hits)
        found += 1 if hits != 0 else 0
        hits &= hits - one
    while hits != 0:
        picked[found] = first + trailing_zeros(hits)
        hits &= hits - one
        found += 1
    return found


@inner
def pick_rest(s: Whole, near: Near, i: int, bound: Any, found: int) -> int:
    """As `pick`, of the columns of row i that fill no vector."""
    for j in range(s.v.size & -LANES, s.v.size):
        if s.v.dtype.type(s.cost[i, j] - s.v[j]) <= bound:
            near.picked[found] = j
            found += 1
    return found


@inner
def list_as_told(s: Whole, near: Near, i: int) -> Any:
    """The least of row i, which is listed if that is where the old dual says; else its list is CROWDED."""
    s, near = borrowed(s), borrowed(near)
    n, least, found = s.v.size, s.inf, 0
    whole, bound = n & -LANES, s.v.dtype.type(near.told[i] + near.window[0])
    near.window[BOUND] = bound
    if whole:
        least = min(least, least_and_within(s.cost, s.v, near.window, near.marks, i * n, whole, BOUND))
    for j in range(whole, n):
        least = min(least, s.v.dtype.type(s.cost[i, j] - s.v[j]))
    if least >= s.inf:
        return least
    if s.v.dtype.type(bound - least) >= s.v.dtype.type(near.window[0] - near.window[0] / 4):
        for k in range(whole // LANES):
            found = pick(near.picked, near.marks[k], k * LANES, found)
            if found > CAPACITY:
                break
        if found <= CAPACITY:
            found = pick_rest(s, near, i, bound, found)
        if 0 < found <= CAPACITY:
            learn(near.window, found)
            keep_list(s, near, i, found, bound)
            put_ties_first(s, near, i, least)
            return least
    near.seen[MISSES] += 1
    return least


@inner
def learn(window: Costs, found: int) -> None:
    """The window widens where a row has few columns within it, and narrows where it has many."""
    value = window.dtype.type
    if found > MOST:
        window[0] = value(window[0] - window[0] / 16)
    elif found < FEWEST:
        window[0] = min(window[2], value(window[0] + window[0] / 16 + window[1]))


@inner
def keep_list(s: Whole, near: Near, i: int, found: int, bound: Any) -> None:
    """So many of `picked` become the list of row i, where its list begins."""
    first = near.start[i]
    for t in range(found):
        j = near.picked[t]
        near.cols[first + t], near.costs[first + t] = j, s.cost[i, j]
    near.held[i], near.bound[i] = found, bound


@inner
def list_row(s: Whole, near: Near, i: int, least: Any) -> None:
    """List row i, whose least entry is `least`, ties first; the window learns from it."""
    s, near = borrowed(s), borrowed(near)
    value = s.v.dtype.type
    window, found, bound = near.window[0], 0, least
    for narrower in (4, 256, 1):
        bound = value(least + window)
        found = entries_within(s, near, i, bound, CAPACITY)
        if found <= CAPACITY:
            break
        window = value(window / narrower)
    if window < near.window[0]:
        near.window[0] = value(near.window[0] - near.window[0] / 8)
    else:
        learn(near.window, found)
    if found > CAPACITY:
        near.held[i], near.bound[i] = CROWDED, least
        return
    keep_list(s, near, i, found, bound)
    put_ties_first(s, near, i, least)


@inner
def put_ties_first(s: Whole, near: Near, i: int, least: Any) -> None:
    """Ties are what lies at the least, up to half of what the certificate allows for rounding."""
    s, near = borrowed(s), borrowed(near)
    cols, costs, first, ties = near.cols, near.costs, near.start[i], near.start[i]
    for t in range(first, first + near.held[i]):
        over = s.v.dtype.type(s.v.dtype.type(costs[t] - s.v[cols[t]]) - least)
        if over <= 0 or (s.flip != 0 and over <= ROUNDING * (abs(least) + abs(costs[t]))):
            cols[t], cols[ties] = cols[ties], cols[t]
            costs[t], costs[ties] = costs[ties], costs[t]
            ties += 1
    near.ties[i] = ties - first


def list_in_pieces(s: Whole, near: Near, expired: Callable[[], Termination | None]) -> Termination | None:
    """Let all rows be listed, by threads; returns what `expired` said if that came before the end."""
    n_rows, n_cols = s.cost.shape
    rows = max(1, PIECE // n_cols)
    pieces = [
        near._replace(
            window=near.window.copy(), marks=np.empty_like(near.marks), picked=np.empty_like(near.picked),
            seen=np.zeros_like(near.seen),
        )
        for _ in range(0, n_rows, rows)
    ]  # fmt: skip
    ended: list[Termination] = []

    def work(at: int) -> None:
        if not ended and (word := expired()):
            ended.append(word)
        if not ended:
            list_rows(s, pieces[at], at * rows, min(n_rows, at * rows + rows))

    in_threads(work, range(len(pieces)), min(numba.get_num_threads(), max(1, s.cost.size // A_THREAD)))
    for counted in (CROWDS, MISSES):
        near.seen[counted] = sum(int(piece.seen[counted]) for piece in pieces)
    near.window[0] = pieces[-1].window[0]
    return ended[0] if ended else None


@jit
def list_rows(s: Whole, near: Near, first: int, last: int) -> None:
    """List rows first to last - 1. Those whose columns tie too much are CROWDED."""
    s, near = borrowed(s), borrowed(near)
    for i in range(first, last):
        near.held[i], near.bound[i], near.ties[i] = CROWDED, s.inf, 0
        if near.seen[CROWDS] > MOST_CROWDS and near.seen[CROWDS] * 2 > i - first:
            near.seen[CROWDS] += 1
            continue
        asked = near.told.size > 0 and not (near.seen[MISSES] > MOST_MISSES and near.seen[MISSES] * 2 > i - first)
        least = list_as_told(s, near, i) if asked else least_entry(s, i)
        if least >= s.inf:
            continue
        if near.held[i] == CROWDED:
            list_row(s, near, i, least)
        near.seen[CROWDS] += 1 if near.held[i] == CROWDED else 0
