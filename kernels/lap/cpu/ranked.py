"""The best so many assignments on the CPU: Murty's partition, each part solved by one shortest path.

A part keeps the partners of the first rows, and bars some columns to the next row. Of its best assignment the parts
that follow keep one row more each, and bar that row's column: they hold all its other assignments. Duals of a part are
those of the part that it came from, mended along one path (Miller, Stone and Cox 1997). A part waits at the bound that
its origin's duals give, and is solved when that is the least.

Rows are the lines of the shorter side; rows of zeros make the matrix square, and no part is divided by them.
"""

import heapq
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.cpu.search import exchange, nearest_free
from kernels.lap.cpu.shortlist import jit
from kernels.lap.masks import infinity, opened
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Amount, Amounts, Indices, Mask
from kernels.problems.ranked import Ranked
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions


@jit
def shortest_path(
    cost: Amounts,
    inf: Amount,
    much: Amount,
    v: Amounts,
    col_of: Indices,
    row_of: Indices,
    source: int,
    kept: Mask,
    barred: Mask,
) -> bool:
    """Give row `source` a column; columns `kept` are taken for good, `barred` ones are for other rows only.

    False where there is none. The prices of the columns that were seen then fall by `much`: the rows that may take
    those alone are one more, so that the duals prove a cost beyond every assignment.
    """
    m = len(v)
    distance, parent, seen = np.empty(m, v.dtype), np.full(m, source), kept.copy()
    order = np.empty(m, np.int64)
    for j in range(m):
        entry = cost[source, j]
        distance[j] = entry - v[j] if entry < inf and not kept[j] and not barred[j] else inf
    end, scanned = nearest_free(cost, inf, v, row_of, distance, parent, order, seen)
    for t in range(scanned):
        v[order[t]] -= much if end < 0 else distance[end] - distance[order[t]]
    if end >= 0:
        exchange(parent, col_of, row_of, end)
    return bool(end >= 0)


@jit
def further_bounds(
    cost: Amounts, inf: Amount, v: Amounts, col_of: Indices, first: int, n: int, barred: Mask, found: Amounts
) -> None:
    """For each row from `first` on: by how much the duals say that the best without its column costs more."""
    m = len(v)
    kept = np.zeros(m, np.bool_)
    for i in range(n):
        if i >= first:
            best = inf
            for j in range(m):
                if not kept[j] and j != col_of[i] and cost[i, j] < inf and not (i == first and barred[j]):
                    best = min(best, cost[i, j] - v[j])
            found[i] = best - (cost[i, col_of[i]] - v[col_of[i]]) if best < inf else inf
        kept[col_of[i]] = True


@dataclass(order=True)
class Part:
    """A part of all assignments: `split` rows are kept as `origin` has them; solved once `col_of` is there."""

    bound: float
    solved: bool
    number: int
    origin: "Part | None" = field(compare=False)
    split: int = field(compare=False)
    barred: Mask = field(compare=False)
    col_of: Indices = field(compare=False)
    v: Amounts = field(compare=False)


def solve(problem: Ranked, options: "LapOptions", deadline: Deadline) -> Solution:
    """List the `count` assignments of least cost, exactly.

    Problem: the first `count` of all pairings of min(n_rows, n_cols) pairs, by their sums (largest with `maximize`).
    Args:
        problem: see `Ranked`.
        options: `LapOptions`.
        deadline: polled between parts.
    Returns:
        `assignments` (k, n_rows) with -1 for unassigned, from the best on; k is less than `count` where there are no
        more, or where the time was over. Infeasible: `hall_rows`, `hall_cols`. Evidence: see the certificate.
    Guarantee: exact; deterministic.
    Complexity: O(count n m) bounds, and a path of O(m^2) for each part that is solved.
    Source: K. Murty, Operations Research 16 (1968); M. Miller, H. Stone, I. Cox, IEEE Transactions on Aerospace and
        Electronic Systems 33 (1997), section III.
    """
    start = time.perf_counter()
    exact = problem.weights.dtype.kind == "i"
    weights: Amounts = problem.weights.astype(np.int64 if exact else np.float64, copy=False)
    cost, masked = opened(weights, problem.maximize)
    lines = cost.T if cost.shape[0] > cost.shape[1] else cost
    n, m = lines.shape
    square = np.zeros((m, m), cost.dtype)
    square[:n] = lines * (-1 if problem.maximize else 1)
    inf = infinity(cost.dtype.kind == "i", masked)
    root = _root(square, inf)
    if root is None:
        return _infeasible(problem, weights, deadline)
    listed, waiting, ended = _listed(root, square, n, inf, problem.count, deadline)
    solution = _answer(problem, listed, waiting, n, ended)
    solution.seed = options.seed
    solution.timings_ms["solve"] = (time.perf_counter() - start) * 1e3
    return solution


def _root(square: Amounts, inf: Amount) -> Part | None:
    """The best of all."""
    m = len(square)
    v, col_of, row_of = np.zeros(m, square.dtype), np.full(m, -1), np.full(m, -1)
    none = np.zeros(m, bool)
    for i in range(m):
        if not shortest_path(square, inf, _much(square, inf), v, col_of, row_of, i, none, none):
            return None
    return Part(0.0, True, 0, None, 0, none, col_of, v)


def _much(square: Amounts, inf: Amount) -> Amount:
    """More than any assignment costs, and than the difference of two."""
    if square.dtype.kind == "i":
        return np.int64(1 << 59)
    known = np.abs(square[square < inf])
    largest: float = known.max(initial=0.0)
    return 8 * len(square) * largest


def _total(square: Amounts, col_of: Indices) -> float:
    return float(square[np.arange(len(col_of)), col_of].sum())


def _listed(
    root: Part, square: Amounts, n: int, inf: Amount, count: int, deadline: Deadline
) -> tuple[list[Part], list[Part], Termination]:
    """The parts whose best are the answer, in their order, and those that wait or are empty."""
    root.bound = _total(square, root.col_of)
    queue, listed, empty, number = [root], list[Part](), list[Part](), 0
    rises = np.empty(n, square.dtype)
    while queue and len(listed) < count:
        if listed and (late := deadline.expired()):
            return listed, queue + empty, late
        part = heapq.heappop(queue)
        if not part.solved:
            if _solved(part, square, inf):
                heapq.heappush(queue, part)
            else:
                empty.append(part)
            continue
        listed.append(part)
        deadline.report(len(listed), fraction=len(listed) / count)
        further_bounds(square, inf, part.v, part.col_of, part.split, n, part.barred, rises)
        for row in range(part.split, n):
            if rises[row] < inf:
                number += 1
                barred = part.barred.copy() if row == part.split else np.zeros(len(square), bool)
                barred[part.col_of[row]] = True
                bound = part.bound + max(0.0, float(rises[row]))
                heapq.heappush(queue, Part(bound, False, number, part, row, barred, part.col_of, part.v))
    return listed, queue + empty, Termination.OPTIMAL


def _solved(part: Part, square: Amounts, inf: Amount) -> bool:
    """Find the best of a part; False where it is empty."""
    assert part.origin is not None
    m, source = len(square), part.split
    part.col_of, part.v = part.origin.col_of.copy(), part.origin.v.copy()
    kept = np.zeros(m, bool)
    kept[part.col_of[:source]] = True
    row_of = np.empty(m, np.int64)
    row_of[part.col_of] = np.arange(m)
    row_of[part.col_of[source]] = -1
    part.col_of[source] = -1
    if not shortest_path(square, inf, _much(square, inf), part.v, part.col_of, row_of, source, kept, part.barred):
        return False
    part.solved, part.bound = True, max(part.bound, _total(square, part.col_of))
    return True


def _infeasible(problem: Ranked, weights: Amounts, deadline: Deadline) -> Solution:
    from kernels.lap.cpu.solver import solve_one

    return solve_one(weights, problem.maximize, None, None, weights.size, deadline)


def _answer(problem: Ranked, listed: list[Part], waiting: list[Part], n: int, ended: Termination) -> Solution:
    """The list in exact order, and how its parts came from each other."""
    weights, turned = problem.weights, problem.weights.shape[0] > problem.weights.shape[1]
    lines = weights.T if turned else weights
    sign = -1 if problem.maximize else 1
    taken = [lines[np.arange(n), part.col_of[:n]].tolist() for part in listed]
    order = sorted(range(len(listed)), key=lambda q: (sign * sum(map(Fraction, taken[q]), Fraction(0)), q))
    place = {id(listed[q]): at for at, q in enumerate(order)}
    parts = [listed[q] for q in order]
    partner = np.array([part.col_of[:n] for part in parts])
    assignments = partner
    if turned:
        assignments = np.full((len(parts), weights.shape[0]), UNASSIGNED)
        np.put_along_axis(assignments, partner, np.arange(n)[None], axis=1)
    own = [part for part in waiting if part.origin is not None and part.v is not part.origin.v]
    evidence = {
        "origins": np.array([-1 if part.origin is None else place[id(part.origin)] for part in parts]),
        "splits": np.array([part.split for part in parts]),
        "v": np.array([part.v for part in parts]),
        "open_parts": np.array([[place[id(p.origin)], p.split] for p in own], np.int64).reshape(-1, 2),
        "open_v": np.array([part.v for part in own], parts[0].v.dtype).reshape(len(own), len(parts[0].v)),
    }
    arrays = {"assignment": assignments[0], "assignments": assignments}
    return Solution(ended, "murty", arrays, len(parts), facts={"listed": len(parts)}, evidence=evidence)


def warm_up() -> None:
    """Compile the steps for float64 and int64, or load them from numba's cache."""
    for dtype in (np.float64, np.int64):
        square: Amounts = np.arange(9).reshape(3, 3).astype(dtype)
        root = _root(square, infinity(dtype is np.int64, False))
        assert root is not None
        _listed(root, square, 3, infinity(dtype is np.int64, False), 3, Deadline())
