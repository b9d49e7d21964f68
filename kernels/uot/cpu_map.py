"""MAP-UOT as published, Algorithm 1, with its rule and with the corrected one."""

from typing import Any

import numpy as np
from numba import njit

from kernels.deadline import Deadline
from kernels.problems.arrays import Array
from kernels.problems.transport import cost_bounds
from kernels.solution import Solution, Termination
from kernels.uot.cpu_answer import answer, plan_rows
from kernels.uot.cpu_threads import summed
from kernels.uot.marginals import Marginals
from kernels.uot.support import Support

SMALLEST = 1e-30  # a sum that underflowed counts as this


@njit(nogil=True, fastmath=True, cache=True)
def rescale(
    first: int,
    last: int,
    plan: Array,
    column_factor: Array,
    mass: Array,
    old: Array,
    exponent: float,
    factors: Array,
    sums: Array,
) -> None:
    """One iteration of Algorithm 1 on some rows: rescale columns, then rows, and sum columns, rewriting the plan.

    The factor of row i is (mass_i old_i / sum_i)^exponent / old_i: with old = 1 the published rule, with old = the
    row's scaling so far the corrected one. Fills factors (m,) and sums (n,), this call's part of the column sums.
    """
    kind = column_factor.dtype.type
    sums[:] = 0
    for i in range(first, last):
        total = kind(0)
        for j in range(plan.shape[1]):
            plan[i, j] *= column_factor[j]
            total += plan[i, j]
        factors[i] = (mass[i] * old[i] / max(float(total), SMALLEST)) ** exponent / old[i]
        factor = kind(factors[i])
        for j in range(plan.shape[1]):
            plan[i, j] *= factor
            sums[j] += plan[i, j]


def solve(part: Support, options: Any, deadline: Deadline) -> Solution:
    """Run Algorithm 1 of MAP-UOT for the given number of iterations, by the published or the corrected rule.

    Problem:
        rule "corrected": the same as `kernels.uot.cpu.solve`, by plain Sinkhorn on the plan itself. rule "published":
        plan rows times (a / row sum)^fi, which is u <- u^(1 - fi) (a / K v)^fi, a damped *balanced* Sinkhorn: its
        fixed point has the marginals a and b exactly (none exists where the masses differ) and is not the plan of the
        unbalanced problem. It is 11-20% away from it after 10 to 100 iterations.
    Args:
        part: the problem on rows and columns that carry mass. options: `rule`, `iterations`, `tolerance`, `reference`.
    Returns:
        as `kernels.uot.cpu.solve`.
    Guarantee:
        the published rule has none: it ends at iteration_limit with the gap that its plan has to the optimum of the
        unbalanced problem. The corrected rule stops at the certified gap.
    Numerics:
        the plan is rewritten in float32 or float64 every iteration; its rounding errors add up. Fails (iteration_limit
        with a large gap) where exp(-C / reg) underflows: use "log" there.
    Complexity:
        one read and one write of the plan per iteration, twice the traffic of "fused".
    Source:
        Sun, Hu, Jiang, MAP-UOT (2024), algorithm 1.
    """
    problem = part.reduced
    published = options.rule == "published"
    low, high = cost_bounds(problem)
    marginals = Marginals(np, problem, high - low)
    dtype = np.dtype(np.float64 if options.storage == "float64" else np.float32)
    zero_f, zero_g = np.zeros_like(problem.a), np.zeros_like(problem.b)
    plan = plan_rows(problem, zero_f, zero_g, slice(None), np.empty(problem.shape, dtype))
    columns = plan.sum(axis=0, dtype=np.float64)
    u, v = zero_f + 1, zero_g + 1
    phi, psi = (marginals.damping(side, problem.reg) for side in (0, 1))
    termination = Termination.ITERATION_LIMIT
    for done in range(1, options.iterations + 1):
        old_v = np.ones_like(v) if published else v
        column = (problem.b * old_v / np.maximum(columns, SMALLEST)) ** psi / old_v
        scaled, old_u = column.astype(dtype), np.ones_like(u) if published else u

        def sweep(
            first: int, last: int, best: Array, total: Array, scaled: Array = scaled, old_u: Array = old_u
        ) -> None:
            rescale(first, last, plan, scaled, problem.a, old_u, phi, best, total)

        row, columns = summed(u.size, v.size, sweep)
        u, v = u * row, v * column
        f, g = problem.reg * np.log(u), problem.reg * np.log(v)
        if published:
            settled = max(np.abs(row - 1).max(), np.abs(column - 1).max()) <= options.tolerance
            reached = Termination.CONVERGED if settled else None
        else:
            h = problem.reg * (np.log(np.maximum(columns, SMALLEST)) - marginals.log_weight_b) - g
            state = marginals.evaluate(f, g, h, problem.reg)
            reached = Termination.GAP_REACHED if state.relative_gap <= options.tolerance else None
            f, g = state.f, state.g
        deadline.report(done)
        reached = reached or deadline.expired()
        if reached:
            termination = reached
            break
    facts = {"tolerance": options.tolerance, "rule": options.rule, "storage": dtype.name}
    solution = answer(part, options, f, g, termination, "map-uot", facts)
    solution.iterations = done
    return solution
