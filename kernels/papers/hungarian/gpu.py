"""Launchers of the block-distributed classical Hungarian algorithm: versions v1_counter.cu to v7_traced.cu."""

import time
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.cuda import attribute, kernel
from kernels.deadline import Deadline
from kernels.lap.proof.gpu_proof import CTYPES
from kernels.papers.gpu_systems import solve_single
from kernels.papers.hungarian.layout import FLAGS, HUNGARIAN_STEP_ARGS, INFEASIBLE, OPTIMAL, PROBLEM, STEPS, THREADS
from kernels.problems import Assignment, InvalidProblem
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

ENDS = {OPTIMAL: Termination.OPTIMAL, INFEASIBLE: Termination.INFEASIBLE}
MOST_COLUMNS = 1 << 20
MOST_ROWS_PER_BLOCK = 1 << 12
"""A listed zero is packed into 32 bits: 12 for the row within its bin, 20 for the column."""
OURS = 5
"""The last level of tuning; -1 to 4 are those of the papers, for the ablation."""
VERSIONS = {
    -1: "v1_counter",
    0: "v2_reduction",
    1: "v3_one_pass",
    2: "v4_one_launch",
    3: "v5_register",
    4: "v6_abreast",
    OURS: "v7_traced",
}
"""The source of each level of tuning."""
ONE_LAUNCH = 2
"""The first level without the host."""


def solve(problem: Assignment, options: "LapOptions", deadline: Deadline) -> Solution:
    """Solve a dense linear assignment problem exactly by the block-distributed classical Hungarian algorithm.

    Problem, Args, Returns, Guarantee, Numerics: those of `gpu_systems.solve_single`. `iteration_limit` counts searches;
        the deadline's flag is read at every dual update.
    Complexity: O(n^4) at worst (a dual update touches half the matrix); 12 n_rows n_cols bytes beside the matrix; one
        cooperative launch.
    Errors: InvalidProblem for a batch, too little device memory, more than 2^20 columns or 4096 rows per
        multiprocessor.
    Differs: rows and columns are exchanged; step 2 runs on all blocks; at the last level of tuning step 4 finds all
        paths it can without grid barriers, and rows keep their least slack (v7_traced.cu says more).
    Source: P. Lopes, S. Yadav, A. Ilic, S. Patra, "Fast block distributed CUDA implementation of the Hungarian
        algorithm", J. Parallel Distrib. Comput. 130 (2019), algorithms 1 to 4; S. Kawtikwar, Y. Chang, V. Govind,
        "Improvements to the Hungarian LAP Solver", section IV.
    """
    shape = getattr(problem.weights, "shape", ())
    blocks = attribute("MultiProcessorCount")
    if len(shape) == 2 and (max(shape) > MOST_COLUMNS or min(shape) > MOST_ROWS_PER_BLOCK * blocks):
        most = f"at most {MOST_COLUMNS} on the longer and {MOST_ROWS_PER_BLOCK * blocks} on the shorter side"
        raise InvalidProblem("cost", f'has shape {shape}; for "hungarian" expected {most}')
    return solve_single("hungarian", solve_on_device, 12, problem, options, deadline)


def solve_on_device(
    cost: Any, negate: bool, deadline: Deadline, search_limit: int | None = None, opt: int = OURS
) -> tuple[Termination, dict[str, Any], dict[str, Any]]:
    """Solve one problem with n_rows <= n_cols whose `cost` lies on the device.

    Args:
        cost: cupy array (n_rows, n_cols), float32, float64, int32 or int64; +inf (-inf with `negate`) forbids.
        negate: maximise; duals come back for the minimisation of -cost.
        search_limit: searches (step 3 to 5) at most.
        opt: a level of tuning, one of VERSIONS.
    Returns:
        Termination; device arrays `col_of` (n_rows,) int32 with -1 for free, `u`, `v`, and, when infeasible, `rows`,
        `cols` (a Hall violator); facts (dual updates, searches, rounds of step 4).
    """
    n_rows, n_cols = cost.shape
    run = _Buffers(cost, negate, n_rows * n_cols if search_limit is None else search_limit, opt)
    if opt >= ONE_LAUNCH:
        _launch_hungarian(run, deadline)
    else:
        _drive_from_host(run, deadline)
    flags = run.flags.get()
    ended = ENDS.get(int(flags[FLAGS["OUTCOME"]]))
    facts = {"opt": opt} | {name: int(flags[FLAGS[name.upper()]]) for name in ("updates", "searches", "rounds")}
    answer = {"col_of": run.star_of_row, "u": run.u, "v": run.v}
    if ended is Termination.INFEASIBLE:  # what the last search could see
        answer["rows"], answer["cols"] = cupy.flatnonzero(run.row_covered == 0), cupy.flatnonzero(run.col_covered)
    return ended or deadline.expired() or Termination.ITERATION_LIMIT, answer, facts


class _Buffers:
    """Buffers of one solve, and the struct `HungarianProblem` that tells the kernels where they are."""

    def __init__(self, cost: Any, negate: bool, search_limit: int, opt: int) -> None:
        n_rows, n_cols = cost.shape
        dual = np.float64 if cost.dtype.kind == "f" else np.int64
        self.defines = (
            f"-DCOST={CTYPES[cost.dtype.name]}",
            f"-DDUAL={CTYPES[np.dtype(dual).name]}",
        )
        self.opt, self.source = opt, f"papers/hungarian/{VERSIONS[opt]}.cu"
        self.n_rows = n_rows
        self.blocks = min(attribute("MultiProcessorCount"), n_rows)
        rows_per_bin = -(-n_rows // self.blocks)
        self.slack = cupy.empty((n_rows, n_cols), dual)
        self.zeros = cupy.empty(self.blocks * rows_per_bin * n_cols, np.uint32)
        self.zeros_count = cupy.zeros(self.blocks, np.int32)
        self.u, self.v = cupy.zeros(n_rows, dual), cupy.zeros(n_cols, dual)
        self.star_of_row, self.green_of_row, self.row_covered = (cupy.empty(n_rows, np.int32) for _ in range(3))
        self.star_of_col, self.prime_of_col, self.col_covered = (cupy.empty(n_cols, np.int32) for _ in range(3))
        self.row_min, self.row_arg = cupy.empty(n_rows, dual), cupy.empty(n_rows, np.int32)
        self.block_min = cupy.empty(self.blocks, dual)
        self.open = cupy.zeros(1, np.uint64)
        self.shared = rows_per_bin
        self.flags = cupy.zeros(FLAGS["FLAGS"], np.int32)
        self.stop = cupy.cuda.alloc_pinned_memory(4)
        self.stop_flag = np.frombuffer(self.stop, np.int32, 1)
        self.stop_flag[0] = 0
        names = [one.name for one in PROBLEM.fields if "*" in one.type and one.name not in ("cost", "stop")]
        buffers = {name: getattr(self, name) for name in names} | {"cost": cost, "stop": self.stop.ptr}
        sizes = {"n_rows": n_rows, "n_cols": n_cols, "negate": negate, "search_limit": search_limit}
        self.problem = cupy.asarray(PROBLEM.filled(buffers | sizes)[None].view(np.uint64))


def _launch_hungarian(run: _Buffers, deadline: Deadline) -> None:
    """One cooperative launch; the host only watches the deadline."""
    ended = cupy.cuda.Event()
    solve = kernel(run.source, "hungarian", run.defines)
    solve((run.blocks,), (THREADS,), (run.problem,), shared_mem=run.shared)
    ended.record()
    wait(ended, run.stop_flag, deadline)


def wait(ended: Any, stop_flag: Any, deadline: Deadline) -> None:
    """Wait for `ended`; raise the mapped flag when the deadline passes first."""
    pause = 2e-5
    while not ended.done:
        if not stop_flag[0] and deadline.expired():
            stop_flag[0] = 1
        time.sleep(pause)
        pause = min(pause * 1.5, 2e-3)


def _drive_from_host(run: _Buffers, deadline: Deadline) -> None:
    """The launches of versions 1 to 3: the host reads the flags after every step that sets one."""
    step_kernel = kernel(run.source, "hungarian_step", run.defines)
    recount = run.opt >= 0
    fused = run.opt == 1

    def launch(*steps: str) -> None:
        for step in steps:
            arguments = HUNGARIAN_STEP_ARGS.packed(problem=run.problem, step=STEPS.index(step))
            step_kernel((run.blocks,), (THREADS,), arguments)

    def read(name: str) -> int:
        return int(run.flags[FLAGS[name]].get())

    def list_zeros() -> None:
        run.flags[FLAGS["ZEROS"]] = 0
        launch("COMPRESS_ZEROS", *(["COUNT_ZEROS"] if recount else []))

    launch("REDUCE_ROWS", "REDUCE_COLUMNS")
    list_zeros()
    launch("STAR_ZEROS")
    while True:
        run.flags[FLAGS["STARS"]] = 0
        launch("COVER_STARS")
        if read("STARS") == run.n_rows:
            run.flags[FLAGS["OUTCOME"]] = OPTIMAL
            return
        run.flags[FLAGS["PATHS"]] = 0
        while not _search(run, launch, read):
            if deadline.expired():
                return
            launch("FIND_MINIMUM", "SHIFT_SLACK")
            if read("OUTCOME"):
                return
            run.flags[FLAGS["UPDATES"]] += 1
            if fused:
                run.flags[FLAGS["ZEROS"]] = 0
                launch("COUNT_ZEROS")
            else:
                list_zeros()
        launch("MARK_GREEN", "FLIP_PATHS")
        run.flags[FLAGS["SEARCHES"]] += 1


def _search(run: _Buffers, launch: Any, read: Any) -> bool:
    """Step 4 until nothing is new; True when it found a path."""
    again = 1
    while again:
        run.flags[FLAGS["REPEAT"]] = 0
        launch("PRIME_ZEROS")
        if read("PATHS"):
            return True
        again = read("REPEAT")
    return False
