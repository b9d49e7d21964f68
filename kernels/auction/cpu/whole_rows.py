"""Whole rows of a sparse graph, in the arithmetic of the problem: `rows.py` and its lists, for rows of few edges.

part_loose    frees every row that is further than epsilon from its best net benefit
reduce_whole  `reduce_rows` of `paths.py`: free rows bid with epsilon 0, which assigns most of them
    best_whole    the best net benefits, for the answer
"""

from numba.extending import register_jitable

from kernels.auction.cpu.paths import Matching, take
from kernels.auction.cpu.rows import Graph
from kernels.compiling import njit
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Amount, Amounts, Indices, Integers


@register_jitable(no_cfunc_wrapper=True)
def two_best_of(i: int, graph: Graph, prices: Amounts) -> tuple[int, Amount, int, Amount]:
    """Places of row i's best and second best edge in `graph`, and their net benefits; -1 and `lowest` for none."""
    at, second_at = -1, -1
    best, second = graph.lowest, graph.lowest
    for t in range(graph.indptr[i], graph.indptr[i + 1]):
        net = graph.values[t] - prices[graph.indices[t]]
        if net > second:
            if net > best:
                second, second_at = best, at
                best, at = net, t
            else:
                second, second_at = net, t
    return at, best, second_at, second


@njit(cache=True, nogil=True)
def part_loose(graph: Graph, matching: Matching, stack: Integers) -> int:
    """Free the rows that do not hold an edge of their best; lists all free rows, fills in `held` of the others."""
    column_of, held, row_of, prices = matching
    waiting = 0
    for i in range(column_of.size):
        mine = column_of[i]
        best, net_of_mine = graph.lowest, graph.lowest
        for t in range(graph.indptr[i], graph.indptr[i + 1]):
            j = graph.indices[t]
            net = graph.values[t] - prices[j]
            best = max(best, net)
            if j == mine:
                net_of_mine, held[i] = net, graph.values[t]
        if mine >= 0 and net_of_mine < best:
            row_of[mine], column_of[i], mine = UNASSIGNED, UNASSIGNED, UNASSIGNED
        if mine < 0:
            stack[waiting] = i
            waiting += 1
    return waiting


@njit(cache=True, nogil=True)
def reduce_whole(graph: Graph, matching: Matching, free: Indices, n_free: int, most_bids: int) -> tuple[int, int]:
    """Let the rows in `free` bid with epsilon 0, in two passes; returns how many stay in `free`, and the bids made.

    A row whose best two edges tie takes the second when the first is taken, and whom it displaces waits.
    """
    row_of, prices = matching.row_of, matching.prices
    bids = 0
    for _ in range(2):
        kept, q = 0, 0
        while q < n_free:
            i = free[q]
            q += 1
            at, best, second_at, second = two_best_of(i, graph, prices)
            bids += 1
            if at >= 0 and second_at >= 0 and best == second and row_of[graph.indices[at]] >= 0:
                at = second_at
            j = graph.indices[at] if at >= 0 else -1
            if j < 0 or (row_of[j] >= 0 and second_at < 0) or bids > most_bids:
                free[kept] = i
                kept += 1
                continue
            rise = best - second if second_at >= 0 else 0
            q, kept = take(i, j, graph.values[at], rise, matching, free, q, kept)
        n_free = kept
    return n_free, bids


@njit(cache=True, nogil=True)
def best_whole(graph: Graph, prices: Amounts, profits: Amounts) -> None:
    """Write every row's best net benefit to `profits`."""
    for i in range(profits.size):
        best = graph.lowest
        for t in range(graph.indptr[i], graph.indptr[i + 1]):
            best = max(best, graph.values[t] - prices[graph.indices[t]])
        profits[i] = best
