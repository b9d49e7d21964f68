"""Low-rank transport on the CPU: mirror descent in NumPy, with exact steps before and after it."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline
from kernels.lowrank.cpu.exact import affordable, finish
from kernels.lowrank.search import LowRankSearch
from kernels.problems.lowrank import LowRankTransport
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.lowrank import LowRankOptions


def solve(problem: LowRankTransport, options: "LowRankOptions", deadline: Deadline) -> Solution:
    """Look for a coupling of low rank by exact steps and mirror descent, from several starts.

    Problem:
        min over Q (m, r), R (n, r) >= 0 and g > 0 of <C, Q diag(1/g) R'>, with row sums a and b and column sums g of
        both. Not solved: an entropic term, relaxed weights, forbidden pairs.
    Args:
        problem: points, factors of costs, or costs, float64; weights a (m,), b (n,).
        options: `LowRankOptions`.
        deadline: polled in each step, in each tenth round of a projection, and every 2000 pivots of an exact step.
    Returns:
        q (m, r), r (n, r), g (r,) float64, with these sums but for rounding, where r may be less than the rank asked
        for; f (m,), potentials of the lower bound, 0 where there was no time or are too many pairs. Facts: the rank,
        and the objective that each start came to.
    Guarantee:
        None of the objective but the bound, which is optimal transport's: the gap has in it what the rank costs. A
        rank of min(m, n) is answered by an optimal plan where m + n is at most 1500. Deterministic per seed as long as
        no time limit cuts it.
    Numerics:
        float64. Squared distances are differences of squares of coordinates about the common mean.
    Complexity:
        Per step (m + n) (d + 2) r products and up to 100 reads of both factors; with a matrix of costs 2 m n r. The
        bound takes up to three passes over m n costs, none of which are kept. Bytes: 8 (m + n) (7 r + d + 2).
    Errors:
        none.
    Differs:
        (1) No entropic term and no lower limit on g: factors are blended with 1e-12 of the product instead. (2) gamma
        is in units of the largest derivative, and halved where the objective rose. (3) Starts are components of an
        optimal plan of a sample. (4) Exact steps.
    Source:
        Scetbon, Cuturi, Peyre, Low-rank Sinkhorn factorization (2021), algorithms 2 and 3; Scetbon, Cuturi, Low-rank
        optimal transport: approximation, statistics and debiasing (2022), section 3.1, for gamma.
    """
    polish = finish if affordable(problem) else None
    return LowRankSearch(problem, options, deadline, np, polish).run()


def warm_up() -> None:
    """Compile the network simplex of exact steps."""
    from kernels.lowrank import LowRankOptions

    points = np.arange(24.0).reshape(12, 2) % 7
    weights = np.arange(1.0, 13.0)
    solve(LowRankTransport(weights, weights[::-1].copy(), 3, points, points[::-1] + 1), LowRankOptions(), Deadline(10))
