"""Launches of the certificate on the device (`certify.cu`): one sweep over the matrix, or over a whole batch."""

from typing import Any

import cupy

from kernels.cuda import attribute, kernel
from kernels.lap.proof.layout import ADD_UP_ARGS, THREADS, WEIGH_PROBLEMS_ARGS, WEIGH_ROWS_ARGS

CTYPES = {"float64": "double", "float32": "float", "int64": "long long", "int32": "int"}
PARTS = ("primal", "dual", "violation", "slack", "unassigned")


def prove(cost: Any, negate: bool, u: Any, v: Any, row_col: Any, out: Any = None) -> Any:
    """PARTS of one answer, as a device array of float64 or int64.

    Args:
        cost: (n_rows, n_cols) on the device, n_rows <= n_cols.
        negate: the answer maximises; `u`, `v` are those of the minimisation of -cost all the same.
        row_col: (n_rows,) int32, -1 for a row without a column.
        out: takes them, where it is given.
    """
    defines = (f"-DCOST={CTYPES[cost.dtype.name]}", f"-DVALUE={CTYPES[u.dtype.name]}")
    n_rows, n_cols = cost.shape
    blocks = min(n_rows, 4 * attribute("MultiProcessorCount"))
    partial = cupy.empty((blocks, 4), u.dtype)
    proof = cupy.empty(len(PARTS), u.dtype) if out is None else out
    shared = {"n_rows": n_rows, "n_cols": n_cols, "v": v, "row_col": row_col, "partial": partial}
    weigh_rows = kernel("lap/proof/certify.cu", "weigh_rows", defines)
    weigh_rows((blocks,), (THREADS,), WEIGH_ROWS_ARGS.packed(**shared, cost=cost, negate=negate, u=u))
    add_up = kernel("lap/proof/certify.cu", "add_up", defines)
    add_up((1,), (THREADS,), ADD_UP_ARGS.packed(**shared, n_partial=blocks, proof=proof))
    return proof


def row_minima(cost: Any, negate: bool, u: Any, v: Any, row_col: Any) -> Any:
    """min_j (s c_ij - v_j) of every row, as column 1 of (n_rows, 4): what `weigh_rows` sums up, a row to a block.

    Args: as `prove`; `u` and `row_col` may be those of any moment.
    """
    defines = (f"-DCOST={CTYPES[cost.dtype.name]}", f"-DVALUE={CTYPES[v.dtype.name]}")
    n_rows, n_cols = cost.shape
    partial = cupy.empty((n_rows, 4), v.dtype)
    weigh_rows = kernel("lap/proof/certify.cu", "weigh_rows", defines, cooperative=False)
    answer = {"u": u, "v": v, "row_col": row_col, "partial": partial}
    arguments = WEIGH_ROWS_ARGS.packed(**answer, cost=cost, n_rows=n_rows, n_cols=n_cols, negate=negate)
    weigh_rows((n_rows,), (THREADS,), arguments)
    return partial


def prove_batch(cost: Any, sizes: Any | None, negate: bool, out: dict[str, Any]) -> Any:
    """PARTS of every problem of a batch, (batch, 5); `out` as `gpu_batched.solve_on_device` returns it."""
    value = out["u"].dtype
    defines = (f"-DCOST={CTYPES[cost.dtype.name]}", f"-DVALUE={CTYPES[value.name]}")
    batch, max_rows, max_cols = cost.shape
    proof = cupy.empty((batch, 5), value)
    weigh = kernel("lap/proof/certify.cu", "weigh_problems", defines, cooperative=False)
    problems = {"cost": cost, "sizes": 0 if sizes is None else sizes, "max_rows": max_rows, "max_cols": max_cols}
    answers = {name: out[name] for name in ("u", "v", "assignment")}
    weigh((batch,), (THREADS,), WEIGH_PROBLEMS_ARGS.packed(**problems, **answers, negate=negate, proof=proof))
    return proof


def named(proof: Any) -> dict[str, int | float]:
    """A proof in host memory by name: sums over a batch of primal, dual and unassigned, the largest of the others."""
    parts = cupy.asnumpy(proof).reshape(-1, len(PARTS))
    joined = [parts[:, 0].sum(), parts[:, 1].sum(), parts[:, 2].max(), parts[:, 3].max(), parts[:, 4].sum()]
    return dict(zip(PARTS, (part.item() for part in joined), strict=True))
