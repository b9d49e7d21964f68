"""From potentials on the device to what the caller asked for: the plan, or its marginals and largest entries."""

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from kernels.problems.arrays import Array
from kernels.solution import Solution, Termination
from kernels.uot.gpu_exact import distances
from kernels.uot.support import Support

BLOCK = 1 << 25  # entries of the plan in work at a time

_entry = cp.ElementwiseKernel(
    "T c, float64 row, float64 column, float64 scale",
    "T p",
    "const double e = row + column - c * scale; p = sizeof(T) == 4 ? (T)exp2f((float)e) : (T)exp2(e)",
    "uot_plan",
)


def answer(
    part: Support, options: Any, f: Array, g: Array, termination: Termination, method: str, facts: dict[str, Any]
) -> Solution:
    """The solution of the whole problem from potentials (host, float64) of the reduced one."""
    full_f, full_g = part.spread_out(f, g)
    arrays = {"f": full_f, "g": full_g} | outputs(part, full_f, full_g, options)
    return Solution(termination, method, arrays, facts=facts)


def outputs(part: Support, f: Array, g: Array, options: Any) -> dict[str, Array]:
    """plan, or row_marginal and column_marginal; with top_k also top_columns and top_values."""
    problem = part.problem
    m, n = problem.shape
    given = problem.x if problem.cost is None else problem.cost
    assert given is not None
    whole, k, step = options.output == "plan", min(options.top_k, n), max(1, BLOCK // n)
    plan = np.empty((m, n), given.dtype) if whole else None
    rows, columns = np.empty(m), cp.zeros(n)
    best, value = np.empty((m, k), np.int32), np.empty((m, k), given.dtype)
    entries = _plan_rows(part, f, g, given.dtype)
    for start in range(0, m, step):
        some = slice(start, min(m, start + step))
        block = entries(some)
        if plan is not None:
            block.get(out=plan[some])
        else:
            rows[some] = block.sum(axis=1, dtype=cp.float64).get()
            columns += block.sum(axis=0, dtype=cp.float64)
        if k:
            order = cp.argsort(-block, axis=1)[:, :k]
            best[some], value[some] = order.get(), cp.take_along_axis(block, order, axis=1).get()
    out = {"plan": plan} if plan is not None else {"row_marginal": rows, "column_marginal": columns.get()}
    return out | ({"top_columns": best, "top_values": value} if k else {})


def _plan_rows(part: Support, f: Array, g: Array, dtype: Any) -> Callable[[slice], Any]:
    """A function from a slice of rows to those rows of the plan; zero where a mass is zero or the entry forbidden."""
    problem = part.problem
    scale = float(np.log2(np.e)) / problem.reg
    with np.errstate(divide="ignore", invalid="ignore"):
        row, column = f * scale, g * scale
        if problem.reference == "product":
            row, column = row + np.log2(problem.a), column + np.log2(problem.b)
    row = cp.asarray(np.where((problem.a > 0) & np.isfinite(row), row, -np.inf))
    column = cp.asarray(np.where((problem.b > 0) & np.isfinite(column), column, -np.inf))
    if problem.cost is None:
        x, y = (cp.asarray(points, cp.float64) for points in (problem.x, problem.y))

    def entries(some: slice) -> Any:
        if problem.cost is None:
            cost = distances(x[some], y, problem.metric)
            return _entry(cost, row[some, None], column[None], scale).astype(dtype)
        cost = cp.asarray(np.ascontiguousarray(problem.cost[some]))
        return _entry(cost, row[some, None], column[None], scale, cost)

    return entries
