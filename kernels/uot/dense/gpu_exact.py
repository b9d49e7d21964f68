"""Sweeps in float64 by stabilised soft minima, block by block: the reference on the device, and the last digits."""

from typing import Any

import cupy as cp

from kernels.problems.transport import UnbalancedTransport
from kernels.uot.marginals import Marginals
from kernels.uot.units import unflushed

BLOCK = 1 << 24  # entries in work at a time
KEEP_BYTES = 1 << 33  # a float64 copy of the costs stays on the device up to here


class ExactSweeps:
    """`Sweeps` of outer.py in float64, for matrices and point clouds. Bytes: 8 m n up to 8 GiB, else a few blocks."""

    def __init__(self, problem: UnbalancedTransport, marginals: Marginals) -> None:
        self.problem, self.marginals = problem, marginals
        self.m, self.n = problem.shape
        self.step = max(1, BLOCK // self.n)
        self.device_cost: Any = None
        if problem.cost is None:
            self.x, self.y = (cp.asarray(points, cp.float64) for points in (problem.x, problem.y))
        elif problem.cost.size * 8 <= KEEP_BYTES:
            self.device_cost = cp.asarray(unflushed(problem.cost, problem.reg)).astype(cp.float64)

    def start(self, reg: float) -> None:
        """Begin a stage at `reg`."""
        self.reg = reg

    def rows(self) -> list[slice]:
        """Blocks of rows."""
        return [slice(k, min(self.m, k + self.step)) for k in range(0, self.m, self.step)]

    def cost(self, rows: slice) -> Any:
        """Costs of some rows, (k, n) float64."""
        if self.device_cost is not None:
            return self.device_cost[rows]
        if self.problem.cost is not None:
            return cp.asarray(unflushed(self.problem.cost[rows], self.problem.reg)).astype(cp.float64)
        return distances(self.x[rows], self.y, self.problem.metric)

    def sweep(self, g: Any) -> tuple[Any, Any]:
        """f and h for g, as `Marginals` defines them."""
        marginals, reg = self.marginals, self.reg
        f = cp.empty(self.m)
        top, total = cp.full(self.n, -cp.inf), cp.zeros(self.n)
        log_weight_a = cp.log(marginals.weight_a)
        for rows in self.rows():
            cost = self.cost(rows) / -reg
            soft = _soft_maximum(cost + (g / reg + marginals.log_weight_b), 1)
            f[rows] = marginals.damping(0, reg) * reg * (marginals.log_target_a[rows] - soft)
            cost += (f[rows] / reg + log_weight_a[rows])[:, None]
            most = cp.maximum(top, cost.max(axis=0))
            safe = cp.where(cp.isfinite(most), most, 0)
            total = total * cp.exp(top - safe) + cp.exp(cost - safe).sum(axis=0)
            top = most
        return f, reg * (cp.log(total) + cp.where(cp.isfinite(top), top, 0))


def _soft_maximum(z: Any, axis: int) -> Any:
    top = z.max(axis=axis, keepdims=True)
    top = cp.where(cp.isfinite(top), top, 0)
    return (top + cp.log(cp.exp(z - top).sum(axis=axis, keepdims=True))).squeeze(axis)


def distances(x: Any, y: Any, metric: str) -> Any:
    """Costs between two device clouds in float64; from differences where the dimension is small."""
    if metric == "inner":
        return -(x @ y.T)
    if x.shape[1] <= 8:
        squares = sum((x[:, k, None] - y[None, :, k]) ** 2 for k in range(x.shape[1]))
    else:
        squares = cp.maximum((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T), 0)
    return squares if metric == "sqeuclidean" else cp.sqrt(squares)
