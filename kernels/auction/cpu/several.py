"""Several dense problems of one shape, each brought from nothing to its optimum, in one compiled call.

The steps are those of `solver.py` for one such problem, on the same compiled loops: lists, augmenting row reduction,
shortest augmenting paths. A small problem takes less time than the calls from Python around its steps.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kernels.auction.cpu.paths import Matching, Search, augment_rows, clean_search, reduce_rows
from kernels.auction.cpu.rounds import best_nets, keep_content
from kernels.auction.cpu.rows import Graph, Lists, empty_lists, fill_lists, graph_of
from kernels.auction.scaling import NEAR
from kernels.compiling import njit
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Amounts, Costs, Indices, Integers, Mask, untouched
from kernels.problems.points import PointAuction
from kernels.problems.sparse import Auction
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

COUNTS = ("bids", "augmentations", "rows_scanned")


def suits(problem: Auction, options: "AuctionOptions") -> bool:
    """Whether `solver.solve` would take paths alone, from nothing, over a matrix."""
    if isinstance(problem, PointAuction) or not isinstance(problem.weights, np.ndarray):
        return False
    starts = (problem.reject, problem.prices0, problem.assignment0)
    return options.epsilon is None and options.finish != "auction" and all(start is None for start in starts)


def solve(problems: Sequence[Auction], options: "AuctionOptions") -> list[Solution | None]:
    """Solve problems of one shape and type that `suits` takes.

    None stands for one that is to be solved by itself: its benefits are far from 1 in size, or a row finds no column.

    Returns: of each what `solver.solve` returns, to the last bit, as the same loops run in the same order.
    Complexity: time of the loops, and some 5 us a problem; memory of the benefits in eight bytes each.
    """
    benefits = [cast(Costs, problem.weights) for problem in problems]
    exact = benefits[0].dtype.kind == "i"
    dtype: Any = np.dtype(np.int64 if exact else np.float64)
    n_rows, n_cols = problems[0].shape
    values = np.stack(benefits, dtype=dtype).reshape(len(problems), -1)
    graph = graph_of(values[0].reshape(n_rows, n_cols))
    search = clean_search(n_rows, n_cols, dtype)
    column_of = np.full((len(problems), n_rows), UNASSIGNED, np.int64)
    held, profits = np.zeros(column_of.shape, dtype), np.empty(column_of.shape, dtype)
    prices, counts = np.zeros((len(problems), n_cols), dtype), np.zeros((len(problems), len(COUNTS)), np.int64)
    row_of, queue = np.empty(n_cols, np.int64), np.empty(n_rows, np.int64)
    pair_each(
        graph, untouched(values), empty_lists(graph), search, row_of, queue, column_of, held, prices, profits, counts
    )
    solved = (column_of != UNASSIGNED).all(1)
    if not exact:
        solved &= _near(values)
    else:
        profits = held - np.take_along_axis(prices, column_of, 1)
    found: list[Solution | None] = []
    for k, told in enumerate(counts.tolist()):
        facts = {"rounds": 0, "bids": 0, "phases": 0, **dict(zip(COUNTS, told, strict=True))}
        arrays = {"assignment": column_of[k], "prices": prices[k], "profits": profits[k]}
        if options.trace:
            arrays["bidders"] = np.empty(0, np.int64)
        found.append(Solution(Termination.OPTIMAL, "paths", arrays, facts=facts) if solved[k] else None)
    return found


def _near(values: Amounts) -> Mask:
    """Of each problem, whether `proportion.bring_near` leaves it as it is."""
    exponents = np.frexp(np.where(np.isfinite(values), np.abs(values), 0.0).max(1))[1]
    return np.asarray(np.abs(exponents) <= NEAR)


@njit(cache=True)
def pair_each(
    first: Graph,
    values: Amounts,
    lists: Lists,
    search: Search,
    row_of: Indices,
    queue: Indices,
    column_of: Indices,
    held: Amounts,
    prices: Amounts,
    profits: Amounts,
    counts: Integers,
) -> None:
    """Solve every problem: its benefits are a row of `values`, and its answer is a row of what follows `queue`.

    `first` is the graph of the first problem. Where a row finds no column, it and those after it stay without one.
    """
    start: Any = np.int64(0)  # no literal, which would be a type of its own
    most: Any = np.int64(1 << 62)
    nothing = first.values.dtype.type(0)
    n_rows = queue.size
    for k in range(values.shape[0]):
        graph = Graph(first.indptr, first.indices, values[k], first.dense, first.n_cols, first.lowest)
        row_of[:] = UNASSIGNED
        lists.length[:] = 0
        lists.rest[:] = first.lowest
        matching = Matching(column_of[k], held[k], row_of, prices[k])
        fill_lists(start, n_rows, graph, matching.prices, lists)
        n_free = keep_content(graph, lists, matching, nothing, queue)
        n_free, counts[k, 0] = reduce_rows(graph, lists, matching, queue[:n_free], 8 * n_rows)
        counts[k, 1] = n_free
        _, counts[k, 2], stuck = augment_rows(graph, lists, matching, search, queue[:n_free], start, most)
        if stuck >= 0:
            search.mark[:] = 0  # of the search that came to no end
        best_nets(graph, lists, matching.prices, profits[k])
