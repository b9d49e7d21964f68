"""Best-improvement 2-opt and robust tabu search in numba, with a constant number of operations per exchange.

Glossary: facility u sits at location p[u]; an exchange (u, v) swaps their locations.
    partial[u, v]  = sum_k flow[u, k] distance[p[v], p[k]] (+ the transposed product when asymmetric) + linear[u, p[v]],
                     what facility u would cost where v is; a rank-one update per exchange.
    delta[u, v]    = change of cost by exchange (u, v).
    tabu[u, v]     = iteration until which u must not return to where v is; until[u, v] = min of both returns of (u, v).
    near           = the distances of the locations that facilities have now.
    low[u]         = the least deltas of row u, by lanes.

Columns are facilities everywhere, so that nothing is looked up by location: an exchange swaps two columns instead.

Invariants between iterations: partial, delta and cost are exact for p (integers; to rounding in float64).
After exchange (r, s), with a_u = F_ur - F_us and h_u = D[p_u, p_r] - D[p_u, p_s], both p before it:
    partial[u, v] -= a_u h_v, and delta[u, v] += (a_u - a_v)(h_u - h_v) for pairs without r and s (Taillard 1991, eq. 2
    rearranged as a product of differences, so that a row of exchanges is one SIMD loop); pairs with r or s are read
    off `partial`. To keep that loop free of branches they are stored short of what it is about to add.

Rows are padded to whole vectors (lanes.py). delta is right on and above the diagonal, and below it as far as a vector
that holds the diagonal reaches. Its diagonal is `largest`. Padding is shut out by `floor` and `until`.

docs/notes/qap.md: what was tried, with its figures.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.lap.cpu.borrowed import borrowed
from kernels.problems.arrays import Amount, Amounts, Bytes, Cost, Costs, Indices, Integers, Integers32, Words
from kernels.qap.cpu import lanes

JIT = {"cache": True, "nogil": True, "boundscheck": False}
INNER = {"no_cfunc_wrapper": True, "boundscheck": False}
"""Of what compiled code alone calls: what Python needs to call it takes as long to compile as the function itself."""
LATEST = np.iinfo(np.int32).max
"""No iteration is later."""


class Board(NamedTuple):
    """What a search keeps up to date, flat, and what it looks up."""

    flow: Costs  # both ways together, where a matrix is asymmetric
    flow_to: Costs
    flow_from: Costs
    near: Costs
    near_back: Costs  # its transpose; the same array where they are symmetric
    partial: Costs
    diagonal: Costs  # of partial
    delta: Costs
    until: Integers32
    tabu: Integers32
    floor: Costs  # nothing for facilities, `largest` for padding
    low: Costs
    low_free: Costs
    a: Costs
    h: Costs
    columns: Costs  # two of partial
    dates: Integers32  # two of tabu


@njit(inline="always")
def draw(state: Words) -> Any:
    """xorshift64*, 31 bits. Every search owns its state, so that a run depends on its seed alone."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33))


@njit(**JIT)
def cost_of(flow: Costs, distance: Costs, linear: Costs, symmetric: bool, permutation: Indices, zero: Amount) -> Any:
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
    flow: Costs, distance: Costs, linear: Costs, symmetric: bool, permutation: Indices, partial: Costs, stop: Bytes
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


@register_jitable(**INNER)
def _copy(one: Integers, other: Integers) -> None:
    """By entries: numba compiles an assignment of whole arrays for seconds."""
    for i in range(one.size):
        other[i] = one[i]


@njit(**JIT)
def search(
    flow: Costs, distance: Costs, linear: Costs, symmetric: bool, p: Indices, best: Indices, cost: Amount,
    largest: Cost, state: Words, iterations: int, tenure: tuple[int, int], forced_after: int, target: Amount,
    slot: Amounts, stop: Bytes, frequency: Integers32,
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
    slot[0] = cost
    _copy(p, best)
    big = flow.dtype.type(largest)
    board = _open(flow, distance, linear, symmetric, p, big, stop)
    if stop[0] != 0:
        return 0
    return _walk(
        board, symmetric, p, best, cost, big, state, iterations, tenure, forced_after, target, slot, stop, frequency
    )


@register_jitable(**INNER)
def _walk(
    board: Board, symmetric: bool, p: Indices, best: Indices, cost: Amount, big: Cost, state: Words,
    iterations: int, tenure: tuple[int, int], forced_after: int, target: Amount, slot: Amounts, stop: Bytes,
    frequency: Integers32,
) -> int:  # fmt: skip
    """The exchanges of a search; how many. A function of its own, so that its caller holds the board meanwhile."""
    board = borrowed(board)
    n, width, best_cost = p.size, lanes.width_of(p.size), cost
    for it in range(1, iterations + 1):
        all_min, free_min = _sweep(board, symmetric, n, width, it)
        if tenure[1] == 0 and all_min >= 0:
            return it - 1
        use_all = cost + all_min < best_cost or free_min == big or tenure[1] == 0
        r, s = _pick(board, n, width, it, use_all, state)
        if forced_after > 0 and not use_all and it % 16 == 0:
            r, s = _oldest(board.tabu, n, width, it - forced_after, r, s, state)
        cost += board.delta[r * width + s]
        _swap(board, symmetric, n, width, r, s, it, tenure, state)
        p[r], p[s] = p[s], p[r]
        frequency[r, p[r]] += 1
        frequency[s, p[s]] += 1
        if cost < best_cost:
            best_cost, slot[0] = cost, cost
            _copy(p, best)
            if cost <= target:
                return it
        if stop[0] != 0:
            return it
        _advance(board, symmetric, n, width, r, s, big)
    return iterations


@register_jitable(**INNER)
def _open(flow: Costs, distance: Costs, linear: Costs, symmetric: bool, p: Indices, big: Cost, stop: Bytes) -> Board:
    """Everything for `p` from nothing: O(n^3)."""
    n, width = p.size, lanes.width_of(p.size)
    size, kind = n * width, flow.dtype
    by_location = np.empty_like(flow)
    partial_costs(flow, distance, linear, symmetric, p, by_location, stop)
    both, to, back, near, partial = (
        np.zeros(size, kind), np.zeros(size, kind), np.zeros(size, kind), np.zeros(size, kind), np.zeros(size, kind)
    )  # fmt: skip
    near_back = near if symmetric else np.zeros(size, kind)
    delta, until, tabu = np.zeros(size, kind), np.full(size, LATEST, np.int32), np.full(size, LATEST, np.int32)
    diagonal, floor = np.zeros(width, kind), np.full(width, big, kind)
    for u in range(n):
        diagonal[u], floor[u] = by_location[u, p[u]], -big
        for v in range(n):
            at = u * width + v
            to[at], back[at], both[at] = flow[u, v], flow[v, u], flow[u, v]
            if not symmetric:
                both[at] += flow[v, u]
                near_back[at] = distance[p[v], p[u]]
            near[at], partial[at] = distance[p[u], p[v]], by_location[u, p[v]]
            until[at], tabu[at] = 0, -p[v] - 1
    for u in range(n):
        for v in range(u + 1):
            i, j = v * width + u, u * width + v
            w = both[i] * (near[i] + near_back[i])
            delta[i] = delta[j] = partial[i] + partial[j] - diagonal[v] - diagonal[u] + w if v < u else big
    vectors, low = np.zeros((4, 2 * width), kind), np.zeros((2, n * lanes.LANES), kind)
    return Board(
        both, to, back, near, near_back, partial, diagonal, delta, until, tabu, floor, low[0], low[1],
        vectors[0], vectors[1], vectors[2], np.full(2 * width, LATEST, np.int32),
    )  # fmt: skip


@njit(inline="always")
def _sweep(board: Board, symmetric: bool, n: int, width: int, it: int) -> tuple[float, float]:
    """Update every delta; the least, and the least of those that are not tabu. Both end up in the last row of `low`."""
    low, low_free = board.low, board.low_free
    if symmetric:
        lanes.sweep(board.delta, board.until, board.a, board.h, board.floor, low, low_free, n, width, it)
    else:
        lanes.sweep_both(board.delta, board.until, board.a, board.h, board.floor, low, low_free, n, width, it)
    last = (n - 1) * lanes.LANES
    for k in range(last + 1, last + lanes.LANES):
        low[last] = min(low[last], low[k])
        low_free[last] = min(low_free[last], low_free[k])
    return low[last], low_free[last]


@njit(inline="always")
def _swap(
    board: Board, symmetric: bool, n: int, width: int, r: int, s: int, it: int, tenure: tuple[int, int], state: Words
) -> None:
    """Exchange what stands at r and s, who then stay away from where they were."""
    tabu, partial, near, near_back = board.tabu, board.partial, board.near, board.near_back
    span = tenure[1] - tenure[0] + 1
    tabu[r * width + r] = it + tenure[0] + draw(state) % span
    tabu[s * width + s] = it + tenure[0] + draw(state) % span
    for u in range(n):
        i, j = u * width + r, u * width + s
        partial[i], partial[j] = partial[j], partial[i]
        board.columns[u], board.columns[width + u] = partial[i], partial[j]
        tabu[i], tabu[j] = tabu[j], tabu[i]
        board.dates[u], board.dates[width + u] = tabu[i], tabu[j]
        near[i], near[j] = near[j], near[i]
        if not symmetric:
            near_back[i], near_back[j] = near_back[j], near_back[i]
    for v in range(n):
        i, j = r * width + v, s * width + v
        near[i], near[j] = near[j], near[i]
        if not symmetric:
            near_back[i], near_back[j] = near_back[j], near_back[i]


@njit(inline="always")
def _advance(board: Board, symmetric: bool, n: int, width: int, r: int, s: int, big: Cost) -> None:
    """After exchange (r, s): its vectors, `partial`, and the deltas and limits of every pair with r or s."""
    delta, until, tabu, partial, diagonal = board.delta, board.until, board.tabu, board.partial, board.diagonal
    a, h, flow, near, near_back = board.a, board.h, board.flow, board.near, board.near_back
    lanes.subtract_rows(a, board.flow_from, 0, r, s, width)
    lanes.subtract_rows(h, near_back, 0, s, r, width)
    if symmetric:
        lanes.subtract(partial, diagonal, a, h, n, width)
    else:
        lanes.subtract_rows(a, board.flow_to, width, r, s, width)
        lanes.subtract_rows(h, near, width, s, r, width)
        lanes.subtract_both(partial, diagonal, a, h, n, width)
    diagonal[r], diagonal[s] = partial[r * width + r], partial[s * width + s]
    for one in (r, s):
        column = board.columns[:width] if one == r else board.columns[width:]
        dates = board.dates[:width] if one == r else board.dates[width:]
        if symmetric:
            lanes.refresh(
                delta, until, partial, flow, near, near_back, tabu, column, dates, diagonal, a, h, one, width
            )  # fmt: skip
        else:
            lanes.refresh_both(
                delta, until, partial, flow, near, near_back, tabu, column, dates, diagonal, a, h, one, width
            )  # fmt: skip
        row = one * width
        delta[row + one] = big
        for v in range(min(n, (one & -lanes.LANES) + lanes.LANES)):
            delta[v * width + one], until[v * width + one] = delta[row + v], until[row + v]


@njit(inline="always")
def _pick(board: Board, n: int, width: int, it: int, use_all: bool | np.bool_, state: Words) -> tuple[int, int]:
    """An exchange with the least delta; the row is drawn among the first few found, to break ties by chance."""
    low = board.low if use_all else board.low_free
    last = (n - 1) * lanes.LANES
    wanted = low[last]
    first = draw(state) % n
    for step in range(n):
        u = first + step
        u = u - n if u >= n else u
        if u < n - 1 and lanes.holds(low, u * lanes.LANES, last):
            for v in range(u + 1, n):
                at = u * width + v
                if board.delta[at] == wanted and (use_all or board.until[at] < it):
                    return u, v
    return 0, 1


@njit(inline="always")
def _oldest(tabu: Integers32, n: int, width: int, before: int, r: int, s: int, state: Words) -> tuple[int, int]:
    """An exchange of one random facility whose both arrivals were last forbidden before `before`, else (r, s)."""
    u = draw(state) % n
    for v in range(n):
        if v != u and tabu[u * width + v] < before and tabu[v * width + u] < before:
            return min(u, v), max(u, v)
    return r, s
