"""Low-rank transport on the GPU: the same search in CuPy, matrix products and elementwise kernels alone."""

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from kernels.deadline import Deadline
from kernels.lowrank.search import LowRankSearch
from kernels.problems.lowrank import LowRankTransport
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.lowrank import LowRankOptions


def solve(problem: LowRankTransport, options: "LowRankOptions", deadline: Deadline) -> Solution:
    """Look for a coupling of low rank by mirror descent on the GPU, from several starts.

    Problem, arguments, returns, guarantee, source:
        as `kernels.lowrank.cpu.solver.solve`, without exact steps.
    Numerics:
        float64 throughout.
    Complexity:
        As there; the sample is solved on the host. The host waits once in 10 rounds of a projection, and twice a step.
        Device bytes: 8 (m + n) (12 r + d + 2) and blocks of 2^20 costs.
    Errors:
        MemoryError where the device is too small.
    """
    return LowRankSearch(problem, options, deadline, cp).run()


def warm_up() -> None:
    """Compile the elementwise kernels, and the network simplex behind the starts."""
    from kernels.lowrank import LowRankOptions

    points = np.arange(24.0).reshape(12, 2) % 7
    weights = np.arange(1.0, 13.0)
    for problem in (
        LowRankTransport(weights, weights[::-1].copy(), 3, points, points[::-1] + 1),
        LowRankTransport(weights, weights, 3, cost=np.outer(weights, weights[::-1])),
    ):
        for init in ("pairs", "random"):
            solve(problem, LowRankOptions(init=init, max_iterations=20), Deadline(30))
