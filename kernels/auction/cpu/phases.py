"""Bids one after the other on a sparse square graph, epsilon by epsilon: what brings prices near an optimum's.

Each phase frees the rows that are further than epsilon from their best, and lets the free ones bid in turn
(Gauss-Seidel), first come first served: the processor can fetch the next bidder's row meanwhile. Nothing here has to be
exact. Benefits are whole numbers of 32 bits beside their columns, so that a row of ten edges is two lines of the cache,
and one compiled form serves integers and floats. A column's price and owner lie side by side, as a bid that reads the
one wants the other. `square.py` finishes in the arithmetic of the problem.

Invariants: an assigned row that no phase has freed is within epsilon of its best; prices never fall. Only graphs that
are square begin this way: a column that keeps no row would keep its raised price. A graph without an assignment of all
rows never empties the queue; the bids that a phase may take, and the highest price that fits, end that.

Indices are told to be unsigned, or numba would look at each of them whether it counts from the end. Pairs of numbers
lie flat, one after the other: in a matrix of two columns each address would be a product.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from kernels.auction.cpu.prefetch import prefetch
from kernels.compiling import njit
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Indices32, Integers, Integers32

FIRST, WAITING, PHASE_BIDS, BIDS, PHASES, EPSILON = range(6)
"""Places in `counts`: start and length of the queue, bids of this phase, of all, phases begun, this one's epsilon."""
SPAN = 2**22
"""Benefits lie in 0..SPAN."""
MOST_PRICE = 2**29
"""A price above this ends the phases: sums of a few of them still fit 32 bits."""
NOTHING = -2 * MOST_PRICE
"""Below every net benefit."""
AHEAD = 8
"""So many bidders ahead a row's edges are fetched, and twice as many ahead where they are."""
LINE = 8
"""Edges in a line of the cache."""
AT_LEAST = 3
"""Phases before few bids are a reason to stop: the first ones are coarse, and may have nothing to do."""
COLUMN, BENEFIT = 0, 1
"""Places in a line of `Packed.edges`."""
TWO, ONE = np.uint64(2), np.uint64(1)


class Packed(NamedTuple):
    """A graph: indptr (n_rows + 1,) and edges (n_edges, 2) of column and benefit, both int32."""

    indptr: Indices32
    edges: Indices32

    def flat(self) -> "Packed":
        """The same with its edges one after the other, as the phases read them."""
        return Packed(self.indptr, self.edges.reshape(-1))


class Pairs(NamedTuple):
    """seats: price and owner of each column, flat; column_of by row, as of the last phase's beginning; queue: the rows
    that wait, in a ring. All int32."""

    seats: Integers32
    column_of: Indices32
    queue: Indices32


def nobody_seated(n: int) -> Pairs:
    """Prices of 0, and every row in the queue."""
    seats = np.zeros(2 * n, np.int32)
    seats[1::2] = UNASSIGNED
    return Pairs(seats, np.empty(n, np.int32), np.arange(n, dtype=np.int32))


@register_jitable(no_cfunc_wrapper=True)
def _part_loose(packed: Packed, pairs: Pairs, epsilon: int, at_first: bool) -> int:
    """Free the rows that are further than epsilon from their best; queues all free rows, which at first are queued."""
    indptr, edges = packed
    seats, column_of, queue = pairs
    if at_first:
        return queue.size
    column_of[:] = UNASSIGNED
    for j in range(column_of.size):
        owner = seats[2 * j + 1]
        if owner >= 0:
            column_of[np.uint32(owner)] = j
    waiting = 0
    for i in range(column_of.size):
        mine = column_of[i]
        best, net_of_mine = np.int64(NOTHING), np.int64(NOTHING)
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = edges[TWO * t]
            net = np.int64(edges[TWO * t + ONE]) - np.int64(seats[TWO * np.uint64(np.uint32(j))])
            best = max(best, net)
            net_of_mine = net if j == mine else net_of_mine
        if mine >= 0 and net_of_mine < best - epsilon:
            seats[2 * mine + 1] = UNASSIGNED
            mine = np.int32(UNASSIGNED)
        if mine < 0:
            queue[waiting] = i
            waiting += 1
    return waiting


@njit(inline="always")
def _fetch_row(i: np.uint32, packed: Packed) -> None:
    """Ask for the edges of row i ahead of their use."""
    for t in range(np.uint64(packed.indptr[i]), np.uint64(packed.indptr[i + np.uint32(1)]), LINE):
        prefetch(packed.edges, TWO * t)


@register_jitable(no_cfunc_wrapper=True)
def _bid_in_turn(
    packed: Packed, pairs: Pairs, first: int, waiting: int, epsilon: int, most: int
) -> tuple[int, int, int, bool]:
    """Let queued rows bid until none is left or `most` bids are made; the queue's first place and length, bids, whether
    prices fit.

    A row with one edge raises by a span beyond epsilon, as in `rounds.py`.
    """
    indptr, edges = packed
    seats, _, queue = pairs
    bids, size = 0, queue.size
    while waiting > 0 and bids < most:
        i = np.uint32(queue[np.uint64(first)])
        if waiting > 2 * AHEAD:
            ahead = first + AHEAD
            _fetch_row(np.uint32(queue[np.uint64(ahead if ahead < size else ahead - size)]), packed)
            ahead += AHEAD
            prefetch(indptr, queue[np.uint64(ahead if ahead < size else ahead - size)])
        first = first + 1 if first + 1 < size else 0
        best, second, j = np.int64(NOTHING), np.int64(NOTHING), np.int32(UNASSIGNED)
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint32(1)])):
            column = edges[TWO * t]
            net = np.int64(edges[TWO * t + ONE]) - np.int64(seats[TWO * np.uint64(np.uint32(column))])
            second = max(second, min(best, net))
            j = column if net > best else j
            best = max(best, net)
        bids += 1
        if j < 0:
            return first, waiting, bids, False  # a row without edges
        seat = TWO * np.uint64(np.uint32(j))
        price = np.int64(seats[seat]) + epsilon + (best - second if second > NOTHING else SPAN)
        if price > MOST_PRICE:
            return first, waiting, bids, False
        owner = seats[seat + ONE]
        seats[seat], seats[seat + ONE] = price, i
        if owner >= 0:
            last = first + waiting - 1
            queue[np.uint64(last if last < size else last - size)] = owner
            if waiting <= 2 * AHEAD:
                _fetch_row(np.uint32(owner), packed)
        else:
            waiting -= 1
    return first, waiting, bids, True


@njit(cache=True, nogil=True)
def bid_in_phases(packed: Packed, pairs: Pairs, counts: Integers, knobs: Integers, most: int) -> bool:
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
            counts[FIRST], counts[WAITING] = 0, _part_loose(packed, pairs, counts[EPSILON], counts[PHASES] == 1)
        room = min(most, many - counts[PHASE_BIDS])
        first, waiting, bids, fits = _bid_in_turn(packed, pairs, counts[FIRST], counts[WAITING], counts[EPSILON], room)
        counts[FIRST], counts[WAITING] = first, waiting
        counts[PHASE_BIDS] += bids
        counts[BIDS] += bids
        most -= bids
        if not fits or counts[PHASE_BIDS] >= many:
            return True
    return False
