"""Exactly k pairs of least cost, or of the least largest cost, on the CPU.

sum          k shortest augmenting paths, each from all free rows at once to the nearest free column: after each of
             them the pairs are the cheapest of their number (Edmonds, Karp 1972)
bottleneck   bisection over the costs; the largest number of pairs below a threshold (Hopcroft, Karp 1973)
"""

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from kernels.deadline import Deadline
from kernels.lap.complete import complete
from kernels.lap.cpu.search import exchange, nearest_free
from kernels.lap.cpu.shortlist import jit
from kernels.lap.masks import infinity, opened
from kernels.problems import UNASSIGNED, Array
from kernels.problems.arrays import Amount, Amounts, Indices, Mask, permitted
from kernels.problems.selected import Selected
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

WORK = 1 << 22
"""Entries read between two looks at the deadline, about."""
STUCK = -1


@jit
def least_free(cost: Amounts, inf: Amount, row_free: Mask, low: Amounts, who: Indices, gone: int) -> None:
    """The least entry of each column among free rows; only columns whose row is `gone` are looked at (-1: all)."""
    n, m = cost.shape
    for j in range(m):
        if gone >= 0 and who[j] != gone:
            continue
        low[j], who[j] = inf, -1
        for i in range(n):
            if row_free[i] and cost[i, j] < low[j]:
                low[j], who[j] = cost[i, j], i


@jit
def add_pairs(
    cost: Amounts, inf: Amount, v: Amounts, level: Amounts, col_of: Indices, row_of: Indices, low: Amounts,
    who: Indices, row_free: Mask, count: int, work: int, seen: Mask,
) -> int:  # fmt: skip
    """Add up to `count` pairs, one shortest path each, until about `work` entries were read; how many, or STUCK.

    `level` is the length of the last path: what a row that stays free is worth. `seen` marks the scanned columns.
    """
    m = cost.shape[1]
    distance, parent, order = np.empty(m, v.dtype), np.empty(m, np.int64), np.empty(m, np.int64)
    added = 0
    while added < count and work > 0:
        for j in range(m):
            distance[j] = low[j] - v[j] if low[j] < inf else inf
            parent[j], seen[j] = who[j], False
        end, scanned = nearest_free(cost, inf, v, row_of, distance, parent, order, seen)
        if end < 0:
            return STUCK
        work -= (scanned + 2) * m
        level[0] = max(level[0], distance[end]) if added or (col_of >= 0).any() else distance[end]
        for t in range(scanned):
            v[order[t]] -= level[0] - distance[order[t]]
        i = exchange(parent, col_of, row_of, end)
        row_free[i] = False
        least_free(cost, inf, row_free, low, who, i)
        added += 1
    return added


def solve(problem: Selected, options: "LapOptions", deadline: Deadline) -> Solution:
    """Solve for exactly `pairs` pairs, exactly.

    Problem: min sum, or min max, of c[i, j] over `pairs` pairs, no line twice (max sum, max min with `maximize`).
    Args:
        problem: see `Selected`.
        options: `LapOptions`.
        deadline: polled between paths, or between thresholds.
    Returns:
        `assignment` (n_rows,), and what proves it: `u`, `v`, `level` (1,) of a sum; `hall_rows`, `hall_cols` of a
        bottleneck and where so many pairs cannot be formed.
    Guarantee: exact; deterministic.
    Complexity: sum: O(pairs n_rows n_cols) at worst; bottleneck: log2(n_rows n_cols) matchings.
    Source: J. Edmonds, R. Karp, Journal of the ACM 19 (1972), section 1; J. Hopcroft, R. Karp, SIAM Journal on
        Computing 2 (1973).
    """
    start = time.perf_counter()
    found = _bottleneck(problem, deadline) if problem.objective == "bottleneck" else _sum(problem, deadline)
    found.seed = options.seed
    found.timings_ms["solve"] = (time.perf_counter() - start) * 1e3
    return found


def _sum(problem: Selected, deadline: Deadline) -> Solution:
    exact = problem.weights.dtype.kind == "i"
    weights: Amounts = problem.weights.astype(np.int64 if exact else np.float64, copy=False)
    cost, masked = opened(weights, problem.maximize)
    sign: Any = np.int64(-1 if problem.maximize else 1) if exact else np.float64(-1 if problem.maximize else 1)
    cost = -cost if problem.maximize else cost
    inf, (n, m) = infinity(exact, masked), cost.shape
    v, level = np.zeros(m, sign.dtype), np.zeros(1, sign.dtype)
    col_of, row_of = np.full(n, UNASSIGNED), np.full(m, UNASSIGNED)
    low, who, row_free = np.empty(m, sign.dtype), np.empty(m, np.int64), np.ones(n, bool)
    seen = np.zeros(m, bool)
    least_free(cost, inf, row_free, low, who, -1)
    if low.min() < inf:
        level[0] = low.min()
    done, ended = 0, Termination.OPTIMAL
    while done < problem.pairs:
        if late := deadline.expired():
            ended = late
            break
        added = add_pairs(cost, inf, v, level, col_of, row_of, low, who, row_free, problem.pairs - done, WORK, seen)
        if added == STUCK:
            cols = np.flatnonzero(seen)
            rows = np.sort(np.concatenate([np.flatnonzero(row_free), row_of[cols]]))
            return Solution(Termination.INFEASIBLE, "paths", {"hall_rows": rows, "hall_cols": cols}, done)
        done += added
        deadline.report(done, fraction=done / problem.pairs)
    if ended is not Termination.OPTIMAL:
        _first_answer(problem, col_of)
    u = np.full(n, level[0])
    paired = np.flatnonzero(col_of != UNASSIGNED)
    u[paired] = np.minimum(cost[paired, col_of[paired]] - v[col_of[paired]], level[0])
    arrays = {"assignment": col_of, "u": sign * u, "v": sign * v, "level": sign * level}
    return Solution(ended, "paths", arrays, done)


def _first_answer(problem: Selected, assignment: Indices) -> None:
    """As many pairs as were asked for, where all lines of the shorter side can be paired."""
    whole = assignment.copy()
    if complete(problem.weights, problem.maximize, whole) is None:
        rows = np.flatnonzero(whole != UNASSIGNED)
        costs = problem.weights[rows, whole[rows]] * (-1 if problem.maximize else 1)
        whole[rows[np.argsort(costs, kind="stable")[problem.pairs :]]] = UNASSIGNED
        assignment[:] = whole


def _bottleneck(problem: Selected, deadline: Deadline) -> Solution:
    """Bisection between a threshold with too few pairs and one with enough."""
    weights, sign = problem.weights, -1 if problem.maximize else 1
    permitted_pairs = permitted(weights)
    levels = np.unique(weights[permitted_pairs])[::sign]
    below, above, rounds = -1, len(levels) - 1, 0
    best = _most_pairs(permitted_pairs)
    if (best != UNASSIGNED).sum() < problem.pairs:
        return Solution(Termination.INFEASIBLE, "bisection", _cut(permitted_pairs, best), 0)
    cut: dict[str, Array] = {}
    ended = Termination.OPTIMAL
    while above - below > 1:
        if late := deadline.expired():
            ended = late
            break
        middle, rounds = (above + below) // 2, rounds + 1
        edges = permitted_pairs & (weights <= levels[middle] if sign > 0 else weights >= levels[middle])
        found = _most_pairs(edges)
        if (found != UNASSIGNED).sum() >= problem.pairs:
            above, best = middle, found
        else:
            below, cut = middle, _cut(edges, found)
    rows = np.flatnonzero(best != UNASSIGNED)
    order = np.argsort(weights[rows, best[rows]], kind="stable")[::sign]
    best[rows[order[problem.pairs :]]] = UNASSIGNED
    everything = {"hall_rows": np.arange(len(weights)), "hall_cols": np.zeros(0, np.int64)}
    return Solution(ended, "bisection", {"assignment": best, **(cut or everything)}, rounds)


def _most_pairs(edges: Mask) -> Indices:
    """The column of each row in a largest matching, -1 for none."""
    return np.asarray(maximum_bipartite_matching(csr_matrix(edges), perm_type="column")).astype(np.int64)


def _cut(edges: Mask, col_of: Indices) -> dict[str, Array]:
    """The rows that alternating paths from free rows reach, and the columns where all their edges end (Koenig)."""
    row_of = np.full(edges.shape[1], UNASSIGNED)
    paired = np.flatnonzero(col_of != UNASSIGNED)
    row_of[col_of[paired]] = paired
    rows = np.flatnonzero(col_of == UNASSIGNED)
    reached, columns = [rows], np.zeros(edges.shape[1], bool)
    while len(rows):
        found = edges[rows].any(axis=0) & ~columns
        columns |= found
        rows = row_of[found]
        reached.append(rows)
    return {"hall_rows": np.sort(np.concatenate(reached)), "hall_cols": np.flatnonzero(columns)}


def warm_up() -> None:
    """Compile the steps for float64 and int64, or load them from numba's cache."""
    for dtype in (np.float64, np.int64):
        _sum(Selected(np.arange(12).reshape(3, 4).astype(dtype), 3), Deadline())
