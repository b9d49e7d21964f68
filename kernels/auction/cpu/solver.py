"""The auction on the CPU: Jacobi rounds, epsilon scaling, and shortest augmenting paths as the exact finish.

Read `start.py` (how it begins), `rows.py` (short lists), `rounds.py` (bid, award) and `paths.py` (the finish) after
this page. `square.py` is another way to the optimum, for sparse square graphs: `packing.py`, `thinned.py`,
`nearness.py` and `phases.py`, then `whole_rows.py` and `whole_paths.py`. Small dense problems that come together are
solved in `several.py`.
"""

from fractions import Fraction
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from kernels.auction.complete import complete
from kernels.auction.cpu import paths, rounds, square
from kernels.auction.cpu.rows import empty_lists
from kernels.auction.cpu.start import SolveState, drop_idle_prices, from_points, keep_seats, list_rows, start
from kernels.auction.proportion import bring_near, take_back
from kernels.auction.scaling import ENOUGH, FOREVER, Arithmetic, arithmetic_of, epsilons, proves, war_bids, whole_prices
from kernels.deadline import Deadline
from kernels.problems import UNASSIGNED, Csr
from kernels.problems.arrays import Array, Costs, Indices, Integers, untouched
from kernels.problems.sparse import Auction, edges_of, is_complete, with_private_columns
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.auction import AuctionOptions

BATCH_BIDS = 20_000
"""Bids between two looks at the clock: some 5 ms."""
BATCH_SCANS = 10_000
"""Row scans between two looks at the clock: some 5 ms."""

RESETS = 5
"""Attempts to settle the prices of spare columns before starting from zero."""


def solve(problem: Auction, options: "AuctionOptions", deadline: Deadline) -> Solution:
    """Assign every row its own column at the highest total benefit, by auction.

    Problem:
        max sum_i b[i, a(i)] over one-to-one a: rows -> columns along the edges of b, n_rows <= n_cols; with `reject`
        a row may also stay unassigned for reject[i]. Not solved: batches, columns that hold several rows.
    Args:
        problem: benefits dense (n_rows, n_cols) or CSR, int32/int64 (exact) or float32/float64; -inf and absent
            entries are forbidden. `prices0` (n_cols,) >= 0 and `assignment0` (n_rows,) start from an earlier job's;
            prices out of proportion are cut, and dropped where they say less than prices of 0.
        options: `epsilon` (in units of benefit) runs the paper's auction at that epsilon; None asks for the optimum.
            `finish` "auction": rounds to the end, for the optimum with epsilon scaled down to the proof; "paths": on
            to the optimum by shortest augmenting paths; "auto": paths too, on sparse square graphs after bids in
            phases, and for a given epsilon within it and only for whom many rounds left.
        deadline: polled every 5 to 10 ms.
    Returns:
        assignment (n_rows,) int64, UNASSIGNED for none; prices (n_cols,) >= 0 and profits (n_rows,), int64 when the
        optimum was found in integers, float64 otherwise; bidders (rounds,) int64 with `trace`; hall_rows when
        infeasible: rows that together see fewer columns than they are. Stopped early, the rows left take free columns.
    Guarantee:
        epsilon given: within n_rows * epsilon. epsilon None: exact in integers, to rounding in floats.
        Deterministic. In rounds, of equals the lowest row and the lowest column win.
    Numerics:
        integers in int64, times n_cols + 1 while epsilon is below one, so that epsilon is exact; the scale shrinks
        where (scaled span) * (n_cols + 1) would pass 2**61, and paths then close the rest. Floats in float64.
    Complexity:
        time O(nnz) for the lists, O(bids * LIST_LENGTH) for the rounds (17 to 45 bids a row on random graphs),
        O(n_rows * (nnz + n_cols log n_cols)) at worst for paths; memory 300 bytes a row, 60 a column beside the graph.
    Errors:
        none; wrong input was refused when the problem was built.
    Differs from the paper:
        1. epsilon scaling and an exact finish, 2. short lists instead of whole rows, 3. a row with one edge raises
        by the span of benefits, not infinity, 4. infeasible graphs end with a Hall violator, 5. a price war
        (`scaling.WAR`) ends by paths, which `method` and `facts.price_war` say.
    Source:
        G. Macri, parallel auction project report (2022), Algorithm 1; D. P. Bertsekas, A distributed algorithm for the
        assignment problem (1979); D. P. Bertsekas and D. A. Castanon (1989); R. Jonker and A. Volgenant, A shortest
        augmenting path algorithm (1987), for augmenting row reduction.
    """
    problem, neighbours = from_points(problem)
    near, given, k = bring_near(problem, options)
    solution = take_back(_solve(near, given, deadline), k, options)
    solution.arrays |= neighbours
    return solution


def _solve(problem: Auction, options: "AuctionOptions", deadline: Deadline) -> Solution:
    if square.suits(problem, options):
        state = square.begin(problem)
        ended = square.solve(state, deadline)
        if ended is not None:
            return _answer(state, problem, options, ended)
    weights = with_private_columns(problem)
    wants_rounds = options.epsilon is not None or options.finish == "auction"
    unit = arithmetic_of(weights, options.epsilon) if wants_rounds else Arithmetic()
    state = start(weights, unit, problem)
    if problem.prices0 is not None:
        drop_idle_prices(state, deadline)
    ended = list_rows(state, deadline) if problem.assignment0 is None else keep_seats(state, deadline)
    if ended is None and wants_rounds and _can_assign_all(weights):
        epsilon = None if options.finish == "paths" else options.epsilon
        if epsilon is not None and proves(unit, epsilon, state.graph.n_cols):
            ended = _stay_within(state, options, deadline)
        else:
            ended = _scale(state, options, deadline)
        if ended is None:
            _to_integers(state)
    if ended is None:
        ended = _finish(state, deadline)
    ended = _undo_unsold_prices(state, problem, options, deadline, ended)
    return _answer(state, problem, options, ended)


def _can_assign_all(weights: Costs | Csr) -> bool:
    """Whether an assignment of every row exists: an auction that has none would raise prices for ever."""
    if is_complete(weights):
        return True
    if isinstance(weights, Csr):
        pattern = csr_array((np.ones(weights.indices.size, np.int8), weights.indices, weights.indptr), weights.shape)
    else:
        pattern = csr_array(np.isfinite(weights).astype(np.int8))
    return bool((maximum_bipartite_matching(pattern, perm_type="column") >= 0).all())


def _stay_within(state: SolveState, options: "AuctionOptions", deadline: Deadline) -> Termination:
    """Run the auction at the given epsilon; paths, which keep its promise, for whom it leaves."""
    ended = _scale(state, options, deadline)
    ended = ended or _augment(state, np.flatnonzero(state.matching.column_of < 0), deadline)
    return Termination.GAP_REACHED if ended is Termination.OPTIMAL else ended


def _scale(state: SolveState, options: "AuctionOptions", deadline: Deadline) -> Termination | None:
    """Run the auction for each epsilon of the schedule, keeping prices and every pair that still fits.

    Unless rounds alone were asked for, a given epsilon's end after ENOUGH, with rows left.
    """
    most = ENOUGH if options.epsilon is not None and options.finish != "auction" else FOREVER
    graph, matching, dtype = state.graph, state.matching, state.graph.values.dtype
    n_rows = matching.column_of.size
    queue, sold = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    offers = np.zeros(n_rows, rounds.offers_dtype(dtype))
    winner = np.full(graph.n_cols, -1, np.int64)
    most_bids = state.counts["bids"] + war_bids(n_rows)
    for epsilon in epsilons(state.unit, options.epsilon, n_rows, graph.n_cols):
        n_queue = rounds.keep_content(graph, state.lists, matching, dtype.type(epsilon), queue)
        state.counts["phases"] += 1
        last = state.counts["rounds"] + most
        while n_queue and state.counts["rounds"] < last:
            if state.counts["bids"] + n_queue > most_bids:
                state.counts["price_war"] = True
                return None
            left = (options.iteration_limit or FOREVER) - state.counts["rounds"]
            if left <= 0:
                return Termination.ITERATION_LIMIT
            if ended := deadline.expired():
                return ended
            bidders = np.empty(min(left, last - state.counts["rounds"], BATCH_BIDS), np.int64)
            n_queue, ran, bids = rounds.run_rounds(
                queue,
                n_queue,
                dtype.type(epsilon),
                dtype.type(state.unit.span),
                graph,
                state.lists,
                matching,
                offers,
                winner,
                sold,
                bidders,
                BATCH_BIDS,
                most_bids - state.counts["bids"],
            )
            state.bidders.append(bidders[:ran])
            state.counts["rounds"] += ran
            state.counts["bids"] += bids
            deadline.report(state.counts["rounds"])
    return None


def _to_integers(state: SolveState) -> None:
    """From scaled integers back to units; the lists stay valid, their bounds grow by one."""
    scale = int(state.unit.scale)
    if scale == 1:
        return
    matching, lists, graph = state.matching, state.lists, state.graph
    scaled = (matching.prices, matching.held, lists.benefits)
    prices, held, benefits = (cast(Integers, one) for one in scaled)
    prices[:] = whole_prices(prices, scale)
    held[:] //= scale
    benefits[:] //= scale
    some = lists.rest > graph.lowest
    lists.rest[some] = lists.rest[some] // scale + 1
    state.graph = graph._replace(values=untouched(graph.values // scale))
    state.unit = Arithmetic(1, state.unit.span // scale)


def _finish(state: SolveState, deadline: Deadline) -> Termination:
    """Make the assignment exact: free what is not at its best, bid once more with epsilon 0, then augment."""
    graph, matching = state.graph, state.matching
    queue = np.empty(matching.column_of.size, np.int64)
    n_queue = rounds.keep_content(graph, state.lists, matching, graph.values.dtype.type(0), queue)
    n_free, bids = paths.reduce_rows(graph, state.lists, matching, queue[:n_queue], 8 * queue.size)
    state.counts["bids"] += bids
    return _augment(state, queue[:n_free], deadline)


def _augment(state: SolveState, free: Indices, deadline: Deadline) -> Termination:
    """Assign the rows `free` by shortest augmenting paths, one after the other; every row stays as near its best."""
    graph, matching, n_rows = state.graph, state.matching, state.matching.column_of.size
    search = paths.clean_search(n_rows, graph.n_cols, graph.values.dtype)
    done = 0
    state.counts["augmentations"] += free.size
    while done < free.size:
        if ended := deadline.expired():
            return ended
        done, scans, stuck = paths.augment_rows(graph, state.lists, matching, search, free, done, BATCH_SCANS)
        state.counts["rows_scanned"] += scans
        deadline.report(state.counts["rounds"], fraction=1 - (free.size - done) / n_rows)
        if stuck >= 0:
            state.hall_rows = np.sort(np.append(matching.row_of[search.order[:stuck]], free[done]))
            return Termination.INFEASIBLE
    return Termination.OPTIMAL


def _undo_unsold_prices(
    state: SolveState, problem: Auction, options: "AuctionOptions", deadline: Deadline, ended: Termination
) -> Termination:
    """A column that nobody took must cost nothing, or the prices prove less than they should.

    Needed after a warm start or after epsilon on graphs with spare columns. Zeroing prices may set rows free; should
    that not settle, all prices start again from zero, where no spare column can end with a price.
    """
    matching = state.matching
    for attempt in range(RESETS + 1):
        unsold = (matching.row_of < 0) & (matching.prices > 0)
        if ended not in (Termination.OPTIMAL, Termination.GAP_REACHED) or not unsold.any():
            return ended
        if attempt == RESETS:
            matching.column_of[:], matching.row_of[:], unsold[:] = UNASSIGNED, UNASSIGNED, True
        matching.prices[unsold] = 0
        state.lists = empty_lists(state.graph)
        stopped = list_rows(state, deadline)
        if stopped is None and ended is Termination.GAP_REACHED:
            stopped = _stay_within(state, options, deadline)
        elif stopped is None:
            stopped = _finish(state, deadline)
        ended = stopped or ended
    return ended


def _answer(state: SolveState, problem: Auction, options: "AuctionOptions", ended: Termination) -> Solution:
    graph, matching, n_cols = state.graph, state.matching, problem.shape[1]
    profits: Array = np.empty(matching.column_of.size, graph.values.dtype)
    prices: Array = matching.prices
    scale = state.unit.scale
    if ended not in (Termination.INFEASIBLE, Termination.OPTIMAL, Termination.GAP_REACHED):
        list_rows(state, Deadline())
        state.hall_rows = complete(problem.weights, matching.column_of, problem.reject)
        ended = ended if state.hall_rows is None else Termination.INFEASIBLE
    if ended is Termination.OPTIMAL and graph.values.dtype.kind == "i":
        profits[:] = matching.held - prices[matching.column_of]
    elif state.profits is not None:
        profits = state.profits
    else:
        rounds.best_nets(graph, state.lists, prices, profits)
    if scale != 1:
        prices, profits = prices / scale, profits / scale
    if problem.reject is not None:  # what row i has bid for column n_cols + i, which only it sees, it keeps
        profits = np.maximum(profits, problem.reject)
    assignment = np.where(matching.column_of < n_cols, matching.column_of, UNASSIGNED)
    arrays = {"assignment": assignment, "prices": prices[:n_cols], "profits": profits}
    if state.hall_rows is not None:
        arrays["hall_rows"] = state.hall_rows
    if options.trace:
        arrays["bidders"] = np.concatenate([np.empty(0, np.int64), *state.bidders])
    if options.epsilon is not None:
        state.counts["epsilon"] = float(Fraction(options.epsilon))
    with_paths = ended is not Termination.GAP_REACHED or state.counts["augmentations"]
    method = "paths" if not state.counts["phases"] else "auction+paths" if with_paths else "auction"
    return Solution(ended, method, arrays, iterations=state.counts["rounds"], facts=state.counts)


def warm_up() -> None:
    """Compile every kernel of this folder for int64 and float64."""
    from kernels.auction import AuctionOptions
    from kernels.auction.cpu import several
    from kernels.auction.cpu.mend import mend

    ties = np.random.default_rng(0).integers(0, 3, (12, 12))  # short lists leave rows that need a path
    for dtype in (np.int64, np.float64):
        for finish in ("auction", "paths"):
            start = Auction(ties.astype(dtype), True, assignment0=np.full(12, UNASSIGNED), prices0=np.zeros(12))
            options = AuctionOptions.model_validate({"finish": finish})
            mend(start, options, solve(start, options, Deadline()), Deadline())
        long = np.random.default_rng(0).integers(0, 3, (40, 40))  # rows long enough to be thinned
        solve(Auction(edges_of(long.astype(dtype)), True), AuctionOptions.model_validate({}), Deadline())
        several.solve([Auction(ties.astype(dtype), True)], AuctionOptions.model_validate({}))
