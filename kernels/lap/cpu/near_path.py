"""Shortest augmenting paths over the lists of `near.py`, for warm starts."""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import (
    CAPACITY,
    CROWDED,
    GAVE_UP,
    LONGEST,
    USED,
    Near,
)  # fmt: skip
from kernels.lap.cpu.near_rows import entries_within, keep_list, least_entry
from kernels.lap.cpu.seats import flip
from kernels.lap.cpu.shortlist import NIL, inner, jit, wide
from kernels.lap.cpu.whole import Whole, inlined
from kernels.lap.cpu.whole_path import NO_PATH, PATHS, READ, TOO_WIDE
from kernels.problems.arrays import Costs, Indices32

WIDER, TRIES = 8, 3
"""A longer list reaches so many first windows further, and twice as far as before; less far where it holds too much."""
PATIENCE, SHARE = 16, 4
"""A search gives up once it has read again PATIENCE rows, and one in SHARE of those that it reached."""
GIVEN_UP = -2
TIE = 2.0**-52
"""What lies so little above the least of a row, in parts of what it was made of, lies there: the rest is rounding."""
Search = tuple[Any, Any, int, int]
"""The least label of a free column and that column, the heap's size, and how many columns are ready (`scanned`)."""


@inner
def least_now(s: Whole, near: Near, i: int) -> Any:
    """The least entry of row i minus its price; a row whose list does not say counts as not listed from then on."""
    s, near = borrowed(s), borrowed(near)
    value = s.v.dtype.type
    least = value(s.inf)
    for t in range(near.start[i], near.start[i] + near.held[i]):
        least = min(least, value(near.costs[t] - s.v[near.cols[t]]))
    if near.held[i] == CROWDED or least > near.bound[i]:
        least = least_entry(s, i)
        near.held[i], near.bound[i] = CROWDED, least
    return least


@inlined
def push(keys: Costs, items: Indices32, size: int, key: Any, item: int) -> int:
    """A label into the heap; the heap's new size. Labels that were lowered since stay in it."""
    at = size
    while at > 0 and keys[(at - 1) >> 1] > key:
        keys[at], items[at] = keys[(at - 1) >> 1], items[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], items[at] = key, item
    return size + 1


@inlined
def drop_first(keys: Costs, items: Indices32, size: int) -> int:
    """Take the least label out of the heap; the heap's new size."""
    at, below = 0, 1
    size -= 1
    key, item = keys[size], items[size]
    while below < size:
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at], items[at] = keys[below], items[below]
        at, below = below, 2 * below + 1
    keys[at], items[at] = key, item
    return size


@inlined
def offer(s: Whole, near: Near, i: int, j: int, cost: Any, at: tuple[Any, Any, Any], found: Search) -> Search:
    """Offer column j a label from row i; `at`: how far the search is, the row's distance, and what its pair is.

    A column no further than the search is ready at once, and never in the heap. Most are: old duals leave many ties.
    """
    value, (level, base, own), (best, end, size, n_ready) = s.v.dtype.type, at, found
    over = value(value(cost - s.v[j]) - own)
    if s.flip != 0 and over <= TIE * (abs(own) + abs(cost)):
        over = value(0)
    length = value(max(level, value(base + over)))
    if length < s.keys[j] and length < best:
        s.keys[j], s.parent[j] = length, i
        if s.row_of[j] < 0:
            return length, np.int64(j), size, n_ready
        if length == level:
            s.scanned[n_ready] = j
            near.limit[n_ready + 1] = s.inf
            return best, end, size, n_ready + 1
        size = push(near.heap_keys, near.heap_items, size, length, wide(j))
    return best, end, size, n_ready


@inner
def offer_near(s: Whole, near: Near, i: int, place: int, at: tuple[Any, Any, Any], found: Search) -> Search:
    """Offer labels from the list of row i, which is at `place` of the search's rows."""
    s, near = borrowed(s), borrowed(near)
    value, (_, base, own) = s.v.dtype.type, at
    for t in range(near.start[i], near.start[i] + near.held[i]):
        found = offer(s, near, i, wide(near.cols[t]), near.costs[t], at, found)
    beyond = value(0) if near.held[i] == CROWDED else max(value(0), value(near.bound[i] - own))
    near.limit[place] = value(base + beyond)
    return found


@inner
def offer_wider(s: Whole, near: Near, i: int, place: int, at: tuple[Any, Any, Any], found: Search) -> Search:
    """As `offer_near` from the row itself, whose list becomes longer, and reaches at most as far as the search can.

    Where no list could hold it, all of the row is offered.
    """
    s, near = borrowed(s), borrowed(near)
    value, (_, base, own) = s.v.dtype.type, at
    s.counts[READ] += 1
    n_found, bound, before = LONGEST + 1, value(0), near.bound[i]
    step = value(min(value(near.window[0] * WIDER + max(value(before - own), value(0))), near.window[2]))
    if found[0] < s.inf:
        most = value(own + value(found[0] - base))
        if s.flip != 0:
            most = value(most + 8 * TIE * (abs(own) + abs(found[0])))
        step = min(step, value(most - before))
    for _ in range(TRIES):
        bound = value(before + step)
        if max(base, value(base + value(bound - own))) <= near.limit[place]:
            break
        n_found = entries_within(s, near, s.v, i, bound, LONGEST)
        if n_found <= LONGEST:
            break
        step = value(step / WIDER)
    nothing = n_found <= near.held[i] and found[0] >= s.inf
    if n_found > LONGEST or nothing or near.seen[USED] + n_found > near.cols.size:
        for j in range(s.v.size):
            if value(s.cost[i, j] - s.v[j]) < s.inf:
                found = offer(s, near, i, j, value(s.cost[i, j]), at, found)
        near.limit[place] = s.inf
        return found
    if n_found > CAPACITY:
        near.start[i] = near.seen[USED]
        near.seen[USED] += n_found
    keep_list(s, near, i, n_found, bound)
    return offer_near(s, near, i, place, at, found)


@inner
def find_near(s: Whole, near: Near, source: int) -> tuple[int, int]:
    """As `whole_path.find_path`; GIVEN_UP where too many rows had to be read again."""
    s, near = borrowed(s), borrowed(near)
    value = s.v.dtype.type
    for j in range(s.v.size):
        s.keys[j] = s.inf
    least = least_now(s, near, source)
    if least >= s.inf:
        return -1, 0
    level, inf, at, again = value(0), value(s.inf), NIL, NIL
    found = offer_near(s, near, source, NIL, (level, level, least), (inf, NIL - 1, NIL, NIL))
    limit = near.limit[0]
    while True:
        best, end, size, n_ready = found
        if best <= level:
            return end, n_ready
        if at == n_ready:
            while size > 0 and near.heap_keys[0] > s.keys[near.heap_items[0]]:
                size = drop_first(near.heap_keys, near.heap_items, size)
            label = min(best, near.heap_keys[0] if size > 0 else inf)
            if label > limit:
                found = best, end, size, n_ready
                place = least_place(near.limit, n_ready)
                i, base, own = source, value(0), least
                if place > 0:
                    j = s.scanned[place - 1]
                    i, base = wide(s.row_of[j]), s.keys[j]
                    own = value(near.paid[i] - s.v[j])
                found = offer_wider(s, near, i, place, (level, base, own), found)
                again += 1
                if (again > PATIENCE and again * SHARE > n_ready) or found[2] > near.heap_keys.size - s.v.size:
                    return GIVEN_UP, n_ready
                limit = near.limit[least_place(near.limit, found[3])]
                continue
            if label == best:
                return end, n_ready
            level = label
            s.scanned[n_ready] = near.heap_items[0]
            near.limit[n_ready + 1] = s.inf
            n_ready, size = n_ready + 1, drop_first(near.heap_keys, near.heap_items, size)
        j = s.scanned[at]
        at += 1
        i = wide(s.row_of[j])
        here = level, level, value(near.paid[i] - s.v[j])
        found = offer_near(s, near, i, at, here, (best, end, size, n_ready))
        limit = min(limit, near.limit[at])
        if found[2] > near.heap_keys.size - s.v.size:
            return GIVEN_UP, found[3]


@inner
def least_place(limit: Costs, n_ready: int) -> int:
    """Which of the search's rows is to be read again first."""
    place = 0
    for t in range(1, n_ready + 1):
        place = t if limit[t] < limit[place] else place
    return place


@jit
def augment_near(s: Whole, near: Near, first: int, last: int, work: int) -> int:
    """As `whole_path.augment`, over the lists; stops before a row whose search gave up, and says so in `seen`."""
    s, near = borrowed(s), borrowed(near)
    for k in range(first, last):
        source, before = s.free[k], s.counts[READ]
        end, n_scanned = find_near(s, near, source)
        if end == GIVEN_UP:
            near.seen[GAVE_UP] = 1
            return k
        if end < 0:
            return NO_PATH
        for t in range(n_scanned):
            j = s.scanned[t]
            s.v[j] -= s.keys[end] - s.keys[j]
            if s.v[j] < s.floor:
                return TOO_WIDE
        j, i = end, -1
        while i != source:
            i = s.parent[j]
            near.paid[i], j = s.cost[i, j], s.col_of[i]
        flip(s, end, source)
        s.counts[PATHS] += 1
        work -= (s.counts[READ] - before) * s.v.size + n_scanned * CAPACITY
        if work <= 0:
            return k + 1
    return last
