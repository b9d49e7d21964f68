"""A small dense linear assignment in numba for the insides of bounds: called millions of times on 5 to 30 rows."""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from kernels.compiling import njit
from kernels.problems.arrays import Amounts, Indices, Mask


@njit(cache=True, nogil=True)
def assign(cost: Amounts, u: Amounts, v: Amounts, row_of: Indices) -> Any:
    """Solve min sum cost[i, p[i]] by shortest augmenting paths; exact for integers.

    Args:
        cost: (n, n) int64 or float64, left as it is.
        u, v: (n,) of the same dtype, set to duals with u_i + v_j <= cost_ij, equal on assigned pairs.
        row_of: (n,) int64, set to the row of each column.

    Returns:
        sum(u) + sum(v), the optimum.

    Complexity: O(n^3). Source: Jonker and Volgenant (1987), augmentation only, after a row and column reduction.
    """
    n = cost.shape[0]
    shortest, reached, before = np.empty_like(u), np.empty(n, np.bool_), np.empty(n, np.int64)
    col_of = np.full(n, -1, np.int64)
    row_of[:] = -1
    _reduce(cost, u, v, row_of, col_of)
    for free in range(n):
        if col_of[free] >= 0:
            continue
        sink = _search(cost, u, v, row_of, free, shortest, reached, before)
        top = shortest[sink]
        u[free] += top
        for j in range(n):
            if reached[j] and j != sink:
                u[row_of[j]] += top - shortest[j]
                v[j] -= top - shortest[j]
        while sink >= 0:
            i = before[sink]
            row_of[sink] = i
            sink, col_of[i] = col_of[i], sink
    total = u[0] - u[0]
    for i in range(n):
        total += u[i] + v[i]
    return total


@njit(inline="always")
def _search(
    cost: Amounts, u: Amounts, v: Amounts, row_of: Indices, free: int, shortest: Amounts, reached: Mask, before: Indices
) -> Any:
    """The free column nearest to row `free` by reduced costs; fills the distances, marks and rows on the way."""
    n = cost.shape[0]
    reached[:] = False
    for j in range(n):
        shortest[j] = cost[free, j] - u[free] - v[j]
        before[j] = free
    while True:
        sink = -1
        for j in range(n):
            if not reached[j] and (sink < 0 or shortest[j] < shortest[sink]):
                sink = j
        reached[sink] = True
        i = row_of[sink]
        if i < 0:
            return sink
        base = shortest[sink] - u[i]
        for j in range(n):
            length = base + cost[i, j] - v[j]
            if not reached[j] and length < shortest[j]:
                shortest[j] = length
                before[j] = i


@register_jitable(no_cfunc_wrapper=True)
def _reduce(cost: Amounts, u: Amounts, v: Amounts, row_of: Indices, col_of: Indices) -> None:
    """Row minima, then column minima; assign greedily along zeros."""
    n = cost.shape[0]
    for j in range(n):
        v[j] = cost[0, j]
    for i in range(n):
        for j in range(n):
            v[j] = min(v[j], cost[i, j])
    for i in range(n):
        least = cost[i, 0] - v[0]
        for j in range(n):
            least = min(least, cost[i, j] - v[j])
        u[i] = least
        for j in range(n):
            if row_of[j] < 0 and cost[i, j] - v[j] == least:
                row_of[j] = i
                col_of[i] = j
                break
