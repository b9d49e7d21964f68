"""Products with the costs, written once for NumPy and for CuPy: `xp` is either.

|x_i - y_j|^2 = A_i . B_j with A = (|x|^2, 1, -2 x), B = (1, |y|^2, y), of points less their common mean, so that
squares are no larger than they must be (Scetbon, Cuturi, Peyre 2021, section 3.3).
"""

from typing import Any

import numpy as np

from kernels.problems.lowrank import LowRankTransport

BLOCK = 1 << 20
"""Costs that are worked out together."""


class Costs:
    """C on the device of `xp`, as A B' or as a matrix."""

    def __init__(self, problem: LowRankTransport, xp: Any) -> None:
        self.xp, self.shape = xp, problem.shape
        self.left: Any = None
        self.right: Any = None
        self.matrix: Any = None
        if problem.x is not None and problem.y is not None:
            centre = (problem.x.mean(axis=0) + problem.y.mean(axis=0)) / 2
            x, y = problem.x - centre, problem.y - centre
            of_x, of_y = ((points * points).sum(axis=1)[:, None] for points in (x, y))
            self.left = xp.asarray(np.hstack((of_x, np.ones_like(of_x), -2 * x)))
            self.right = xp.asarray(np.hstack((np.ones_like(of_y), of_y, y)))
        elif problem.left is not None:
            self.left, self.right = xp.asarray(problem.left), xp.asarray(problem.right)
        else:
            self.matrix = xp.asarray(problem.cost)

    def times(self, columns: Any, which: Any = None) -> Any:
        """C times (n, r); where `which` says columns of C, these alone."""
        if self.left is None:
            return (self.matrix if which is None else self.matrix[:, which]) @ columns
        return self.left @ ((self.right if which is None else self.right[which]).T @ columns)

    def transposed_times(self, rows: Any, which: Any = None) -> Any:
        """C' times (m, r); where `which` says rows of C, these alone."""
        if self.left is None:
            return (self.matrix if which is None else self.matrix[which]).T @ rows
        return self.right @ ((self.left if which is None else self.left[which]).T @ rows)

    def each(self, q: Any, r: Any) -> Any:
        """Of each component, sum_ij Q_ik C_ij R_jk."""
        if self.left is None:
            return (q * (self.matrix @ r)).sum(axis=0)
        return ((self.left.T @ q) * (self.right.T @ r)).sum(axis=0)

    def value(self, q: Any, r: Any, g: Any) -> float:
        """<C, Q diag(1/g) R'>."""
        return float((self.each(q, r) / g).sum())

    def among(self, rows: Any, columns: Any) -> Any:
        """C of some rows and some columns; each an array of places, or a slice."""
        if self.left is None:
            return self.matrix[rows][:, columns]
        return self.left[rows] @ self.right[columns].T

    def over_rows(self, f: Any) -> Any:
        """min over i of C_ij - f_i, by blocks of columns."""
        step = max(1, BLOCK // self.shape[0])
        found = [
            (self.among(slice(None), slice(first, first + step)) - f[:, None]).min(axis=0)
            for first in range(0, self.shape[1], step)
        ]
        return self.xp.concatenate(found)

    def over_columns(self, g: Any, which: Any = None) -> Any:
        """min over j of C_ij - g_j, by blocks of rows; where `which` says columns, over these alone."""
        step = max(1, BLOCK // len(g))
        which = slice(None) if which is None else which
        found = [
            (self.among(slice(first, first + step), which) - g[None, :]).min(axis=1)
            for first in range(0, self.shape[0], step)
        ]
        return self.xp.concatenate(found)
