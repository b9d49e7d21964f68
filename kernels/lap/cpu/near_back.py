"""Who lists a column: the lists of `near.py` by column, and rows that are read again, for `near_both.py`.

Prices rise in that search, so what a row has not listed may come nearer. Bounds fall by as much as the most that any
price has risen above the one at which lists were made (RISEN). So a row that is read again is read at those prices.
SLACK is what any matched row has at least between its pair and its bound.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import CAPACITY, CROWDED, LONGEST, USED, Near
from kernels.lap.cpu.near_rows import entries_within
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.whole import Whole, inlined
from kernels.lap.cpu.whole_path import READ
from kernels.problems.arrays import Costs, Indices32

RISEN, SLACK, WINDOW, FAR = range(4)
LEAST_SLACK = 4
"""Rows with less slack than the first window over this are read again before the next search."""


class Both(NamedTuple):
    """What a search from both ends needs beside `Whole` and `Near`."""

    first: Indices32  # by column: where those who list it begin in `rows` and `costs`, which end where the next begins
    rows: Indices32
    costs: Costs
    added: Indices32  # by column: the place in `Near.cols` of the last entry that lists it since, -1 for none
    later: Indices32  # by such an entry: the one before
    owner: Indices32  # by such an entry: its row
    own: Costs  # by row: c - v of its pair
    listed: Costs  # by column: the price at which lists were made
    back: Costs  # by column: labels from the free columns
    onward: Indices32  # by column: the next column on the way to a free one
    ready: Indices32  # columns whose `back` is settled
    lengths: Costs  # labels that are better than those of the columns `reached`
    reached: Indices32
    heap_keys: Costs
    heap_items: Indices32
    most: Costs  # RISEN, SLACK, WINDOW; FAR: up to where labels from the free columns are known


@jit
def new_both(s: Whole, near: Near) -> Both:
    """The lists of `near` by columns, and room for labels."""
    n_rows, n_cols, kind = s.col_of.size, s.v.size, s.v.dtype
    listed, offers = np.int64(0), 2 * n_rows + LONGEST  # a row that is read again lists a column once more
    for i in range(n_rows):
        listed += max(np.int32(0), near.held[i])
    both = Both(
        np.zeros(n_cols + 2, np.int32), np.empty(listed, np.int32), np.empty(listed, kind),
        np.full(n_cols, -1, np.int32), np.empty(near.cols.size, np.int32), np.empty(near.cols.size, np.int32),
        np.zeros(n_rows, kind), s.v.copy(), np.empty(n_cols, kind), np.empty(n_cols, np.int32),
        np.empty(n_cols, np.int32), np.empty(offers, kind), np.empty(offers, np.int32),
        np.empty_like(near.heap_keys), np.empty_like(near.heap_items), np.zeros(4, kind),
    )  # fmt: skip
    both.most[WINDOW] = near.window[0]
    link(s, near, both)
    return both


@jit
def link(s: Whole, near: Near, both: Both) -> None:
    """Sort the entries of all lists by column."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value, first = s.v.dtype.type, both.first
    slack, total = value(s.inf), np.int32(0)
    for i in range(s.col_of.size):
        for e in range(near.start[i], near.start[i] + near.held[i]):
            first[near.cols[e] + 2] += np.int32(1)
    for j in range(2, first.size):
        total += first[j]
        first[j] = total
    for i in range(s.col_of.size):
        for e in range(near.start[i], near.start[i] + near.held[i]):
            at = first[near.cols[e] + 1]
            both.rows[at], both.costs[at] = i, near.costs[e]
            first[near.cols[e] + 1] = at + np.int32(1)
        j = s.col_of[i]
        if j >= 0:
            both.own[i] = value(near.paid[i] - s.v[j])
            slack = min(slack, slack_of(s, near, both, i))
    both.most[SLACK] = slack


@inlined
def slack_of(s: Whole, near: Near, both: Both, i: int) -> Any:
    """What lies between the pair of row i and all that it has not listed; at least so much."""
    value = s.v.dtype.type
    return value(0) if near.held[i] == CROWDED else max(value(0), value(near.bound[i] - both.own[i]))


@inner
def list_more(s: Whole, near: Near, both: Both, i: int, reach: Any) -> bool:
    """Read row i again up to `reach` above its pair; False where no list can hold that."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value = s.v.dtype.type
    s.counts[READ] += 1
    bound = value(value(both.own[i] + reach) + both.most[RISEN])
    found = entries_within(s, near, both.listed, i, bound, LONGEST)
    first = near.seen[USED]
    room = max(found, CAPACITY)  # as every list has, so that `near_path.py` can write there
    if found > LONGEST or first + room > near.cols.size:
        return False
    near.seen[USED] += room
    near.start[i], near.held[i], near.bound[i] = first, found, value(bound - both.most[RISEN])
    for t in range(found):
        j = near.picked[t]
        near.cols[first + t], near.costs[first + t] = j, s.cost[i, j]
        both.owner[first + t], both.later[first + t] = i, both.added[j]
        both.added[j] = first + t
    return True


@inner
def list_far(s: Whole, near: Near, both: Both, i: int) -> bool:
    """Read row i again, as far as a list can hold and by half a window at least."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    reach = both.most[WINDOW]
    for _ in range(2):
        if list_more(s, near, both, i, reach):
            return True
        reach = s.v.dtype.type(reach / 2)
    return False


@inlined
def come_nearer(near: Near, both: Both, risen: Any) -> None:
    """What is not listed has come nearer, as no price has risen by more than `risen` since lists were made."""
    value, before = near.costs.dtype.type, both.most[RISEN]
    nearer = value(risen - before)
    if nearer > 0:
        both.most[RISEN], both.most[SLACK] = risen, max(value(0), value(both.most[SLACK] - nearer))
        for i in range(near.bound.size):
            near.bound[i] -= nearer


@inner
def make_room(s: Whole, near: Near, both: Both, room: int) -> int:
    """Let each matched row have half a window of slack at least; how many more may be read again, or -1."""
    s, near, both = borrowed(s), borrowed(near), borrowed(both)
    value = s.v.dtype.type
    enough, slack = value(both.most[WINDOW] / LEAST_SLACK), value(s.inf)
    for i in range(s.col_of.size):
        if s.col_of[i] >= 0:
            here = slack_of(s, near, both, i)
            if here < enough:
                room -= 1
                if room < 0 or not list_far(s, near, both, i):
                    return -1
                here = slack_of(s, near, both, i)
            slack = min(slack, here)
    both.most[SLACK] = slack
    return room
