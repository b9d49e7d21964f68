"""The iteration, written once for NumPy and for CuPy: `xp` is either.

With exact marginals the objective is const + <L, P> + alpha q(P), q(P) = -2 <X P Y', P>, L = (1 - alpha) M. Its
derivative G = L - 2 alpha (X P Y' + X' P Y) takes two products of matrices where both spaces are symmetric (Peyre,
Cuturi, Solomon 2016, proposition 1), and products with d + 2 columns where the distances are squared Euclidean
(Scetbon, Peyre, Cuturi 2022): |x_i - x_k|^2 = A_i . B_k with A = (|x|^2, 1, -2 x), B = (1, |x|^2, x).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.problems.gromov import GromovWasserstein

FAR = 1e100
"""Of a scaling: beyond it goes into the potentials."""
LOOK = 10
"""Scalings between two looks at the marginals."""


class Objective:
    """The objective and its derivative, on the device of `xp`."""

    def __init__(self, problem: GromovWasserstein, xp: Any) -> None:
        self.xp, self.alpha = xp, problem.alpha
        self.a, self.b = (xp.asarray(w / w.sum()) for w in (problem.a, problem.b))
        self.symmetric = problem.symmetric
        self.left, self.right = _factors(problem.x, problem.x_distance, xp), _factors(problem.y, problem.y_distance, xp)
        self.linear = None if problem.cost is None else (1 - problem.alpha) * xp.asarray(problem.cost)
        of_x, of_y = _mean_square(problem.x_distance, problem.a), _mean_square(problem.y_distance, problem.b)
        self.constant = problem.alpha * (of_x + of_y)

    def quadratic(self, plan: Any) -> Any:
        """-2 alpha (X P Y' + X' P Y)."""
        forward = self.left.times(plan)
        product = self.right.times(forward.T).T
        if self.symmetric:
            return (-4 * self.alpha) * product
        back = self.right.transposed_times(self.left.transposed_times(plan).T).T
        return (-2 * self.alpha) * (product + back)

    def derivative(self, quadratic: Any) -> Any:
        """G, of what `quadratic` returned."""
        return quadratic if self.linear is None else quadratic + self.linear

    def value(self, plan: Any, quadratic: Any) -> float:
        """The objective of a coupling."""
        linear = 0.0 if self.linear is None else float((self.linear * plan).sum())
        return self.constant + linear + 0.5 * float((quadratic * plan).sum())


def _mean_square(matrix: Any, weights: Any) -> float:
    shares = weights / weights.sum()
    return float(shares @ (matrix * matrix) @ shares)


@dataclass(frozen=True)
class _Factors:
    """A matrix as A B', or whole where `right` is None."""

    left: Any
    right: Any

    def times(self, other: Any) -> Any:
        return self.left @ other if self.right is None else self.left @ (self.right.T @ other)

    def transposed_times(self, other: Any) -> Any:
        return self.left.T @ other if self.right is None else self.right @ (self.left.T @ other)


def _factors(points: Any, matrix: Any, xp: Any) -> _Factors:
    if points is None or points.shape[1] + 2 >= len(points) // 2:
        return _Factors(xp.asarray(matrix), None)
    centred = points - points.mean(axis=0)
    norms = (centred * centred).sum(axis=1)[:, None]
    ones = np.ones_like(norms)
    return _Factors(xp.asarray(np.hstack((norms, ones, -2 * centred))), xp.asarray(np.hstack((ones, norms, centred))))


class Scaling:
    """Entropic transport with the weights a and b: potentials f, g that are kept from one call to the next.

    A call takes two steps with logarithms, so that no row or column of the kernel exp((f + g - C) / reg) is lost, and
    then scales that kernel by vectors; scalings that leave float64 go into the potentials.
    """

    def __init__(self, a: Any, b: Any, xp: Any) -> None:
        self.xp, self.a, self.b = xp, a, b
        with np.errstate(divide="ignore"):
            self.log_a, self.log_b = xp.log(a), xp.log(b)
        self.g = xp.zeros_like(b)
        self.f = xp.zeros_like(a)

    def plan(self, cost: Any, reg: float, tolerance: float, most: int) -> Any:
        """exp((f + g - cost) / reg) with column sums b, and row sums a to within `tolerance` in all."""
        for _ in range(max(1, most // (5 * LOOK))):
            kernel = self._kernel(cost, reg)
            scaled, error = self._scaled(kernel, reg, tolerance, min(most, 5 * LOOK))
            if error <= tolerance:
                break
        return scaled

    def _kernel(self, cost: Any, reg: float) -> Any:
        self.f = reg * self.log_a - _soft(self.xp, (self.g[None, :] - cost) / reg, 1) * reg
        self.g = reg * self.log_b - _soft(self.xp, (self.f[:, None] - cost) / reg, 0) * reg
        return self.xp.exp((self.f[:, None] + self.g[None, :] - cost) / reg)

    def _scaled(self, kernel: Any, reg: float, tolerance: float, most: int) -> tuple[Any, float]:
        """The kernel scaled, and how far its row sums are from a."""
        xp, u, v = self.xp, self.xp.ones_like(self.a), self.xp.ones_like(self.b)
        error = float("inf")
        for done in range(most + 1):
            rows = kernel @ v
            if done % LOOK == 0 or done == most:
                error = float(abs(u * rows - self.a).sum())
                if error <= tolerance or done == most or float(xp.maximum(u.max(), v.max())) > FAR:
                    break
            u = _over(xp, self.a, rows)
            v = _over(xp, self.b, kernel.T @ u)
        plan = u[:, None] * kernel * v[None, :]
        with np.errstate(divide="ignore"):
            self.f, self.g = self.f + reg * xp.log(u), self.g + reg * xp.log(v)
        return plan, error


def _over(xp: Any, weights: Any, sums: Any) -> Any:
    """weights / sums, and 1 where nothing is to be shared out or nothing is there."""
    return xp.where((weights > 0) & (sums > 0), weights / xp.where(sums > 0, sums, 1.0), 1.0)


def _soft(xp: Any, values: Any, axis: int) -> Any:
    """log sum exp along an axis, of lines that hold a finite number."""
    top = values.max(axis=axis, keepdims=True)
    return xp.log(xp.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def rounded(plan: Any, a: Any, b: Any, xp: Any) -> Any:
    """The plan with row sums a and column sums b (Altschuler, Weed, Rigollet 2017, algorithm 2)."""
    for _ in range(2):  # the second takes what rounding left
        rows = plan.sum(axis=1)
        plan = plan * xp.minimum(1.0, a / xp.where(rows > 0, rows, 1.0))[:, None]
        column_sums = plan.sum(axis=0)
        plan = plan * xp.minimum(1.0, b / xp.where(column_sums > 0, column_sums, 1.0))[None, :]
        short_a, short_b = xp.maximum(0.0, a - plan.sum(axis=1)), xp.maximum(0.0, b - plan.sum(axis=0))
        total = float(short_b.sum())
        if total > 0:
            plan = plan + short_a[:, None] * (short_b / total)[None, :]
    return plan
