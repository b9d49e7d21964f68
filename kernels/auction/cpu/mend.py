"""What is tried when an auction's claim was not earned: prices rebuilt from the assignment, then the solve again.

Integers come out exact from the last steps of the CPU's solver, shortest augmenting paths from the answer as it is.
Floats have their prices rebuilt (`rebuild.py`). Should these still leave a gap, the assignment is not the best one,
as its prices were too large or too coarse to tell: the solver runs from the rebuilt prices, and then from nothing.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kernels.auction.cpu import solver as cpu
from kernels.auction.cpu.rebuild import lower, profits_of, settle
from kernels.auction.cpu.rows import Graph, graph_of, seat_rows
from kernels.auction.cpu.start import from_points
from kernels.auction.proportion import bring_near, scaled, take_back
from kernels.deadline import Deadline
from kernels.problems import UNASSIGNED, Csr
from kernels.problems.arrays import Floats, Indices
from kernels.problems.points import PointAuction
from kernels.problems.sparse import Auction, with_private_columns
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

MOST_PAIRS = 2**28
"""Distances that are written down for this, 2 GiB of them; larger clouds keep the answer that they have."""
SCANS = 6
"""Readings of a row, on average, that settling prices may take."""
BATCH_ENTRIES = 5_000_000
"""Entries read between two looks at the clock: some 10 ms."""
ROUNDING, RELATIVE = 2.0**-51, 5e-10
"""A gap of so much of the chosen pairs' numbers, and of their benefits, is rounding: half of what a proof may leave."""


def mend(problem: Auction, options: "AuctionOptions", solution: Solution, deadline: Deadline) -> Solution | None:
    """A better founded solution of `problem`, or None when there is no time or nothing to try."""
    if "assignment" not in solution.arrays or deadline.expired():
        return None
    on_points = isinstance(problem, PointAuction) and problem.points.neighbours is None
    if on_points and problem.shape[0] * problem.shape[1] > MOST_PAIRS:
        return None
    problem, neighbours = from_points(problem)
    exact = options.model_copy(update={"epsilon": None, "finish": "paths"})
    near, exact, k = bring_near(replace(problem, prices0=None, assignment0=None), exact)
    weights = with_private_columns(near)
    prices, assignment = solution.arrays["prices"], solution.arrays["assignment"]
    old = np.maximum(scaled(prices, -k) if k else prices, 0)
    if (weights.values if isinstance(weights, Csr) else weights).dtype.kind == "i":
        found: Solution | None = cpu.solve(replace(near, prices0=old, assignment0=assignment), exact, deadline)
    else:
        found = _rebuild_and_solve(near, graph_of(weights), exact, deadline, assignment, old)
    if found is None or found.termination not in (Termination.OPTIMAL, Termination.INFEASIBLE):
        return None
    found = take_back(found, k, exact)
    found.method = f"{solution.method}+mended"
    found.arrays |= neighbours
    found.facts = solution.facts | found.facts
    found.timings_ms = solution.timings_ms
    return found


def _rebuild_and_solve(
    problem: Auction, graph: Graph, options: "AuctionOptions", deadline: Deadline, assignment: Indices, prices: Floats
) -> Solution | None:
    """The smallest gap of three: the assignment with rebuilt prices, one solved from these, and one from nothing."""
    best: tuple[float, Solution] | None = None
    for start_cold in (False, True, None):
        rebuilt = _rebuild(problem, graph, deadline, assignment, prices)
        if rebuilt is not None and (best is None or rebuilt[0] < best[0]):
            best = rebuilt
        if start_cold is None or deadline.expired() or (rebuilt is not None and rebuilt[0] <= 1):
            break
        warm = rebuilt is not None and not start_cold
        prices0 = rebuilt[1].arrays["prices"] if rebuilt is not None and warm else None
        again = cpu.solve(replace(problem, prices0=prices0), options, deadline)
        if again.termination is not Termination.OPTIMAL:
            return again if again.termination is Termination.INFEASIBLE else best and best[1]
        assignment, prices = again.arrays["assignment"], again.arrays["prices"]
    return best and best[1]


def _rebuild(
    problem: Auction, graph: Graph, deadline: Deadline, assignment: Indices, old: Floats
) -> tuple[float, Solution] | None:
    """The assignment with rebuilt prices, and their gap over what rounding explains; None where a row has no pair."""
    (n_rows, n_cols), rows = problem.shape, np.arange(problem.shape[0])
    column_of = assignment.astype(np.int64)
    if problem.reject is not None:
        column_of = np.where(column_of == UNASSIGNED, n_cols + rows, column_of)
    held, row_of = np.zeros(n_rows), np.full(graph.n_cols, UNASSIGNED, np.int64)
    seat_rows(graph, column_of, held, row_of)
    if (column_of == UNASSIGNED).any():
        return None
    start = np.zeros(graph.n_cols)
    start[:n_cols] = np.where(row_of[:n_cols] >= 0, old, 0)
    prices = lower(graph, column_of, row_of, held, start)
    queue, waits = rows.copy(), np.concatenate([[n_rows, 0], np.ones(n_rows, np.int64)])
    batch = max(1, BATCH_ENTRIES * n_rows // max(1, graph.values.size))
    for _ in range(0, SCANS * n_rows, batch):
        if settle(graph, column_of, row_of, held, prices, queue, waits, batch) == 0 or deadline.expired():
            break
    profits = profits_of(graph, prices)
    paid = prices[column_of]
    gap = float(np.maximum(profits - (held - paid), 0).sum())
    sizes = float(np.abs(held).sum())
    explained = ROUNDING * (sizes + float(np.abs(profits).sum() + paid.sum()))
    if sizes > 0:
        explained = min(explained, RELATIVE * sizes)
    arrays = {"assignment": assignment, "prices": prices[:n_cols], "profits": profits}
    found = Solution(Termination.OPTIMAL, "mended", arrays)
    if gap == 0:
        return 0.0, found
    return gap / explained if explained > 0 else np.inf, found
