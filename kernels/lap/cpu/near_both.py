"""Shortest augmenting paths over the lists of `near.py`, searched from both ends at once.

    find        Dijkstra's search from a free row on, and from all free columns back, until the two have met
    move        prices fall in the tree of the row and rise in that of the columns
    turn        the path is flipped

A search from the row alone sees half of all rows before it meets one of the last free columns. Two that meet in the
middle see some dozens each. Node j is column j with the row that it is matched with. `keys` are labels from the row
on, `back` those from the free columns; d is the length of the path, r + b = d how far either search has gone:

    v_j -= max(0, r - keys_j)        v_j += max(0, b - back_j)

This keeps the duals feasible. Take a row i in the row's tree and a column j in the columns'. An entry of slack s gives
a path of length keys_i + s + back_j >= d, so s >= (r - keys_i) + (b - back_j), which is what the two sums take from it.
For all other entries one of the sums takes nothing, and it is as in a search from one end. The path becomes tight.

A search goes on only where no unlisted entry can matter: from the row's end up to the `limit` of each row that it
reached, from the columns' end up to SLACK (`near_back.py`). A row that has too little is read again, and lists more.

Where that is far to go, all entries of the free columns are looked at (`near_free.py`). Let y be the least label of all
other columns then. What is unlisted leads to these alone, and so to a free column by y more. So labels from the columns
are right up to SLACK + y (FAR), and a path of length d is right if d - y is within each limit of the row's tree.
"""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import CAPACITY, GAVE_UP, Near
from kernels.lap.cpu.near_back import (
    FAR,
    LEAST_SLACK,
    RISEN,
    SLACK,
    WINDOW,
    Both,
    come_nearer,
    list_more,
    make_room,
    slack_of,
)
from kernels.lap.cpu.near_free import Ahead, label_over, offer_whole
from kernels.lap.cpu.near_path import drop_first, least_now, least_place, push
from kernels.lap.cpu.shortlist import NIL, inner, jit, wide
from kernels.lap.cpu.whole import Whole, inlined
from kernels.lap.cpu.whole_path import PATHS, READ, TOO_WIDE
from kernels.problems.arrays import Costs, Indices32

NOBODY = -1
SHARE = 8
"""One row in so many may be read again in all, for SLACK."""
MOST_WIDER = 16
"""Rows that one search may read again, because it comes to their limits."""
A_COLUMN = 128
"""Rows that the row's search has reached for each free column before these are read whole: it takes as long."""


@inlined
def offer_on(s: Whole, near: Near, both: Both, i: int, at: tuple[Any, Any], found: Ahead) -> Ahead:
    """Labels from the list of row i; `at`: how far the search is, and the row's distance."""
    value, keys, (level, base), own = s.v.dtype.type, s.keys, at, both.own[i]
    best, meet, size, n_ready = found
    better = NIL
    for e in range(near.start[i], near.start[i] + near.held[i]):  # without a branch, which would be guessed wrong
        j = near.cols[e]
        length = label_over(s, (near.costs[e], s.v[j]), own, level, base)
        both.lengths[better], both.reached[better] = length, j
        better += 1 if length < min(keys[j], best) else 0
    for t in range(better):
        length, j = both.lengths[t], both.reached[t]
        keys[j], s.parent[j] = length, i
        if both.back[j] < s.inf and value(length + both.back[j]) < best:
            best, meet = value(length + both.back[j]), np.int64(j)
        if s.row_of[j] < 0:
            continue
        if length == level:
            s.scanned[n_ready] = j
            n_ready += 1
        else:
            size = push(near.heap_keys, near.heap_items, size, length, wide(j))
    return best, meet, size, n_ready


@inlined
def offer_back(s: Whole, near: Near, both: Both, j: int, level: Any, found: Ahead) -> Ahead:
    """Labels of the columns whose rows list column j."""
    value, back, base, price = s.v.dtype.type, both.back, both.back[j], s.v[j]
    best, meet, size, n_ready = found
    better, most = NIL, best
    for e in range(both.first[j], both.first[j + 1]):
        i = wide(both.rows[e])
        m = max(0, s.col_of[i])
        length = label_over(s, (both.costs[e], price), both.own[i], level, base)
        both.lengths[better], both.reached[better] = length, m
        better += 1 if (length < min(back[m], most)) & (s.col_of[i] >= 0) else 0
    added = both.added[j]
    while added >= 0:
        i = wide(both.owner[added])
        if s.col_of[i] >= 0:
            length = label_over(s, (near.costs[added], price), both.own[i], level, base)
            both.lengths[better], both.reached[better] = length, s.col_of[i]
            better += 1
        added = both.later[added]
    for t in range(better):
        length, m = both.lengths[t], both.reached[t]
        if length >= back[m] or length >= best:  # who was read again may be here twice
            continue
        back[m], both.onward[m] = length, j
        if s.keys[m] < s.inf and value(s.keys[m] + length) < best:
            best, meet = value(s.keys[m] + length), np.int64(m)
        if length == level:
            both.ready[n_ready] = m
            n_ready += 1
        elif length <= both.most[FAR]:
            size = push(both.heap_keys, both.heap_items, size, length, wide(m))
    return best, meet, size, n_ready


@inlined
def no_node() -> Any:
    """NOBODY, in the type of a node."""
    return np.int64(NOBODY)


@inlined
def begin(s: Whole, both: Both) -> Any:
    """No labels but those of free columns; how many these are."""
    value, n_ready = s.v.dtype.type, NIL
    for j in range(s.v.size):
        s.keys[j] = both.back[j] = s.inf
    for j in range(s.v.size):
        if s.row_of[j] < 0:
            both.back[j], both.ready[n_ready] = value(0), j
            n_ready += 1
    return n_ready


@inlined
def least_left(keys: Costs, items: Indices32, labels: Costs, size: int) -> int:
    """Drop labels that were lowered since from the top of a heap; its new size."""
    while size > 0 and keys[0] > labels[items[0]]:
        size = drop_first(keys, items, size)
    return size


@inner
def find(s: Whole, near: Near, both: Both, source: int) -> tuple[Any, Any, int, int, int]:
    """The length, how far the columns' search went, where the two met, and how many columns either has ready.

    They met NOBODY where lists do not suffice.
    """
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, zero = s.v.dtype.type, s.v.dtype.type(0)
    n_back, n_ready, size, size_back, inf = begin(s, both), NIL, NIL, NIL, value(s.inf)
    n_free, first_hop = n_back, zero
    both.most[FAR] = both.most[SLACK]
    least = least_now(s, near, source)
    if least >= s.inf:
        return inf, zero, no_node(), NIL, NIL
    both.own[source] = least
    best, meet, level, level_back, limit = inf, no_node(), zero, zero, inf
    at, at_back, place, wider = NIL - 1, NIL, NIL, NIL
    room = near.heap_keys.size - s.v.size
    while size <= room and size_back <= room:
        if at == n_ready:
            size = least_left(near.heap_keys, near.heap_items, s.keys, size)
        if at_back == n_back:
            size_back = least_left(both.heap_keys, both.heap_items, both.back, size_back)
        top = level if at < n_ready else near.heap_keys[0] if size > 0 else inf
        top_back = level_back if at_back < n_back else both.heap_keys[0] if size_back > 0 else inf
        met = best < s.inf and (top >= best or min(top_back, both.most[FAR]) >= value(best - top))
        if met and value(best - first_hop) <= limit:
            return best, value(best - min(top, best)), meet, n_ready, n_back
        stuck = met or top > limit or (top_back > both.most[FAR] and n_back < n_ready)
        if stuck and n_free > 0 and n_ready >= A_COLUMN * n_free:
            first_hop, offered = offer_whole(s, near, both, source, n_free, (best, meet, size_back, n_back))
            best, meet, size_back, n_back = offered
            n_free = NIL
            continue
        if at >= 0 and (met or top > limit):
            place, wider = least_place(near.limit, at), wider + 1
            i, base = source, zero
            if place > 0:
                i, base = wide(s.row_of[s.scanned[place - 1]]), s.keys[s.scanned[place - 1]]
            reach = value(value(near.limit[place] - base) + both.most[WINDOW])
            if wider > MOST_WIDER or not list_more(s, near, both, i, reach):
                break
        elif at >= 0 and n_back < n_ready and top_back <= both.most[FAR]:
            if at_back == n_back:
                level_back = top_back
                both.ready[n_back] = both.heap_items[0]
                n_back, size_back = n_back + 1, drop_first(both.heap_keys, both.heap_items, size_back)
            found = offer_back(s, near, both, wide(both.ready[at_back]), level_back, (best, meet, size_back, n_back))
            best, meet, size_back, n_back = found
            at_back += 1
            continue
        else:
            if at == n_ready:
                level = top
                s.scanned[n_ready] = near.heap_items[0]
                n_ready, size = n_ready + 1, drop_first(near.heap_keys, near.heap_items, size)
            at += 1
            place, i, base = at, source, zero
            if at > 0:
                i, base = wide(s.row_of[s.scanned[at - 1]]), s.keys[s.scanned[at - 1]]
        near.limit[place] = value(base + slack_of(s, near, both, i))
        limit = near.limit[least_place(near.limit, at)] if place < at else min(limit, near.limit[place])
        best, meet, size, n_ready = offer_on(s, near, both, i, (level, base), (best, meet, size, n_ready))
    return inf, zero, no_node(), NIL, NIL


@inner
def move(s: Whole, near: Near, both: Both, far: tuple[Any, Any], ready: tuple[int, int]) -> bool:
    """Let prices follow searches that went so far from the row and from the columns; False where one is too wide."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, (on, back), (n_ready, n_back) = s.v.dtype.type, far, ready
    risen = both.most[RISEN]
    for t in range(n_ready):
        j = s.scanned[t]
        s.v[j] -= max(value(0), value(on - s.keys[j]))
        if s.v[j] < s.floor:
            return False
    for t in range(n_back):
        j = both.ready[t]
        s.v[j] += max(value(0), value(back - both.back[j]))
        risen = max(risen, value(s.v[j] - both.listed[j]))
        if s.v[j] > -s.floor:
            return False
    come_nearer(near, both, risen)
    return True


@inner
def turn(s: Whole, near: Near, both: Both, source: int, meet: int) -> None:
    """Pair the rows of the path with the columns that they reached.

    The ways from the row and to the free column may share columns: pairs can tie in circles. So they part at the last
    column that both have.
    """
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    on_way, j = both.onward, meet
    last = meet
    while s.row_of[j] >= 0:
        j = on_way[j]
        at, i = meet, s.parent[meet]
        while i != source:
            at = s.col_of[i]
            if at == j:
                last = j
                break
            i = s.parent[at]
    j, i = last, s.row_of[last]
    while i >= 0:
        j = on_way[j]
        i, s.row_of[j] = s.row_of[j], i
        s.col_of[s.row_of[j]], near.paid[s.row_of[j]] = j, s.cost[s.row_of[j], j]
    i = s.parent[last]
    j = last
    while i != source:
        before = s.col_of[i]
        s.row_of[j], s.col_of[i], near.paid[i] = i, j, s.cost[i, j]
        j, i = before, s.parent[before]
    s.row_of[j], s.col_of[source], near.paid[source] = source, j, s.cost[source, j]


@inlined
def pair(s: Whole, near: Near, both: Both, i: int) -> None:
    """Take down what the pair of row i is, and its slack, after its price or its column has changed."""
    if i >= 0:
        both.own[i] = s.v.dtype.type(near.paid[i] - s.v[s.col_of[i]])
        both.most[SLACK] = min(both.most[SLACK], slack_of(s, near, both, i))


@jit
def augment_both(s: Whole, near: Near, both: Both, first: int, last: int, work: int) -> int:
    """As `near_path.augment_near`; stops before a row whose search gave up, and says so in `seen`."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, room = s.v.dtype.type, s.col_of.size // SHARE
    for k in range(first, last):
        source, before = s.free[k], s.counts[READ]
        if both.most[SLACK] < value(both.most[WINDOW] / LEAST_SLACK):
            room = make_room(s, near, both, room)
        length, back, meet, n_ready, n_back = (
            find(s, near, both, source) if room >= 0 else (value(s.inf), value(0), NIL - 1, NIL, NIL)
        )
        if meet < 0:
            near.seen[GAVE_UP] = 1
            return k
        if not move(s, near, both, (value(length - back), back), (n_ready, n_back)):
            return TOO_WIDE
        turn(s, near, both, source, meet)
        pair(s, near, both, wide(s.row_of[meet]))
        for t in range(n_ready):
            pair(s, near, both, wide(s.row_of[s.scanned[t]]))
        for t in range(n_back):
            pair(s, near, both, wide(s.row_of[both.ready[t]]))
        s.counts[PATHS] += 1
        work -= (s.counts[READ] - before) * s.v.size + (n_ready + n_back) * CAPACITY
        if work <= 0:
            return k + 1
    return last
