"""Transport among three measures on the GPU: the iteration of sinkhorn.py, on device memory."""

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from kernels.deadline import Deadline
from kernels.multimarginal.cpu.solver import solve as on_the_cpu
from kernels.multimarginal.sinkhorn import scale
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.multimarginal import MultimarginalOptions


def solve(problem: Multimarginal, options: "MultimarginalOptions", deadline: Deadline) -> Solution:
    """As `kernels.multimarginal.cpu.solver.solve`; entropic problems on the GPU, in float64, linear programmes there.

    Complexity:
        Two matrix products per iteration for clouds, two passes over a tensor that is kept, two exponentials for each
        entry of one of more than 2^25. The host waits some six times an iteration, for the least of sums. A repaired
        plan, and pair marginals of a tensor, are made on the host.
    """
    if problem.reg == 0:
        return on_the_cpu(problem, options, deadline)
    return scale(cp, problem, options, deadline)


def warm_up() -> None:
    """Compile every kernel on a tiny problem, in every way to sum."""
    from kernels.multimarginal import MultimarginalOptions

    line = np.abs(np.arange(3.0)[:, None] - np.arange(3.0))
    masses = (np.full(3, 1 / 3),) * 3
    options = MultimarginalOptions.model_validate({"iterations": 20, "output": "marginals"})
    for reg in (1.0, 1e-2):
        solve(Multimarginal(masses, reg, None, (line, line, line)), options, Deadline())
