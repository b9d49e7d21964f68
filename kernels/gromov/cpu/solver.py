"""Gromov-Wasserstein on the CPU: mirror descent in NumPy, finished by conditional gradient."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline
from kernels.gromov.cpu.exact import finish
from kernels.gromov.search import GromovSearch
from kernels.problems.gromov import GromovWasserstein
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.gromov import GromovOptions


def solve(problem: GromovWasserstein, options: "GromovOptions", deadline: Deadline) -> Solution:
    """Couple two spaces by mirror descent and conditional gradient, from several starts.

    Problem:
        min over couplings P of (1 - alpha) <M, P> + alpha sum_ijkl (X_ik - Y_jl)^2 P_ij P_kl. Not solved: the KL loss,
        weights of different mass, relaxed marginals.
    Args:
        problem: X (n, n), Y (m, m), M (n, m) float64; weights a (n,), b (m,).
        options: `GromovOptions`.
        deadline: polled in each step and every 2000 pivots of an exact one.
    Returns:
        plan (n, m) float64, with the weights as sums but for rounding; f (n,), potentials of the lower bound. Facts:
        reg, and the objective that each start came to.
    Guarantee:
        A first-order optimum where the word is `converged`; nothing global. Deterministic per seed as long as no time
        limit cuts it.
    Numerics:
        float64. The objective is a difference of sums: what it is off by goes with these, not with itself.
    Complexity:
        Per step n^2 m + n m^2 products, with points and squared distances n m d, and up to 100 reads of an (n, m)
        kernel; an exact step is a transport problem. Bytes: 8 (n^2 + m^2 + 12 n m).
    Errors:
        none.
    Differs:
        (1) "proximal" adds up costs in place of plans' logarithms. (2) A step ends early where row sums are near.
    Source:
        Peyre, Cuturi, Solomon, Gromov-Wasserstein averaging of kernel and distance matrices (2016), section 3; Xu, Luo,
        Zha, Carin, Gromov-Wasserstein learning (2019), algorithm 1; Vayer, Courty, Tavenard, Flamary, Optimal transport
        for structured data (2019), algorithm 1; Scetbon, Peyre, Cuturi (2022), section 3.
    """
    polish = None if options.method == "entropic" else finish
    return GromovSearch(problem, options, deadline, np, polish).run()


def warm_up() -> None:
    """Compile the network simplex of exact steps."""
    from kernels.gromov import GromovOptions

    line = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    weights = np.arange(1.0, 5.0)
    solve(GromovWasserstein(line, line**2, weights, weights[::-1].copy()), GromovOptions(), Deadline(10))
