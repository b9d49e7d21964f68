"""Branch and bound with the level-1 dual ascent at every node: proves optimality for small n; the twin of branch.cu.

A node fixes some facilities. Its bound is the ascent's, continued on what is left of the parent's prices; a node whose
bound exceeds the incumbent less one step is done. Otherwise one facility (or one location) is chosen and tried
everywhere it still can go. Locations that an automorphism of the distances maps to each other, while it leaves the
fixed ones in place, give equal subtrees: one of them is searched (likewise facilities and flows).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from kernels.problems.arrays import Bytes, Indices, Integers
from kernels.qap.bounds.lap import assign
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.exact import symmetry
from kernels.qap.exact.log import LEAF, OPEN, TWIN, Record

SWEEPS, PATIENCE, SHARP = 30, 7, 1.0
"""Of a node: the most sweeps, and how many sweeps like the last one it may still need for another to be made."""


@dataclass(frozen=True, eq=False)
class Node:
    """A subproblem: what is left of the costs over the facilities and locations that are left, and what is fixed.

    leaders: (m, m) int64; prices: (m (m - 1) / 2, m, m), block of rows i < k, entry [j, l]: the price of (i, j) and
    (k, l) together. A leader or price above `room` = limit - bound excludes what it stands for, in the whole subtree.
    """

    leaders: Integers
    prices: Integers
    bound: int
    facilities: Indices
    locations: Indices
    fixed: Integers
    record: Record = field(default_factory=Record)


def root(ascent: DualAscent) -> Node:
    """The node above all others, from the ascent's reduced costs: complementary entries become one price."""
    n = ascent.problem.n
    above, below = np.triu_indices(n, 1)
    submatrices = ascent.submatrices.astype(np.int64)
    prices = submatrices[above, :, below, :] + submatrices[below, :, above, :].transpose(0, 2, 1)
    everyone = np.arange(n)
    return Node(ascent.leaders.copy(), prices, ascent.total, everyone, everyone, np.full(n, -1))


@njit(cache=True, nogil=True, inline="always")
def _pair(i: int, k: int, m: int) -> Any:
    return i * (2 * m - i - 1) // 2 + k - i - 1


@register_jitable(no_cfunc_wrapper=True)
def _take(prices: Integers, share: Integers, rank: Integers, i: int, j: int, cap: int, cost: Integers) -> None:
    """What pair (i, j) may ask of the others: half of each price where the other's row comes later, else all of it."""
    m = share.shape[0]
    for a in range(m - 1):
        k = a + (a >= i)
        at, later = _pair(min(i, k), max(i, k), m), rank[k] > rank[i]
        for b in range(m - 1):
            other = b + (b >= j)
            x = prices[at, j, other] if i < k else prices[at, other, j]
            if later:
                x += share[i, j] + share[k, other]
            cost[a, b] = cap if x >= cap else (x + 1) // 2 if later else x


@register_jitable(no_cfunc_wrapper=True)
def _give(prices: Integers, rank: Integers, i: int, j: int, cap: int, cost: Integers, u: Integers, v: Integers,
          barred: bool) -> None:  # fmt: skip
    """Leave the reduced costs, and the halves not taken, as the prices."""
    m = rank.size
    for a in range(m - 1):
        k = a + (a >= i)
        at, later = _pair(min(i, k), max(i, k), m), rank[k] > rank[i]
        for b in range(m - 1):
            other = b + (b >= j)
            x = cost[a, b]
            if barred or x >= cap:
                x = cap
            else:
                x += (max(x - 1, 0) if later else 0) - u[a] - v[b]
            if i < k:
                prices[at, j, other] = x
            else:
                prices[at, other, j] = x


@register_jitable(no_cfunc_wrapper=True)
def sweep(leaders: Integers, prices: Integers, room: int, order: Indices) -> Any:
    """One sweep over the rows of pairs in that order, as in branch.cu; returns what the bound gains."""
    m = leaders.shape[0]
    cap, less = room + 1, m - 1
    share, rank = np.empty((m, m), np.int64), np.empty(m, np.int64)
    for i in range(m):
        rank[order[i]] = i
        for j in range(m):
            share[i, j] = cap if leaders[i, j] >= cap else leaders[i, j] // less
            leaders[i, j] = cap if leaders[i, j] >= cap else leaders[i, j] - share[i, j] * less
    cost = np.empty((less, less), np.int64)
    u, v, row_of = np.empty(less, np.int64), np.empty(less, np.int64), np.empty(less, np.int64)
    for i in order:
        for j in range(m):
            _take(prices, share, rank, i, j, cap, cost)
            if leaders[i, j] < cap:
                leaders[i, j] = min(cap, leaders[i, j] + assign(cost, u, v, row_of))
            _give(prices, rank, i, j, cap, cost, u, v, leaders[i, j] >= cap)
    u, v, row_of = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    gain = assign(leaders, u, v, row_of)
    for i in range(m):
        for j in range(m):
            if leaders[i, j] < cap:
                leaders[i, j] -= u[i] + v[j]
    return gain


@njit(cache=True, nogil=True)
def ascend(leaders: Integers, prices: Integers, room: int, sweeps: int, stop: Bytes) -> Any:
    """Sweep until nothing within `room` is left, it is too far away, or `stop`; the room left, negative when done."""
    m = leaders.shape[0]
    order, state = np.arange(m), np.uint32(m)
    for _ in range(sweeps):
        for a in range(m - 1, 0, -1):
            state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
            b = np.int64(state >> np.uint32(8)) % (a + 1)
            order[a], order[b] = order[b], order[a]
        gain = sweep(leaders, prices, room, order)
        room -= gain
        if room < 0 or gain * PATIENCE < room or stop[0] != 0:
            break
    return room


@njit(cache=True, nogil=True)
def choose_line(leaders: Integers, room: int) -> Any:
    """The row (0 <= k < m) or column (m <= k < 2 m) with the least work below it, as in branch.cu."""
    m = leaders.shape[0]
    best, least = 0, np.inf
    for line in range(2 * m):
        work = 0.0
        for a in range(m):
            x = leaders[line, a] if line < m else leaders[a, line - m]
            if x <= room:
                work += 2.0 ** (SHARP * (room - x) / (room + 1))
        if work < least:
            best, least = line, work
    return best


@njit(cache=True, nogil=True)
def fix(leaders: Integers, prices: Integers, i: int, j: int) -> Any:
    """The costs that are left once local facility i sits at local location j."""
    wide = leaders.shape[0]
    m = wide - 1
    new, rest = np.empty((m, m), np.int64), np.empty((m * (m - 1) // 2, m, m), np.int64)
    at = 0
    for a in range(m):
        k = a + (a >= i)
        of = _pair(min(i, k), max(i, k), wide)
        for c in range(m):
            q = c + (c >= j)
            new[a, c] = leaders[k, q] + (prices[of, j, q] if i < k else prices[of, q, j])
        for b in range(a + 1, m):
            block = prices[_pair(k, b + (b >= i), wide)]
            for c in range(m):
                for d in range(m):
                    rest[at, c, d] = block[c + (c >= j), d + (d >= j)]
            at += 1
    return new, rest


@register_jitable(no_cfunc_wrapper=True)
def _without(values: Integers, at: int) -> Integers:
    return np.concatenate((values[:at], values[at + 1 :]))


@njit(cache=True, nogil=True, inline="always")
def _note(log: Bytes, at: Integers, code: int) -> None:
    if at[0] < log.size:
        log[at[0]] = code
    at[0] += 1


@njit(nogil=True, cache=True)
def explore(
    leaders: Integers, prices: Integers, bound: int, facilities: Indices, locations: Indices, fixed: Integers,
    flow: Integers, distance: Integers, linear: Integers, incumbent: Integers, best: Integers, step: int, scale: int,
    counts: Integers, stop: Bytes, log: Bytes, at: Indices,
) -> int:  # fmt: skip
    """Search one subtree to its end; 1 when it did, 0 when `stop` cut it short.

    Args:
        incumbent: (1,) int64 the best objective of all threads; best: (n + 1,) this thread's own, objective first.
        counts: (1,) nodes. log: takes the subtree in preorder (log.py) from `at` (1,) on, and counts on beyond its end.
    """
    size = leaders.shape[0]
    counts[0] += 1
    if stop[0] != 0:
        _note(log, at, OPEN)
        return 0
    limit = (incumbent[0] - step) * scale
    if size <= 3:
        finish(facilities, locations, fixed, flow, distance, linear, incumbent, best)
        _note(log, at, LEAF)
        return 1
    room = limit - bound if bound > limit else ascend(leaders, prices, limit - bound, SWEEPS, stop)
    if room < 0 or stop[0] != 0:
        _note(log, at, LEAF if room < 0 else OPEN)
        return 1 if room < 0 else 0
    bound = limit - room
    line, done = choose_line(leaders, room), 1
    _note(log, at, line)
    for a in range(size):
        i, j = (line, a) if line < size else (a, line - size)
        if leaders[i, j] > (incumbent[0] - step) * scale - bound:
            _note(log, at, LEAF)
            continue
        if stop[0] != 0:
            _note(log, at, OPEN)
            done = 0
            continue
        new, rest = fix(leaders, prices, i, j)
        down = fixed.copy()
        down[facilities[i]] = locations[j]
        done &= explore(
            new, rest, bound + leaders[i, j], _without(facilities, i), _without(locations, j), down, flow, distance,
            linear, incumbent, best, step, scale, counts, stop, log, at,
        )  # fmt: skip
    return done


@njit(cache=True, nogil=True)
def finish(
    facilities: Indices, locations: Indices, fixed: Integers, flow: Integers, distance: Integers, linear: Integers,
    incumbent: Integers, best: Integers,
) -> None:  # fmt: skip
    """Try every way to place the last three."""
    n, size = fixed.size, facilities.size
    p = fixed.copy()
    for code in range(6):
        first = code % size
        order = np.array([first, (first + 1 + code // 3) % 3, (first + 2 - code // 3) % 3])
        for a in range(size):
            p[facilities[a]] = locations[order[a]]
        cost = np.int64(0)
        for i in range(n):
            cost += linear[i, p[i]]
            for k in range(n):
                cost += flow[i, k] * distance[p[i], p[k]]
        if cost < best[0]:
            best[0] = cost
            for i in range(n):
                best[1 + i] = p[i]
        incumbent[0] = min(incumbent[0], cost)


def split(node: Node, limit: int, alike: tuple[list[Integers], list[Integers]], stop: Bytes) -> list[Node]:
    """The children of a node that may hold something better than `limit`, one of each class of equals.

    The node itself where `stop` came first. Its record becomes what the log is to say of it.
    """
    if node.bound <= limit and stop[0]:
        return [node]
    leaders, prices, room = node.leaders.copy(), node.prices.copy(), limit - node.bound
    if room >= 0:
        room = int(ascend(leaders, prices, room, SWEEPS, stop))
    if room < 0:
        node.record.code = LEAF
        return []
    if stop[0]:
        return [node]
    line, size = int(choose_line(leaders, room)), len(node.facilities)
    node.record.code = line
    side = int(line < size)
    places = np.flatnonzero(node.fixed >= 0)
    candidates, still = (node.locations, node.fixed[places]) if side else (node.facilities, places)
    open_to = symmetry.representatives(candidates, alike[side], still)
    children = []
    for a in range(size):
        record = Record(LEAF)
        node.record.children.append(record)
        i, j = (line, a) if side else (a, line - size)
        if leaders[i, j] > room:
            continue
        g = None if candidates[a] in open_to else symmetry.mapping(open_to, int(candidates[a]), alike[side], still)
        if g is not None:
            record.code, record.twin = TWIN, (side, g.astype(np.uint8).tobytes())
            continue
        record.code = OPEN
        children.append(child(node, leaders, prices, limit - room, i, j, record))
    return children


def child(node: Node, leaders: Integers, prices: Integers, bound: int, i: int, j: int, record: Record) -> Node:
    """The node below with local facility i at local location j, from what an ascent left of the node's costs."""
    new, rest = fix(leaders, prices, i, j)
    fixed = node.fixed.copy()
    fixed[node.facilities[i]] = node.locations[j]
    left = np.delete(node.facilities, i), np.delete(node.locations, j)
    return Node(new, rest, bound + int(leaders[i, j]), *left, fixed, record)


def reopen(node: Node, limit: int, stop: Bytes) -> list[Node]:
    """The children of a branched node below which a log left something open; the node itself where `stop` came first.

    What the present limit closes is closed in the record.
    """
    leaders, prices, room = node.leaders.copy(), node.prices.copy(), limit - node.bound
    if room >= 0:
        room = int(ascend(leaders, prices, room, SWEEPS, stop))
    if room < 0:
        node.record.code, node.record.children = LEAF, []
        return []
    if stop[0]:
        return [node]
    line, size, children = node.record.code, len(node.facilities), []
    for a, record in enumerate(node.record.children):
        i, j = (line, a) if line < size else (a, line - size)
        if not record.open:
            continue
        if leaders[i, j] > room:
            record.code, record.children = LEAF, []
            continue
        children.append(child(node, leaders, prices, limit - room, i, j, record))
    return children
