"""All costs of points in float64, a block of rows at a time, each within a proved error.

With u = 2^-53 and d for the dimension (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sections
3.1 and 4.2: sums of d terms of one sign are off by (d - 1) u relative, scalar products by d u of the sum of sizes):

differences    cityblock at any d, squared distances up to DIRECT coordinates: (d + 3) u relative
boxes          shares of intersection and union: 20 u of 1, taken as 32 u
products       both clouds are moved by one common point, which moves coordinates by u. With lengths X and Y at most,
               |x|^2 + |y|^2 - 2 <x, y> is off by (d + 6) u (X + Y)^2. Lengths are rounded up by (d + 2) u
inner          (d + 2) u |x| |y|
cosine         1 - <x, y> or half a squared distance of points over their lengths, which `exactly.py` knows to 2 u as
correlation    vectors, rounding to float64 included: (d + 16) u of 4, and what these points are off by

A root of something known within t is known within t over the root, and within root(t). Whole coordinates whose sums of
squares stay below 2^53 leave no error at all, in any order of summation. All bounds are rounded up by SLACK.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kernels.certificates.metrics.exactly import DIRECTIONS, LARGE, TOO_SMALL, Exactly, Known
from kernels.certificates.metrics.words import module_of
from kernels.problems.arrays import Array

UNIT, TINIEST = 2.0**-53, 2.0**-1060
"""The unit roundoff; more than what one product loses by underflow."""
DIRECT = 6
"""Dimension up to which differences cost no more than products."""
SLACK = 1 + 2.0**-20
ENTRIES = {"numpy": 1 << 18, "cupy": 1 << 25}
"""Costs of a block."""
WHOLE = 2.0**53


class Block(NamedTuple):
    """Rows from `first` on: costs (k, n), off by at most `error`, which is (k, 1) or (k, n)."""

    first: int
    values: Array
    error: Array


class Costs:
    """The costs of the points x (m, d) and y (n, d), all of them coarsely with the arrays of `xp`, single ones exactly.

    On a device that is CuPy. Its products of matrices are cuBLAS's, sums of d products of float64 in some order.
    """

    def __init__(self, x: Array, y: Array, metric: str, xp: Any = np) -> None:
        self.metric, self.shape, self.d = metric, (len(x), len(y)), int(x.shape[1])
        self.xp = xp
        self._exactly = Exactly(x, y, metric, xp)
        self.given = self._exactly.x.same, self._exactly.y.same
        self.x, self.y = (cloud.points.high for cloud in (self._exactly.x, self._exactly.y))
        self.is_exact = self._is_whole()
        by_products = ("sqeuclidean", "euclidean", *DIRECTIONS) if self.d > DIRECT else ()
        self.products = metric in by_products
        if self.products:
            middle = self.xp.zeros(self.d) if metric in DIRECTIONS or self.is_exact else self.y.mean(axis=0)
            self.x, self.y = self.x - middle, self.y - middle
        if self.products or metric == "inner":
            self._squares = [self.xp.square(cloud).sum(axis=1) for cloud in (self.x, self.y)]
            up = SLACK * (1 + self.d * UNIT)
            self._lengths = [self.xp.sqrt(squares + self.d * TINIEST) * up for squares in self._squares]

    def _is_whole(self) -> bool:
        """Whether float64 leaves no error in any order of sums."""
        if self.metric not in ("sqeuclidean", "cityblock", "inner"):
            return False
        if not all((self.xp.rint(cloud) == cloud).all() for cloud in (self.x, self.y)):
            return False
        largest = max(float(self.xp.abs(cloud).max()) for cloud in (self.x, self.y))
        return bool(8 * self.d * max(largest, largest * largest) < WHOLE)

    def exact(self, rows: Array, columns: Array, values: Array | None = None) -> Known:
        """Costs of the pairs, on the host or where `xp` is; `values` are theirs as `blocks` gave them, if at hand."""
        if self.is_exact and values is not None:
            nothing = self.xp.zeros(len(rows))
            return Known(values, nothing, nothing)
        known = self._exactly.of(rows, columns)
        return Known(known.high, known.low, module_of(known.low).zeros(len(rows))) if self.is_exact else known

    def starts(self) -> range:
        """The first rows of the blocks."""
        return range(0, self.shape[0], max(1, ENTRIES[self.xp.__name__] // self.shape[1]))

    def blocks(self) -> Iterator[Block]:
        """All rows."""
        for first in self.starts():
            yield self.block(first)

    def block(self, first: int) -> Block:
        """The block of rows that begins with `first`."""
        rows = slice(first, min(self.shape[0], first + self.starts().step))
        with np.errstate(under="ignore"):
            values, error = self._costs(rows)
        return Block(first, values, self.xp.zeros((len(values), 1)) if self.is_exact else error)

    def _costs(self, rows: slice) -> tuple[Array, Array]:
        if self.metric == "iou":
            return self._boxes(rows)
        if self.metric == "inner":
            off = (self.d + 2) * UNIT * self._lengths[0][rows] * self._lengths[1].max() + self.d * TINIEST
            return -(self.x[rows] @ self.y.T), SLACK * off[:, None]
        values, error = self._by_products(rows) if self.products else self._by_differences(rows)
        if self.metric in DIRECTIONS:
            moved = self._exactly.x.off[rows, None] + self._exactly.y.off.max()
            return values / 2, SLACK * (error + 4 * moved + 4 * moved * moved + 16 * UNIT)
        if self.metric == "euclidean":
            self.xp.sqrt(values, out=values)
            floor = self.xp.sqrt(error)
            error = SLACK * (error / self.xp.maximum(values, self.xp.maximum(floor, TINIEST)) + 2 * UNIT * values)
        return values, error

    def _by_products(self, rows: slice) -> tuple[Array, Array]:
        values = self.x[rows] @ self.y.T
        values *= -2
        values += self._squares[0][rows, None]
        values += self._squares[1]
        self.xp.maximum(values, 0, out=values)
        reach = self._lengths[0][rows, None] + self._lengths[1].max()
        return values, SLACK * ((self.d + 6) * UNIT * reach * reach + self.d * TINIEST)

    def _by_differences(self, rows: slice) -> tuple[Array, Array]:
        xp, x, y = self.xp, self.x[rows], self.y
        values, away = xp.zeros((len(x), len(y))), xp.empty((len(x), len(y)))
        for k in range(self.d):
            xp.subtract(x[:, k, None], y[:, k], out=away)
            if self.metric == "cityblock":
                xp.abs(away, out=away)
            else:
                xp.multiply(away, away, out=away)
            values += away
        largest = values.max(axis=1, keepdims=True)
        if self.metric == "cityblock":
            return values, SLACK * (self.d + 3) * UNIT * largest
        return values, SLACK * ((self.d + 3) * UNIT * largest + self.d * TINIEST)

    def _boxes(self, rows: slice) -> tuple[Array, Array]:
        xp, a, b = self.xp, self.x[rows], self.y
        sides = []
        for low, high in ((0, 2), (1, 3)):
            start = xp.maximum(a[:, low, None], b[:, low])
            sides.append(xp.maximum(xp.minimum(a[:, high, None], b[:, high]) - start, 0))
        inside = sides[0] * sides[1]
        areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (a, b)]
        union = areas[0][:, None] + areas[1] - inside
        known = (inside > 0) & (union >= TINIEST)
        values = 1 - xp.where(known, inside / xp.where(known, union, 1.0), 0.0)
        tiny = (sides[0] > 0) & (sides[1] > 0) & (inside < TOO_SMALL) & (union < LARGE)
        return values, xp.where(tiny, 1.0, 32 * UNIT)
