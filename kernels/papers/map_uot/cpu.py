"""MAP-UOT as published, Algorithm 1, with its rule and with the corrected one."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.compiling import njit
from kernels.deadline import Deadline
from kernels.problems.arrays import Floats, Reals
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.cpu.answer import answer, plan_rows
from kernels.uot.cpu.sweeps import make_sweeps
from kernels.uot.cpu.threads import summed
from kernels.uot.marginals import Marginals, SweepState
from kernels.uot.outer import SMALLEST_GAP, STALLED, Rules, iterate
from kernels.uot.support import Support

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

SMALLEST = 1e-30  # a sum that underflowed counts as this
MARGIN = 0.5  # of the tolerance, aimed at while the plan's own rounding is in the sums
PROGRESS = 0.9  # of the smallest gap: rounding of the plan lowers it for ever, by less and less


@njit(nogil=True, fastmath=True, cache=True)
def rescale(
    first: int,
    last: int,
    plan: Reals,
    column_factor: Reals,
    mass: Floats,
    old: Floats,
    exponent: float,
    factors: Floats,
    sums: Floats,
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


def solve(part: Support, options: "TransportOptions", deadline: Deadline) -> Solution:
    """Run Algorithm 1 of MAP-UOT for the given number of iterations, by the published or the corrected rule.

    Problem:
        rule "corrected": the same as `kernels.uot.cpu.solver.solve`, by plain Sinkhorn on the plan itself.
        rule "published": plan rows times (a / row sum)^fi, which is u <- u^(1 - fi) (a / K v)^fi, a damped *balanced*
        Sinkhorn: its fixed point has the marginals a and b exactly (none exists where the masses differ) and is not
        the plan of the unbalanced problem. It is 11-20% away from it after 10 to 100 iterations.
    Args:
        part: the problem on rows and columns that carry mass. options: `rule`, `iterations`, `tolerance`, `reference`.
    Returns:
        as `kernels.uot.cpu.solver.solve`.
    Guarantee:
        the published rule has none: it ends at iteration_limit with the gap that its plan has to the optimum of the
        unbalanced problem. The corrected rule stops at the certified gap.
    Numerics:
        the plan is rewritten in float32 or float64 every iteration; its rounding errors add up. Where they hide a gap
        above the tolerance, sweeps of plain Sinkhorn in float64 follow (corrected rule). Where exp(-C / reg)
        underflows it ends early (iteration_limit, `overflowed` in the facts, a large gap): use "log" there.
    Complexity:
        one read and one write of the plan per iteration, twice the traffic of "fused".
    Source:
        Sun, Hu, Jiang, MAP-UOT (2024), algorithm 1.
    """
    problem = part.reduced
    low, high = problem.cost_bounds
    marginals = Marginals(np, problem, high - low)
    run = _Scaling(problem, marginals, options.rule == "published", options.storage == "float64")
    termination = Termination.ITERATION_LIMIT
    best, improved = np.inf, 0
    for done in range(1, options.iterations + 1):
        moved = run.iterate()
        if run.overflowed:
            break
        deadline.report(done)
        left = moved if run.published else run.state().relative_gap
        if left < (best if run.published else PROGRESS * best):
            best, improved = left, done
        small = left <= max((1.0 if run.published else MARGIN) * options.tolerance, SMALLEST_GAP)
        stalled = done - improved >= STALLED and not run.published  # whose factors settle where there is no fixed point
        if end := Termination.CONVERGED if small or stalled else deadline.expired():
            termination = end
            break
    again, (f, g) = 0, (problem.reg * np.log(run.u), problem.reg * np.log(run.v))
    if run.overflowed:
        f, g = 0 * f, 0 * g + min(low, 0.0)
    if not run.published:
        # The plan was rewritten `done` times: what its scalings are worth is worked out afresh, in float64, and where
        # its rounding hid a gap the sweeps go on there. The first of them is not counted.
        exact = make_sweeps(problem, "points" if problem.cost is None else "log", "float64")
        left_over = 1 if run.overflowed else options.iterations - done + 1
        rules = Rules(MARGIN * options.tolerance, deadline, memory=0, translate=False, before=done - 1)
        outcome = iterate(marginals, exact, g, rules, stages=[problem.reg], limit=left_over)
        f, g, again = outcome.state.f, outcome.state.g, outcome.iterations - 1
        done, termination = done + again, termination if run.overflowed else outcome.termination
        if outcome.state.relative_gap <= options.tolerance and outcome.termination is not Termination.INFEASIBLE:
            termination = Termination.GAP_REACHED
    facts = {
        "tolerance": options.tolerance,
        "rule": options.rule,
        "storage": f"{run.plan.dtype.name}, then float64" if again else run.plan.dtype.name,
        "overflowed": run.overflowed,
    }
    solution = answer(part, options, (f, g), termination, "map-uot", facts, deadline)
    solution.iterations = done
    return solution


class _Scaling:
    """The plan, its scalings u, v so far (plan = R exp(-C / reg) scaled by them) and its column sums."""

    def __init__(self, problem: UnbalancedTransport, marginals: Marginals, published: bool, double: bool) -> None:
        self.problem, self.marginals, self.published = problem, marginals, published
        self.u, self.v = np.ones_like(problem.a), np.ones_like(problem.b)
        self.plan = np.empty(problem.shape, np.float64 if double else np.float32)
        plan_rows(problem, 0 * self.u, 0 * self.v, slice(None), self.plan)
        self.column_sums = self.plan.sum(axis=0, dtype=np.float64)
        self.overflowed = False  # u, v are then those before
        self.phi, self.psi = (marginals.damping(side, problem.reg) for side in (0, 1))

    def iterate(self) -> float:
        """Algorithm 1 once; returns the largest distance of a factor from one."""
        problem = self.problem
        old_u, old_v = (np.ones_like(w) if self.published else w for w in (self.u, self.v))
        with np.errstate(over="ignore", invalid="ignore"):
            column = (problem.b * old_v / np.maximum(self.column_sums, SMALLEST)) ** self.psi / old_v
            scaled = column.astype(self.plan.dtype)

        def sweep(first: int, last: int, best: Floats, total: Floats) -> None:
            rescale(first, last, self.plan, scaled, problem.a, old_u, self.phi, best, total)

        with np.errstate(over="ignore", invalid="ignore"):
            row, self.column_sums = summed(self.u.size, self.v.size, sweep)
            u, v = self.u * row, self.v * column
        self.overflowed = not (np.isfinite(u).all() and np.isfinite(v).all() and (u > 0).all() and (v > 0).all())
        if self.overflowed:
            return float("inf")
        self.u, self.v = u, v
        return float(max(np.abs(row - 1).max(), np.abs(column - 1).max()))

    def state(self) -> SweepState:
        """Dual value and gap of the corrected rule's scalings, after an iteration made its rows exact."""
        reg = self.problem.reg
        f, g = reg * np.log(self.u), reg * np.log(self.v)
        h = reg * (np.log(np.maximum(self.column_sums, SMALLEST)) - self.marginals.log_weight_b) - g
        return self.marginals.evaluate(f, g, h, reg)
