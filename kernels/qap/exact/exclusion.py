"""Pairs of pairs that nothing within the room holds: what each third facility asks of both decides it.

Two pairs (i, j) and (k, l) cost something together. Every other facility p sits somewhere, at q, and pays a price with
the one and with the other. So a permutation that holds both pairs costs, beyond the bound, at least

    l_ij + l_kl + c_ijkl + the least assignment of   l_pq + c_ijpq + c_klpq   over the other p and q.

A row and column reduction of that matrix is at most its least assignment. Where this exceeds the room, the two pairs
exclude each other in the whole subtree. The ascent alone sees a pair of pairs at a time, and this three at a time, as
the level-2 reformulation does (Adams et al. 2007); but it moves no price, so it needs no m^6 of them.

Numbers are floats of 32 bits, for their vectors: whole numbers below 2^24, so sums are exact up to the room. They are
the leaders and prices shifted until the room is below 2^20, rounded down, so nothing is excluded that should not be.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Bytes, Floats32, Indices, Integers
from kernels.qap.exact.layout import FEW

ROOM, BEYOND = 1 << 20, np.float32(1 << 21)
"""The room stays below the first; what is excluded is the second."""
LANES = 16
"""Vectors are this long, or a few of them."""


@njit(cache=True, nogil=True)
def exclude(leaders: Integers, prices: Integers, room: int, stop: Bytes) -> Any:
    """Raise to room + 1 the prices, and leaders, of what costs more than the room; returns how many prices.

    Args:
        leaders, prices: as in branch.Node, changed in place. stop: (1,), read before each facility.

    Complexity: m^6 additions at most, far fewer where much is excluded already or nothing will be. 4 m^4 bytes.
    """
    m, shift, found, asked = leaders.shape[0], 0, 0, 0
    while room >> shift >= ROOM:
        shift += 1
    wide = (m * m + LANES - 1) // LANES * LANES
    own, every = np.empty((m, m), np.float32), np.empty((m * m, wide), np.float32)
    _spread_out(leaders, prices, room, shift, own, every)
    ask, where, many = np.empty((m, m), np.float32), np.empty((m, m), np.int64), np.empty(m, np.int64)
    least, total, other = np.empty((m, wide), np.float32), np.empty(wide, np.float32), np.empty(wide, np.float32)
    for i in range(m - 1, -1, -1):
        if stop[0] != 0 or (i == m - 2 and found * FEW < asked):
            break
        for j in range(m):
            if own[i, j] >= BEYOND:
                continue
            alone = _ask(own, every, i, j, ask, where, many, other)
            barred = alone > np.float32(room >> shift)
            if not barred and i > 0:
                size = (i * m + LANES - 1) // LANES * LANES
                _rows(every, i, size, ask, where, many, least, total)
                _columns(every, i, j, size, ask, least, total, other)
                for k in range(i):
                    at, left = k * (2 * m - k - 1) // 2 + i - k - 1, 0
                    for x in range(many[k]):
                        q = where[k, x]
                        asked += 1
                        if own[i, j] + ask[k, q] + total[k * m + q] > np.float32(room >> shift):
                            prices[at, q, j] = room + 1
                            every[i * m + j, k * m + q] = every[k * m + q, i * m + j] = BEYOND
                            found += 1
                        else:
                            left += 1
                    barred |= left == 0
            if barred:
                leaders[i, j], own[i, j] = room + 1, BEYOND
                every[i * m + j, : m * m] = BEYOND
                every[:, i * m + j] = BEYOND
    return found


@register_jitable(no_cfunc_wrapper=True)
def _spread_out(
    leaders: Integers, prices: Integers, room: int, shift: int, own: Floats32, every: Floats32
) -> None:  # fmt: skip
    """Leaders and prices as floats: row i m + j of `every` holds, at k m + l, the price of (i, j) and (k, l)."""
    m = leaders.shape[0]
    every[:, m * m :] = np.float32(0)
    for i in range(m):
        for j in range(m):
            own[i, j] = BEYOND if leaders[i, j] > room else np.float32(leaders[i, j] >> shift)
            every[i * m + j, i * m : i * m + m] = BEYOND
    at = 0
    for i in range(m):
        for k in range(i + 1, m):
            for j in range(m):
                for q in range(m):
                    x = BEYOND
                    if q != j and prices[at, j, q] <= room and own[i, j] < BEYOND and own[k, q] < BEYOND:
                        x = np.float32(prices[at, j, q] >> shift)
                    every[i * m + j, k * m + q] = every[k * m + q, i * m + j] = x
            at += 1


@register_jitable(no_cfunc_wrapper=True)
def _ask(
    own: Floats32, every: Floats32, i: int, j: int, ask: Floats32, where: Indices, many: Indices, least: Floats32
) -> Any:  # fmt: skip
    """What the others ask beside (i, j) alone, its own leader included: the least sum by a row and column reduction.

    Fills ask[p, q], leader and price together or BEYOND; many[p]: how many locations are open to p, where[p]: these.
    """
    m = own.shape[0]
    total = own[i, j]
    for p in range(m):
        many[p] = 0
        least[p] = np.float32(0) if p == i else BEYOND
        for q in range(m):
            x = every[i * m + j, p * m + q]
            ask[p, q] = BEYOND
            if x < BEYOND:
                ask[p, q] = x + own[p, q]
                where[p, many[p]] = q
                many[p] += 1
                least[p] = min(least[p], ask[p, q])
        total += least[p]
    for q in range(m):
        rest = np.float32(0) if q == j else BEYOND
        for p in range(m):
            if ask[p, q] < BEYOND:
                rest = min(rest, ask[p, q] - least[p])
        total += rest
    return total


@register_jitable(no_cfunc_wrapper=True)
def _rows(
    every: Floats32, i: int, size: int, ask: Floats32, where: Indices, many: Indices, least: Floats32, total: Floats32
) -> None:  # fmt: skip
    """least[p, k m + l]: the least that p asks of (i, j) and (k, l), k < i; `total` their sums.

    Four locations at a time; the last ones again where there are fewer.
    """
    m = many.size
    total[:size] = np.float32(0)
    for p in range(m):
        if p == i:
            continue
        for x in range(size):
            least[p, x] = BEYOND
        last = many[p] - 1
        for a in range(0, many[p], 4):
            q0, q1 = where[p, a], where[p, min(a + 1, last)]
            q2, q3 = where[p, min(a + 2, last)], where[p, min(a + 3, last)]
            r0, r1, r2, r3 = ask[p, q0], ask[p, q1], ask[p, q2], ask[p, q3]
            q0, q1, q2, q3 = p * m + q0, p * m + q1, p * m + q2, p * m + q3
            for x in range(size):
                v0, v1, v2, v3 = r0 + every[q0, x], r1 + every[q1, x], r2 + every[q2, x], r3 + every[q3, x]
                v0, v2 = v0 if v0 < v1 else v1, v2 if v2 < v3 else v3
                v0 = v0 if v0 < v2 else v2
                least[p, x] = v0 if v0 < least[p, x] else least[p, x]
        if p < i:
            least[p, p * m : p * m + m] = np.float32(0)
        for x in range(size):
            total[x] += least[p, x]


@register_jitable(no_cfunc_wrapper=True)
def _columns(
    every: Floats32, i: int, j: int, size: int, ask: Floats32, least: Floats32, total: Floats32, rest: Floats32
) -> None:  # fmt: skip
    """Add what each location asks beyond its facilities' least, four facilities at a time."""
    m = ask.shape[0]
    of = np.empty(m, np.int64)
    for q in range(m):
        if q == j:
            continue
        count = 0
        for p in range(m):
            if ask[p, q] < BEYOND:
                of[count] = p
                count += 1
        for x in range(size):
            rest[x] = BEYOND
        for a in range(0, count, 4):
            p0, p1, p2, p3 = of[a], of[min(a + 1, count - 1)], of[min(a + 2, count - 1)], of[min(a + 3, count - 1)]
            r0, r1, r2, r3 = ask[p0, q], ask[p1, q], ask[p2, q], ask[p3, q]
            q0, q1, q2, q3 = p0 * m + q, p1 * m + q, p2 * m + q, p3 * m + q
            for x in range(size):
                v0, v1 = r0 + every[q0, x] - least[p0, x], r1 + every[q1, x] - least[p1, x]
                v2, v3 = r2 + every[q2, x] - least[p2, x], r3 + every[q3, x] - least[p3, x]
                v0, v2 = v0 if v0 < v1 else v1, v2 if v2 < v3 else v3
                v0 = v0 if v0 < v2 else v2
                rest[x] = v0 if v0 < rest[x] else rest[x]
        for k in range(i):
            rest[k * m + q] = np.float32(0)
        for x in range(size):
            total[x] += rest[x]
