"""Costs in float64 with a proved error, block by block: of a matrix exactly, of points as the reals they stand for.

The problem of two clouds of points is that of the real distances between the given coordinates. With u = 2^-53:

differences, up to DIRECT coordinates. x_k - y_k is off by u, its square by 3 u, and a sum of d squares, all of one
    sign, by another (d - 1) u (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2), so
    that squared distances are off by (d + 2) u relative, and their roots by less than that and u.
products, beyond. Both clouds are moved by one common point, which moves coordinates by u, relative. With X and Y the
    largest norms, |x|^2 + |y|^2 - 2 <x, y> is off by (d + 6) u (X + Y)^2: 2 u from the move, d u from each dot product
    in any order (Higham, section 3.1), 2 u from the sums. A root of it would lose half of the digits near 0: distances
    below (X + Y) / NEAR are worked out from differences, and for those above the root is off by at most
    (d + 6) u (X + Y)^2 / (2 (X + Y) / NEAR) and u.
inner products are off by d u |x| |y|.

Norms are rounded up by (d + 2) u, and every bound by another 2^-20 for the products of these errors.
"""

from dataclasses import dataclass

import numpy as np

from kernels.certificates.transport_elementary import TINIEST, UNIT
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport

DIRECT = 8  # dimension up to which differences cost no more than products
NEAR = 64.0
SLACK = 1 + 2.0**-20


@dataclass(frozen=True, eq=False)
class CostBlock:
    """Costs (k, n) of some rows, off by at most `relative` times themselves plus `absolute` (k,)."""

    values: Array
    relative: float
    absolute: Array


class Costs:
    """Where the costs of a problem come from."""

    def __init__(self, problem: UnbalancedTransport) -> None:
        self.problem = problem
        if problem.cost is not None:
            return
        assert problem.x is not None
        assert problem.y is not None
        self.x, self.y = problem.x.astype(np.float64), problem.y.astype(np.float64)
        self.d = self.x.shape[1]
        self.direct = self.d <= DIRECT and problem.metric != "inner"
        if self.direct:
            return
        middle = self.y.mean(axis=0) if problem.metric != "inner" else np.zeros(self.d)
        self.moved_x, self.moved_y = self.x - middle, self.y - middle
        self.square_x, self.square_y = (np.square(p).sum(axis=1) for p in (self.moved_x, self.moved_y))
        round_up = SLACK * (1 + self.d * UNIT)
        self.norm_x = np.sqrt(self.square_x) * round_up
        self.norm_y = float(np.sqrt(self.square_y).max()) * round_up

    def block(self, rows: slice) -> CostBlock:
        """Some rows."""
        if self.problem.cost is not None:
            values = self.problem.cost[rows].astype(np.float64, copy=False)
            return CostBlock(values, 0.0, np.zeros(len(values)))
        metric = self.problem.metric
        if metric == "inner":
            values = -(self.x[rows] @ self.y.T)
            return CostBlock(values, 0.0, SLACK * (self.d * UNIT * self.norm_x[rows] * self.norm_y + self.d * TINIEST))
        if self.direct:
            return self._differences(rows)
        reach = self.norm_x[rows] + self.norm_y
        values = self.moved_x[rows] @ self.moved_y.T
        values *= -2
        values += self.square_x[rows][:, None]
        values += self.square_y
        np.maximum(values, 0, out=values)
        off = SLACK * ((self.d + 6) * UNIT * reach**2 + self.d * TINIEST)
        if metric == "sqeuclidean":
            return CostBlock(values, 0.0, off)
        near = np.nonzero(values < ((reach / NEAR) ** 2)[:, None])
        np.sqrt(values, out=values)
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.where(reach > 0, SLACK * off / (2 * reach / NEAR), (self.d * TINIEST) ** 0.5)  # if it underflowed
        if near[0].size:
            values[near] = self._few(near[0] + rows.start, near[1])
        return CostBlock(values, (self.d + 3) * UNIT * SLACK, off)

    def _differences(self, rows: slice) -> CostBlock:
        values = np.zeros((rows.stop - rows.start, len(self.y)))
        away = np.empty_like(values)
        for k in range(self.d):
            np.subtract.outer(self.x[rows, k], self.y[:, k], out=away)
            away *= away
            values += away
        smallest = self.d * TINIEST
        if self.problem.metric == "euclidean":
            np.sqrt(values, out=values)
            smallest = smallest**0.5
        return CostBlock(values, (self.d + 3) * UNIT * SLACK, np.full(len(values), smallest))

    def _few(self, i: Array, j: Array) -> Array:
        """Distances of the points x_i, y_j, from differences of coordinates."""
        out = np.empty(i.size)
        step = max(1, (1 << 18) // self.d)
        for start in range(0, i.size, step):
            some = slice(start, start + step)
            away = self.x[i[some]] - self.y[j[some]]
            out[some] = np.sqrt(np.square(away).sum(axis=1))
        return out
