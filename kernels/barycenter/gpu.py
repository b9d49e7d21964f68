"""Barycenters on given points on the GPU: the iteration of projections.py, on device memory."""

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from kernels.barycenter.cpu.solver import solve as on_the_cpu
from kernels.barycenter.debiased import debias
from kernels.barycenter.projections import project
from kernels.deadline import Deadline
from kernels.problems.barycenter import Barycenter, FreeBarycenter
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions


def solve(problem: Barycenter | FreeBarycenter, options: "BarycenterOptions", deadline: Deadline) -> Solution:
    """As `kernels.barycenter.cpu.solver.solve`; entropic problems on given points on the GPU, in float64, others there.

    Complexity:
        Two matrix products for all measures per iteration; where reg is below 1 / 150 of the spread of the costs, two
        with the plans of each, or two exponentials per entry and measure where those take too much room.
    """
    if isinstance(problem, FreeBarycenter) or problem.reg == 0:
        return on_the_cpu(problem, options, deadline)
    if problem.debiased:
        return debias(cp, problem, options, deadline)
    return project(cp, problem, options, deadline)


def warm_up() -> None:
    """Compile every kernel on a tiny problem, in both ways to iterate and with both forms of costs."""
    from kernels.barycenter import BarycenterOptions

    cost = np.abs(np.arange(3.0)[:, None] - np.arange(4.0))
    masses, weights = np.full((2, 4), 0.25), np.full(2, 0.5)
    for reg in (1.0, 1e-3):
        for costs in (cost, np.stack([cost, cost])):
            solve(
                Barycenter(masses, weights, costs, reg),
                BarycenterOptions.model_validate({"iterations": 20}),
                Deadline(),
            )
