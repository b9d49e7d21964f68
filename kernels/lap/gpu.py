"""Dense linear assignment on the GPU: method `auto` here; batches and the papers' systems in their own modules."""

import importlib
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.ahead import is_sent
from kernels.deadline import Deadline, Retold
from kernels.lap import gpu_memory, gpu_monge, monge
from kernels.lap.auto.gpu_forest import MOST_ROWS, Forest, Tuning, device_bytes
from kernels.lap.auto.gpu_progress import DeviceWatch
from kernels.lap.auto.gpu_warm import WIDEST, cut_back, squared, start_at
from kernels.lap.auto.layout import INFEASIBLE, PHASE_LIMIT, SOLVED
from kernels.lap.columns import gpu_columns
from kernels.lap.complete import complete
from kernels.lap.cpu import between
from kernels.lap.extended import solve_extended
from kernels.lap.masks import solve_priced
from kernels.lap.pace import Pace
from kernels.lap.points.gpu_points import costs_on_device, uploaded
from kernels.lap.proof.gpu_proof import named, prove
from kernels.lap.spatial.which import suits
from kernels.lap.warm import proportionate
from kernels.papers import SYSTEMS
from kernels.problems import UNASSIGNED, Array, Assignment, InvalidProblem, Rejecting
from kernels.problems.arrays import Costs, is_masked
from kernels.problems.points import PointAssignment
from kernels.problems.seen import seen_of
from kernels.solution import OnDevice, Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

BATCHED = "kernels.lap.batched.gpu_batched"
FEW = 256
"""Lines of the shorter side from which a longer one than MOST_ROWS is solved by columns (lap/columns)."""
SQUARED = Tuning(scale_at_once=False, most=MOST_ROWS)
"""Of a wide problem made square. It keeps its old duals: a cold start from here would be that of the square one."""
SPIN_S = 0.002
"""Solves shorter than this are waited for without sleeping."""


def solve(problem: Assignment | Rejecting, options: "LapOptions", deadline: Deadline) -> Solution:
    """Solve a dense linear assignment problem exactly by an auction start and a forest of shortest augmenting paths.

    Problem: min sum_i c[i, p(i)] over pairings p of min(n_rows, n_cols) pairs (max with `maximize`); also a batch of
        such problems, each with its own size; or of points (gpu_points.py). Sparse matrices and prices for staying
        unassigned are not solved here.
    Args:
        problem: `weights` (n_rows, n_cols) or (batch, n_rows, n_cols), float32, float64, int32 or int64; +inf (-inf
            when maximising) forbids an entry of floats, `FORBIDDEN` one of int64 (masks.py). `u0`, `v0`: any finite
            duals to start from (not used where one side is over 9/8 of the other: a cold start is faster).
        options: `LapOptions`; "auto" is this file, "hungarian" and "tree" the systems of the papers.
        deadline: a mapped flag that the search reads every 64 rounds (about 0.3 ms), the auction every 16.
    Returns:
        `assignment` (n_rows,) int64 with -1 for unassigned, `u` (n_rows,), `v` (n_cols,): float64, or int64 for
        integer weights; with a batch axis in front where the input has one. Stopped early, free rows are completed
        on the host (`complete.py`), and the duals still give a bound. Infeasible: `hall_rows`, `hall_cols`.
    Guarantee: exact; deterministic, `deterministic` or not: no result depends on the order of atomics.
    Numerics: path lengths and duals in float64, for float32 weights too; integers in int64, exact.
    Complexity: O(n_rows^2 n_cols) at worst; 3 to 90 sweeps of the matrix in practice. 4 (n_blocks + 50) n bytes beside
        the matrix, a transposed copy when n_rows > n_cols. 3 launches (square: 5, large: 7; old duals of both
        sides: 1 more, which the host waits for), no host sync between them.
        With a side above 65536: see columns/solver.py, and `_solve_shortlist` where the other is below 256.
    Errors: InvalidProblem for method "sap" (CPU only), where device memory is short (with needed and free bytes), and
        for integers beyond 2^40 with a side above 65536.
    Differs: from the alternating forest of Date and Nagi (2016): labels are shortest distances, found by
        label-correcting rounds that scan one row per block; a phase ends when half its sources reached a free column.
        Costs in Monge order are sorted instead (method "monge" in the answer; gpu_monge.py).
    Source: own design, described in forest.cu; auction start after D. Bertsekas, "The auction algorithm", Annals of
        Operations Research 14 (1988); scaling after the same author's 1991 book, section 4.1.
    """
    if isinstance(problem, Rejecting):
        return solve_extended(problem, options, deadline, solve)
    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    if options.method == "sap":
        raise InvalidProblem("method", '"sap" runs on the CPU only; on a GPU expected "auto", "hungarian" or "tree"')
    if isinstance(problem, PointAssignment):
        return _solve_points(problem, options, deadline)
    if is_masked(weights):
        return _solve_masked(problem, options, deadline)
    module = SYSTEMS.get((options.method, "gpu")) or (BATCHED if weights.ndim == 3 else None)
    if module is not None:
        answer: Solution = importlib.import_module(module).solve(problem, options, deadline)
        return answer
    solution = solve_one(weights, problem.maximize, problem.u0, problem.v0, options.iteration_limit, deadline)
    solution.seed = options.seed
    return solution


def _solve_points(problem: PointAssignment, options: "LapOptions", deadline: Deadline) -> Solution:
    """Costs of points are worked out on the device and stay there; beyond MOST_ROWS the host generates columns."""
    if max(problem.shape) > MOST_ROWS and suits(problem, options):
        return _solve_on_host(problem, options, deadline)
    weights, built_ms = costs_on_device(problem)
    solution = solve_one(weights, problem.maximize, problem.u0, problem.v0, options.iteration_limit, deadline)
    solution.seed, solution.uploads = options.seed, []
    solution.timings_ms["costs"] = built_ms
    return solution


def _solve_masked(problem: Assignment, options: "LapOptions", deadline: Deadline) -> Solution:
    """Integers with forbidden entries: at a cost beyond every assignment, or, where int64 has no room, on the CPU."""
    watched = Retold(deadline, lambda objective, bound: (None, bound))  # pairs may be forbidden ones, at their price
    solution = solve_priced(problem, lambda priced: solve(priced, options, watched))
    return solution or _solve_on_host(problem, options, deadline)


def _solve_on_host(problem: Assignment, options: "LapOptions", deadline: Deadline) -> Solution:
    cpu = importlib.import_module("kernels.lap.cpu.solver")
    solution: Solution = cpu.solve(problem, options.model_copy(update={"method": "auto"}), deadline)
    solution.facts["device"] = "cpu"
    return solution


def solve_one(
    weights: Costs, maximize: bool, u0: Costs | None, v0: Costs | None, phase_limit: int | None, deadline: Deadline
) -> Solution:
    """Solve one problem; as `solve` otherwise."""
    if max(weights.shape) > MOST_ROWS:
        if min(weights.shape) < FEW:
            return _solve_shortlist(weights, maximize, phase_limit, deadline)
        return finish(gpu_columns.solve(weights, maximize, phase_limit, deadline), weights, maximize)
    if ended := deadline.expired():
        return finish(Solution(ended, "auto", _nothing(weights)), weights, maximize)
    u0, v0 = proportionate(weights, u0, v0)
    turned = weights.shape[0] > weights.shape[1]
    short, long = sorted(weights.shape)
    warm = (u0 is not None or v0 is not None) and long <= WIDEST * short
    squared_bytes = long * long * weights.itemsize if warm and short < long else 0
    copies = turned + (not is_sent(weights))
    gpu_memory.require(weights.nbytes * copies + squared_bytes + device_bytes(short, long))
    begun, sent = time.perf_counter(), (cupy.cuda.Event(), cupy.cuda.Event())
    sent[0].record()
    given = cost = uploaded(weights)  # on its way while the host makes ready what follows
    if turned:
        cost, u0, v0 = cupy.ascontiguousarray(cost.T), v0, u0
    sent[1].record()
    start = start_at(cost, maximize, u0, v0, seen_of(weights)) if warm else None
    searched = squared(cost) if squared_bytes else cost
    forest = Forest(searched.shape[0], searched.shape[1], cost.dtype, SQUARED if squared_bytes else None)
    watch = DeviceWatch(forest, cost, weights.T if turned else weights, maximize, deadline)
    launch = _launcher(forest, watch, searched, maximize, start, phase_limit)
    launch()
    if u0 is None and v0 is None and (found := _sort_instead(forest, launch, cost, weights, maximize)):
        sorted_out = _sorted_out(*found, maximize)
        sorted_out.timings_ms |= _spent(begun, sent, sorted_out.timings_ms["d2h"])
        sorted_out.uploads = [OnDevice(weights, given)]
        return sorted_out
    if not squared_bytes:  # behind the search, which is still under way
        prove(cost, maximize, forest.u, forest.v, forest.row_col, forest.proof)
    ended = wait(forest, deadline, watch)
    if squared_bytes:
        cut_back(forest, short)
        prove(cost, maximize, forest.u, forest.v, forest.row_col, forest.proof)
    since = time.perf_counter()
    there = forest.fetched()
    d2h_ms = 1e3 * (time.perf_counter() - since)
    facts: dict[str, Any] = forest.facts(there["state"]) | {"device_proof": named(there["proof"])}
    solution = _read(forest, there, facts, ended, maximize, turned)
    solution.timings_ms = _spent(begun, sent, d2h_ms)
    solution.uploads = [OnDevice(weights, given)]
    return finish(solution, weights, maximize)


def _launcher(
    forest: Forest, watch: DeviceWatch, cost: Any, maximize: bool, start: Any, phase_limit: int | None
) -> Callable[[], None]:
    """What begins the search, from the start each time."""
    limit = -1 if phase_limit is None else phase_limit
    return lambda: forest.launch(cost, maximize, start, limit, watch.begin())


def _sort_instead(
    forest: Forest, launch: Callable[[], None], cost: Any, weights: Costs, maximize: bool
) -> tuple[monge.Guess, dict[str, int | float]] | None:
    """The answer and its proof where sorting solves the costs; else None, and the search is under way.

    The host looks while the device searches: it stops the search, and begins it anew if sorting fails.
    """
    at = monge.corner(weights, -1 if maximize else 1)
    if at is None:
        return None
    forest.mailbox[0] = 1
    found = gpu_monge.solve_on_device(cost, maximize, at)
    if found is None:
        forest.mailbox[0] = 0
        launch()
    return found


def milliseconds(clock: list[float], *names: str) -> dict[str, float]:
    """Milliseconds between the readings of `clock`, by name."""
    return {name: (b - a) * 1e3 for name, (a, b) in zip(names, pairwise(clock), strict=True)}


def _spent(begun: float, sent: tuple[Any, Any], d2h_ms: float) -> dict[str, float]:
    """Milliseconds since `begun` by what they went to; the events stand around the way to the device."""
    h2d_ms = float(cupy.cuda.get_elapsed_time(*sent))
    return {"h2d": h2d_ms, "solve": max(0.0, 1e3 * (time.perf_counter() - begun) - h2d_ms - d2h_ms), "d2h": d2h_ms}


def _read(
    forest: Forest, there: dict[str, Any], facts: dict[str, Any], ended: Termination | None, maximize: bool,
    turned: bool,
) -> Solution:  # fmt: skip
    """The answer in host memory, of which `there` holds most; `ended` is why the caller stopped it, if it did."""
    mode = facts.pop("mode")
    codes = {SOLVED: Termination.OPTIMAL, INFEASIBLE: Termination.INFEASIBLE, PHASE_LIMIT: Termination.ITERATION_LIMIT}
    termination = codes.get(mode) or ended or Termination.STOPPED
    arrays = _violator(forest, turned) if mode == INFEASIBLE else _answer(there, forest.n_rows, maximize, turned)
    return Solution(termination, "auto", arrays, facts["phases"], facts=facts)


def _sorted_out(found: monge.Guess, proof: dict[str, int | float], maximize: bool) -> Solution:
    sign, since = -1 if maximize else 1, time.perf_counter()
    arrays = {"assignment": found.assignment.get().astype(np.int64)}
    arrays |= {"u": sign * found.u.get(), "v": sign * found.v.get()}
    solution = Solution(Termination.OPTIMAL, "monge", arrays, facts={"device_proof": proof})
    solution.timings_ms = {"d2h": 1e3 * (time.perf_counter() - since)}
    return solution


def _solve_shortlist(weights: Costs, maximize: bool, phase_limit: int | None, deadline: Deadline) -> Solution:
    """Solve k lines with very many partners over the k + 1 best partners of each line.

    Nothing is lost: of k + 1 partners at least one stays free, with dual 0, so that no dropped entry is dearer than u_i
    allows; and a line with more than k permitted entries is in no Hall violator.
    """
    turned = weights.shape[0] > weights.shape[1]
    lines = weights.T if turned else weights
    k, n = lines.shape
    best = np.argpartition(-lines if maximize else lines, k, axis=1)[:, : k + 1]
    kept = np.unique(best)
    part = np.ascontiguousarray(lines[:, kept])
    solution = solve_one(part, maximize, None, None, phase_limit, deadline)
    arrays = solution.arrays
    if solution.termination is Termination.INFEASIBLE:
        arrays["hall_cols"] = kept[arrays["hall_cols"]]
        if turned:
            rows, cols = (
                np.setdiff1d(np.arange(n), arrays["hall_cols"]),
                np.setdiff1d(np.arange(k), arrays["hall_rows"]),
            )
            solution.arrays = {"hall_rows": rows, "hall_cols": cols}
        return solution
    v = np.zeros(n, arrays["v"].dtype)
    v[kept] = arrays["v"]
    chosen = np.where(arrays["assignment"] == UNASSIGNED, UNASSIGNED, kept[arrays["assignment"]])
    solution.arrays = {"assignment": chosen, "u": arrays["u"], "v": v}
    if turned:
        taken = chosen != UNASSIGNED
        back = np.full(n, UNASSIGNED, np.int64)
        back[chosen[taken]] = np.flatnonzero(taken)
        solution.arrays = {"assignment": back, "u": v, "v": arrays["u"]}
    return solution


def wait(forest: Forest, deadline: Deadline, watch: DeviceWatch) -> Termination | None:
    """Wait for what was launched; raise the stop flag once the deadline has expired, and say why."""
    done = cupy.cuda.Event(disable_timing=True)
    done.record()
    start, ended, reported = time.perf_counter(), None, 0
    pace: Pace | None = None
    while not done.done:
        if ended is None and (ended := deadline.expired()):
            forest.mailbox[0] = 1
        if time.perf_counter() - start > SPIN_S:
            time.sleep(0.0002)
            found = watch.look(deadline.elapsed_s)
            if (phases := int(forest.mailbox[1])) > reported or found:
                reported, left = phases, int(forest.mailbox[2])
                pace = pace if pace or not phases else Pace(left, deadline.elapsed_s)
                fraction = None if pace is None else pace.fraction(left, deadline.elapsed_s)
                deadline.report(phases, watch.objective, watch.bound, fraction)
    watch.close()
    return ended


def _nothing(weights: Costs) -> dict[str, Array]:
    value = np.int64 if weights.dtype.kind == "i" else np.float64
    n_rows, n_cols = weights.shape
    empty = np.full(n_rows, UNASSIGNED, np.int64)
    return {"assignment": empty, "u": np.zeros(n_rows, value), "v": np.zeros(n_cols, value)}


def _answer(there: dict[str, Any], n_rows: int, maximize: bool, turned: bool) -> dict[str, Array]:
    """What was fetched; lines beyond `n_rows` were put below a wide matrix."""
    sign = -1 if maximize else 1
    u, v = sign * there["u"][:n_rows], sign * there["v"]
    if turned:
        return {"assignment": there["col_row"].astype(np.int64), "u": v, "v": u}
    return {"assignment": there["row_col"][:n_rows].astype(np.int64), "u": u, "v": v}


def _violator(forest: Forest, turned: bool) -> dict[str, Array]:
    """Rows whose permitted entries lie in too few columns: what the search reached when it found no free column."""
    row_col, cols = forest.row_col.get(), np.flatnonzero(forest.array("reached").get())
    rows = np.sort(np.concatenate([forest.col_row.get()[cols], np.flatnonzero(row_col < 0)])).astype(np.int64)
    if turned:  # the lines of the forest are columns: what they leave over are rows with too few columns
        rows, cols = np.setdiff1d(np.arange(forest.n_cols), cols), np.setdiff1d(np.arange(forest.n_rows), rows)
    return {"hall_rows": rows, "hall_cols": cols}


def finish(solution: Solution, weights: Costs, maximize: bool) -> Solution:
    """Pair what is free where a search was stopped, or say why that is not possible."""
    if solution.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
        return solution
    if violator := complete(weights, maximize, solution.arrays["assignment"]):
        solution.termination, solution.arrays = Termination.INFEASIBLE, violator
    return solution


def warm_up() -> None:
    """Compile and run the kernels of float64 and int32 up to n = 8192; others compile when first met."""
    tunings = (Tuning(), Tuning(resident=False), Tuning(blocks=1))  # small, to n = 4096, two columns per lane
    for dtype in (np.float64, np.int32):
        for tuning in tunings:
            cost = cupy.asarray(np.arange(40 * 40, dtype=dtype).reshape(40, 40) % 7)
            forest = Forest(40, 40, cost.dtype, tuning)
            forest.launch(cost, False)
            prove(cost, False, forest.u, forest.v, forest.row_col)
    cupy.cuda.get_current_stream().synchronize()
    between.warm_up()  # of frames of points, whose costs are worked out here
