"""Transport among three measures on the CPU: Sinkhorn's iteration, or a linear programme."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline
from kernels.multimarginal.cpu.programme import programme
from kernels.multimarginal.sinkhorn import scale
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.multimarginal import MultimarginalOptions


def solve(problem: Multimarginal, options: "MultimarginalOptions", deadline: Deadline) -> Solution:
    """Find a plan among three measures by Sinkhorn's iteration, or by a linear programme.

    Problem:
        min over P >= 0 with the marginals a, b, c of <C, P> + reg KL(P | a x b x c), see `Multimarginal`. Not solved:
        other than three measures, measures of different mass, forbidden triples.
    Args:
        problem: masses (l,), (m,), (n,), and a tensor (l, m, n) or three pairs of costs, float64.
        options: `MultimarginalOptions`.
        deadline: polled every 10 iterations, in every one of large problems. A linear programme gets the time that is
            left and hears of a cancellation only when it is done.
    Returns:
        Potentials f (l,), g (m,), h (n,), costs. With reg the plan is a b c exp((f + g + h - C) / reg) up to its
        repair; if asked for, plan (l, m, n) or plan_xy (l, m), plan_xz (l, n), plan_yz (m, n), repaired. Without reg,
        f + g + h <= C but for rounding, and plan is there always. With reg, potentials of points without mass are 0.
    Guarantee:
        "gap_reached": within tolerance of a certified lower bound. "optimal": the programme's, within 1e-9.
        Deterministic, but for the order in which a library adds up the products of matrices.
    Numerics:
        float64. Factors are taken about potentials, so that what matters neither over- nor underflows at any reg.
    Complexity:
        4 l m n multiplications and additions per iteration. Pairs: O(l m + l n + m n) memory, and 2 l m n exponentials
        where no factors fit. A tensor: 8 l m n bytes more up to 2^25 entries, beyond them 2 l m n exponentials.
    Errors:
        none.
    Differs:
        (1) reg falls in steps to the one asked for. (2) The first two marginals are worked out of one product.
    Source:
        Benamou, Carlier, Cuturi, Nenna, Peyre, Iterative Bregman projections for regularized transportation problems
        (2015), section 4; Lin, Ho, Cuturi, Jordan, On the complexity of approximating multimarginal optimal transport
        (2022), algorithms 3 and 4.
    """
    if problem.reg == 0:
        return programme(problem, options, deadline)
    return scale(np, problem, options, deadline)


def warm_up() -> None:
    """Run every way on a tiny problem."""
    from kernels.multimarginal import MultimarginalOptions

    line = np.abs(np.arange(3.0)[:, None] - np.arange(3.0))
    masses = (np.full(3, 1 / 3),) * 3
    options = MultimarginalOptions.model_validate({"iterations": 20, "output": "marginals"})
    for reg in (1.0, 1e-2, 0.0):
        solve(Multimarginal(masses, reg, None, (line, line, line)), options, Deadline())
