"""Bids one after the other on a sparse square graph, epsilon by epsilon: what brings prices near an optimum's.

Each phase frees the rows that are further than epsilon from their best, and lets the free ones bid in turn
(Gauss-Seidel), first come first served: the processor can fetch the next bidder's row meanwhile. Nothing here has to be
exact. Benefits are whole numbers of 32 bits beside their columns, so that a row of ten edges is two lines of the cache,
and one compiled form serves integers and floats. `square.py` finishes in the arithmetic of the problem.

Invariants: an assigned row that no phase has freed is within epsilon of its best; prices never fall. Only graphs that
are square begin this way: a column that keeps no row would keep its raised price. A graph without an assignment of all
rows never empties the queue; the bids that a phase may take, and the highest price that fits, end that.
"""

from typing import NamedTuple

import numba
from numba.extending import register_jitable

from kernels.auction.cpu.prefetch import prefetch
from kernels.problems import UNASSIGNED, Array

FIRST, WAITING, PHASE_BIDS, BIDS, PHASES, EPSILON = range(6)
"""Places in `counts`: start and length of the queue, bids of this phase, of all, phases begun, this one's epsilon."""
SPAN = 2**22
"""Benefits lie in 0..SPAN."""
MOST_PRICE = 2**29
"""A price above this ends the phases: two of them and a span still fit 32 bits."""
AHEAD = 8
"""So many bidders ahead a row's edges are fetched, and twice as many ahead where they are."""
LINE = 8
"""Edges in a line of the cache."""
AT_LEAST = 3
"""Phases before few bids are a reason to stop: the first ones are coarse, and may have nothing to do."""


class Packed(NamedTuple):
    """A graph: indptr (n_rows + 1,) int64, edges (n_edges, 2) int32 of column and benefit."""

    indptr: Array
    edges: Array


class Pairs(NamedTuple):
    """column_of by row, row_of and prices by column, and a queue of the rows that wait, in a ring; all int32."""

    column_of: Array
    row_of: Array
    prices: Array
    queue: Array


@register_jitable(no_cfunc_wrapper=True)
def _part_loose(packed: Packed, pairs: Pairs, epsilon: int) -> int:
    """Free the rows that are further than epsilon from their best; stacks all free rows, the first on top."""
    indptr, edges = packed
    column_of, row_of, prices, queue = pairs
    waiting = 0
    for i in range(column_of.size):
        mine = column_of[i]
        best, net_of_mine = -2 * MOST_PRICE, -2 * MOST_PRICE
        for t in range(indptr[i], indptr[i + 1]):
            j = edges[t, 0]
            net = edges[t, 1] - prices[j]
            best = max(best, net)
            if j == mine:
                net_of_mine = net
        if mine >= 0 and net_of_mine < best - epsilon:
            row_of[mine], column_of[i], mine = UNASSIGNED, UNASSIGNED, UNASSIGNED
        if mine < 0:
            queue[waiting] = i
            waiting += 1
    return waiting


@register_jitable(no_cfunc_wrapper=True)
def _bid_in_turn(
    packed: Packed, pairs: Pairs, first: int, waiting: int, epsilon: int, most: int
) -> tuple[int, int, int, bool]:
    """Let queued rows bid until none is left or `most` bids are made; the queue's first place and length, bids, whether
    prices fit.

    A row with one edge raises by a span beyond epsilon, as in `rounds.py`.
    """
    indptr, edges = packed
    column_of, row_of, prices, queue = pairs
    bids, size = 0, queue.size
    while waiting > 0 and bids < most:
        i = queue[first]
        if waiting > 2 * AHEAD:
            ahead = first + AHEAD
            later = queue[ahead if ahead < size else ahead - size]
            for t in range(indptr[later], indptr[later + 1], LINE):
                prefetch(edges, t)
            prefetch(indptr, queue[ahead + AHEAD if ahead + AHEAD < size else ahead + AHEAD - size])
        first = first + 1 if first + 1 < size else 0
        best, second, j = -2 * MOST_PRICE, -2 * MOST_PRICE, -1
        for t in range(indptr[i], indptr[i + 1]):
            column = edges[t, 0]
            net = edges[t, 1] - prices[column]
            second = max(second, min(best, net))
            j = column if net > best else j
            best = max(best, net)
        bids += 1
        if j < 0:
            return first, waiting, bids, False  # a row without edges
        price = prices[j] + epsilon + (best - second if second > -2 * MOST_PRICE else SPAN)
        if price > MOST_PRICE:
            return first, waiting, bids, False
        prices[j] = price
        owner = row_of[j]
        row_of[j], column_of[i] = i, j
        if owner >= 0:
            column_of[owner] = UNASSIGNED
            last = first + waiting - 1
            queue[last if last < size else last - size] = owner
            if waiting <= 2 * AHEAD:
                for t in range(indptr[owner], indptr[owner + 1], LINE):
                    prefetch(edges, t)
        else:
            waiting -= 1
    return first, waiting, bids, True


@numba.njit(cache=True, nogil=True)
def bid_in_phases(packed: Packed, pairs: Pairs, counts: Array, knobs: Array, most: int) -> bool:
    """Go on where the last call stopped, for about `most` bids; True once phases are over.

    Args:
        counts: int64, by the names above; EPSILON holds the first one at the start.
        knobs: int64; the smallest epsilon, what epsilon is divided by, bids below which a phase is the last, and bids
            that end one.
    """
    smallest, theta, few, many = knobs
    while most > 0:
        if counts[WAITING] == 0:
            if counts[PHASES] > 0:
                epsilon = counts[EPSILON]
                if epsilon <= smallest or (counts[PHASES] >= AT_LEAST and counts[PHASE_BIDS] < few):
                    return True
                counts[EPSILON] = max(smallest, epsilon // theta)
            counts[PHASES] += 1
            counts[PHASE_BIDS] = 0
            counts[FIRST], counts[WAITING] = 0, _part_loose(packed, pairs, counts[EPSILON])
        room = min(most, many - counts[PHASE_BIDS])
        first, waiting, bids, fits = _bid_in_turn(packed, pairs, counts[FIRST], counts[WAITING], counts[EPSILON], room)
        counts[FIRST], counts[WAITING] = first, waiting
        counts[PHASE_BIDS] += bids
        counts[BIDS] += bids
        most -= bids
        if not fits or counts[PHASE_BIDS] >= many:
            return True
    return False
