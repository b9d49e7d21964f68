"""Launcher of the batched solver (`batched.cu`): one warp or block per problem."""

import time
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.cuda import attribute, kernel
from kernels.deadline import Deadline
from kernels.lap import gpu, gpu_memory, is_few
from kernels.lap.batched.layout import INFEASIBLE, NOT_BEGUN, SOLVE_EACH_ARGS, SOLVED
from kernels.lap.members import Members, PartOf
from kernels.lap.proof.gpu_proof import CTYPES, named, prove_batch
from kernels.problems import UNASSIGNED, Assignment
from kernels.problems.arrays import Integers32
from kernels.solution import OnDevice, Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

TEAMS = ((32, 1), (32, 2), (128, 1), (128, 2), (512, 1), (512, 2))
"""(threads, columns a thread) of a team; the first whose product holds the longer side is taken."""
LONGEST = 1024
"""Longer problems of a batch are solved one after another, by all of the device."""
TEAMS_AT_ONCE = 8
"""A matrix goes into shared memory where so many fit into a multiprocessor's: fewer teams at once lose more."""
ENTRIES_PER_LAUNCH = 1 << 28
"""Matrix entries solved between two looks at the deadline (some tens of milliseconds)."""


def solve(problem: Assignment, options: "LapOptions", deadline: Deadline) -> Solution:
    """Solve a batch of dense assignment problems exactly, each by the algorithm of Jonker and Volgenant.

    Problem: for every k, min sum_i c[k, i, p(i)] over pairings p (max with `maximize`); `sizes` cuts each.
    Args:
        problem: `weights` (batch, max_rows, max_cols), float32, float64, int32 or int64; +inf (-inf when maximising)
            forbids. Warm-started problems, long ones and a few large ones are solved one by one.
        options: `LapOptions`; with an `iteration_limit` problems are solved one by one.
        deadline: looked at between launches of some tens of milliseconds.
    Returns:
        `assignment` (batch, max_rows) int64, `u`, `v` float64 or int64; -1 and 0 beyond a problem's size. Where some
        are infeasible: the first of them in `facts["problem"]`, `hall_rows`, `hall_cols` (batch, extent) bool.
    Guarantee: exact and deterministic.
    Numerics: prices in float64, for float32 weights too; integers in int64, exact.
    Complexity: O(n^3) a problem at worst, 4 to 8 n^2 reads on uniform costs; 24 bytes a line beside the batch, and up
        to 44 a line in shared memory; one launch.
    Errors: InvalidProblem where device memory is short.
    Differs: from cpu/path.py by reading whole rows; beyond 64 lines row reductions give way to a Jacobi auction in
        which every warp of a block bids for a row of its own.
    Source: R. Jonker, A. Volgenant, Computing 38 (1987) 325-340; the auction after D. Bertsekas, Annals of Operations
        Research 14 (1988).
    """
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    warm = problem.u0 is not None or problem.v0 is not None or options.iteration_limit is not None
    if warm or max(weights.shape[1:]) > LONGEST or is_few(weights):
        return _one_by_one(problem, options, deadline)
    gpu_memory.require(weights.nbytes + 24 * weights.shape[0] * sum(weights.shape[1:]))
    clock = [time.perf_counter()]
    cost, sizes = cupy.asarray(weights), None if problem.sizes is None else cupy.asarray(problem.sizes)
    cupy.cuda.get_current_stream().synchronize()
    clock.append(time.perf_counter())
    ended, out, facts = solve_on_device(cost, sizes, problem.maximize, deadline)
    clock.append(time.perf_counter())
    if not facts.pop("unsolved"):
        facts["device_proof"] = named(prove_batch(cost, sizes, problem.maximize, out))
    clock.append(time.perf_counter())
    members = Members(problem)
    members.arrays = {name: out[name].get() for name in members.arrays}
    clock.append(time.perf_counter())
    _finish(members, out["status"].get(), ended)
    timings = gpu.milliseconds(clock, "h2d", "solve", "certify", "d2h")
    uploads = [OnDevice(weights, cost)]
    return members.solution(
        "batched", len(weights), seed=options.seed, timings_ms=timings, facts=facts, uploads=uploads
    )


def _finish(members: Members, status: Integers32, ended: Termination) -> None:
    """Complete the problems that time did not suffice for, and say of those without an answer why there is none."""
    maximize = members.problem.maximize
    for k in np.flatnonzero(status == NOT_BEGUN).tolist():
        rows, cols = members.sizes[k].tolist()
        extents = {"assignment": rows, "u": rows, "v": cols}
        arrays = {name: members.arrays[name][k, :extent] for name, extent in extents.items()}
        members.take(k, gpu.finish(Solution(ended, "batched", arrays), members[k][0], maximize))
    for k in np.flatnonzero(status == INFEASIBLE).tolist():
        members.take(k, gpu.solve_one(members[k][0], maximize, None, None, None, Deadline()))


def _one_by_one(problem: Assignment, options: "LapOptions", deadline: Deadline) -> Solution:
    members = Members(problem)
    timings = dict.fromkeys(("h2d", "solve", "certify", "d2h"), 0.0)
    for k, weights, u0, v0 in members:
        part = PartOf(deadline, k, len(members))
        one = gpu.solve_one(weights, problem.maximize, u0, v0, options.iteration_limit, part)
        members.take(k, one)
        for name in timings:
            timings[name] += one.timings_ms.get(name, 0.0)
        deadline.report(k + 1, fraction=(k + 1) / len(members))
    return members.solution("auto", len(members), seed=options.seed, timings_ms=timings)


def shape_of(max_rows: int, max_cols: int, itemsize: int) -> tuple[int, int, bool, int]:
    """(threads, slots, matrix in shared memory, bytes of shared memory) of a team for problems up to this size."""
    longer, shorter = max(max_rows, max_cols), min(max_rows, max_cols)
    team, slots = next(pair for pair in TEAMS if pair[0] * pair[1] >= longer)
    vectors = (24 if team == 32 else 44) * longer + 8  # a ragged batch may turn some problems and not others
    most = attribute("MaxSharedMemoryPerBlockOptin") - 3072
    matrix = itemsize * longer * shorter
    fits = vectors + matrix <= most // TEAMS_AT_ONCE
    return team, slots, fits, vectors + (matrix if fits else 0)


def solve_on_device(
    cost: Any, sizes: Any | None, negate: bool, deadline: Deadline
) -> tuple[Termination, dict[str, Any], dict[str, Any]]:
    """Solve a batch whose `cost` (batch, max_rows, max_cols) lies on the device; no side above LONGEST.

    Returns:
        Why it ended; device arrays `assignment` (batch, max_rows) int64, `u`, `v` in the sense asked for (maximisation
        with `negate`), `status` (batch,) int32; facts, with the number of `unsolved` problems. Problems that the
        deadline left out keep -1 and the best entry of each line as dual; what is written of infeasible ones is void.
    """
    batch, max_rows, max_cols = cost.shape
    dual = np.float64 if cost.dtype.kind == "f" else np.int64
    out = {
        "assignment": cupy.empty((batch, max_rows), np.int64),
        "u": cupy.empty((batch, max_rows), dual),
        "v": cupy.empty((batch, max_cols), dual),
        "status": cupy.zeros(batch, np.int32),
    }
    step = max(1, ENTRIES_PER_LAUNCH // (max_rows * max_cols))
    ended = None
    for first in range(0, batch, step):
        if ended := deadline.expired():
            break
        launch_solve_each(cost, sizes, first, min(step, batch - first), negate, out, out["status"])
        if step < batch:
            cupy.cuda.get_current_stream().synchronize()
            deadline.report(first + step, fraction=min(1.0, (first + step) / batch))
    state = out["status"].get()
    facts: dict[str, Any] = {"problems": batch, "team": shape_of(max_rows, max_cols, cost.dtype.itemsize)[0]}
    facts["unsolved"] = int((state != SOLVED).sum())
    for k in np.flatnonzero(state == NOT_BEGUN).tolist():
        rows, cols = (max_rows, max_cols) if sizes is None else sizes[k].tolist()
        out["assignment"][k], out["u"][k], out["v"][k] = UNASSIGNED, 0, 0
        _trivial_duals(cost[k, :rows, :cols], negate, out["u"][k], out["v"][k])
    worst = Termination.INFEASIBLE if (state == INFEASIBLE).any() else Termination.OPTIMAL
    return ended or worst, out, facts


def launch_solve_each(
    cost: Any, sizes: Any | None, first: int, count: int, negate: bool, out: dict[str, Any], status: Any
) -> None:
    """Enqueue problems `first` to `first` + `count` - 1; nothing waits."""
    _, max_rows, max_cols = cost.shape
    team, slots, fits, shared = shape_of(max_rows, max_cols, cost.dtype.itemsize)
    defines = (
        f"-DCOST={CTYPES[cost.dtype.name]}",
        f"-DVALUE={CTYPES[out['u'].dtype.name]}",
        f"-DTEAM={team}",
        f"-DSLOTS={slots}",
        f"-DMATRIX_SHARED={int(fits)}",
    )
    solve_each = kernel("lap/batched/batched.cu", "solve_each", defines, cooperative=False)
    if shared > 48 * 1024:
        solve_each.max_dynamic_shared_size_bytes = shared
    batch = {"cost": cost, "sizes": 0 if sizes is None else sizes, "max_rows": max_rows, "max_cols": max_cols}
    answer = {name: out[name] for name in ("assignment", "u", "v")} | {"status": status}
    arguments = SOLVE_EACH_ARGS.packed(**batch, **answer, first=first, negate=negate)
    solve_each((count,), (team,), arguments, shared_mem=shared)


def _trivial_duals(cost: Any, negate: bool, u: Any, v: Any) -> None:
    """Feasible duals without solving: the best entry of each line of the shorter side."""
    lines, axis = (u, 1) if cost.shape[0] <= cost.shape[1] else (v, 0)
    best = cost.max(axis=axis) if negate else cost.min(axis=axis)
    lines[: len(best)] = cupy.where(cupy.isfinite(best), best, 0)
