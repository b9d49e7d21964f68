"""The plan that a transport certificate is about, one block of rows at a time, in float64."""

from collections.abc import Iterator

import numpy as np

from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport

BLOCK = 1 << 19  # entries in work at a time: a few arrays of them stay in cache


class Answer:
    """The plan that stands for the answer, block by block: the returned one, else P(f, g)."""

    def __init__(self, problem: UnbalancedTransport, f: Array, g: Array, plan: Array | None) -> None:
        self.problem, self.plan = problem, plan
        self.f, self.g = f.astype(np.float64), g.astype(np.float64)
        with np.errstate(divide="ignore"):
            self.log_a, self.log_b = np.log(problem.a), np.log(problem.b)
        if problem.reference == "uniform":
            self.log_a, self.log_b = (np.where(np.isfinite(log), 0.0, log) for log in (self.log_a, self.log_b))

    def blocks(self) -> Iterator[slice]:
        """Runs of rows, in order."""
        m, n = self.problem.shape
        step = max(1, BLOCK // n)
        return (slice(i, min(m, i + step)) for i in range(0, m, step))

    def cost(self, rows: slice) -> Array:
        """Costs of some rows; distances from differences of coordinates, where those are few."""
        problem = self.problem
        if problem.cost is not None:
            return problem.cost[rows].astype(np.float64)
        assert problem.x is not None
        assert problem.y is not None
        x, y = problem.x[rows].astype(np.float64), problem.y.astype(np.float64)
        if problem.metric == "inner":
            return np.asarray(-(x @ y.T))
        if x.shape[1] <= 8:
            squares = np.asarray(sum(np.subtract.outer(x[:, k], y[:, k]) ** 2 for k in range(x.shape[1])))
        else:
            squares = np.maximum((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T), 0)
        return squares if problem.metric == "sqeuclidean" else np.sqrt(squares)

    def dual_plan(self, rows: slice, cost: Array) -> Array:
        """P(f, g): zero wherever a mass is zero or the entry forbidden, whatever f and g are there."""
        with np.errstate(invalid="ignore", over="ignore"):
            log = (self.f[rows][:, None] + self.g - cost) / self.problem.reg
            log += self.log_a[rows][:, None]
            log += self.log_b
            log[~((cost < np.inf) & (self.problem.a[rows] > 0)[:, None] & (self.problem.b > 0))] = -np.inf
            return np.asarray(np.exp(log, out=log))

    def returned(self, rows: slice, cost: Array) -> Array:
        """The plan itself."""
        return self.dual_plan(rows, cost) if self.plan is None else self.plan[rows].astype(np.float64)

    def outside(self, rows: slice, cost: Array) -> Array:
        """Entries that no plan may use."""
        return np.asarray((cost == np.inf) | (self.problem.a[rows] == 0)[:, None] | (self.problem.b == 0))
