"""Shortest augmenting paths over the lists of `near.py`, for warm starts."""

from typing import Any

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import CAPACITY, CROWDED, GAVE_UP, STEP, Near, as_bits, order_steps
from kernels.lap.cpu.seats import flip
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.whole import Whole, inlined
from kernels.lap.cpu.whole_path import NO_PATH, PATHS, READ, TOO_WIDE

WIDER = 8
"""A row's first window is widened by this; after that it is read whole."""
PATIENCE, SHARE = 16, 4
"""A search gives up once it has read again PATIENCE rows, and one in SHARE of those that it reached."""
GIVEN_UP = -2


@inner
def least_now(s: Whole, near: Near, i: int) -> Any:
    """The least entry of row i minus its price; a row whose list does not say counts as not listed from then on."""
    value, least = s.v.dtype.type, s.inf
    for t in range(near.held[i]):
        least = min(least, value(near.costs[i, t] - s.v[near.cols[i, t]]))
    if near.held[i] == CROWDED or least > near.bound[i]:
        for j in range(s.v.size):
            least = min(least, value(s.cost[i, j] - s.v[j]))
        near.held[i], near.bound[i] = CROWDED, least
    return least


@inlined
def push(near: Near, size: int, key: Any, item: int) -> int:
    """A label into the heap; the heap's new size. Labels that were lowered since stay in it."""
    keys, items, at = near.heap_keys, near.heap_items, size
    while at > 0 and keys[(at - 1) >> 1] > key:
        keys[at], items[at] = keys[(at - 1) >> 1], items[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], items[at] = key, item
    return size + 1


@inlined
def drop_first(near: Near, size: int) -> int:
    """Take the least label out of the heap; the heap's new size."""
    keys, items, at, below = near.heap_keys, near.heap_items, 0, 1
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


@inner
def offer_near(s: Whole, near: Near, i: int, base: Any, own: Any, best: Any, size: int) -> tuple[Any, int]:
    """Offer labels from the list of row i at distance `base`, whose pair is `own`.

    Returns the least label of a free column, and the heap's size.
    """
    value, cols, costs = s.v.dtype.type, near.cols[i], near.costs[i]
    for t in range(near.held[i]):
        j = cols[t]
        length = max(base, value(base + value(value(costs[t] - s.v[j]) - own)))
        if length < s.keys[j] and length < best:
            s.keys[j], s.parent[j] = length, i
            size = push(near, size, length, j)
            best = length if s.row_of[j] < 0 else best
    near.again[i], near.limit[i] = 0, max(base, value(base + value(near.bound[i] - own)))
    return best, size


@inner
def offer_wider(s: Whole, near: Near, i: int, base: Any, own: Any, best: Any, size: int) -> tuple[Any, int]:
    """As `offer_near` from the row itself: over a window WIDER than the first, then over all of it."""
    value, n = s.v.dtype.type, s.v.size
    order_steps(s, near, i)
    s.counts[READ] += 1
    near.again[i] += 1
    span = value(max(near.window[0], near.window[1]))
    whole = near.again[i] > 1 or span > value(near.window[2] / WIDER)
    bound = value(near.bound[i] + value(span * WIDER)) if not whole else s.inf
    limit = as_bits(s, bound)
    near.limit[i] = s.inf if whole else max(base, value(base + value(bound - own)))
    for k in range(min(STEP, n)):
        if near.minima[k] <= limit:
            for j in range(k, n, STEP):
                if s.reduced_bits[j] <= limit:
                    length = max(base, value(base + value(value(s.cost[i, j] - s.v[j]) - own)))
                    if length < s.keys[j] and length < best:
                        s.keys[j], s.parent[j] = length, i
                        size = push(near, size, length, j)
                        best = length if s.row_of[j] < 0 else best
    return best, size


@inner
def find_near(s: Whole, near: Near, source: int) -> tuple[int, int]:
    """As `whole_path.find_path`; GIVEN_UP where too many rows had to be read again."""
    value, n = s.v.dtype.type, s.v.size
    for j in range(n):
        s.keys[j] = s.inf
    least = least_now(s, near, source)
    if least >= s.inf:
        return -1, 0
    n_ready, again = 0, 0
    best, size = offer_near(s, near, source, value(0), least, s.inf, 0)
    limit = near.limit[source]
    while True:
        while size > 0 and near.heap_keys[0] > s.keys[near.heap_items[0]]:
            size = drop_first(near, size)
        label = near.heap_keys[0] if size > 0 else s.inf
        if label <= limit:
            if label == s.inf:
                return -1, n_ready
            j = near.heap_items[0]
            if s.row_of[j] < 0:
                return j, n_ready
            size = drop_first(near, size)
            s.scanned[n_ready] = j
            n_ready += 1
            i = s.row_of[j]
            best, size = offer_near(s, near, i, label, value(near.paid[i] - s.v[j]), best, size)
            limit = min(limit, near.limit[i])
        else:
            again += 1
            if again > PATIENCE and again * SHARE > n_ready:
                return GIVEN_UP, n_ready
            best, size, limit = read_again(s, near, source, least, limit, n_ready, best, size)
        if size > near.heap_keys.size - n:
            return GIVEN_UP, n_ready


@inner
def read_again(
    s: Whole, near: Near, source: int, least: Any, limit: Any, n_ready: int, best: Any, size: int
) -> tuple[Any, int, Any]:
    """Widen the first of the rows that were to be read again at `limit`: `best`, the heap's size, the next limit."""
    value, wanted, base, own = s.v.dtype.type, source, s.v.dtype.type(0), least
    if near.limit[source] > limit:
        for t in range(n_ready):
            j = s.scanned[t]
            if near.limit[s.row_of[j]] <= limit:
                wanted, base = s.row_of[j], s.keys[j]
                own = value(near.paid[wanted] - s.v[j])
                break
    best, size = offer_wider(s, near, wanted, base, own, best, size)
    limit = near.limit[source]
    for t in range(n_ready):
        limit = min(limit, near.limit[s.row_of[s.scanned[t]]])
    return best, size, limit


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
