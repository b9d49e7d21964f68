"""Batches of assignment problems on the CPU: small ones whole, in threads without the GIL; large ones in turn."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from kernels.deadline import Deadline
from kernels.lap.cpu_path import augment, close, forget, reduce_columns, reduce_rows, settle_prices
from kernels.lap.cpu_shortlist import State, jit, list_rows, new_state
from kernels.problems import UNASSIGNED, Array, Assignment
from kernels.solution import Solution, Termination

LARGE = 512 * 512
"""Entries from which a problem of a batch is solved by itself, with the deadline polled inside."""
CHUNK = 1 << 19
"""Entries solved by a thread between two looks at the deadline."""

SolveOne = Callable[[Array, bool, Array | None, Array | None, int, Deadline], Solution]


@jit
def solve_whole(s: State, warm: bool) -> bool:
    """All steps of cpu.py without a look at the clock; False when the problem is infeasible."""
    square = s.n_rows == s.n_cols
    if square and not warm:
        reduce_columns(s, 0, s.n_rows)
    list_rows(s, 0, s.n_rows)
    n_free = s.n_rows
    for _ in range(2):
        reduce_rows(s, 0, 0, n_free, 20 * s.n_rows)
        n_free = 0
        for i in range(s.n_rows):
            if s.col_of[i] < 0:
                s.free[n_free] = i
                n_free += 1
    if warm and not square and not settle_prices(s):
        forget(s)
        list_rows(s, 0, s.n_rows)
    n_free = 0
    for i in range(s.n_rows):
        if s.col_of[i] < 0:
            s.free[n_free] = i
            n_free += 1
    return bool(augment(s, 0, n_free, 1 << 62) >= 0)


@jit
def solve_range(costs: Array, sizes: Array, sign: Any, inf: Any, assignment: Array, u: Array, v: Array) -> int:
    """Solve every problem from a cold start; return the first infeasible one, or -1."""
    for k in range(len(costs)):
        n_rows, n_cols = sizes[k, 0], sizes[k, 1]
        cost = costs[k]
        turned = n_rows > n_cols
        if turned:
            cost = np.ascontiguousarray(costs[k, :n_rows, :n_cols].T)
            n_rows, n_cols = n_cols, n_rows
        s = new_state(cost, n_rows, n_cols, sign, inf, np.zeros(n_cols, u.dtype))
        if not solve_whole(s, False):
            return k
        duals = np.zeros(n_rows, u.dtype)
        close(s, duals, False)
        if turned:
            assignment[k, :n_cols], u[k, :n_cols], v[k, :n_rows] = s.row_of, sign * s.v, sign * duals
        else:
            assignment[k, :n_rows], u[k, :n_rows], v[k, :n_cols] = s.col_of, sign * duals, sign * s.v
    return -1


def solve_batch(problem: Assignment, path_limit: int, deadline: Deadline, solve_one: SolveOne) -> Solution:
    """Solve every problem of a batch; `solve_one` takes those that are large, warm-started or limited in paths."""
    costs = problem.weights
    assert isinstance(costs, np.ndarray)
    batch, n_rows, n_cols = costs.shape
    wide = np.int64 if costs.dtype.kind == "i" else np.float64
    sizes = np.tile(np.array([n_rows, n_cols], np.int32), (batch, 1)) if problem.sizes is None else problem.sizes
    arrays: dict[str, Array] = {
        "assignment": np.full((batch, n_rows), UNASSIGNED, np.int64),
        "u": np.zeros((batch, n_rows), wide),
        "v": np.zeros((batch, n_cols), wide),
    }
    cold = problem.u0 is None and problem.v0 is None and path_limit >= costs.size
    if cold and n_rows * n_cols < LARGE:
        return _solve_small(problem, sizes, arrays, deadline)
    ended, iterations = Termination.OPTIMAL, 0
    for k, (rows, cols) in enumerate(sizes.tolist()):
        u0 = None if problem.u0 is None else problem.u0[k, :rows]
        v0 = None if problem.v0 is None else problem.v0[k, :cols]
        part = np.ascontiguousarray(costs[k, :rows, :cols])
        one = solve_one(part, problem.maximize, u0, v0, path_limit, deadline)
        iterations += one.iterations
        if one.termination is Termination.INFEASIBLE:
            return Solution(one.termination, "sap", one.arrays, iterations, facts={"problem": k})
        if one.termination is not Termination.OPTIMAL:
            ended = one.termination
        for name, extent in (("assignment", rows), ("u", rows), ("v", cols)):
            arrays[name][k, :extent] = one.arrays[name]
        deadline.report(iterations, fraction=(k + 1) / batch)
    return Solution(ended, "sap", arrays, iterations, facts={"problems": batch})


def _solve_small(problem: Assignment, sizes: Array, arrays: dict[str, Array], deadline: Deadline) -> Solution:
    """Chunks of problems across threads. Problems not begun in time keep -1 and the duals of `trivial_duals`."""
    costs = problem.weights
    assert isinstance(costs, np.ndarray)
    batch = len(costs)
    exact = costs.dtype.kind == "i"
    sign = np.int64(-1 if problem.maximize else 1) if exact else np.float64(-1 if problem.maximize else 1)
    inf = np.int64(1 << 62) if exact else np.float64(np.inf)
    threads = min(numba.get_num_threads(), batch)
    step = max(1, min(CHUNK // (costs.shape[1] * costs.shape[2]), math.ceil(batch / threads)))

    def run(first: int) -> int | Termination:
        last = min(batch, first + step)
        if ended := deadline.expired():
            for k in range(first, last):
                rows, cols = sizes[k].tolist()
                _trivial_duals(costs[k, :rows, :cols], problem.maximize, arrays["u"][k], arrays["v"][k])
            return ended
        part = costs[first:last].astype(sign.dtype, copy=False)  # one compiled form for both widths of a kind
        out = [arrays[name][first:last] for name in ("assignment", "u", "v")]
        bad = int(solve_range(part, sizes[first:last], sign, inf, out[0], out[1], out[2]))
        return -1 if bad < 0 else first + bad

    ended, done = Termination.OPTIMAL, 0
    with ThreadPoolExecutor(threads) as pool:
        for outcome in pool.map(run, range(0, batch, step)):
            if isinstance(outcome, Termination):
                ended = outcome
            elif outcome >= 0:
                return _name_violator(problem, sizes, outcome)
            done = min(batch, done + step)
            deadline.report(done, fraction=done / batch)
    return Solution(ended, "sap", arrays, batch, facts={"problems": batch})


def _name_violator(problem: Assignment, sizes: Array, k: int) -> Solution:
    """Solve problem k once more by itself, to learn why it is infeasible."""
    from kernels.lap.cpu import solve_one

    assert isinstance(problem.weights, np.ndarray)
    rows, cols = sizes[k].tolist()
    part = np.ascontiguousarray(problem.weights[k, :rows, :cols])
    one = solve_one(part, problem.maximize, None, None, part.size, Deadline())
    one.facts["problem"] = k
    return one


def _trivial_duals(cost: Array, maximize: bool, u: Array, v: Array) -> None:
    """Feasible duals without solving: the best entry of each line of the shorter side, 0 on the other."""
    lines, axis = (u, 1) if cost.shape[0] <= cost.shape[1] else (v, 0)
    best = cost.max(axis=axis) if maximize else cost.min(axis=axis)
    lines[: len(best)] = np.where(np.isfinite(best), best, 0)
