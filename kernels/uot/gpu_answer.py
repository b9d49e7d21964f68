"""From potentials to the plan, its marginals and its largest entries on the GPU (see outcome.py)."""

from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from kernels.deadline import Deadline
from kernels.gpu_locked import uploaded
from kernels.problems.arrays import Floats, Indices, Reals
from kernels.solution import Solution, Termination
from kernels.uot.dense.gpu_exact import distances
from kernels.uot.gpu_upload import empty
from kernels.uot.outcome import Ended, Writer, finish
from kernels.uot.repair import Entries
from kernels.uot.support import Support
from kernels.uot.units import unflushed

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

BLOCK = 1 << 25  # entries of the plan in work at a time

_entry = cp.ElementwiseKernel(
    "C c, float64 row, float64 column, float64 scale",
    "T p",
    "p = (T)exp2(fmin(row + column - (double)c * scale, 1000.))",  # a first answer may be far off
    "uot_plan",
)


def answer(
    part: Support,
    options: "TransportOptions",
    potentials: tuple[Floats, Floats],
    termination: Termination,
    method: str,
    facts: dict[str, Any],
    deadline: Deadline,
) -> Solution:
    """The solution of the whole problem from potentials (host, float64) of the reduced one."""

    def entries(f: Floats, g: Floats, dtype: Any, plan: Reals | None) -> Entries:
        return _plan_rows(part, f, g, dtype)

    writer = Writer(cp, entries, _largest, BLOCK, in_place=False, empty=empty)
    return finish(part, options, Ended(potentials, termination, method, facts), writer, deadline)


def _largest(block: Any, k: int) -> tuple[Indices, Reals]:
    order = cp.argsort(-block, axis=1)[:, :k]
    return order.get(), cp.take_along_axis(block, order, axis=1).get()


def _plan_rows(part: Support, f: Floats, g: Floats, dtype: Any) -> Entries:
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
        else:
            cost = uploaded(np.ascontiguousarray(unflushed(problem.cost[some], problem.reg)))
        return _entry(cost, row[some, None], column[None], scale, cp.empty(cost.shape, dtype))

    return entries
