"""Gilmore and Lawler's bound on the device: n^2 minimal scalar products, then one assignment by the batched solver."""

from typing import Any

import cupy
import numpy as np

from kernels.deadline import Deadline
from kernels.lap.batched import gpu_batched
from kernels.problems import QuadraticAssignment
from kernels.problems.quadratic import objective_bound
from kernels.qap.bounds import lower as bounds
from kernels.qap.bounds.lower import Bound


def gilmore_lawler(problem: QuadraticAssignment) -> Bound:
    """As `bounds.gilmore_lawler`, with its value and evidence; on the host where the device's integers do not suffice.

    Complexity: two sorts of n rows, n^3 products, one assignment in one block; about 30 launches, one wait.
    """
    n = problem.n
    if (
        n > gpu_batched.LONGEST
        or _bar(problem, objective_bound(problem.flow, problem.distance, problem.linear)) is None
    ):
        return bounds.gilmore_lawler(problem)
    flow, distance = cupy.asarray(problem.flow), cupy.asarray(problem.distance)
    linear = None if problem.linear is None else cupy.asarray(problem.linear)
    found = []
    turns = (False,) if bounds.turns_alike(problem) else (False, True)
    for turn in turns:
        costs = _pair_costs(*((flow.T, distance.T) if turn else (flow, distance)), linear)
        if problem.forbidden is not None:
            costs = cupy.where(cupy.asarray(problem.forbidden), _bar(problem, cupy.abs(costs).max().item()), costs)
        _, out, _ = gpu_batched.solve_on_device(costs[None], None, False, Deadline())
        found.append(bounds.from_prices(problem, bounds.NAMES[turn], cupy.asnumpy(costs), cupy.asnumpy(out["v"][0])))
    return max(found, key=lambda bound: bound.value)


def _pair_costs(flow: Any, distance: Any, linear: Any) -> Any:
    """l_ij of Gilmore and Lawler, (n, n) on the device."""
    n = len(flow)
    others = cupy.asarray(np.flatnonzero(~np.eye(n, dtype=bool)))
    busy = cupy.sort(flow.ravel()[others].reshape(n, n - 1), axis=1)[:, ::-1]
    near = cupy.sort(distance.ravel()[others].reshape(n, n - 1), axis=1)
    costs = busy @ near.T + cupy.outer(cupy.diagonal(flow), cupy.diagonal(distance))
    return cupy.ascontiguousarray(costs if linear is None else costs + linear)


def _bar(problem: QuadraticAssignment, largest: int | float) -> int | float | None:
    """A cost that no assignment of allowed pairs reaches; None where it does not fit the solver's integers."""
    bar = 2 * problem.n * (largest + 1 if problem.integer else largest or 1.0)
    return bar if not problem.integer or 32 * problem.n * bar < 2**62 else None
