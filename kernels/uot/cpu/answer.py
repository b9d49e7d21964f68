"""From potentials to the plan, its marginals and its largest entries on the CPU (see outcome.py)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats, Integers, Reals
from kernels.problems.transport import METRICS, UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.cpu.loops import write_costs, write_plan
from kernels.uot.cpu.threads import in_threads, read_only
from kernels.uot.outcome import Ended, Writer, finish
from kernels.uot.repair import Entries
from kernels.uot.support import Support

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

BLOCK = 1 << 21  # entries of the plan in work at a time where it is not returned


def answer(
    part: Support,
    options: "TransportOptions",
    potentials: tuple[Floats, Floats],
    termination: Termination,
    method: str,
    facts: dict[str, Any],
    deadline: Deadline,
) -> Solution:
    """The solution of the whole problem from potentials of the reduced one."""

    def entries(f: Floats, g: Floats, dtype: Any, plan: Reals | None) -> Entries:
        if plan is None:
            return lambda some: plan_rows(part.problem, f, g, some)
        filled = plan
        m, n = filled.shape
        step = m if part.problem.cost is not None else max(1, BLOCK // n)
        for start in range(0, m, step):
            some = slice(start, min(m, start + step))
            plan_rows(part.problem, f, g, some, filled[some])
        return lambda some: filled[some]

    writer = Writer(np, entries, largest, BLOCK, in_place=True)
    return finish(part, options, Ended(potentials, termination, method, facts), writer, deadline)


def plan_rows(problem: UnbalancedTransport, f: Floats, g: Floats, part: slice, into: Reals | None = None) -> Reals:
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


def _point_costs(problem: UnbalancedTransport, part: slice) -> Floats:
    assert problem.x is not None
    assert problem.y is not None
    x, y = problem.x[part].astype(np.float64), np.ascontiguousarray(problem.y.T, np.float64)
    cost = np.empty((len(x), y.shape[1]))
    metric = METRICS.index(problem.metric)
    in_threads(*cost.shape, lambda number, first, last: write_costs(first, last, x, y, metric, cost))
    return cost


def largest(block: Floats, k: int) -> tuple[Integers, Floats]:
    """Columns and values of the k largest entries of each row, largest first, ties by column."""
    found = np.argpartition(-block, k - 1, axis=1)[:, :k] if k < block.shape[1] else np.arange(block.shape[1])[None]
    found = np.sort(np.broadcast_to(found, (len(block), k)), axis=1)
    values = np.take_along_axis(block, found, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(values, order, axis=1)
