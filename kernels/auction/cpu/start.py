"""How a solve on the CPU begins: the points or graph in the solver's arithmetic, old prices and answers, the lists."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.auction.cpu import paths
from kernels.auction.cpu.rows import Graph, bound_rows, empty_lists, fill_lists, graph_of, seat_rows
from kernels.auction.proportion import cut_prices
from kernels.auction.scaling import FEW_LOOSE, Arithmetic, extremes
from kernels.deadline import Deadline
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.arrays import Costs, Floats, Indices, Integers
from kernels.problems.points import PointAuction
from kernels.problems.sparse import Auction, is_complete
from kernels.solution import Termination

BATCH_ENTRIES = 5_000_000
"""Entries read whole between two looks at the clock: some 10 ms."""


@dataclass
class SolveState:
    """One solve under way: the graph in its arithmetic, short lists, matching, and the counters shown as facts."""

    graph: Graph
    lists: Any
    matching: paths.Matching
    unit: Arithmetic
    bidders: list[Integers] = field(default_factory=list)
    counts: dict[str, Any] = field(
        default_factory=lambda: dict.fromkeys(("rounds", "bids", "phases", "augmentations", "rows_scanned"), 0)
    )
    hall_rows: Indices | None = None
    profits: Floats | None = None  # where there are no lists to work them out from


def from_points(problem: Auction) -> tuple[Auction, dict[str, Array]]:
    """The same problem with its benefits worked out, and the `neighbours` they were worked out for."""
    if not isinstance(problem, PointAuction):
        return problem, {}
    points = problem.points
    if points.neighbours is None:
        return problem.with_benefits(points.all_benefits()), {}
    nearest = points.nearest(np.arange(points.x.shape[0]))
    return problem.with_benefits(points.graph_of_neighbours(nearest)), {"neighbours": nearest}


def start(weights: Costs | Csr, unit: Arithmetic, problem: Auction) -> SolveState:
    """Lay out a solve: nobody assigned and prices 0, or as an earlier job left them, cut to what is of use."""
    prices0 = problem.prices0
    graph = graph_of(weights, int(unit.scale))
    n_rows, dtype = graph.indptr.size - 1, graph.values.dtype
    exact = dtype.kind == "i" and graph.values.size > 0
    prices = np.zeros(graph.n_cols, dtype)
    if prices0 is not None:
        low, high = (int(graph.values.min()), int(graph.values.max())) if exact else extremes(graph.values)
        chains = problem.reject is None and not is_complete(weights)
        movable = problem.reject is None and n_rows == graph.n_cols
        prices[: prices0.size] = cut_prices(prices0, unit.scale, high - low, chains, movable, exact)
    matching = paths.Matching(
        np.full(n_rows, UNASSIGNED, np.int64),
        np.zeros(n_rows, dtype),
        np.full(graph.n_cols, UNASSIGNED, np.int64),
        prices,
    )
    if problem.assignment0 is not None:
        matching.column_of[:] = problem.assignment0
        seat_rows(graph, matching.column_of, matching.held, matching.row_of)
    return SolveState(graph, empty_lists(graph), matching, unit)


def list_rows(state: SolveState, deadline: Deadline, read: Any = fill_lists) -> Termination | None:
    """Read every row with `read`; a termination when time is up."""
    n_rows = state.matching.column_of.size
    step = max(1, BATCH_ENTRIES * n_rows // max(1, state.graph.values.size))
    for first in range(0, n_rows, step):
        if ended := deadline.expired():
            return ended
        read(first, min(first + step, n_rows), state.graph, state.matching.prices, state.lists)
    return None


def drop_idle_prices(state: SolveState, deadline: Deadline) -> None:
    """Start from prices of 0 where the old ones, by the dual value of each, say less about the optimum than those."""
    prices, lists = state.matching.prices, state.lists
    old, values = prices.copy(), []
    for tried in (np.zeros_like(old), old):
        prices[:] = tried
        if list_rows(state, deadline, bound_rows) is not None:
            return
        known = lists.rest[lists.rest > state.graph.lowest]
        values.append(float(known.astype(np.float64).sum() + tried.astype(np.float64).sum()))
    if values[1] > values[0]:
        prices[:] = 0


def keep_seats(state: SolveState, deadline: Deadline) -> Termination | None:
    """Read every row once; where the earlier answer still fits nearly all, no list is needed before a path comes by.

    Else start from the prices alone where every column will be sold: paths are short while many columns are free.
    """
    ended = list_rows(state, deadline, bound_rows)
    matching, rest = state.matching, state.lists.rest
    column_of, prices = matching.column_of, matching.prices
    loose = (column_of < 0) | (matching.held - prices[column_of] < rest)
    if ended is not None or int(loose.sum()) <= FEW_LOOSE:
        return ended
    if column_of.size == prices.size:
        column_of[:], matching.row_of[:] = UNASSIGNED, UNASSIGNED
    return list_rows(state, deadline)
