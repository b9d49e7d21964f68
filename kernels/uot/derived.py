"""What follows from a plan: derivatives of the optimum, and where each row goes. Collected block by block.

At the best plan the derivative of the objective with respect to the plan vanishes (the envelope theorem). So the
derivative with respect to a point is that of <C, P> at a fixed P. With respect to a mass it is that of the terms in
which the mass stands: for a, r (1 - exp(-f / r)) + reg (sum b - (P 1) / a). The second part belongs to the product
reference alone, and f stands for the first where the side is exact. There the optimum is defined for equal masses only,
and its derivative up to a constant.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.problems.arrays import Array, Floats
from kernels.problems.transport import UnbalancedTransport

if TYPE_CHECKING:
    from kernels.uot import TransportOptions


class Derived:
    """Sums over a plan that the options ask for; `there` says whether there are any."""

    def __init__(self, problem: UnbalancedTransport, options: "TransportOptions", xp: Any) -> None:
        self.problem, self.xp = problem, xp
        self.gradients, self.barycentric = bool(options.gradients), bool(options.barycentric)
        self.there = self.gradients or self.barycentric or problem.labels is not None
        m, n = problem.shape
        self.row_sums, self.column_sums = np.zeros(m), xp.zeros(n)
        if problem.labels is not None:
            known = xp.asarray(problem.labels)
            self.of_label = (known[:, None] == xp.arange(int(problem.labels.max()) + 1)).astype(np.float64)
            self.label, self.label_mass = np.full(m, -1), np.zeros(m)
        if problem.x is not None and problem.y is not None and self.there:
            self.x, self.y = (xp.asarray(points, np.float64) for points in (problem.x, problem.y))
            self.to, self.by_x, self.by_y = (np.zeros(problem.x.shape) for _ in range(3))
            self.by_y = xp.zeros(problem.y.shape)

    def look(self, some: slice, block: Any) -> None:
        """Take in some rows of the plan."""
        if not self.there:
            return
        block = block.astype(np.float64)
        sums = block.sum(axis=1)
        self.row_sums[some] = self._host(sums)
        self.column_sums += block.sum(axis=0)
        if self.problem.labels is not None:
            each = block @ self.of_label
            self.label[some], self.label_mass[some] = self._host(each.argmax(axis=1)), self._host(each.max(axis=1))
        if self.problem.x is None:
            return
        if self.barycentric:
            self.to[some] = self._host(block @ self.y)
        if self.gradients:
            by_x, by_y = self._by_points(self.x[some], block)
            self.by_x[some] = self._host(by_x)
            self.by_y += by_y

    def _by_points(self, x: Any, block: Any) -> tuple[Any, Any]:
        """Derivatives of <C, P> with respect to some rows' points, and these rows' part of that for the columns."""
        metric = self.problem.metric
        if metric == "inner":
            return -(block @ self.y), -(block.T @ x)
        weights = 2 * block if metric == "sqeuclidean" else self._over_distance(x, block)
        rows, columns = weights.sum(axis=1)[:, None], weights.sum(axis=0)[:, None]
        return rows * x - weights @ self.y, columns * self.y - weights.T @ x

    def _over_distance(self, x: Any, block: Any) -> Any:
        """P_ij / |x_i - y_j|; 0 where two points meet, which is one of the derivatives there."""
        squares = self.xp.zeros_like(block)
        for left, right in zip(x.T, self.y.T, strict=True):
            squares += (left[:, None] - right) ** 2
        distance = self.xp.sqrt(squares)
        return self.xp.where(distance > 0, block / self.xp.where(distance > 0, distance, 1.0), 0.0)

    def _host(self, array: Any) -> Floats:
        return np.asarray(array if self.xp is np else array.get())

    def arrays(self, f: Floats, g: Floats) -> dict[str, Array]:
        """By their names in an answer: grad_x, grad_y, grad_a, grad_b; barycentric, NaN for a row without mass.

        With labels also label, that of most of a row's mass (-1 without mass), and label_share, how much of it.
        """
        problem, found = self.problem, {}
        if self.gradients:
            column_sums = self._host(self.column_sums)
            of_a, of_b = float(problem.a.sum()), float(problem.b.sum())
            product = problem.reg if problem.reference == "product" else 0.0
            found["grad_a"] = by_mass(f, problem.a, self.row_sums, problem.reg_m[0], product, of_b)
            found["grad_b"] = by_mass(g, problem.b, column_sums, problem.reg_m[1], product, of_a)
            if problem.x is not None:
                found |= {"grad_x": self.by_x, "grad_y": self._host(self.by_y)}
        if self.barycentric:
            mass = self.row_sums[:, None]
            found["barycentric"] = np.divide(self.to, mass, out=np.full(self.to.shape, np.nan), where=mass > 0)
        if problem.labels is not None:
            found["label"] = np.where(self.row_sums > 0, self.label, -1)
            found["label_share"] = np.divide(
                self.label_mass, self.row_sums, out=np.zeros(len(self.row_sums)), where=self.row_sums > 0
            )
        return found


def by_mass(potential: Floats, mass: Floats, marginal: Floats, strength: float, reg: float, other: float) -> Floats:
    """The derivative with respect to the masses of one side; `reg` is 0 for the uniform reference."""
    with np.errstate(over="ignore"):
        if math.isinf(strength):
            constraint, left = potential, np.ones_like(mass)
        else:
            constraint, left = -strength * np.expm1(-potential / strength), np.exp(-potential / strength)
    if not reg:
        return np.asarray(constraint)
    return np.asarray(constraint + reg * (other - np.divide(marginal, mass, out=left, where=mass > 0)))
