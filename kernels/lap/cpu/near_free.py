"""Free columns that are read whole, for `near_both.py`: one may be so dear to all rows that no list has it."""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import Near
from kernels.lap.cpu.near_back import FAR, SLACK, Both
from kernels.lap.cpu.near_path import TIE, push
from kernels.lap.cpu.shortlist import NIL, inner
from kernels.lap.cpu.whole import Whole, inlined

Ahead = tuple[Any, Any, int, int]
"""The length of the best path so far, the node where it meets, the heap's size, and how many columns are ready."""


@inlined
def label_over(s: Whole, entry: tuple[Any, Any], own: Any, level: Any, base: Any) -> Any:
    """The label that an entry (cost, price) gives at distance `base`, in a row whose pair is `own`."""
    value, (cost, price) = s.v.dtype.type, entry
    over = value(value(cost - price) - own)
    if s.flip != 0 and over <= TIE * (abs(own) + abs(cost)):
        over = value(0)
    return value(max(level, value(base + over)))


@inner
def offer_whole(s: Whole, near: Near, both: Both, source: int, n_free: int, found: Ahead) -> tuple[Any, Ahead]:
    """Labels from all entries of the free columns, which are the first `n_free` that are ready; and the least of them.

    The heap is made anew: it has left out what lay beyond SLACK.
    """
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, zero, keys, back, settled = s.v.dtype.type, s.v.dtype.type(0), s.keys, both.back, s.closed
    best, meet, size, n_ready = found
    settled[:] = 0
    for t in range(n_ready):
        settled[both.ready[t]] = 1
    for t in range(n_free):
        j = both.ready[t]
        for i in range(s.col_of.size):
            m, cost = s.col_of[i], s.cost[i, j]
            if value(cost - s.v[j]) >= s.inf:  # forbidden
                continue
            length = label_over(s, (value(cost), s.v[j]), both.own[i], zero, zero)
            if m >= 0 and length < back[m] and settled[m] == 0:
                back[m], both.onward[m] = length, j
            elif i == source and length < keys[j]:
                keys[j], s.parent[j] = length, i
                if length < best:
                    best, meet = length, np.int64(j)
    least, size = value(s.inf), NIL
    for m in range(s.v.size):
        if s.row_of[m] >= 0:
            least = min(least, back[m])
    both.most[FAR] = value(both.most[SLACK] + least) if least < s.inf else s.inf
    for m in range(s.v.size):
        if settled[m] == 0 and back[m] < s.inf:
            if keys[m] < s.inf and value(keys[m] + back[m]) < best:
                best, meet = value(keys[m] + back[m]), np.int64(m)
            if back[m] <= both.most[FAR]:
                size = push(both.heap_keys, both.heap_items, size, back[m], m)
    return least if least < s.inf else zero, (best, meet, size, n_ready)
