"""Proof for Wasserstein barycenters: what the answer costs, and a number that no barycenter can go below.

`fixed.py` has the proof for given points, `moving.py` that for points that move. Neither shares code with a solver.
"""

from collections.abc import Callable

from kernels.certificates.barycenter import fixed, moving
from kernels.problems.barycenter import Barycenter, FreeBarycenter
from kernels.solution import Certificate, Solution, unheard


def certify(
    problem: Barycenter | FreeBarycenter, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """Recompute objective and bound."""
    if isinstance(problem, FreeBarycenter):
        return moving.certify(problem, solution, progress)
    return fixed.certify(problem, solution, progress)
