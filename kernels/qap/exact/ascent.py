"""The level-1 dual ascent at a node of the tree: sweeps over what is left of the parent's prices, and exclusions.

The ascent is that of bounds/rlt1.py, but for what a tree needs of it: one price for both complementary entries, and a
room beyond which nothing is sought. What was tried is in docs/notes/qap.md.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Bytes, Indices, Integers
from kernels.qap.bounds.lap import assign
from kernels.qap.exact.exclusion import exclude

SWEEPS, PATIENCE = 30, 7
"""Of a node: the most sweeps, and how many sweeps like the last one it may still need for another to be made."""


@njit(cache=True, nogil=True, inline="always")
def pair_of(i: int, k: int, m: int) -> Any:
    """The block of prices of rows i < k."""
    return i * (2 * m - i - 1) // 2 + k - i - 1


@register_jitable(no_cfunc_wrapper=True)
def _take(prices: Integers, share: Integers, rank: Integers, i: int, j: int, cap: int, cost: Integers) -> None:
    """What pair (i, j) may ask of the others: half of each price where the other's row comes later, else all of it."""
    m = share.shape[0]
    for a in range(m - 1):
        k = a + (a >= i)
        at, later = pair_of(min(i, k), max(i, k), m), rank[k] > rank[i]
        for b in range(m - 1):
            other = b + (b >= j)
            x = prices[at, j, other] if i < k else prices[at, other, j]
            if later:
                x += share[i, j] + share[k, other]
            cost[a, b] = cap if x >= cap else (x + 1) // 2 if later else x


@register_jitable(no_cfunc_wrapper=True)
def _give(leaders: Integers, prices: Integers, rank: Integers, i: int, j: int, left: int, cap: int, cost: Integers,
          u: Integers, v: Integers) -> None:  # fmt: skip
    """Leave the reduced costs, and the halves not taken, as the prices; those that cost more than is left exclude."""
    m = rank.size
    for a in range(m - 1):
        k = a + (a >= i)
        at, later = pair_of(min(i, k), max(i, k), m), rank[k] > rank[i]
        for b in range(m - 1):
            other = b + (b >= j)
            x = cap
            if leaders[i, j] < cap and cost[a, b] < cap:
                x = cost[a, b] + (max(cost[a, b] - 1, 0) if later else 0) - u[a] - v[b]
                if x + leaders[i, j] + leaders[k, other] > left:
                    x = cap
            if i < k:
                prices[at, j, other] = x
            else:
                prices[at, other, j] = x


@register_jitable(no_cfunc_wrapper=True)
def sweep(leaders: Integers, prices: Integers, room: int, order: Indices) -> Any:
    """One sweep over the rows of pairs in that order; returns what the bound gains, at once where it passes the room.

    What a whole row asks is the bound's as soon as its pairs were visited.
    """
    m, left = leaders.shape[0], room
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
        least = cap
        for j in range(m):
            if leaders[i, j] < cap:
                _take(prices, share, rank, i, j, cap, cost)
                leaders[i, j] += assign(cost, u, v, row_of)
                if leaders[i, j] > left:
                    leaders[i, j] = cap
            _give(leaders, prices, rank, i, j, left, cap, cost, u, v)
            least = min(least, leaders[i, j])
        if least > left:
            return cap
        for j in range(m):
            if leaders[i, j] < cap:
                leaders[i, j] -= least
        left -= least
    return room - left + gather(leaders, cap)


@njit(cache=True, nogil=True)
def gather(leaders: Integers, cap: int) -> Any:
    """Assign the leaders and leave their reduced costs, but for those from `cap` on; returns what the bound gains."""
    m = leaders.shape[0]
    u, v, row_of = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    gain = assign(leaders, u, v, row_of)
    for i in range(m):
        for j in range(m):
            if leaders[i, j] < cap:
                leaders[i, j] -= u[i] + v[j]
    return gain


@njit(cache=True, nogil=True)
def ascend(leaders: Integers, prices: Integers, room: int, sweeps: int, stop: Bytes) -> Any:
    """Sweep until nothing within `room` is left, it is too far away, or `stop`; the room left, negative when done.

    Before each sweep, what no permutation within the room holds is excluded.
    """
    m = leaders.shape[0]
    order, state = np.arange(m), np.uint32(m)
    room -= gather(leaders, room + 1)
    for _ in range(sweeps):
        if room < 0:
            break
        exclude(leaders, prices, room, stop)
        for a in range(m - 1, 0, -1):
            state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
            b = np.int64(state >> np.uint32(8)) % (a + 1)
            order[a], order[b] = order[b], order[a]
        gain = sweep(leaders, prices, room, order)
        room -= gain
        if room < 0 or gain * PATIENCE < room or stop[0] != 0:
            break
    return room
