"""Batches of assignment problems on the CPU: small ones whole, in threads without the GIL; large ones in turn."""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from kernels.deadline import Deadline
from kernels.lap.cpu.path import augment, close, reduce_columns, reduce_rows
from kernels.lap.cpu.shortlist import State, inner, jit, list_rows, new_state
from kernels.lap.cpu.threads import threads_here
from kernels.lap.masks import infinity, opened
from kernels.lap.members import Members, PartOf
from kernels.problems import Assignment
from kernels.problems.arrays import Amount, Amounts, Costs, Indices, Integers, Mask, untouched
from kernels.solution import Solution, Termination

LARGE = 512 * 512
"""Entries from which a problem of a batch is solved by itself, with the deadline polled inside."""
CHUNK = 1 << 19
"""Entries solved by a thread between two looks at the deadline."""
FEW = 1 << 17
"""Entries that are solved in less time than threads take to begin."""

SolveOne = Callable[[Costs, bool, Costs | None, Costs | None, int, Deadline], Solution]


@inner
def solve_whole(s: State) -> bool:
    """All steps of solver.py from a cold start, without a look at the clock; False when the problem is infeasible.

    A literal would be a type of its own, and each step would be compiled once more for it: so there is none.
    """
    square = s.n_rows == s.n_cols
    first: Any = np.int64(0)
    paths: Any = np.int64(1 << 62)
    if square:
        reduce_columns(s, first, s.n_rows)
    list_rows(s, first, s.n_rows)
    n_free = s.n_rows
    for _ in range(2):
        reduce_rows(s, first, first, n_free, 20 * s.n_rows)
        n_free = first
        for i in range(s.n_rows):
            if s.col_of[i] < 0:
                s.free[n_free] = i
                n_free += 1
    n_free = first
    for i in range(s.n_rows):
        if s.col_of[i] < 0:
            s.free[n_free] = i
            n_free += 1
    return bool(augment(s, first, n_free, paths) >= 0)


@jit
def solve_range(
    costs: Amounts, sizes: Indices, sign: Amount, inf: Amount, assignment: Indices, u: Amounts, v: Amounts, solved: Mask
) -> None:
    """Solve every problem from a cold start; `solved` says of each whether it has an answer (assignment, u, v)."""
    partly: Any = np.bool_(False)  # no literal, as in `solve_whole`
    for k in range(len(costs)):
        n_rows, n_cols = sizes[k, 0], sizes[k, 1]
        cost = costs[k]
        turned = n_rows > n_cols
        if turned:
            cost = np.ascontiguousarray(costs[k, :n_rows, :n_cols].T)
            n_rows, n_cols = n_cols, n_rows
        s = new_state(cost, n_rows, n_cols, sign, inf, np.zeros(n_cols, u.dtype))
        solved[k] = solve_whole(s)
        if not solved[k]:
            continue
        duals = np.zeros(n_rows, u.dtype)
        close(s, duals, partly)
        if turned:
            put(assignment[k], u[k], v[k], s.row_of, s.v, duals, sign)
        else:
            put(assignment[k], u[k], v[k], s.col_of, duals, s.v, sign)


@inner
def put(
    assignment: Indices, u: Amounts, v: Amounts, seats: Integers, of_rows: Amounts, of_cols: Amounts, sign: Amount
) -> None:
    """Write one answer. By entries: numba compiles an assignment of whole slices for seconds."""
    for i in range(len(of_rows)):
        assignment[i], u[i] = seats[i], sign * of_rows[i]
    for j in range(len(of_cols)):
        v[j] = sign * of_cols[j]


def solve_batch(problem: Assignment, path_limit: int, deadline: Deadline, solve_one: SolveOne) -> Solution:
    """Solve every problem of a batch; `solve_one` takes those that are large, warm-started or limited in paths."""
    members = Members(problem)
    n_rows, n_cols = members.weights.shape[1:]
    cold = problem.u0 is None and problem.v0 is None and path_limit >= members.weights.size
    if cold and n_rows * n_cols < LARGE:
        return _solve_small(members, deadline, solve_one)
    iterations = 0
    for k, weights, u0, v0 in members:
        one = solve_one(weights, problem.maximize, u0, v0, path_limit, PartOf(deadline, k, len(members)))
        iterations += one.iterations
        members.take(k, one)
        deadline.report(iterations, fraction=(k + 1) / len(members))
    return members.solution("sap", iterations)


def _solve_small(members: Members, deadline: Deadline, solve_one: SolveOne) -> Solution:
    """Chunks of problems across threads; those not begun in time get their first answer from `solve_one`.

    So do those without an answer, which says why there is none.
    """
    costs, sizes, maximize = members.weights, members.sizes, members.problem.maximize
    batch, exact = len(costs), costs.dtype.kind == "i"
    sign = np.int64(-1 if maximize else 1) if exact else np.float64(-1 if maximize else 1)
    threads = min(numba.get_num_threads(), batch)
    step = max(1, min(CHUNK // (costs.shape[1] * costs.shape[2]), math.ceil(batch / threads)))
    solved = np.zeros(batch, bool)

    def run(first: int) -> Termination | None:
        last = min(batch, first + step)
        if ended := deadline.expired():
            return ended
        part, masked = opened(costs[first:last], maximize)
        entries: Amounts = np.ascontiguousarray(part, sign.dtype)  # one compiled form for both widths of a kind
        assignment, u, v = (members.arrays[name][first:last] for name in ("assignment", "u", "v"))
        extents = sizes[first:last].astype(np.int64)
        inf = infinity(exact, masked)
        solve_range(untouched(entries), extents, sign, inf, assignment, u, v, solved[first:last])
        return None

    done = 0
    each = map if costs.size <= FEW else threads_here().map
    for ended in each(run, range(0, batch, step)):
        done += step if ended is None else 0
        deadline.report(min(batch, done), fraction=min(batch, done) / batch)
    for k in np.flatnonzero(~solved).tolist():
        members.take(k, solve_one(members[k][0], maximize, None, None, costs.size, deadline))
    return members.solution("sap", batch)
