"""What an auction's answer proves: prices bound the optimum from above, a Hall violator proves that there is none.

For prices p >= 0, u_i = max(reject_i, max_j b_ij - p_j) and any assignment a: sum_i b[i, a(i)] <= sum u + sum p.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.points import PointAuction
from kernels.problems.sparse import Auction
from kernels.solution import Certificate, Number, Solution, Termination, unheard

CHUNK = 1 << 24
"""Entries looked at together: 128 MiB of float64."""
SAMPLE = 256
"""Rows whose nearest neighbours are worked out again."""


def auction(problem: Auction, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute the objective, the dual bound from the prices, and judge them by the solution's termination.

    `max_violation` is in units of benefit: how far reported profits fall short of b - p, or prices of 0. For integer
    benefits the bound is rounded down, as no assignment lies between integers.
    """
    if isinstance(problem, PointAuction):
        return _on_points(problem, solution)
    if solution.termination is Termination.INFEASIBLE:
        return _violator(problem, solution.arrays["hall_rows"])
    assignment, prices = solution.arrays["assignment"], solution.arrays["prices"]
    pairs, wrong = _pairs(problem, assignment)
    best = _best_nets(problem, prices)
    finite = best > -np.inf
    exact = prices.dtype.kind == "i"
    violation = _violation(best[finite] - solution.arrays["profits"][finite], -prices, exact)
    objective = _total(pairs)
    complete = problem.reject is not None or not (assignment == UNASSIGNED).any()
    tolerance = 0.0 if exact else 1e-12 * (float(np.abs(pairs).sum()) + float(np.abs(prices).sum()) + 1)
    if not finite.all():
        bound, gap = None, None
    else:
        bound = _total(best) + _total(prices)
        if not exact and _integral(problem):
            bound = math.floor(bound + tolerance + 1e-9)
        gap = abs(bound - objective) if complete else None
    n_rows = problem.shape[0]
    allowed, proved = _claim(solution, exact or _integral(problem), n_rows, gap)
    sound = not wrong and violation <= tolerance
    holds = sound and (allowed is None or (complete and gap is not None and gap <= allowed + tolerance))
    if wrong:
        proved = wrong
    elif not complete:
        proved = f"{int((assignment == UNASSIGNED).sum())} of {n_rows} rows are unassigned; {proved}"
    scale = 0.0 if gap is None or bound is None else max(abs(objective), abs(bound))
    return Certificate(
        objective=objective if complete else None,
        bound=bound,
        gap_abs=gap,
        gap_rel=None if gap is None else float(gap / scale) if scale else 0.0,
        max_violation=violation,
        holds=bool(holds),
        proved=proved,
        facts={} if complete else {"partial_objective": objective},
    )


def _violation(profits_short: Array, prices_below: Array, exact: bool) -> Number:
    return max([0, *(_number(x.max(), exact) for x in (profits_short, prices_below) if x.size)])


def _on_points(problem: PointAuction, solution: Solution) -> Certificate:
    """The certificate on the graph of the points: complete, or of the neighbours that the answer names.

    That those are the nearest is checked in full for up to SAMPLE rows, spread evenly.
    """
    points = problem.points
    common: dict[str, Any] = {"maximize": True, "reject": problem.reject, "prices0": problem.prices0}
    if points.neighbours is None:
        return auction(Auction(points.all_benefits(), **common), solution)
    named = solution.arrays["neighbours"]
    found = auction(Auction(points.graph_of_neighbours(named), **common), solution)
    rows = np.unique(np.linspace(0, problem.shape[0] - 1, SAMPLE).astype(np.int64))
    right = named.shape == (problem.shape[0], points.neighbours)
    for i in rows if right else ():
        near = points.benefits(rows[rows == i])[0]
        kth = np.partition(near, -points.neighbours)[-points.neighbours]
        right &= bool((near[named[i]] >= kth - 1e-9 * abs(kth)).all()) and np.unique(named[i]).size == named.shape[1]
    note = f"among each row's {points.neighbours} nearest columns ({rows.size} rows of them checked): {found.proved}"
    return replace(found, holds=found.holds and right, proved=note)


def _claim(solution: Solution, exact: bool, n_rows: int, gap: Number | None) -> tuple[float | None, str]:
    """The gap that the termination allows (None: any), and the sentence that is then proved."""
    if solution.termination is Termination.OPTIMAL:
        how = "exactly, in integers" if exact else "to float64 rounding"
        return 0.0, f"optimal {how}: the prices' dual bound meets the objective"
    if solution.termination is Termination.GAP_REACHED:
        promise = n_rows * float(solution.facts["epsilon"])
        if exact and gap == 0:
            return promise, "optimal: no integer lies between the objective and the prices' dual bound"
        return promise, f"within n_rows * epsilon = {promise:g} of optimal; the prices' dual bound shows a gap of {gap}"
    return None, "the prices bound the optimum from above"


def _violator(problem: Auction, rows: Array) -> Certificate:
    """Rows that together see fewer columns than they are."""
    seen = np.zeros(problem.shape[1], bool)
    for i in rows:
        columns, _ = _row(problem, int(i))
        seen[columns] = True
    sees, many = int(seen.sum()), int(np.unique(rows).size)
    holds = sees < many == rows.size and problem.reject is None
    proved = f"infeasible: {many} rows (hall_rows) have edges to {sees} columns only"
    return Certificate(None, None, None, None, 0, bool(holds), proved, {"hall_rows": many, "hall_columns": sees})


def _row(problem: Auction, i: int) -> tuple[Array, Array]:
    """The allowed columns of row i and their benefits."""
    weights = problem.weights
    if isinstance(weights, Csr):
        start, stop = weights.indptr[i], weights.indptr[i + 1]
        return weights.indices[start:stop], weights.values[start:stop]
    columns = np.flatnonzero(np.isfinite(weights[i]))
    return columns, weights[i, columns]


def _pairs(problem: Auction, assignment: Array) -> tuple[Array, str]:
    """What each row adds to the objective, and a sentence when this is no assignment."""
    n_rows, n_cols = problem.shape
    weights = problem.weights
    exact = _integral(problem)
    pairs = np.zeros(n_rows, np.int64 if exact else np.float64)
    rows = np.flatnonzero(assignment != UNASSIGNED)
    columns = assignment[rows]
    if assignment.shape != (n_rows,) or ((columns < 0) | (columns >= n_cols)).any():
        return pairs, "not an assignment: a column is out of range"
    if np.unique(columns).size != columns.size:
        return pairs, "not an assignment: a column has two rows"
    if isinstance(weights, Csr):
        found = _positions(weights, rows, columns)
        if (found < 0).any():
            return pairs, "not an assignment: a pair is no edge"
        pairs[rows] = weights.values[found]
    else:
        pairs[rows] = weights[rows, columns]
    if not np.isfinite(pairs).all():
        return pairs, "not an assignment: a pair is forbidden"
    if problem.reject is not None:
        out = assignment == UNASSIGNED
        pairs[out] = problem.reject[out]
    return pairs, ""


def _positions(graph: Csr, rows: Array, columns: Array) -> Array:
    """Where the edges (rows, columns) are stored, -1 for those that are not; columns ascend in every row."""
    n_cols = graph.shape[1]
    if graph.shape[0] * n_cols < 2**62:
        of_edge = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) * n_cols + graph.indices
        wanted = rows * n_cols + columns
        at = np.minimum(np.searchsorted(of_edge, wanted), max(0, of_edge.size - 1))
        return np.where(of_edge[at] == wanted, at, -1) if of_edge.size else np.full(rows.size, -1)
    found = np.full(rows.size, -1, np.int64)
    for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
        start, stop = graph.indptr[i], graph.indptr[i + 1]
        at = start + np.searchsorted(graph.indices[start:stop], j)
        if at < stop and graph.indices[at] == j:
            found[k] = at
    return found


def _best_nets(problem: Auction, prices: Array) -> Array:
    """u_i = max(reject_i, max_j b_ij - p_j); -inf in a float array for a row that has neither."""
    exact = prices.dtype.kind == "i"
    best = np.concatenate([_row_maxima(nets, ends, exact) for nets, ends in _chunks(problem, prices)])
    if problem.reject is not None:
        best = np.maximum(best, problem.reject)
    return best


def _row_maxima(nets: Array, sizes: Array, exact: bool) -> Array:
    """Maximum of each run of `sizes` entries of `nets`; -inf for an empty run."""
    if exact and (sizes > 0).all():
        return np.maximum.reduceat(nets, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
    out = np.full(sizes.size, -np.inf)
    some = sizes > 0
    if some.any():
        out[some] = np.maximum.reduceat(nets, np.concatenate([[0], np.cumsum(sizes[some])[:-1]]))
    return out


def _chunks(problem: Auction, prices: Array) -> Iterator[tuple[Array, Array]]:
    """Net benefits of some rows at a time, and how many each row has."""
    n_rows, n_cols = problem.shape
    weights = problem.weights
    if isinstance(weights, Csr):
        first = 0
        while first < n_rows:
            last = int(np.searchsorted(weights.indptr, weights.indptr[first] + CHUNK, side="right")) - 1
            last = min(n_rows, max(first + 1, last))
            edges = slice(int(weights.indptr[first]), int(weights.indptr[last]))
            yield weights.values[edges] - prices[weights.indices[edges]], np.diff(weights.indptr[first : last + 1])
            first = last
        return
    step = max(1, CHUNK // n_cols)
    for first in range(0, n_rows, step):
        nets = weights[first : first + step] - prices
        yield nets.reshape(-1), np.full(nets.shape[0], n_cols)


def _integral(problem: Auction) -> bool:
    weights = problem.weights
    values = weights.values if isinstance(weights, Csr) else weights
    return values.dtype.kind == "i" and (problem.reject is None or problem.reject.dtype.kind == "i")


def _number(value: np.generic, exact: bool) -> Number:
    return int(value) if exact and value.dtype.kind == "i" else float(value)


def _total(values: Array) -> Number:
    """The sum, exact for integers whatever its size."""
    if values.dtype.kind == "i":
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
    return math.fsum(values) if values.size < 1 << 20 else float(values.sum())
