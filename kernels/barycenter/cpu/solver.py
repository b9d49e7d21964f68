"""Wasserstein barycenters on the CPU: projections, a linear programme, or points that move."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.barycenter.cpu.moving import move
from kernels.barycenter.cpu.programme import programme
from kernels.barycenter.debiased import debias
from kernels.barycenter.projections import project
from kernels.deadline import Deadline
from kernels.problems.barycenter import Barycenter, FreeBarycenter
from kernels.solution import Solution

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions


def solve(problem: Barycenter | FreeBarycenter, options: "BarycenterOptions", deadline: Deadline) -> Solution:
    """Find a Wasserstein barycenter of 2 to 100 measures.

    Problem:
        min over b of sum_k w_k T(b, a_k), see `Barycenter` and `FreeBarycenter`. Not solved: measures of different
        mass, forbidden pairs, masses of moving points that are not equal.
    Args:
        problem: costs (m, n) or (k, m, n) float64, masses (k, n), weights (k,); or clouds (k, n, d).
        options: `BarycenterOptions`.
        deadline: polled every 10 iterations, or between two transports. A linear programme gets the time that is left
            and hears of a cancellation only when it is done.
    Returns:
        On given points: barycenter (m,) of mass 1, potentials f (k, m), g (k, n), -inf where a measure has no mass.
        With reg the plans are exp((f + g - C) / reg) / (m n) up to the repair of the certificate; without, plan
        (k, m, n) and f + g <= C. Points that move: points (m, d), plan (k, m, n), pair_potentials (k (k - 1) / 2, n),
        one for each pair of measures in the order of itertools.combinations. Debiased: also h (m,), the potential of
        the barycenter with itself.
    Guarantee:
        "gap_reached": within tolerance of a certified lower bound. "optimal": the programme's, within 1e-9. Points that
        move: "converged" is a local optimum; its gap to a bound that need not be attained is stated. Deterministic.
    Numerics:
        float64; logarithms of sums where reg is below 1 / 150 of the spread of the costs.
    Complexity:
        O(k m n) per iteration: two matrix products, or two exponentials per entry in the log domain.
    Errors:
        none.
    Differs:
        (1) reg falls in steps to the one asked for. (2) The barycenter is the weighted mean of the plans' row sums and
        not their geometric mean, so that its mass is 1.
    Source:
        Benamou, Carlier, Cuturi, Nenna, Peyre, Iterative Bregman projections for regularized transportation problems
        (2015), section 3.2; Janati, Cuturi, Gramfort, Debiased Sinkhorn barycenters (2020), algorithm 1; Cuturi,
        Doucet, Fast computation of Wasserstein barycenters (2014), algorithm 2.
    """
    if isinstance(problem, FreeBarycenter):
        return move(problem, options, deadline)
    if problem.reg == 0:
        return programme(problem, options, deadline)
    if problem.debiased:
        return debias(np, problem, options, deadline)
    return project(np, problem, options, deadline)


def warm_up() -> None:
    """Run every way on a tiny problem."""
    from kernels.barycenter import BarycenterOptions

    masses, weights = np.full((2, 4), 0.25), np.full(2, 0.5)
    cost = np.abs(np.arange(3.0)[:, None] - np.arange(4.0))
    for reg in (1.0, 1e-3, 0.0):
        solve(Barycenter(masses, weights, cost, reg), BarycenterOptions.model_validate({"iterations": 20}), Deadline())
    clouds = np.random.default_rng(0).random((2, 4, 2))
    solve(
        FreeBarycenter(masses, weights, clouds, clouds[0, :3]),
        BarycenterOptions.model_validate({"iterations": 2}),
        Deadline(),
    )
