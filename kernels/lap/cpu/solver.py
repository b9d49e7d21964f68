"""Dense linear assignment on the CPU: shortest augmenting paths over shortlists.

    reduce_columns      v_j = min_i c_ij                              (square problems; else v = 0)
    list_rows           each row keeps its cheapest entries and a bound on the others
    reduce_rows  twice  a free row takes its best column, whose price falls to the second best
    augment             Dijkstra's search from each row still free, then prices and pairs along the path
    close               u_i = c_ij - v_j

Integers of 27 bits, rows of up to 1280 entries and warm starts are searched by whole rows (`by_rows.py`), without
shortlists. The steps here are in `path.py`, the shortlists in `shortlist.py`, batches in `batch.py`.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kernels import ranging
from kernels.deadline import Deadline
from kernels.lap import monge
from kernels.lap.complete import complete
from kernels.lap.cpu import between, finely, near_early, tight
from kernels.lap.cpu import by_rows as cpu_by_rows
from kernels.lap.cpu import path as steps
from kernels.lap.cpu import ranked as cpu_ranked
from kernels.lap.cpu import rejecting as cpu_rejecting
from kernels.lap.cpu import selected as cpu_selected
from kernels.lap.cpu.batch import solve_batch
from kernels.lap.cpu.monge import corner_of
from kernels.lap.cpu.progress import Watch, least_listed
from kernels.lap.cpu.shortlist import State, list_rows, new_state
from kernels.lap.masks import infinity, opened
from kernels.lap.spatial import solver as spatial
from kernels.lap.spatial.which import suits
from kernels.lap.warm import cut, largest, proportionate
from kernels.problems import Array, Assignment, InvalidProblem, Rejecting
from kernels.problems.arrays import Amounts, Costs, Integers, transposed, untouched
from kernels.problems.assignment import Looked
from kernels.problems.points import PointAssignment
from kernels.problems.ranked import Ranked
from kernels.problems.selected import Selected
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

CHUNK = 1 << 20
"""Matrix entries read between two looks at the deadline (5 to 20 ms)."""
REDUCTIONS_PER_ROW = 20
"""Bidding wars end here; the paths finish what is left."""
COUNTS = ("lists_rebuilt", "row_reductions", "rows_scanned", "rows_swept", "paths")
CPU_METHODS = ("auto", "sap")
Duals = tuple[Costs | None, Costs | None]


def solve(problem: Assignment | Rejecting | Selected | Ranked, options: "LapOptions", deadline: Deadline) -> Solution:
    """Solve a dense linear assignment problem exactly by shortest augmenting paths over shortlists.

    Problem: min sum_i c[i, p(i)] over pairings p of min(n_rows, n_cols) pairs (max with `maximize`); also a batch of
        such problems, each with its own size; or of points, whose costs are written out; large clouds are in
        `spatial/`. Sparse matrices are not solved here; lines that may be left at a price, and sizes without padding
        (`Rejecting`), are in `rejecting.py`.
    Args:
        problem: `weights` (n_rows, n_cols) or (batch, n_rows, n_cols), float32, float64, int32 or int64; +inf (-inf
            when maximising) forbids an entry of floats, `FORBIDDEN` one of int64. `u0`, `v0` warm start: any finite
            duals; those out of proportion to the weights are dropped (`warm.py`).
        options: `LapOptions`; methods "auto" and "sap" are the same here.
        deadline: polled after every few million entries read; the sweep that closes the duals comes after it.
    Returns:
        `assignment` (n_rows,) int64 with -1 for unassigned, `u` (n_rows,), `v` (n_cols,): float64, or int64 for
        integer weights; with a batch axis in front where the input has one, and padding -1 and 0 beyond `sizes`.
        Stopped early, free rows are completed greedily, then along paths of permitted entries (`complete.py`), and the
        duals still give a bound.
        Infeasible: `hall_rows`, `hall_cols`, where the rows' permitted entries lie in too few columns.
    Guarantee: exact; deterministic, since nothing depends on time or thread.
    Numerics: duals in float64, for float32 weights too; integers in int64, where no sum passes
        16 (n_rows + n_cols) max |c| (checked by the problem).
    Complexity: O(n_rows^2 n_cols) at worst, two sweeps of the matrix and a few dozen reads per row scan in practice.
        Beside the matrix 12 * 64 bytes a row, 1200 from old duals; a copy when n_rows > n_cols, when maximising, and
        of narrow integers.
    Errors: InvalidProblem for a method that only the GPU has.
    Differs: (1) column reduction assigns nothing and reduction transfer is left out: row reductions on shortlists
        cost less than both; (2) Dijkstra's search scans shortlists and sweeps a row only when an unlisted entry could
        matter; (3) a heap instead of a linear search for the nearest column; (4) costs that sorting solves
        (`monge.py`, method "monge" in the answer) never come to a search.
    Source: R. Jonker, A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
        problems", Computing 38 (1987), section 4.
    """
    if options.method not in CPU_METHODS:
        raise InvalidProblem("method", f'"{options.method}" runs on a GPU only; on the CPU expected "auto" or "sap"')
    start = time.perf_counter()
    if isinstance(problem, Assignment) and options.iteration_limit is None:
        solved = cpu_by_rows.solve_small(problem, deadline)
        if solved is not None:
            return _signed(solved, options, start)
    if isinstance(problem, Rejecting):
        return cpu_rejecting.solve(problem, options, deadline, solve_one)
    if isinstance(problem, Selected):
        return cpu_selected.solve(problem, options, deadline)
    if isinstance(problem, Ranked):
        return cpu_ranked.solve(problem, options, deadline)
    if isinstance(problem, PointAssignment):
        if suits(problem, options):
            return _signed(spatial.solve(problem, deadline, solve_one), options, start)
        problem = problem.written_out(finely.costs)
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    limit = options.iteration_limit if options.iteration_limit is not None else weights.size
    if weights.ndim == 3:
        solution = solve_batch(problem, limit, deadline, solve_one)
    else:
        solution = solve_one(weights, problem.maximize, problem.u0, problem.v0, limit, deadline, problem.looked)
    return _signed(solution, options, start)


def _signed(solution: Solution, options: "LapOptions", start: float) -> Solution:
    solution.seed = options.seed
    solution.timings_ms["solve"] = (time.perf_counter() - start) * 1e3
    return solution


def solve_one(
    weights: Costs,
    maximize: bool,
    u0: Costs | None,
    v0: Costs | None,
    path_limit: int,
    deadline: Deadline,
    looked: Looked | None = None,
) -> Solution:
    """Solve one problem, looking at the deadline between chunks of work; as `solve` otherwise."""
    oblong = weights.shape[0] != weights.shape[1]
    if oblong and not cpu_by_rows.suits_wide(weights, path_limit):
        u0 = v0 = None
    early: Any = None if looked is None or looked.weights is not weights else looked.beside
    if early is not None and early.suits(v0):  # what follows was asked while the rows were listed
        known_costs = cpu_by_rows.PreparedCosts(weights, weights, *cpu_by_rows.CONSTANTS[early.kind])
        listed = cpu_by_rows.Old(early.prices, u0, early)
        if (found := cpu_by_rows.solve(weights, known_costs, maximize, listed, path_limit, deadline)) is not None:
            return found
        u0, v0 = (None, None) if oblong else (u0, v0)
    u0, v0 = proportionate(weights, u0, v0)
    known = looked.largest if looked is not None and looked.weights is weights and not looked.masked else None
    cost, masked = opened(weights, maximize) if known is None else (weights, False)
    cold = u0 is None and v0 is None
    corner = corner_of(cost) if cold and not masked else None
    if corner and not deadline.expired() and (sorted_out := monge.solve(cost, maximize, corner)):
        return sorted_out
    if (prepared := cpu_by_rows.prepared_costs(cost, masked, maximize, not cold, known)) is not None:
        old = None
        if not cold:
            most = 4 * (largest(weights) if known is None else known)
            duals = (v0, u0) if weights.shape[0] > weights.shape[1] else (u0, v0)
            prices = _minimised_prices(prepared.cost, -1 if maximize else 1, duals, most)
            rows = None if duals[0] is None or duals[1] is None else (-duals[0] if maximize else duals[0])
            old = None if prices is None else cpu_by_rows.Old(prices, rows, early)
        by_rows = cpu_by_rows.solve(weights, prepared, maximize, old, path_limit, deadline)
        if by_rows is not None:
            return by_rows
    if oblong and not cold:
        return solve_one(weights, maximize, None, None, path_limit, deadline, looked)
    return _by_shortlists(weights, cost, masked, maximize, (u0, v0), path_limit, deadline)


def _by_shortlists(
    weights: Costs, cost: Costs, masked: bool, maximize: bool, duals: Duals, path_limit: int, deadline: Deadline
) -> Solution:
    """`solve_one` of costs that whole rows are not for; `cost` are the weights with a number for what is forbidden."""
    u0, v0 = duals
    most = 0 if u0 is None and v0 is None else 4 * largest(weights)
    if cost.dtype.itemsize < 8:  # one compiled set of steps per arithmetic: a third and fourth take 8 to 27 s
        cost = cost.astype(np.int64 if cost.dtype.kind == "i" else np.float64)
    turned = cost.shape[0] > cost.shape[1]
    if turned:
        cost = transposed(cost)
    exact = cost.dtype.kind == "i"
    sign: np.int64 | np.float64 = np.int64(-1 if maximize else 1) if exact else np.float64(-1 if maximize else 1)
    inf = infinity(exact, masked)
    warm = _prices(cost, sign, cut(u0, most, exact), cut(v0, most, exact), most)
    v: Amounts = np.zeros(cost.shape[1], sign.dtype) if warm is None else warm
    state = new_state(untouched(cast(Amounts, cost)), cost.shape[0], cost.shape[1], sign, inf, v)
    ended = _run(state, warm is not None, turned, path_limit, deadline)
    facts = {name: int(count) for name, count in zip(COUNTS, state.counts, strict=False)}
    facts["rows_read_whole"] = int(state.counts[steps.BY_ROWS])
    iterations = facts["row_reductions"] + facts["paths"]
    if ended is Termination.INFEASIBLE:
        return Solution(ended, "sap", _violator(state, turned), iterations, facts=facts)
    u: Amounts = np.zeros(state.n_rows, sign.dtype)
    steps.close(state, u, ended is not Termination.OPTIMAL)
    arrays: dict[str, Array] = {"assignment": state.col_of, "u": sign * u, "v": sign * state.v}
    if turned:
        arrays = {"assignment": state.row_of, "u": arrays["v"], "v": arrays["u"]}
    if ended is not Termination.OPTIMAL and (violator := complete(weights, maximize, arrays["assignment"])):
        return Solution(Termination.INFEASIBLE, "sap", violator, iterations, facts=facts)
    return Solution(ended, "sap", arrays, iterations, facts=facts)


def _minimised_prices(cost: Costs, sign: int, duals: Duals, most: int | float) -> Amounts | None:
    """As `_prices`, for costs that are to be minimised already."""
    exact = cost.dtype.kind == "i"
    u0, v0 = duals
    if v0 is not None:
        return cut(v0 if sign > 0 else -v0, most, exact)
    one = np.int64(1) if exact else np.float64(1)
    v = _prices(cost, one, None if u0 is None else cut(sign * u0, most, exact), None, most)
    return v if v is None or cost.shape[0] == cost.shape[1] else np.minimum(v, 0)


def _prices(cost: Costs, sign: Any, u0: Amounts | None, v0: Amounts | None, most: int | float) -> Amounts | None:
    """Prices to start from, out of whichever duals are left; None for a cold start."""
    v: Amounts
    if v0 is not None:
        v = sign * v0
    elif u0 is not None:
        v = np.full(cost.shape[1], most, sign.dtype)
        for i in range(cost.shape[0]):
            np.minimum(v, sign * cost[i] - sign * u0[i], out=v)
        v = np.clip(v, -most, most).astype(sign.dtype)
    else:
        return None
    return v


def _run(state: State, warm: bool, turned: bool, path_limit: int, deadline: Deadline) -> Termination:
    n_rows, n_cols = state.n_rows, state.n_cols
    rows_per_chunk = max(1, CHUNK // n_cols)
    square = n_rows == n_cols
    for step in ([steps.reduce_columns] if square and not warm else []) + [list_rows]:
        for first in range(0, n_rows, rows_per_chunk):
            if ended := deadline.expired():
                state.v[state.v >= state.inf] = 0
                return ended
            step(state, first, min(n_rows, first + rows_per_chunk))
    n_free = n_rows
    for _ in range(2):
        at = kept = done = 0
        while at < n_free and done < REDUCTIONS_PER_ROW * n_rows:
            if ended := deadline.expired():
                return ended
            budget = min(rows_per_chunk, REDUCTIONS_PER_ROW * n_rows - done)
            at, kept = steps.reduce_rows(state, at, kept, n_free, budget)
            done += budget
        n_free = int(np.count_nonzero(state.col_of < 0))
        state.free[:n_free] = np.flatnonzero(state.col_of < 0)
    return _augment(state, turned, path_limit, deadline)


def _augment(state: State, turned: bool, path_limit: int, deadline: Deadline) -> Termination:
    free = np.flatnonzero(state.col_of < 0)
    state.free[: len(free)] = free
    at, last = 0, min(len(free), path_limit)
    least = {i: least_listed(state, i) for i in free.tolist()} if deadline.heard else {}
    watch = Watch(state, least, len(free), turned, deadline)
    while at < last:
        if ended := deadline.expired():
            return ended
        at = steps.augment(state, at, last, CHUNK)
        if at < 0:
            return Termination.INFEASIBLE
        watch.report(len(free) - at, int(state.counts[steps.PATHS]))
    return Termination.OPTIMAL if last == len(free) else Termination.ITERATION_LIMIT


def _violator(state: State, turned: bool) -> dict[str, Array]:
    """Rows whose permitted entries lie in too few columns, out of the search that found no free column."""
    cols = np.sort(state.scanned[: state.counts[steps.TREE]].astype(np.int64))
    rows = np.sort(np.append(state.row_of[cols], state.counts[steps.SOURCE]))
    if turned:  # the lines of the state are columns: what they leave over are rows with too few columns
        rows, cols = np.setdiff1d(np.arange(state.n_cols), cols), np.setdiff1d(np.arange(state.n_rows), rows)
    return {"hall_rows": rows, "hall_cols": cols}


def warm_up() -> None:
    """Compile every step for float64 and int64, or load them from numba's cache."""
    for step in STEPS:
        step()


def _warm_lists() -> None:
    """The searches over shortlists, batches, the Monge rule, and the variants of the problem."""
    ranging.warm_up()
    ranging.warm_up_infinite()
    corner_of(np.zeros((64, 64)))
    for dtype in (np.float64, np.int64):
        ties: Costs = TIES.astype(dtype)
        _warm_one(ties[:3, :3][None])
        for duals in ((None, None), (None, ties[0])):
            _by_shortlists(ties, ties, False, False, duals, ties.size, Deadline())
        _by_shortlists(ties[:3], ties[:3], False, False, (None, None), ties.size, Deadline())
    near_early.warm_up()
    tight.warm_up()
    cpu_rejecting.warm_up()
    between.warm_up()
    finely.warm_up()
    cpu_selected.warm_up()
    cpu_ranked.warm_up()
    spatial.warm_up(solve_one)


def _warm_rows(*dtypes: Any) -> None:
    """The searches by whole rows."""
    for dtype in dtypes:
        cpu_by_rows.warm_up(dtype, TIES)
        _warm_one(TIES.astype(dtype))


def _warm_one(cost: Costs) -> None:
    from kernels.lap import CARD, LapOptions

    options = LapOptions()
    solve(CARD.build({"cost": cost}, options), options, Deadline())


TIES: Integers = np.random.default_rng(0).integers(0, 3, (40, 40))
"""Costs of which row reductions leave rows that need a path."""
STEPS: tuple[Callable[[], None], ...] = (
    _warm_lists,
    partial(_warm_rows, np.int32, np.int64),
    partial(_warm_rows, np.float64, np.float32),
)
"""What `warm_up` compiles, in parts that share little: each may have a process of its own."""
