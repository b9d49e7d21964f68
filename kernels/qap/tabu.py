"""Best-improvement 2-opt and robust tabu search in numba, with a constant number of operations per exchange.

Glossary: facility u sits at location p[u]; an exchange (u, v) swaps their locations.
    partial[u, l]  = sum_k flow[u, k] distance[l, p[k]] (+ the transposed product when asymmetric) + linear[u, l],
                     what facility u would cost at location l; a rank-one update per exchange.
    delta[u, v]    = change of cost by exchange (u, v), u < v.
    tabu[u, l]     = iteration until which u must not return to l; until[u, v] = min of both returns of (u, v).

Invariants between iterations: partial, delta and cost are exact for p (integers; to rounding in float64).
After exchange (r, s), with a_u = F_ur - F_us and h_u = D[p_u, p_r] - D[p_u, p_s]:
    partial[u, l] += a_u b_l, and delta[u, v] += (a_u - a_v)(h_u - h_v) for pairs without r and s (Taillard 1991, eq. 2
    rearranged as a product of differences, so that a row of exchanges is one SIMD loop); pairs with r or s are read
    off `partial`. To keep that loop free of branches they are stored short of what it is about to add.

Tried and dropped: fresh O(n) deltas for the 2n pairs with r or s (as Taillard; doubles the time of an iteration).
"""

from typing import Any

import numpy as np
from numba import njit

from kernels.problems import Array

JIT = {"cache": True, "nogil": True, "boundscheck": False}


@njit(inline="always")
def _random(state: Array) -> Any:
    """xorshift64*, 31 bits. Every search owns its state, so that a run depends on its seed alone."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33))


@njit(**JIT)
def shuffle(permutation: Array, state: Array) -> None:
    """Fisher-Yates, in place."""
    for i in range(permutation.size - 1, 0, -1):
        j = _random(state) % (i + 1)
        permutation[i], permutation[j] = permutation[j], permutation[i]


@njit(**JIT)
def cost_of(flow: Array, distance: Array, linear: Array, symmetric: bool, permutation: Array, zero: float) -> Any:
    """The cost of `permutation`; `zero` (np.int64(0) or 0.0) fixes the accumulator's type."""
    n = permutation.size
    total = zero
    for i in range(n):
        for j in range(i + 1 if symmetric else 0, n):
            total += zero + flow[i, j] * (zero + distance[permutation[i], permutation[j]])
        total += linear[i, permutation[i]]
    return total


@njit(**JIT)
def partial_costs(
    flow: Array, distance: Array, linear: Array, symmetric: bool, permutation: Array, partial: Array
) -> None:
    """Fill `partial` from nothing: O(n^3), contiguous in locations."""
    n = permutation.size
    turned = distance.T.copy()
    for u in range(n):
        for location in range(n):
            partial[u, location] = linear[u, location]
        for k in range(n):
            f, g, at = flow[u, k], flow[k, u], permutation[k]
            if f != 0:
                for location in range(n):
                    partial[u, location] += f * turned[at, location]
            if not symmetric and g != 0:
                for location in range(n):
                    partial[u, location] += g * distance[at, location]


@njit(inline="always")
def _exchange(flow: Array, distance: Array, symmetric: bool, p: Array, partial: Array, u: int, v: int) -> Any:
    """The delta of exchange (u, v), read off `partial`."""
    w = flow[u, v] * distance[p[u], p[v]]
    if symmetric:
        w += w
    else:
        w += flow[v, u] * distance[p[v], p[u]] + flow[u, v] * distance[p[v], p[u]] + flow[v, u] * distance[p[u], p[v]]
    return partial[u, p[v]] + partial[v, p[u]] - partial[u, p[u]] - partial[v, p[v]] + w


@njit(**JIT)
def _sweep(
    row: Array, until: Array, a: Array, h: Array, au: float, hu: float, it: int, big: float
) -> tuple[float, float]:
    """Update one row of deltas; its minimum, and its minimum over exchanges that are not tabu."""
    cast = row.dtype.type
    at = np.int32(it)
    m_all, m_free = big, big
    for v in range(row.size):
        x = cast(row[v] + cast(cast(au - a[v]) * cast(hu - h[v])))
        row[v] = x
        m_all = min(m_all, x)
        m_free = min(m_free, x if until[v] < at else big)
    return m_all, m_free


@njit(**JIT)
def _sweep_both(
    row: Array, until: Array, a1: Array, h1: Array, a2: Array, h2: Array,
    au1: float, hu1: float, au2: float, hu2: float, it: int, big: float,
) -> tuple[float, float]:  # fmt: skip
    """`_sweep` for two asymmetric matrices: one product for either direction of the flow."""
    cast = row.dtype.type
    at = np.int32(it)
    m_all, m_free = big, big
    for v in range(row.size):
        x = cast(row[v] + cast((au1 - a1[v]) * (hu1 - h1[v])) + cast((au2 - a2[v]) * (hu2 - h2[v])))
        row[v] = x
        m_all = min(m_all, x)
        m_free = min(m_free, x if until[v] < at else big)
    return m_all, m_free


@njit(**JIT)
def _add_product(partial: Array, a: Array, b: Array) -> None:
    """partial += a b'."""
    cast = partial.dtype.type
    for u in range(a.size):
        x, row = a[u], partial[u]
        if x != 0:
            for location in range(b.size):
                row[location] += cast(x * b[location])


@njit(**JIT)
def search(
    flow: Array, distance: Array, linear: Array, symmetric: bool, p: Array, best: Array, cost: float,
    largest: float, state: Array, iterations: int, tenure: tuple[int, int], aspiration: int, target: float, slot: Array,
    stop: Array, frequency: Array,
) -> int:  # fmt: skip
    """Run tabu search (tenure[1] > 0) or 2-opt to a local optimum (tenure[1] = 0) from `p`, in place.

    Args:
        flow, distance, linear, symmetric: a `SearchForm`.
        p, best: (n,) int64; the current permutation, and on return the best one met.
        cost: of `p`; its type is the accumulator's. `largest` is the largest value of the deltas' dtype.
        tenure: the least and greatest tabu tenure, drawn anew for each return.
        aspiration: an exchange unused for this many iterations is forced (Taillard's second rule); 0 for never.
        target: stop once the best cost is at most this.
        slot: (1,) best cost, visible to whoever watches. stop: (1,) uint8, polled each iteration.
        frequency: (n, n) counts facility u arriving at location l: the long-term memory.

    Returns:
        the iterations run.
    """
    n = p.size
    partial, delta = np.empty_like(flow), np.zeros_like(flow)
    until, tabu = np.zeros((n, n), np.int32), np.zeros((n, n), np.int32)
    a1, h1, b1 = np.zeros_like(flow[0]), np.zeros_like(flow[0]), np.zeros_like(flow[0])
    a2, h2, b2 = np.zeros_like(flow[0]), np.zeros_like(flow[0]), np.zeros_like(flow[0])
    flow_t, distance_t = flow.T.copy(), distance.T.copy()
    least_free, least = np.empty_like(flow[0]), np.empty_like(flow[0])
    big = flow.dtype.type(largest)
    partial_costs(flow, distance, linear, symmetric, p, partial)
    for u in range(n):
        for v in range(u + 1, n):
            delta[u, v] = _exchange(flow, distance, symmetric, p, partial, u, v)
    for u in range(n):
        for loc in range(n):
            tabu[u, loc] = -((n * u + loc) % n) - 1
    best_cost = cost
    best[:] = p
    slot[0] = best_cost
    for it in range(1, iterations + 1):
        all_min, free_min = big, big
        for u in range(n - 1):
            rest = slice(u + 1, n)
            if symmetric:
                m_all, m_free = _sweep(delta[u, rest], until[u, rest], a1[rest], h1[rest], a1[u], h1[u], it, big)
            else:
                m_all, m_free = _sweep_both(
                    delta[u, rest], until[u, rest], a1[rest], h1[rest], a2[rest], h2[rest],
                    a1[u], h1[u], a2[u], h2[u], it, big
                )  # fmt: skip
            least[u], least_free[u] = m_all, m_free
            all_min, free_min = min(all_min, m_all), min(free_min, m_free)
        if tenure[1] == 0 and all_min >= 0:
            return it - 1
        use_all = cost + all_min < best_cost or free_min == big or tenure[1] == 0
        wanted = all_min if use_all else free_min
        r, s = _pick(delta, until, least if use_all else least_free, wanted, it, use_all, state)
        if aspiration > 0 and not use_all and it % 16 == 0:
            r, s = _oldest(tabu, p, it - aspiration, r, s, state)
        d = delta[r, s]
        pr, ps = p[r], p[s]
        p[r], p[s] = ps, pr
        cost += d
        frequency[r, ps] += 1
        frequency[s, pr] += 1
        if cost < best_cost:
            best_cost = cost
            best[:] = p
            slot[0] = cost
            if cost <= target:
                return it
        if stop[0] != 0:
            return it
        span = tenure[1] - tenure[0] + 1
        tabu[r, pr] = it + tenure[0] + _random(state) % span
        tabu[s, ps] = it + tenure[0] + _random(state) % span
        for u in range(n):
            a1[u] = flow_t[r, u] - flow_t[s, u]
            b1[u] = distance_t[ps, u] - distance_t[pr, u]
        for u in range(n):
            h1[u] = -b1[p[u]]
        _add_product(partial, a1, b1)
        if not symmetric:
            for u in range(n):
                a2[u] = flow[r, u] - flow[s, u]
                b2[u] = distance[ps, u] - distance[pr, u]
            for u in range(n):
                h2[u] = -b2[p[u]]
            _add_product(partial, a2, b2)
        for one in (r, s):
            for v in range(n):
                if v == one:
                    continue
                i, j = min(one, v), max(one, v)
                fresh = _exchange(flow, distance, symmetric, p, partial, i, j)
                delta[i, j] = fresh - ((a1[i] - a1[j]) * (h1[i] - h1[j]) + (a2[i] - a2[j]) * (h2[i] - h2[j]))
                until[i, j] = min(tabu[i, p[j]], tabu[j, p[i]])
    return iterations


@njit(**JIT)
def _pick(
    delta: Array, until: Array, least: Array, wanted: float, it: int, use_all: bool, state: Array
) -> tuple[int, int]:
    """An exchange whose delta is `wanted`; the row is drawn among the first few found, to break ties by chance."""
    n = delta.shape[0]
    first = _random(state) % n
    for step in range(n):
        u = (first + step) % n
        if u < n - 1 and least[u] == wanted:
            for v in range(u + 1, n):
                if delta[u, v] == wanted and (use_all or until[u, v] < it):
                    return u, v
    return 0, 1


@njit(**JIT)
def _oldest(tabu: Array, p: Array, before: int, r: int, s: int, state: Array) -> tuple[int, int]:
    """An exchange of one random facility whose both arrivals were last forbidden before `before`, else (r, s)."""
    n = p.size
    u = _random(state) % n
    for v in range(n):
        if v != u and tabu[u, p[v]] < before and tabu[v, p[u]] < before:
            return min(u, v), max(u, v)
    return r, s
