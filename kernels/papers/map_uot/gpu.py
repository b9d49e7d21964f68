"""MAP-UOT on the GPU as published: launches of map_uot.cu, with its rule and with the corrected one."""

import math
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.papers.map_uot.layout import FACTORS_ARGS, SCALE_COLUMNS_ARGS, SCALE_ROWS_ARGS
from kernels.solution import Solution, Termination
from kernels.uot.dense.gpu_dense import Begun, exact
from kernels.uot.gpu_answer import answer
from kernels.uot.gpu_upload import upload
from kernels.uot.iteration.gpu_launch import LOG2E
from kernels.uot.marginals import Marginals
from kernels.uot.outer import SMALLEST_GAP, STALLED
from kernels.uot.support import Support, costs
from kernels.uot.units import near_one

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

SAFE = 0.8  # of the tolerance is aimed at: the certificate adds what rounding may hide
LOOK = 10  # iterations between two looks at the gap
PROGRESS = 0.9  # of the smallest gap: rounding of the plan lowers it for ever, by less and less


class Plan:
    """The plan on the device, padded to 16 bytes a row, with sums, factors and scalings of both sides."""

    def __init__(self, cost: Any, a: Any, b: Any, row_weight: Any, column_weight: Any, reg: float) -> None:
        self.m, self.n = cost.shape
        self.ld = -(-self.n // 4) * 4
        self.plan = cp.empty((self.m, self.ld), cp.float32)
        upload(cost, self.plan)
        part = self.plan[:, : self.n]
        _start(part, row_weight[:, None], column_weight[None], LOG2E / reg, part)
        self.mass_a, self.mass_b = cp.asarray(a, cp.float32), cp.zeros(self.ld, cp.float32)
        self.mass_b[: self.n] = cp.asarray(b)
        self.row_sum, self.column_sum = cp.zeros(self.m, cp.float32), self.plan.sum(axis=0)
        self.u, self.v = cp.ones(self.m, cp.float32), cp.ones(self.ld, cp.float32)
        self.row_factor, self.column_factor = cp.empty_like(self.u), cp.empty_like(self.v)

    def iterate(self, powers: tuple[float, float], corrected: bool) -> None:
        """Rescale columns, then rows: two reads and two writes of the plan."""
        self._launch_factors(self.mass_b, self.column_sum, self.v, self.column_factor, powers[1], corrected)
        self._launch_scale_columns()
        self._launch_factors(self.mass_a, self.row_sum, self.u, self.row_factor, powers[0], corrected)
        self._launch_scale_rows()

    def _launch_factors(self, mass: Any, sums: Any, scaling: Any, factor: Any, power: float, corrected: bool) -> None:
        kernel = cuda.kernel("papers/map_uot/map_uot.cu", "factors", cooperative=False)
        side = {"mass": mass, "sum": sums, "scaling": scaling, "factor": factor, "count": mass.size}
        kernel((-(-mass.size // 256),), (256,), FACTORS_ARGS.packed(**side, power=power, corrected=corrected))

    def _launch_scale_rows(self) -> None:
        kernel = cuda.kernel("papers/map_uot/map_uot.cu", "scale_rows", cooperative=False)
        grid = (-(-self.ld // 128), -(-self.m // 64))
        vectors = {"row_factor": self.row_factor, "column_sum": self.column_sum}
        kernel(grid, (32, 8), SCALE_ROWS_ARGS.packed(plan=self.plan, **vectors, m=self.m, ld=self.ld))

    def _launch_scale_columns(self) -> None:
        kernel = cuda.kernel("papers/map_uot/map_uot.cu", "scale_columns", cooperative=False)
        grid = (-(-self.ld // 1024), -(-self.m // 8))
        vectors = {"column_factor": self.column_factor, "row_sum": self.row_sum}
        kernel(grid, (256,), SCALE_COLUMNS_ARGS.packed(plan=self.plan, **vectors, m=self.m, ld=self.ld))


def solve(part: Support, options: "TransportOptions", deadline: Deadline) -> Solution:
    """Run MAP-UOT for the given number of iterations, by the published or the corrected rule.

    Problem:
        as `kernels.papers.map_uot.cpu.solve`, which says what the published rule converges to.
    Args:
        part: the problem on rows and columns that carry mass. options: `rule`, `iterations`, `tolerance`, `reference`.
    Returns:
        as `kernels.uot.gpu.solve`.
    Guarantee:
        the published rule has none; the corrected one stops at the certified gap, looked at every 10 iterations.
        Not deterministic: sums meet in atomic additions, as published.
    Numerics:
        float32, and the plan is rewritten every iteration: rounding errors add up, and nothing survives an underflow of
        exp(-C / reg). Where they hide a gap above the tolerance, sweeps of plain Sinkhorn in float64 follow.
    Complexity:
        two reads and two writes of the plan and four launches an iteration; 4 m n bytes beyond the input.
    Source:
        Sun, Hu, Jiang, MAP-UOT (2024), section 4.2, algorithms 2 and 3.
    """
    problem, unit = near_one(part.reduced)
    published = options.rule == "published"
    low, high = problem.cost_bounds
    marginals = Marginals(cp, problem, high - low)
    cost = costs(problem, np.arange(problem.shape[0])) if problem.cost is None else problem.cost
    plan = Plan(cost, problem.a, problem.b, marginals.weight_a, marginals.weight_b, problem.reg)
    powers = marginals.damping(0, problem.reg), marginals.damping(1, problem.reg)
    termination = Termination.ITERATION_LIMIT
    done, reached, best, improved = 0, None, math.inf, 0
    while not reached and done < options.iterations:
        steps = min(LOOK, options.iterations - done) if done else 1
        for _ in range(steps):
            plan.iterate(powers, not published)
        done += steps
        f, g = (problem.reg * cp.log(s.astype(cp.float64)) for s in (plan.u, plan.v[: plan.n]))
        if published:
            moved = max(float(abs(plan.row_factor - 1).max()), float(abs(plan.column_factor[: plan.n] - 1).max()))
            left, reached = moved, Termination.CONVERGED if moved <= options.tolerance else None
        else:
            sums = cp.maximum(plan.column_sum[: plan.n].astype(cp.float64), 1e-300)
            state = marginals.evaluate(f, g, problem.reg * (cp.log(sums) - marginals.log_weight_b) - g, problem.reg)
            left = state.relative_gap
            reached = Termination.GAP_REACHED if left <= SAFE * options.tolerance else None
            f, g = state.f, state.g
        if left < (best if published else PROGRESS * best):
            best, improved = left, done
        if left <= SMALLEST_GAP or (done - improved >= STALLED and not published):
            reached = reached or Termination.CONVERGED
        deadline.report(done)
        reached = reached or deadline.expired()
        termination = reached or termination
    facts = {"tolerance": options.tolerance, "rule": options.rule, "storage": "float32"}
    potentials = f.get() * unit, g.get() * unit
    if termination is Termination.CONVERGED and not published and done < options.iterations:
        # Rounding hid the gap: plain sweeps go on in float64.
        plain = options.model_copy(update={"acceleration": False})
        again = exact(problem, plain, deadline, high - low, Begun([problem.reg], g, options.iterations - done, done))
        potentials, termination, done = (again.f * unit, again.g * unit), again.termination, done + again.iterations
        facts["storage"] = "float32, then float64"
    solution = answer(part, options, potentials, termination, "map-uot", facts, deadline)
    solution.iterations = done
    return solution


_start = cp.ElementwiseKernel(
    "float32 c, float64 row, float64 column, float64 scale",
    "float32 p",
    "p = (float)(row * column) * exp2f((float)(-c * scale))",
    "uot_map_start",
)
