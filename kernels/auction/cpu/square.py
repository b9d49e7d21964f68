"""The optimum of a sparse square graph: bids in phases (`phases.py`), then an exact finish over whole rows.

    suits    whether a problem is solved so: as many rows as columns, few edges a row, nothing to start from
    begin    the graph in the arithmetic of the finish: floats, or integers
    solve    phases, until their prices are nearly an optimum's or rows hardly compete; rows that are not at their best
             part and bid with epsilon 0; paths for whom that leaves

Phases read benefits as whole numbers of 32 bits (`packing.py`), of a local graph in the order of `nearness.py`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.auction.cpu import phases, whole_rows
from kernels.auction.cpu.nearness import numbered
from kernels.auction.cpu.packing import grain_of, packed, whole_prices
from kernels.auction.cpu.start import SolveState, start
from kernels.auction.cpu.thinned import thinned
from kernels.auction.cpu.whole_paths import WholeSearch, augment_whole
from kernels.auction.scaling import Arithmetic, extremes
from kernels.deadline import Deadline
from kernels.problems import UNASSIGNED, Csr
from kernels.problems.arrays import Costs, Indices, Indices32, Integers32
from kernels.problems.sparse import Auction
from kernels.solution import Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

LEAST_ROWS = 6
"""Smaller graphs take paths at once."""
MOST_DEGREE = 512
"""Edges a row, on average, up to which the finish reads rows whole for every bid."""
MOST_EDGES = 2**31 - 1
"""Edges of a graph whose rows begin at numbers of 32 bits."""
THETA, FEW, MANY = 8, 3, 60
"""Epsilon falls by THETA; a phase of fewer than FEW bids a row is the last, unless the grain is fine; none takes more
than MANY a row."""
START = 20
"""The first epsilon is the span of benefits over this."""
MOST_PRICE = 2**59
"""Prices of integers stay below twice this: as many spans as phases may raise them by, and as paths may."""
BATCH_EDGES = 500_000
"""Edges read between two looks at the clock: a few ms."""


def suits(problem: Auction, options: "AuctionOptions") -> bool:
    """Whether `solve` takes this problem."""
    graph = problem.weights
    if not isinstance(graph, Csr) or options.epsilon is not None or options.finish != "auto":
        return False
    n_rows, n_cols = graph.shape
    if n_rows != n_cols or n_rows < LEAST_ROWS or not 0 < graph.values.size <= min(MOST_DEGREE * n_rows, MOST_EDGES):
        return False
    if problem.reject is not None or problem.prices0 is not None or problem.assignment0 is not None:
        return False
    return graph.values.dtype.kind == "f" or _has_room(graph.values, n_cols)


def _has_room(values: Costs, n_cols: int) -> bool:
    """Whether prices of these integers fit."""
    low, high = int(values.min()), int(values.max())
    spans = max(n_cols + 2, 2 * phases.MOST_PRICE // phases.SPAN)
    return max(1, high - low) * spans <= MOST_PRICE and max(abs(low), abs(high)) <= MOST_PRICE


def begin(problem: Auction) -> SolveState:
    """The graph in the arithmetic of the finish, nobody assigned."""
    graph = problem.weights
    assert isinstance(graph, Csr)
    if graph.values.dtype.kind == "f":
        low, high = extremes(graph.values)
        return start(graph, Arithmetic(1, high - low, exact=False, largest=max(-low, high)), problem)
    return start(graph, Arithmetic(1, int(graph.values.max()) - int(graph.values.min())), problem)


def solve(state: SolveState, deadline: Deadline) -> Termination | None:
    """Bid in phases, then finish: to the optimum, or to where time or columns end.

    None where phases over a part of the edges came to no end, so that the problem is better solved another way.
    """
    graph, n = state.graph, state.matching.column_of.size
    if state.unit.span > 0:
        ended, assigned = _bid(state, max(1, BATCH_EDGES * n // graph.values.size), deadline)
        if ended is not None or not assigned:
            return ended
    ended = finish(state, deadline)
    if ended is Termination.OPTIMAL and graph.values.dtype.kind == "f":
        state.profits = np.empty(n)
        whole_rows.best_whole(graph, state.matching.prices, state.profits)
    return ended


def finish(state: SolveState, deadline: Deadline) -> Termination:
    """Make the pairs exact for the prices that are there: to the optimum, or to where time or columns end."""
    graph, matching = state.graph, state.matching
    n = matching.column_of.size
    free = np.empty(n, np.int64)
    n_free = whole_rows.part_loose(graph, matching, free)
    n_free, bids = whole_rows.reduce_whole(graph, matching, free, n_free, 8 * n)
    state.counts["bids"] += bids
    return _augment(state, free[:n_free], max(1, BATCH_EDGES * n // graph.values.size), deadline)


def _bid(state: SolveState, batch: int, deadline: Deadline) -> tuple[Termination | None, bool]:
    """Run the phases, on benefits as whole numbers of 32 bits; take over whom they assigned, and their prices.

    False where rows waited at the end and the phases had not seen all edges.
    """
    graph, n = state.graph, state.matching.column_of.size
    grain = grain_of(state.unit.span, n, graph.values.dtype.kind == "f")
    whole = packed(Csr(graph.indptr, graph.indices, graph.values, (n, n)), grain, graph.values.min())
    read = thinned(whole, n)
    near = numbered(read)
    bid_on = (near.packed if near else read).flat()
    pairs = phases.nobody_seated(n)
    if near:  # rows take turns as they did: in an order of space, they would outbid each other more
        pairs.queue[near.rows] = np.arange(n)
    counts = np.zeros(6, np.int64)
    counts[phases.EPSILON] = max(1, int(read.edges[:, phases.BENEFIT].max()) // START)
    knobs = np.array([1, THETA, 0 if grain.is_fine else FEW * n, MANY * n])
    over, ended = False, None
    while not over and ended is None:
        over = phases.bid_in_phases(bid_on, pairs, counts, knobs, batch)
        deadline.report(int(counts[phases.PHASES]))
        ended = deadline.expired()
    state.counts["bids"] += int(counts[phases.BIDS])
    state.counts["phases"] += int(counts[phases.PHASES])
    prices, owners = pairs.seats[0::2], pairs.seats[1::2]
    if near:
        prices, owners = _renumbered(prices, near.columns), _renumbered(owners, near.columns)
        owners = np.where(owners >= 0, near.rows[owners], UNASSIGNED)
    taken = np.flatnonzero(owners >= 0)
    state.matching.row_of[:] = owners
    state.matching.column_of[owners[taken]] = taken
    state.matching.prices[:] = whole_prices(prices, grain.grain, int(counts[phases.EPSILON]))
    unit: Any = state.matching.prices.dtype.type(grain.unit)
    state.matching.prices[:] *= unit
    return ended, counts[phases.WAITING] == 0 or read is whole


def _renumbered(of_place: Indices32, number: Integers32) -> Integers32:
    """The same by number instead of by place."""
    by_number = np.empty_like(of_place)
    by_number[number] = of_place
    return by_number


def _augment(state: SolveState, free: Indices, batch: int, deadline: Deadline) -> Termination:
    """Assign the rows `free` by shortest augmenting paths, one after the other."""
    graph, matching, dtype = state.graph, state.matching, state.graph.values.dtype
    n = matching.column_of.size
    heap = 4 * n + 16
    search = WholeSearch(
        np.zeros(n, dtype),
        np.zeros(n, np.int64),
        np.zeros(n, dtype),
        np.zeros(n, np.int8),
        np.zeros(n, np.int64),
        np.zeros(heap, dtype),
        np.zeros(heap, np.int64),
        np.zeros(n, np.int64),
    )
    done, tree = 0, np.zeros(4, np.int64)
    state.counts["augmentations"] += free.size
    while True:  # once at least, so that a warm-up compiles it
        if ended := deadline.expired():
            return ended
        done, scans, stuck = augment_whole(graph, matching, search, free, done, batch, tree)
        state.counts["rows_scanned"] += scans
        deadline.report(state.counts["phases"], fraction=1 - (free.size - done) / n)
        if stuck >= 0:
            state.hall_rows = np.sort(np.append(matching.row_of[search.order[:stuck]], free[done]))
            return Termination.INFEASIBLE
        if done == free.size:
            return Termination.OPTIMAL
