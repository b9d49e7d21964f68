"""Free columns of a wide problem at one price again, which warm starts over the lists of `near.py` need.

With more columns than rows, those that stay free must have one price, and no other column a higher one; at the end it
is 0. Columns that rows have just left are cheaper. So the price of such a column rises first, and with it those of
columns that its risen price would make rows leave, until one of these reaches that highest price: it becomes free, and
the rows on the way to it move up by one column. That is the search from the columns of `near_both.py`, from one column
alone. A matched column m at distance b ends it at b + (top - v_m). Let d be the least of these, then

    v_j += max(0, d - b_j)

Rows without a column hold nothing back, as they have no dual yet. A column whose rise would take long is left where it
is, for `spare.py`. Where lists do not reach as far as d, all entries of the column are looked at (`near_free.py`),
prices rise as far as is known, and rows with little slack are read again.
"""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import CAPACITY, CROWDED, Near
from kernels.lap.cpu.near_back import FAR, LEAST_SLACK, RISEN, SLACK, WINDOW, Both, come_nearer, make_room, slack_of
from kernels.lap.cpu.near_both import least_left, no_node, offer_back, pair
from kernels.lap.cpu.near_free import offer_whole
from kernels.lap.cpu.near_path import drop_first
from kernels.lap.cpu.near_seats import take
from kernels.lap.cpu.shortlist import NIL, inner, jit, wide
from kernels.lap.cpu.whole import Whole
from kernels.lap.cpu.whole_path import FEW

WHOLE_COLUMNS = 64
"""One column in so many may be looked at as a whole for a free one. Beyond that spare rows take less (`spare.py`)."""

SPOILED = -1


@jit
def seat_low(s: Whole, near: Near) -> None:
    """Let rows take the cheapest of the columns at their least: those at the highest price can stay free.

    Row reductions leave a row at its least in two columns, of which it has had the one whose price fell.
    """
    s, near = borrowed(s), borrowed(near)
    for only in (True, False):
        for i in range(s.col_of.size):
            if near.held[i] == CROWDED or (near.ties[i] == 1) != only:
                continue
            cheapest, price = NIL - 1, s.inf
            for t in range(near.start[i], near.start[i] + near.ties[i]):
                j = wide(near.cols[t])
                if s.row_of[j] < 0 and s.v[j] < price:
                    cheapest, price = j, s.v[j]
            if cheapest >= 0:
                take(s.col_of, s.row_of, i, cheapest)


@inner
def find_top(s: Whole, near: Near, both: Both, source: int, top: Any) -> tuple[Any, Any, int]:
    """How far prices may rise, from the free column `source`; the column that is free then; how many columns rise.

    NOBODY is free then where they may rise only so far as is known.
    """
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, zero, inf, keys = s.v.dtype.type, s.v.dtype.type(0), s.v.dtype.type(s.inf), s.keys
    for j in range(s.v.size):
        keys[j] = both.back[j] = s.inf
    both.back[source], both.ready[0] = zero, source
    both.most[FAR] = both.most[SLACK]
    best, end, level = value(top - s.v[source]), np.int64(source), zero
    size, n_ready, at, looked_whole = NIL, NIL + 1, NIL, NIL
    while size <= both.heap_keys.size - s.v.size:
        if at == n_ready:
            size = least_left(both.heap_keys, both.heap_items, both.back, size)
            label = both.heap_keys[0] if size > 0 else inf
            if min(label, both.most[FAR]) >= best:
                return best, end, n_ready
            if label > both.most[FAR] and looked_whole > 0:
                return both.most[FAR], no_node(), n_ready
            if label > both.most[FAR]:
                _, offered = offer_whole(s, near, both, NIL - 1, NIL + 1, (inf, no_node(), size, n_ready))
                size, looked_whole = offered[2], NIL + 1
                continue
            level = label
            both.ready[n_ready] = both.heap_items[0]
            n_ready, size = n_ready + 1, drop_first(both.heap_keys, both.heap_items, size)
        j = wide(both.ready[at])
        at += 1
        here = value(level + value(top - s.v[j]))
        if here < best:
            best, end = here, np.int64(j)
        _, _, size, n_ready = offer_back(s, near, both, j, level, (best, no_node(), size, n_ready))
    return zero, no_node(), n_ready


@inner
def rise(s: Whole, near: Near, both: Both, far: tuple[Any, Any], n_ready: int) -> int:
    """Let prices follow a search that went so far, up to the highest one; how many columns were looked at as a whole.

    -1 where prices leave the type. Bounds of lists fall with the most that any price has risen. A column that rises by
    much is looked at as a whole instead, so that the bounds of others need not follow it.
    """
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, (most, top) = s.v.dtype.type, far
    free, risen = max(both.most[RISEN], value(both.most[WINDOW] / LEAST_SLACK)), both.most[RISEN]
    for t in range(n_ready):
        j = both.ready[t]
        s.v[j] = min(top, value(s.v[j] + max(value(0), value(most - both.back[j]))))  # what is above it is rounding
        if s.v[j] > -s.floor:
            return -1
        if value(s.v[j] - both.listed[j]) <= free:
            risen = max(risen, value(s.v[j] - both.listed[j]))
    come_nearer(near, both, risen)
    read = 0
    for t in range(n_ready):
        if value(s.v[both.ready[t]] - both.listed[both.ready[t]]) > free:
            list_column(s, near, both, wide(both.ready[t]))
            read += 1
    return read


@inner
def list_column(s: Whole, near: Near, both: Both, j: int) -> None:
    """Let rows to which column j has come near list it, at its price; where a list is full, its bound falls."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value = s.v.dtype.type
    price = value(s.v[j] + both.most[RISEN])
    both.listed[j] = s.v[j]
    for i in range(s.col_of.size):
        over = value(value(s.cost[i, j]) - price)
        if over >= near.bound[i] or near.held[i] == CROWDED:
            continue
        first, held, known = near.start[i], near.held[i], NIL
        for e in range(first, first + held):
            known += 1 if near.cols[e] == j else 0
        if known > 0:
            continue
        if held < CAPACITY:
            place = first + held
            near.cols[place], near.costs[place], near.held[i] = j, s.cost[i, j], held + 1
            both.owner[place], both.later[place], both.added[j] = i, both.added[j], place
        else:
            near.bound[i] = over
            if s.col_of[i] >= 0:
                both.most[SLACK] = min(both.most[SLACK], slack_of(s, near, both, i))


@inner
def leave(s: Whole, near: Near, both: Both, source: int, end: int) -> None:
    """Let the rows from column `end` to the free column `source` move up by one column."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    j, i = end, wide(s.row_of[end])
    s.row_of[end] = -1
    while j != source:
        j = wide(both.onward[j])
        before = wide(s.row_of[j])
        s.row_of[j], s.col_of[i], near.paid[i] = i, j, s.cost[i, j]
        i = before


@jit
def level_free(s: Whole, near: Near, both: Both) -> int:
    """Raise free columns to the highest price there is; how many are left below it, as these would take too long.

    SPOILED where prices leave the type or lists do not suffice. Else pairs are tight at the prices that are reached.
    """
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, top, n_low, room = s.v.dtype.type, s.v.max(), 0, s.col_of.size
    for j in range(s.v.size):
        n_low += 1 if (s.row_of[j] < 0) & (s.v[j] < top) else 0
    left: int = NIL
    if n_low * FEW > s.col_of.size:
        return SPOILED
    for source in range(s.v.size):
        most = s.v.size // WHOLE_COLUMNS
        while s.row_of[source] < 0 and s.v[source] < top and most >= 0:
            far, end, n_ready = find_top(s, near, both, source, top)
            if end < 0 and both.most[SLACK] < value(both.most[WINDOW] / LEAST_SLACK):
                room = make_room(s, near, both, room)
                if room < 0:
                    return SPOILED
                continue
            read = rise(s, near, both, (far, top), n_ready) if far > 0 or end >= 0 else NIL - 1
            if read < 0:
                return SPOILED
            most -= read
            if end >= 0:
                s.v[end] = top  # what lies below it is rounding
                leave(s, near, both, source, end)
            for t in range(n_ready):
                pair(s, near, both, wide(s.row_of[both.ready[t]]))
        left += 1 if (s.row_of[source] < 0) & (s.v[source] < top) else 0
    return left
