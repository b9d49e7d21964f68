"""A lower bound on what is left of a quadratic assignment, from prices that are looked for here; compiled.

`bound` is the part that is to be believed: it is true whatever prices it is given. `improve` looks for prices, and
nothing rests on how well it does.

Facility i at location j and facility k at q together pay c = F_ik D_jq + F_ki D_qj. Rows r_ijk and columns s_ijq are
what pair (i, j) takes from what it pays together with k, and with whoever is at q (Hahn and Grant 1998). Then every
permutation that uses no closed pair costs, times `scale`, at least the sum over i < k of

    w_ik = min over open (i, j) and (k, q), j != q, of  scale c - r_ijk - s_ijq - r_kqi - s_kqj

plus the cheapest assignment under l_ij = single_ij + sum_k r_ijk + sum_q s_ijq.

int64 throughout. Costs times the scale stay below 2^51 in sum, prices are cut to 2^48, and m <= 36, so no sum reaches
2^62.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from kernels.compiling import njit
from kernels.problems import Array

F = TypeVar("F", bound=Callable[..., Any])
MOST, WIDEST = 1 << 48, 1 << 54
"""Prices of pairs, and of locations, are cut to these."""
NEVER = 1 << 61
"""The bound where no permutation is left."""
BARRED = 1 << 57


def _compiled(function: F) -> F:
    return njit(cache=True, nogil=True)(function)


def threads() -> int:
    """How many threads this process may use."""
    return int(numba.get_num_threads())


@_compiled
def assigned(cost: Array, u: Array, v: Array) -> None:
    """Prices of rows and columns that solve the assignment problem under `cost`, (n, n), by shortest paths."""
    n = cost.shape[0]
    row_of, came = np.full(n + 1, -1, np.int64), np.empty(n + 1, np.int64)
    least, done = np.empty(n + 1, np.int64), np.empty(n + 1, np.bool_)
    v[:] = 0
    for i in range(n):
        u[i] = cost[i].min()
    for i in range(n):
        row_of[n], at = i, n
        least[:] = BARRED * 8
        done[:] = False
        while row_of[at] >= 0:
            done[at] = True
            row, step, to = row_of[at], BARRED * 16, -1
            for j in range(n):
                if done[j]:
                    continue
                left = cost[row, j] - u[row] - v[j]
                if left < least[j]:
                    least[j], came[j] = left, at
                if least[j] < step:
                    step, to = least[j], j
            for j in range(n + 1):
                if done[j]:
                    u[row_of[j]] += step
                    if j < n:
                        v[j] -= step
                else:
                    least[j] -= step
            at = to
        while at != n:
            row_of[at], at = row_of[came[at]], came[at]


@_compiled
def bound(
    flow: Array, distance: Array, single: Array, rows: Array, columns: Array, closed: Array, scale: int,
    reduced: Array,
) -> Any:  # fmt: skip
    """At most what any permutation without a closed pair costs, times `scale`; NEVER where there is none.

    Args:
        flow, distance: (m, m) of what is left; single: (m, m) what each pair pays alone, times `scale`.
        rows, columns: (m, m, m) int64, cut to MOST in place. closed: (m, m) bool.
        reduced: (m, m), set to what a permutation with that pair costs beyond the bound, at least; for open pairs.
    """
    m = flow.shape[0]
    for prices in (rows.reshape(-1), columns.reshape(-1)):
        for at in range(prices.size):
            prices[at] = min(max(prices[at], -MOST), MOST)
    total = 0
    for i in range(m):
        for k in range(i + 1, m):
            least = NEVER
            for j in range(m):
                if closed[i, j]:
                    continue
                for q in range(m):
                    if q == j or closed[k, q]:
                        continue
                    x = scale * (flow[i, k] * distance[j, q] + flow[k, i] * distance[q, j])
                    x -= rows[i, j, k] + columns[i, j, q] + rows[k, q, i] + columns[k, q, j]
                    least = min(least, x)
            if least == NEVER:
                return NEVER
            total += least
    for i in range(m):
        for j in range(m):
            reduced[i, j] = single[i, j]
            for k in range(m):
                if k != i:
                    reduced[i, j] += rows[i, j, k]
                if k != j:
                    reduced[i, j] += columns[i, j, k]
    u, v = np.empty(m, np.int64), np.empty(m, np.int64)
    assigned(np.where(closed, BARRED, reduced), u, v)
    for j in range(m):
        v[j] = min(max(v[j], -WIDEST), WIDEST)
        total += v[j]
    for i in range(m):
        least = NEVER
        for j in range(m):
            if not closed[i, j]:
                least = min(least, reduced[i, j] - v[j])
        if least == NEVER:
            return NEVER
        total += least
        for j in range(m):
            reduced[i, j] -= least + v[j]
    return total


@_compiled
def close(total: int, need: int, reduced: Array, closed: Array) -> None:
    """Close the pairs with which every permutation costs `need` at least."""
    for i in range(closed.shape[0]):
        for j in range(closed.shape[0]):
            if not closed[i, j] and total + reduced[i, j] >= need:
                closed[i, j] = True


@_compiled
def improve(
    flow: Array, distance: Array, single: Array, rows: Array, columns: Array, closed: Array, scale: int, need: int,
    sweeps: int, patience: int, seed: int,
) -> Any:  # fmt: skip
    """Raise the bound by sweeps of better prices, closing pairs on the way.

    Ends at `need`, after `sweeps`, or where `patience` sweeps like the last one would not lead there.

    Returns the bound that was reached, and whether more sweeps may help.
    """
    m = flow.shape[0]
    reduced = np.empty((m, m), np.int64)
    total = bound(flow, distance, single, rows, columns, closed, scale, reduced)
    order, state = np.arange(m), np.uint64(88172645463325252) + np.uint64(seed)
    for _ in range(sweeps):
        if total >= need:
            return total, False
        close(total, need, reduced, closed)
        for at in range(m - 1, 0, -1):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            other = np.int64(state % np.uint64(at + 1))
            order[at], order[other] = order[other], order[at]
        _sweep(flow, distance, rows, columns, closed, scale, need - total, reduced, order)
        before = total
        total = bound(flow, distance, single, rows, columns, closed, scale, reduced)
        if total < need and (total - before) * patience < need - total:
            close(total, need, reduced, closed)
            return total, False
    if total < need:
        close(total, need, reduced, closed)
    return total, total < need


@_compiled
def _sweep(
    flow: Array, distance: Array, rows: Array, columns: Array, closed: Array, scale: int, room: int, reduced: Array,
    order: Array,
) -> None:  # fmt: skip
    """Every open pair gives away what it has, then each in turn takes what an assignment of the others lets it take.

    From those whose turn is yet to come it takes half.
    """
    m = flow.shape[0]
    less, cap = m - 1, room + 1
    turn = np.empty(m, np.int64)
    for at in range(m):
        turn[order[at]] = at
    for i in range(m):
        for j in range(m):
            if not closed[i, j]:
                share = max(reduced[i, j], 0) // less
                for k in range(m):
                    if k != i:
                        rows[i, j, k] -= share
    cost, u, v = np.empty((less, less), np.int64), np.empty(less, np.int64), np.empty(less, np.int64)
    for i in order:
        for j in range(m):
            if closed[i, j]:
                continue
            for a in range(less):
                k = a + (a >= i)
                for b in range(less):
                    q = b + (b >= j)
                    if closed[k, q]:
                        cost[a, b] = cap
                        continue
                    x = scale * (flow[i, k] * distance[j, q] + flow[k, i] * distance[q, j])
                    x -= rows[i, j, k] + columns[i, j, q] + rows[k, q, i] + columns[k, q, j]
                    cost[a, b] = min(cap, (x + 1) >> 1 if turn[k] > turn[i] else x)
            assigned(cost, u, v)
            for a in range(less):
                rows[i, j, a + (a >= i)] += u[a]
                columns[i, j, a + (a >= j)] += v[a]
