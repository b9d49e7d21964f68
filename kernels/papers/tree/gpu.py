"""Launcher of the alternating-tree Hungarian algorithm (`tree.cu`)."""

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from kernels.cuda import attribute, kernel
from kernels.deadline import Deadline
from kernels.lap.proof.gpu_proof import CTYPES
from kernels.papers.gpu_systems import solve_single
from kernels.papers.hungarian.gpu import wait
from kernels.papers.tree.layout import INFEASIBLE, MAX_BLOCKS, OPTIMAL, PROBLEM, SLOT, THREADS, WARPS, WORDS
from kernels.problems import Assignment, InvalidProblem
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

MOST_COLUMNS = 1 << 16
"""A block holds 220 bytes for each of its columns in shared memory."""
ENDS = {OPTIMAL: Termination.OPTIMAL, INFEASIBLE: Termination.INFEASIBLE}


def solve(problem: Assignment, options: "LapOptions", deadline: Deadline) -> Solution:
    """Solve a dense linear assignment problem exactly by alternating trees grown from all free rows at once.

    Problem, Args, Returns, Guarantee, Numerics: those of `gpu_systems.solve_single`. `iteration_limit` counts phases;
        the deadline's flag is read at every round.
    Complexity: O(n^3): a row is read once per phase in which it joins a tree; 50 (n_rows + n_cols) bytes beside the
        matrix; one cooperative launch, one grid barrier a round.
    Errors: InvalidProblem for a batch, too little device memory, more than MOST_COLUMNS columns.
    Differs: (1) one launch, where the paper returns to the host at every step; (2) slack is kept as a distance, so
        that a dual update within a phase costs nothing; (3) blocks own columns, which needs no atomics on slack.
    Source: K. Date, R. Nagi, "GPU-accelerated Hungarian algorithms for the linear assignment problem", Parallel
        Computing 57 (2016), the alternating-tree variant.
    """
    shape = getattr(problem.weights, "shape", ())
    if len(shape) == 2 and max(shape) > MOST_COLUMNS:
        raise InvalidProblem("cost", f'has shape {shape}; for "tree" expected at most {MOST_COLUMNS} on a side')
    return solve_single("tree", solve_on_device, 0, problem, options, deadline)


def solve_on_device(
    cost: Any, negate: bool, deadline: Deadline, phase_limit: int | None = None
) -> tuple[Termination, dict[str, Any], dict[str, Any]]:
    """Solve one problem with n_rows <= n_cols whose `cost` lies on the device.

    Args:
        cost: cupy array (n_rows, n_cols), float32, float64, int32 or int64; +inf (-inf with `negate`) forbids.
        negate: maximise; duals come back for the minimisation of -cost.
        phase_limit: phases (trees grown, paths flipped) at most.
    Returns:
        Termination; device arrays `col_of` (n_rows,) int32 with -1 for free, `u`, `v` and, when infeasible, `rows`,
        `cols` (a Hall violator); facts (phases, rounds).
    """
    n_rows, n_cols = cost.shape
    dual = np.float64 if cost.dtype.kind == "f" else np.int64
    blocks = min(attribute("MultiProcessorCount"), MAX_BLOCKS)
    width = -(-n_cols // (4 * blocks)) * 4
    blocks = -(-n_cols // width)
    u, v = cupy.zeros(n_rows, dual), cupy.zeros(n_cols, dual)
    col_of, roots, green = (cupy.full(n_rows, -1, np.int32) for _ in range(3))
    row_of, parent, in_tree = (cupy.full(n_cols, -1, np.int32) for _ in range(3))
    slots = cupy.zeros((2, blocks, SLOT.dtype.itemsize), np.uint8)
    word = cupy.zeros(len(WORDS) - 1, np.int32)
    stop = cupy.cuda.alloc_pinned_memory(4)
    stop_flag = np.frombuffer(stop, np.int32, 1)
    stop_flag[0] = 0
    buffers = {"cost": cost, "u": u, "v": v, "col_of": col_of, "row_of": row_of, "roots": roots, "parent": parent}
    buffers |= {"green": green, "in_tree": in_tree, "slots": slots, "word": word, "stop": stop.ptr}
    limit = n_rows if phase_limit is None else phase_limit
    sizes = {"n_rows": n_rows, "n_cols": n_cols, "negate": negate, "phase_limit": limit, "width": width}
    problem = cupy.asarray(PROBLEM.filled(buffers | sizes)[None].view(np.uint64))
    _launch_tree(problem, cost.dtype, np.dtype(dual), blocks, width, stop_flag, deadline)
    outcome, n_roots, phases, rounds = word.get().tolist()
    ended = ENDS.get(outcome)
    answer = {"col_of": col_of, "u": u, "v": v}
    if ended is Termination.INFEASIBLE:
        answer["cols"] = cupy.flatnonzero(in_tree == 1)
        answer["rows"] = cupy.concatenate([row_of[answer["cols"]], roots[:n_roots]])
    facts = {"phases": phases, "rounds": rounds}
    return ended or deadline.expired() or Termination.ITERATION_LIMIT, answer, facts


def _launch_tree(
    problem: Any, cost: Any, dual: Any, blocks: int, width: int, stop_flag: Any, deadline: Deadline
) -> None:
    """One cooperative launch; the host only watches the deadline."""
    tree = kernel("papers/tree/tree.cu", "tree", (f"-DCOST={CTYPES[cost.name]}", f"-DDUAL={CTYPES[dual.name]}"))
    shared = width * (8 * (2 + WARPS) + 4 * (3 + WARPS)) + 12 * MAX_BLOCKS
    if shared > 48 * 1024:
        tree.max_dynamic_shared_size_bytes = shared
    ended = cupy.cuda.Event()
    tree((blocks,), (THREADS,), (problem,), shared_mem=shared)
    ended.record()
    wait(ended, stop_flag, deadline)
