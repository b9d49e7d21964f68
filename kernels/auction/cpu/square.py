"""The optimum of a sparse square graph: bids in phases (`phases.py`), then an exact finish over whole rows.

    suits    whether a problem is solved so: as many rows as columns, few edges a row, nothing to start from
    begin    the graph in the arithmetic of the finish: floats, or integers times a power of two
    solve    phases until rows hardly compete; rows that are not at their best part and bid with epsilon 0; paths for
             whom that leaves

Integers are multiplied by a power of two, so that epsilon can fall below one. The prices that end the solve are then
divided by it and rounded down: benefits are whole, so a difference of prices that satisfies them still does.
"""

from typing import TYPE_CHECKING

import numpy as np

from kernels.auction.cpu import phases, whole_rows
from kernels.auction.cpu.start import SolveState, start
from kernels.auction.cpu.thinned import thinned
from kernels.auction.cpu.whole_paths import WholeSearch, augment_whole
from kernels.auction.scaling import Arithmetic, extremes
from kernels.deadline import Deadline
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.sparse import Auction
from kernels.solution import Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

LEAST_ROWS = 6
"""Smaller graphs take paths at once."""
MOST_DEGREE = 512
"""Edges a row, on average, up to which the finish reads rows whole for every bid."""
THETA, FEW, MANY = 8, 3, 60
"""Epsilon falls by THETA; a phase of fewer than FEW bids a row is the last; none takes more than MANY a row."""
START = 20
"""The first epsilon is the span of benefits over this."""
SCALE = 64
"""Integers are multiplied by this, or the largest power of two below it that leaves room for prices."""
MOST_SCALED = 2**59
"""Prices of scaled integers stay below twice this: as many spans as phases may raise them by, and as paths may."""
BATCH_EDGES = 500_000
"""Edges read between two looks at the clock: a few ms."""


def suits(problem: Auction, options: "AuctionOptions") -> bool:
    """Whether `solve` takes this problem."""
    graph = problem.weights
    if not isinstance(graph, Csr) or options.epsilon is not None or options.finish != "auto":
        return False
    n_rows, n_cols = graph.shape
    if n_rows != n_cols or n_rows < LEAST_ROWS or not 0 < graph.values.size <= MOST_DEGREE * n_rows:
        return False
    if problem.reject is not None or problem.prices0 is not None or problem.assignment0 is not None:
        return False
    return graph.values.dtype.kind == "f" or _scale_of(graph.values, n_cols) > 0


def _scale_of(values: Array, n_cols: int) -> int:
    """What integers are multiplied by; 0 where even prices of the plain ones might not fit."""
    low, high = int(values.min()), int(values.max())
    spans = max(n_cols + 2, 2 * phases.MOST_PRICE // phases.SPAN)
    room = min(MOST_SCALED // (max(1, high - low) * spans), MOST_SCALED // max(1, abs(low), abs(high)))
    return min(SCALE, 1 << max(0, room.bit_length() - 1)) if room > 0 else 0


def begin(problem: Auction) -> SolveState:
    """The graph in the arithmetic of the finish, nobody assigned."""
    graph = problem.weights
    assert isinstance(graph, Csr)
    low, high = extremes(graph.values) if graph.values.dtype.kind == "f" else (graph.values.min(), graph.values.max())
    if graph.values.dtype.kind == "f":
        return start(graph, Arithmetic(1, high - low, exact=False, largest=max(-low, high)), problem)
    scale = _scale_of(graph.values, graph.shape[1])
    return start(graph, Arithmetic(scale, (int(high) - int(low)) * scale), problem)


def solve(state: SolveState, deadline: Deadline) -> Termination | None:
    """Bid in phases, then finish: to the optimum, or to where time or columns end.

    None where phases over a part of the edges came to no end, so that the problem is better solved another way.
    """
    graph, matching = state.graph, state.matching
    n = matching.column_of.size
    batch = max(1, BATCH_EDGES * n // graph.values.size)
    if state.unit.span > 0:
        ended, assigned = _bid(state, batch, deadline)
        if ended is not None or not assigned:
            return ended
    free = np.empty(n, np.int64)
    n_free = whole_rows.part_loose(graph, matching, free)
    n_free, bids = whole_rows.reduce_whole(graph, matching, free, n_free, 8 * n)
    state.counts["bids"] += bids
    ended = _augment(state, free[:n_free], batch, deadline)
    if ended is Termination.OPTIMAL:
        _unscale(state)
        if graph.values.dtype.kind == "f":
            state.profits = np.empty(n)
            whole_rows.best_whole(graph, matching.prices, state.profits)
    return ended


def _bid(state: SolveState, batch: int, deadline: Deadline) -> tuple[Termination | None, bool]:
    """Run the phases, on benefits as whole numbers of 32 bits; take over whom they assigned, and their prices.

    False where rows waited at the end and the phases had not seen all edges.
    """
    n = state.matching.column_of.size
    whole, unit = _packed(state)
    packed = thinned(whole, n)
    pairs = phases.Pairs(*(np.full(n, UNASSIGNED, np.int32) for _ in range(4)))
    pairs.prices[:] = 0
    counts, span = np.zeros(6, np.int64), int(packed.edges[:, 1].max())
    counts[phases.EPSILON] = max(1, span // START)
    knobs = np.array([1, THETA, FEW * n, MANY * n])
    over, ended = False, None
    while not over and ended is None:
        over = phases.bid_in_phases(packed, pairs, counts, knobs, batch)
        deadline.report(int(counts[phases.PHASES]))
        ended = deadline.expired()
    state.counts["bids"] += int(counts[phases.BIDS])
    state.counts["phases"] += int(counts[phases.PHASES])
    state.matching.column_of[:], state.matching.row_of[:] = pairs.column_of, pairs.row_of
    state.matching.prices[:] = pairs.prices
    state.matching.prices[:] *= state.matching.prices.dtype.type(unit)
    return ended, counts[phases.WAITING] == 0 or packed is whole


def _packed(state: SolveState) -> tuple[phases.Packed, float]:
    """Columns beside benefits less the smallest one, and what a unit of these is worth in the finish's arithmetic."""
    graph = state.graph
    values, edges = graph.values, np.empty((graph.values.size, 2), np.int32)
    edges[:, 0] = graph.indices
    low = values.min()
    if values.dtype.kind == "f":
        unit = float(state.unit.span) / phases.SPAN
        edges[:, 1] = np.minimum((values - low) * (1 / unit), phases.SPAN)
        return phases.Packed(graph.indptr, edges), unit
    shift = max(0, int(state.unit.span).bit_length() - (phases.SPAN.bit_length() - 1))
    edges[:, 1] = (values - low) >> shift
    return phases.Packed(graph.indptr, edges), 1 << shift


def _augment(state: SolveState, free: Array, batch: int, deadline: Deadline) -> Termination:
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


def _unscale(state: SolveState) -> None:
    """Whole prices and benefits from scaled ones; the graph itself is read no more."""
    scale = int(state.unit.scale)
    if scale > 1:
        state.matching.prices[:] //= scale
        state.matching.held[:] //= scale
        state.unit = Arithmetic(1, state.unit.span // scale)
