"""From a problem to one of the systems of the papers and back: what `hungarian` and `tree` share."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.deadline import Deadline
from kernels.lap import gpu_memory
from kernels.lap.gpu import finish, milliseconds
from kernels.lap.proof.gpu_proof import named, prove
from kernels.problems import Array, Assignment, InvalidProblem
from kernels.problems.arrays import Costs
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

Answer = tuple[Termination, dict[str, Any], dict[str, Any]]
SolveOnDevice = Callable[[Any, bool, Deadline, int | None], Answer]


def solve_single(
    name: str,
    solve_on_device: SolveOnDevice,
    bytes_per_entry: int,
    problem: Assignment,
    options: "LapOptions",
    deadline: Deadline,
) -> Solution:
    """Copy the matrix to the device with its shorter side as rows, solve it there, and bring the answer back.

    Problem: min sum_i c[i, p(i)] over pairings p of min(n_rows, n_cols) pairs (max with `maximize`). No batches.
    Args:
        problem: `weights` (n_rows, n_cols), float32, float64, int32 or int64; +inf (-inf when maximising) forbids an
            entry. Warm starts are not used.
        options: `LapOptions`; what `iteration_limit` counts is the system's to say.
        deadline: a mapped flag that the kernels read.
    Returns:
        `assignment` (n_rows,) int64 with -1 for unassigned, `u` (n_rows,), `v` (n_cols,): float64, or int64 for integer
        weights. Stopped early, duals give a bound. Infeasible: `hall_rows`, `hall_cols`.
    Guarantee: exact. Objective and duals' sum do not depend on races; which optimal assignment does.
    Numerics: slack, distances and duals in float64, for float32 weights too; integers in int64, exact.
    Raises:
        InvalidProblem: a batch, or too little device memory for `bytes_per_entry` beside the matrix itself.
    """
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if weights.ndim == 3:
        raise InvalidProblem("method", f'"{name}" solves one problem at a time; for a batch expected "auto"')
    turned = weights.shape[0] > weights.shape[1]
    needed = weights.nbytes * (2 if turned else 1) + bytes_per_entry * weights.size + 64 * sum(weights.shape)
    gpu_memory.require(needed)
    clock = [time.perf_counter()]
    cost = cupy.asarray(weights)
    if turned:
        cost = cupy.ascontiguousarray(cost.T)
    cupy.cuda.get_current_stream().synchronize()
    clock.append(time.perf_counter())
    ended, answer, facts = solve_on_device(cost, problem.maximize, deadline, options.iteration_limit)
    clock.append(time.perf_counter())
    if ended is not Termination.INFEASIBLE:
        facts["device_proof"] = named(prove(cost, problem.maximize, answer["u"], answer["v"], answer["col_of"]))
    clock.append(time.perf_counter())
    arrays = _violator(answer, turned, weights) if ended is Termination.INFEASIBLE else _answer(answer, problem, turned)
    clock.append(time.perf_counter())
    solution = Solution(
        ended, name, arrays, int(facts.get("phases") or facts.get("searches") or 0), options.seed, facts=facts
    )
    solution.timings_ms = milliseconds(clock, "h2d", "solve", "certify", "d2h")
    return finish(solution, weights, problem.maximize)


def _answer(answer: dict[str, Any], problem: Assignment, turned: bool) -> dict[str, Array]:
    sign = -1 if problem.maximize else 1
    col_of = answer["col_of"].get().astype(np.int64)
    u, v = sign * answer["u"].get(), sign * answer["v"].get()
    if not turned:
        return {"assignment": col_of, "u": u, "v": v}
    row_of = np.full(len(v), -1, np.int64)
    paired = np.flatnonzero(col_of >= 0)
    row_of[col_of[paired]] = paired
    return {"assignment": row_of, "u": v, "v": u}


def _violator(answer: dict[str, Any], turned: bool, weights: Costs) -> dict[str, Array]:
    rows, cols = np.sort(answer["rows"].get()).astype(np.int64), np.sort(answer["cols"].get()).astype(np.int64)
    if turned:  # the device's rows are columns: what they leave over are rows with too few columns
        rows, cols = np.setdiff1d(np.arange(weights.shape[0]), cols), np.setdiff1d(np.arange(weights.shape[1]), rows)
    return {"hall_rows": rows, "hall_cols": cols}
