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

docs/notes/qap.md: what was tried, with its figures.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from kernels.problems import Array

JIT = {"cache": True, "nogil": True, "boundscheck": False}
INNER = {"no_cfunc_wrapper": True, "boundscheck": False}
"""Of what compiled code alone calls: what Python needs to call it takes as long to compile as the function itself."""


class WithTransposes(NamedTuple):
    """The matrices and their transposes."""

    flow: Array
    flow_t: Array
    distance: Array
    distance_t: Array
    symmetric: bool


class Board(NamedTuple):
    """What a search keeps up to date, and the vectors a, h, b of its last exchange, there and back."""

    partial: Array
    delta: Array
    until: Array
    tabu: Array
    least: Array
    least_free: Array
    a: Array
    h: Array
    b: Array


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
def cost_of(flow: Array, distance: Array, linear: Array, symmetric: bool, permutation: Array, zero: float) -> Any:
    """The cost of `permutation`; `zero` (np.int64(0) or 0.0) fixes the accumulator's type."""
    n = permutation.size
    total = zero
    for i in range(n):
        for j in range(i + 1 if symmetric else 0, n):
            total += zero + flow[i, j] * (zero + distance[permutation[i], permutation[j]])
        total += linear[i, permutation[i]]
    return total


@register_jitable(**INNER)
def partial_costs(
    flow: Array, distance: Array, linear: Array, symmetric: bool, permutation: Array, partial: Array, stop: Array
) -> None:
    """Fill `partial` from nothing: O(n^3), contiguous in locations. Leaves the rest of it once `stop` (1,) is set."""
    n = permutation.size
    turned = distance.T.copy()
    for u in range(n):
        if stop[0] != 0:
            return
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


@register_jitable(**INNER)
def _update_deltas(
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


@register_jitable(**INNER)
def _update_deltas_of_both(
    row: Array, until: Array, a1: Array, h1: Array, a2: Array, h2: Array,
    au1: float, hu1: float, au2: float, hu2: float, it: int, big: float,
) -> tuple[float, float]:  # fmt: skip
    """`_update_deltas` for two asymmetric matrices: one product for either direction of the flow."""
    cast = row.dtype.type
    at = np.int32(it)
    m_all, m_free = big, big
    for v in range(row.size):
        x = cast(row[v] + cast((au1 - a1[v]) * (hu1 - h1[v])) + cast((au2 - a2[v]) * (hu2 - h2[v])))
        row[v] = x
        m_all = min(m_all, x)
        m_free = min(m_free, x if until[v] < at else big)
    return m_all, m_free


@register_jitable(**INNER)
def _add_product(partial: Array, a: Array, b: Array) -> None:
    """partial += a b'."""
    cast = partial.dtype.type
    for u in range(a.size):
        x, row = a[u], partial[u]
        if x != 0:
            for location in range(b.size):
                row[location] += cast(x * b[location])


@register_jitable(**INNER)
def _copy(one: Array, other: Array) -> None:
    """By entries: numba compiles an assignment of whole arrays for seconds."""
    for i in range(one.size):
        other[i] = one[i]


@njit(**JIT)
def search(
    flow: Array, distance: Array, linear: Array, symmetric: bool, p: Array, best: Array, cost: float,
    largest: float, state: Array, iterations: int, tenure: tuple[int, int], forced_after: int, target: float,
    slot: Array, stop: Array, frequency: Array,
) -> int:  # fmt: skip
    """Tabu search (tenure[1] > 0) or 2-opt to a local optimum (tenure[1] = 0) from `p`, in place; returns iterations.

    Args:
        flow, distance, linear, symmetric: a `SearchForm`.
        p, best: (n,) int64; the current permutation, and on return the best one met.
        cost: of `p`; its type is the accumulator's. `largest` is the largest value of the deltas' dtype.
        tenure: the least and greatest tabu tenure, drawn anew for each return.
        forced_after: an exchange unused for this many iterations is forced (Taillard's second rule); 0 for never.
        target: stop once the best cost is at most this.
        slot: (1,) best cost, visible to whoever watches. stop: (1,) uint8, polled each iteration.
        frequency: (n, n) counts facility u arriving at location l: the long-term memory."""
    matrices = WithTransposes(flow, flow.T.copy(), distance, distance.T.copy(), symmetric)
    best_cost, slot[0] = cost, cost
    _copy(p, best)
    board, big = _open(matrices, linear, p, stop), flow.dtype.type(largest)
    if stop[0] != 0:
        return 0
    for it in range(1, iterations + 1):
        all_min, free_min = _update_rows(board, symmetric, it, big)
        if tenure[1] == 0 and all_min >= 0:
            return it - 1
        use_all = cost + all_min < best_cost or free_min == big or tenure[1] == 0
        r, s = _pick(board, all_min if use_all else free_min, it, use_all, state)
        if forced_after > 0 and not use_all and it % 16 == 0:
            r, s = _oldest(board.tabu, p, it - forced_after, r, s, state)
        cost += board.delta[r, s]
        _swap(board.tabu, p, frequency, r, s, it, tenure, state)
        if cost < best_cost:
            best_cost, slot[0] = cost, cost
            _copy(p, best)
            if cost <= target:
                return it
        if stop[0] != 0:
            return it
        _advance(matrices, board, p, r, s)
    return iterations


@register_jitable(**INNER)
def _open(matrices: WithTransposes, linear: Array, p: Array, stop: Array) -> Board:
    """Everything for `p` from nothing: O(n^3)."""
    n = p.size
    partial, delta = np.empty_like(matrices.flow), np.zeros_like(matrices.flow)
    partial_costs(matrices.flow, matrices.distance, linear, matrices.symmetric, p, partial, stop)
    tabu = np.empty((n, n), np.int32)
    for u in range(n):
        for v in range(u + 1, n):
            delta[u, v] = _exchange(matrices.flow, matrices.distance, matrices.symmetric, p, partial, u, v)
        for location in range(n):
            tabu[u, location] = -((n * u + location) % n) - 1
    vectors = np.zeros((8, n), matrices.flow.dtype)
    least, least_free, a, h, b = vectors[0], vectors[1], vectors[2:4], vectors[4:6], vectors[6:8]
    return Board(partial, delta, np.zeros((n, n), np.int32), tabu, least, least_free, a, h, b)


@njit(inline="always")
def _update_rows(board: Board, symmetric: bool, it: int, big: float) -> tuple[float, float]:
    """Update every delta; the least, and the least of those that are not tabu."""
    n = board.delta.shape[0]
    all_min, free_min = big, big
    a1, a2, h1, h2 = board.a[0], board.a[1], board.h[0], board.h[1]
    for u in range(n - 1):
        row, until, k = board.delta[u, u + 1 :], board.until[u, u + 1 :], slice(u + 1, n)
        if symmetric:
            m_all, m_free = _update_deltas(row, until, a1[k], h1[k], a1[u], h1[u], it, big)
        else:
            of_u = a1[u], h1[u], a2[u], h2[u]
            m_all, m_free = _update_deltas_of_both(row, until, a1[k], h1[k], a2[k], h2[k], *of_u, it, big)
        board.least[u], board.least_free[u] = m_all, m_free
        all_min, free_min = min(all_min, m_all), min(free_min, m_free)
    return all_min, free_min


@njit(inline="always")
def _swap(
    tabu: Array, p: Array, frequency: Array, r: int, s: int, it: int, tenure: tuple[int, int], state: Array
) -> None:
    """Exchange r and s, which then stay away from where they were; count where they arrive."""
    span = tenure[1] - tenure[0] + 1
    tabu[r, p[r]] = it + tenure[0] + _random(state) % span
    tabu[s, p[s]] = it + tenure[0] + _random(state) % span
    p[r], p[s] = p[s], p[r]
    frequency[r, p[r]] += 1
    frequency[s, p[s]] += 1


@njit(inline="always")
def _direction(partial: Array, flow: Array, distance: Array, p: Array, r: int, s: int, vectors: Any) -> None:
    """Vectors a, h, b of exchange (r, s), made already, for one direction of the flow; partial += a b'."""
    a, h, b = vectors
    for u in range(p.size):
        a[u] = flow[r, u] - flow[s, u]
        b[u] = distance[p[r], u] - distance[p[s], u]
    for u in range(p.size):
        h[u] = -b[p[u]]
    _add_product(partial, a, b)


@njit(inline="always")
def _advance(matrices: WithTransposes, board: Board, p: Array, r: int, s: int) -> None:
    """After exchange (r, s): its vectors, `partial`, and the deltas and limits of every pair with r or s."""
    a, h, b = board.a, board.h, board.b
    _direction(board.partial, matrices.flow_t, matrices.distance_t, p, r, s, (a[0], h[0], b[0]))
    if not matrices.symmetric:
        _direction(board.partial, matrices.flow, matrices.distance, p, r, s, (a[1], h[1], b[1]))
    for one in (r, s):
        for v in range(p.size):
            if v == one:
                continue
            i, j = min(one, v), max(one, v)
            fresh = _exchange(matrices.flow, matrices.distance, matrices.symmetric, p, board.partial, i, j)
            soon = (a[0, i] - a[0, j]) * (h[0, i] - h[0, j]) + (a[1, i] - a[1, j]) * (h[1, i] - h[1, j])
            board.delta[i, j] = fresh - soon
            board.until[i, j] = min(board.tabu[i, p[j]], board.tabu[j, p[i]])


@register_jitable(**INNER)
def _pick(board: Board, wanted: float, it: int, use_all: bool, state: Array) -> tuple[int, int]:
    """An exchange whose delta is `wanted`; the row is drawn among the first few found, to break ties by chance."""
    n = board.delta.shape[0]
    least = board.least if use_all else board.least_free
    first = _random(state) % n
    for step in range(n):
        u = (first + step) % n
        if u < n - 1 and least[u] == wanted:
            for v in range(u + 1, n):
                if board.delta[u, v] == wanted and (use_all or board.until[u, v] < it):
                    return u, v
    return 0, 1


@register_jitable(**INNER)
def _oldest(tabu: Array, p: Array, before: int, r: int, s: int, state: Array) -> tuple[int, int]:
    """An exchange of one random facility whose both arrivals were last forbidden before `before`, else (r, s)."""
    n = p.size
    u = _random(state) % n
    for v in range(n):
        if v != u and tabu[u, p[v]] < before and tabu[v, p[u]] < before:
            return min(u, v), max(u, v)
    return r, s
