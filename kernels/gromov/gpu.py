"""Gromov-Wasserstein on the GPU: the same search in CuPy, matrix products and elementwise kernels alone."""

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from kernels.deadline import Deadline
from kernels.gromov.search import GromovSearch
from kernels.problems.gromov import GromovWasserstein
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.gromov import GromovOptions


def solve(problem: GromovWasserstein, options: "GromovOptions", deadline: Deadline) -> Solution:
    """Couple two spaces by mirror descent on the GPU, from several starts.

    Problem, arguments, returns, guarantee, source:
        as `kernels.gromov.cpu.solver.solve`, without exact steps: a plan is as sharp as `reg` and the steps make it.
    Numerics:
        float64 throughout.
    Complexity:
        As there; the transport behind the lower bound is solved on the host for up to 1500 rows and columns. The host
        waits once in 10 scalings. Device bytes: 8 (n^2 + m^2 + 14 n m).
    Errors:
        MemoryError where the device is too small.
    """
    return GromovSearch(problem, options, deadline, cp).run()


def warm_up() -> None:
    """Compile the elementwise kernels, and the network simplex behind the lower bound."""
    from kernels.gromov import GromovOptions

    line = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    weights = np.arange(1.0, 5.0)
    cost = np.ones((4, 4))
    for problem in (
        GromovWasserstein(line, line**2, weights, weights[::-1].copy()),
        GromovWasserstein(line, line + np.tri(4), weights, weights, cost, 0.5),
    ):
        for method in ("proximal", "entropic"):
            solve(problem, GromovOptions(method=method, max_iterations=20), Deadline(30))
