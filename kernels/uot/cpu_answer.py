"""From potentials to what the caller asked for: the plan, or its marginals and largest entries."""

from typing import Any

import numpy as np

from kernels.problems.arrays import Array
from kernels.problems.transport import METRICS, UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.cpu_loops import write_costs, write_plan
from kernels.uot.cpu_threads import in_threads, read_only
from kernels.uot.support import Support

BLOCK = 1 << 21  # entries of the plan in work at a time where it is not returned


def answer(
    part: Support, options: Any, f: Array, g: Array, termination: Termination, method: str, facts: dict[str, Any]
) -> Solution:
    """The solution of the whole problem from potentials of the reduced one."""
    full_f, full_g = part.spread_out(f, g)
    if termination is Termination.INFEASIBLE:
        return Solution(termination, method, {"f": full_f, "g": full_g}, facts=facts)
    arrays = {"f": full_f, "g": full_g} | outputs(part.problem, full_f, full_g, options)
    return Solution(termination, method, arrays, facts=facts)


def outputs(problem: UnbalancedTransport, f: Array, g: Array, options: Any) -> dict[str, Array]:
    """plan, or row_marginal and column_marginal; with top_k also top_columns and top_values."""
    m, n = problem.shape
    given = problem.x if problem.cost is None else problem.cost
    assert given is not None
    whole = options.output == "plan"
    # Rounding to float32 moves some 1e-8 of the mass, which only balanced marginals and fine tolerances can see.
    coarse = given.dtype == np.float32 and options.tolerance >= 1e-7 and not np.isinf(problem.reg_m).all()
    plan = np.empty((m, n), np.float32 if coarse else np.float64) if whole else None
    k = min(options.top_k, n)
    rows, columns = np.empty(m), np.zeros(n)
    best, value = np.empty((m, k), np.int32), np.empty((m, k), given.dtype)
    step = m if whole and not k and problem.cost is not None else max(1, BLOCK // n)
    for start in range(0, m, step):
        part = slice(start, min(m, start + step))
        block = plan_rows(problem, f, g, part, None if plan is None else plan[part])
        if not whole:
            rows[part] = block.sum(axis=1, dtype=np.float64)
            columns += block.sum(axis=0, dtype=np.float64)
        if k:
            best[part], value[part] = largest(block, k)
    out = {"plan": plan} if plan is not None else {"row_marginal": rows, "column_marginal": columns}
    return out | ({"top_columns": best, "top_values": value} if k else {})


def plan_rows(problem: UnbalancedTransport, f: Array, g: Array, part: slice, into: Array | None = None) -> Array:
    """Some rows of the plan, exponents in float64; zero wherever a mass is zero or the entry forbidden."""
    scale = float(np.log2(np.e)) / problem.reg
    held_a, held_b = problem.a[part] > 0, problem.b > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        row, column = f[part] * scale, g * scale
        if problem.reference == "product":
            row, column = row + np.log2(problem.a[part]), column + np.log2(problem.b)
    row = np.where(held_a & np.isfinite(row), row, -np.inf)
    column = np.where(held_b & np.isfinite(column), column, -np.inf)
    cost = read_only(_point_costs(problem, part) if problem.cost is None else problem.cost[part])
    out = np.empty(cost.shape) if into is None else into
    m, n = cost.shape
    in_threads(m, n, lambda number, first, last: write_plan(first, last, cost, scale, row, column, out))
    return out


def _point_costs(problem: UnbalancedTransport, part: slice) -> Array:
    assert problem.x is not None
    assert problem.y is not None
    x, columns = problem.x[part].astype(np.float64), np.ascontiguousarray(problem.y.T, np.float64)
    cost = np.empty((len(x), columns.shape[1]))
    metric = METRICS.index(problem.metric)
    in_threads(*cost.shape, lambda number, first, last: write_costs(first, last, x, columns, metric, cost))
    return cost


def largest(block: Array, k: int) -> tuple[Array, Array]:
    """Columns and values of the k largest entries of each row, largest first, ties by column."""
    found = np.argpartition(-block, k - 1, axis=1)[:, :k] if k < block.shape[1] else np.arange(block.shape[1])[None]
    found = np.sort(np.broadcast_to(found, (len(block), k)), axis=1)
    values = np.take_along_axis(block, found, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(values, order, axis=1)
