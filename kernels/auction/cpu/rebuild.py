"""Prices rebuilt from an assignment of floats: the lowest that it justifies, worked out afresh from the benefits.

    lower    Dijkstra over columns: how far each price can fall while every row keeps its column for best
    settle   raise what rounding left too low, row by row, until no row is tempted or the work is spent

Prices that many raises have added up carry the rounding of all of them, and large old prices swallow the digits of
small benefits. A lowest price is one chain of differences: p_j = b_ij - (b_ik - p_k), where row i holds column k.
Profits are rounded down and prices up, so no column tempts a row that has been settled, exactly: its loss is one
rounding of its own numbers.

Where the assignment is not the best one, no prices justify it. `settle` then ends with its work spent, and the
certificate tells how far off the answer is.
"""

import numpy as np
from numba.extending import register_jitable

from kernels.auction.cpu.rows import Graph
from kernels.compiling import njit
from kernels.problems.arrays import Floats, Indices, Integers


@register_jitable(no_cfunc_wrapper=True)
def _sift_up(heap: Integers, place: Indices, keys: Floats, at: int) -> None:
    j = heap[at]
    while at > 0:
        parent = (at - 1) // 2
        if keys[heap[parent]] <= keys[j]:
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = j
    place[j] = at


@register_jitable(no_cfunc_wrapper=True)
def _pop(heap: Integers, place: Indices, keys: Floats, size: int) -> int:
    """Take the column of the smallest key out of a heap of `size`."""
    top, j, at = heap[0], heap[size - 1], 0
    place[top] = -1
    size -= 1
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[j]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    if size > 0:
        heap[at] = j
        place[j] = at
    return top


@njit(cache=True)
def minus_down(x: float, y: float) -> float:
    """x - y rounded towards -inf."""
    s = x - y
    t = s - x
    error = (x - (s - t)) - (y + t)
    return np.nextafter(s, -np.inf) if error < 0 else s


@njit(cache=True)
def minus_up(x: float, y: float) -> float:
    """x - y rounded towards +inf."""
    return -minus_down(y, x)


@njit(cache=True)
def lower(graph: Graph, column_of: Indices, row_of: Indices, held: Floats, old: Floats) -> Floats:
    """The lowest prices at which every row keeps its column for best, given `old` ones at which it nearly does.

    keys[j] is how far the price of j can fall: to 0, or to where a row that another fall frees would want j.
    """
    n_cols = graph.n_cols
    keys, prices = old.copy(), np.zeros(n_cols)
    parent, benefit = np.full(n_cols, -1), np.zeros(n_cols)
    heap, place = np.empty(n_cols, np.int64), np.full(n_cols, -1)
    size = 0
    for j in range(n_cols):
        if row_of[j] >= 0:
            heap[size] = j
            size += 1
            _sift_up(heap, place, keys, size - 1)
    while size > 0:
        j = _pop(heap, place, keys, size)
        size -= 1
        if parent[j] >= 0:
            i = parent[j]
            prices[j] = max(0.0, minus_up(benefit[j], minus_down(held[i], prices[column_of[i]])))
        i = row_of[j]
        start, profit = graph.indptr[i], held[i] - old[j]
        for t in range(start, graph.indptr[i + 1]):
            k = int(t - start) if graph.dense else int(graph.indices[t])
            if place[k] < 0 or graph.values[t] == graph.lowest:
                continue
            key = keys[j] + max(0.0, profit - (graph.values[t] - old[k]))
            if key < keys[k]:
                keys[k], parent[k], benefit[k] = key, i, graph.values[t]
                _sift_up(heap, place, keys, place[k])
    return prices


@njit(cache=True)
def settle(
    graph: Graph,
    column_of: Indices,
    row_of: Indices,
    held: Floats,
    prices: Floats,
    queue: Indices,
    waits: Integers,
    scans: int,
) -> int:
    """Raise `prices` until no row of the ring `queue` is tempted, or `scans` more rows were read.

    queue[0 .. waits[0]) and on from waits[1] form a ring of rows, each at most once (waits[2 + i]). A raise sends the
    column's owner back into it. Columns without a row keep their price. Returns the rows still queued.
    """
    n_rows = column_of.size
    size, head = waits[0], waits[1]
    while size > 0 and scans > 0:
        i = queue[head]
        head = (head + 1) % n_rows
        size -= 1
        scans -= 1
        waits[2 + i] = 0
        profit, start = minus_down(held[i], prices[column_of[i]]), graph.indptr[i]
        for t in range(start, graph.indptr[i + 1]):
            j = int(t - start) if graph.dense else int(graph.indices[t])
            if graph.values[t] - profit < prices[j] or j == column_of[i] or row_of[j] < 0:
                continue
            price = minus_up(graph.values[t], profit)
            if price > prices[j]:
                prices[j] = price
                owner = row_of[j]
                if waits[2 + owner] == 0:
                    waits[2 + owner] = 1
                    queue[(head + size) % n_rows] = owner
                    size += 1
    waits[0], waits[1] = size, head
    return size


@njit(cache=True)
def profits_of(graph: Graph, prices: Floats) -> Floats:
    """The best net benefit of every row, -inf for a row without edges."""
    profits = np.full(graph.indptr.size - 1, -np.inf)
    for i in range(profits.size):
        start = graph.indptr[i]
        for t in range(start, graph.indptr[i + 1]):
            j = t - start if graph.dense else graph.indices[t]
            profits[i] = max(profits[i], graph.values[t] - prices[j])
    return profits
