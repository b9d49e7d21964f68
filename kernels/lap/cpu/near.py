"""Warm starts: each row keeps its columns near the least, and paths are searched among these alone.

    list_rows       one sweep by threads: each row lists what lies within a window above its least (`near_rows.py`)
    seat_listed     rows take columns at their least (`near_seats.py`)
    augment_both    Dijkstra's search from a row still free and from the free columns at once (`near_both.py`)
    augment_near    the same from the row alone, once lists do not reach far enough for that (`near_path.py`)

Old prices put every row but the changed ones at its least, so a path is short and runs through near columns. A list is
read in a tenth of the time of a row. What a row has not listed is beyond its bound. So a row that was reached has a
limit: the label that its bound gives. Where the search comes to it, the row is read once more and its list made longer.
Once a search reads too many rows again that no list holds, it and all later ones are left to whole rows
(`whole_path.py`). Costs that tie too much are not listed: integers go along tight pairs (`tight.py`).

Old duals of rows are not asked: the least of each row at the old prices says all that they could.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.shortlist import jit
from kernels.lap.cpu.whole import Whole, inlined
from kernels.problems.arrays import Costs, Indices32, Integers, Integers32, Words

CAPACITY = 16
"""Columns that a first list can hold."""
LONGEST, ROOM_LONGER = 64, 16
"""Columns that a list made longer can hold, and room for these in all, a row."""
AIM, LOOKED_AT = 8, 5
"""Columns that the first window holds, in the middle one of so many rows."""
ROOM = 8
"""Labels a column that the heap of a search has room for."""
CROWDED = -1
CROWDS, GAVE_UP, USED = range(3)
BOUND = 3
LANES = 64
"""Entries that are compared together."""
WIDEST_NARROW, WIDEST = 1 << 26, 1 << 56
"""Windows of int32 and of int64 beyond this are whole rows; their sums stay within the type."""


class Near(NamedTuple):
    """Lists by row, and the heap of a search."""

    cols: Indices32  # of all rows one after the other, CAPACITY for each; longer lists behind them
    costs: Costs
    start: Integers32  # where the list of a row begins
    held: Integers32  # columns; CROWDED where the window holds more than CAPACITY
    ties: Integers32  # so many entries, the first ones, are least
    bound: Costs  # entries that are not listed, less their prices, are not below this
    paid: Costs  # the cost of the row's pair
    limit: Costs  # of a search's source and then of the rows of `scanned`: the label at which they are to be read again
    window: Costs  # its width, the least step by which it grows, the largest; BOUND: up to where a row is listed
    picked: Indices32  # columns within it
    blocks: Indices32  # first columns of the blocks that hold some
    hits: Words  # which columns of these
    heap_keys: Costs
    heap_items: Indices32
    seen: Integers  # CROWDS, GAVE_UP; USED: of `cols`


def new_near(s: Whole) -> Near | None:
    """Empty lists for the costs of `s` at its prices, and a window that some of its rows suggest.

    None where these tie too much.
    """
    near = empty_lists(s)
    return near if near.window[0] > 0 else None


@jit
def empty_lists(s: Whole) -> Near:
    """As `new_near`; a window of 0 where rows tie too much."""
    s = borrowed(s)
    n_rows, n_cols, room, v = s.col_of.size, s.v.size, s.col_of.size * (CAPACITY + ROOM_LONGER), s.v
    start, window = np.empty(n_rows, np.int32), np.empty(BOUND + 1, v.dtype)
    for i in range(n_rows):
        start[i] = i * CAPACITY
    first_window(s, window)
    return Near(
        np.empty(room, np.int32), np.empty(room, v.dtype), start, np.zeros(n_rows, np.int32),
        np.zeros(n_rows, np.int32), np.zeros(n_rows, v.dtype), np.zeros(n_rows, v.dtype),
        np.empty(n_cols + 1, v.dtype), window, np.empty(n_cols + 2 * LANES, np.int32),
        np.empty(n_cols // LANES + 2, np.int32), np.empty(n_cols // LANES + 3, np.uint64),
        np.empty(ROOM * n_cols, v.dtype), np.empty(ROOM * n_cols, np.int32), np.array([0, 0, n_rows * CAPACITY]),
    )  # fmt: skip


@inlined
def first_window(s: Whole, window: Costs) -> None:
    """The window of `Near`: as wide as the middle one of some rows suggests."""
    v, value, flip = s.v, s.v.dtype.type, s.flip
    found = np.empty(min(LOOKED_AT, s.col_of.size), v.dtype)
    spread_of(s, found)
    found.sort()
    if flip != 0:
        most, size = s.inf, value(0)
        for j in range(v.size):
            size = max(size, abs(v[j]))
        smallest = value(size * 2.0**-40)
    else:
        most, smallest = value(WIDEST_NARROW if v.itemsize == 4 else WIDEST), value(1)
    width = min(found[found.size // 2], most)
    window[0], window[2], window[BOUND] = width, most, 0
    window[1] = max(value(width / 64), smallest) if flip != 0 else smallest


@jit
def spread_of(s: Whole, found: Costs) -> None:
    """How far the AIM nearest columns reach above the least, of rows at even distances; all that are permitted."""
    s = borrowed(s)
    value: Any = s.v.dtype.type
    least = np.empty(AIM + 1, s.v.dtype)
    for k in range(found.size):
        i = k * (s.col_of.size - 1) // max(1, found.size - 1)
        least[:] = s.inf
        for j in range(s.v.size):
            x = value(s.cost[i, j] - s.v[j])
            if x < least[AIM]:
                at = AIM
                while at > 0 and least[at - 1] > x:
                    least[at] = least[at - 1]
                    at -= 1
                least[at] = x
        last = AIM
        while last > 0 and least[last] >= s.inf:
            last -= 1
        found[k] = value(least[last] - least[0]) if least[0] < s.inf else value(0)
