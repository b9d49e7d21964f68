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

A GPU (`gpu_sweep.py`) takes differences at any d, but for inner: `by_differences` says what those are off by.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kernels.certificates.metrics.exactly import DIRECTIONS, LARGE, TOO_SMALL, Exactly, Known
from kernels.problems.arrays import Array

UNIT, TINIEST = 2.0**-53, 2.0**-1060
"""The unit roundoff; more than what one product loses by underflow."""
DIRECT = 6
"""Dimension up to which differences cost no more than products."""
SLACK = 1 + 2.0**-20
ENTRIES = 1 << 18
"""Costs of a block."""
WHOLE = 2.0**53
OF_A_SHARE = 32 * UNIT
"""What the overlap of two boxes is off by."""


class Block(NamedTuple):
    """Rows from `first` on: costs (k, n), off by at most `error`, which is (k, 1) or (k, n)."""

    first: int
    values: Array
    error: Array


class _Moved(NamedTuple):
    """Both clouds as products take them, their squared lengths, and lengths rounded up."""

    x: Array
    y: Array
    squares: tuple[Array, Array]
    lengths: tuple[Array, Array]


class Costs:
    """The costs of the points x (m, d) and y (n, d), all of them coarsely, single ones exactly."""

    def __init__(self, x: Array, y: Array, metric: str) -> None:
        self.metric, self.shape, self.d = metric, (len(x), len(y)), int(x.shape[1])
        self._exactly = Exactly(x, y, metric)
        self.given = self._exactly.x.same, self._exactly.y.same
        self.x, self.y = (cloud.points.high for cloud in (self._exactly.x, self._exactly.y))
        self.is_exact = self._is_whole()

    def _is_whole(self) -> bool:
        """Whether float64 leaves no error in any order of sums."""
        clouds = self.x, self.y
        if self.metric not in ("sqeuclidean", "cityblock", "inner"):
            return False
        if not all(_are_whole(cloud[:1]) and _are_whole(cloud) for cloud in clouds):
            return False
        largest = max(max(-float(cloud.min()), float(cloud.max())) for cloud in clouds)
        return bool(8 * self.d * max(largest, largest * largest) < WHOLE)

    @cached_property
    def _moved(self) -> _Moved:
        middle = np.zeros(self.d) if self.metric in ("inner", *DIRECTIONS) or self.is_exact else self.y.mean(axis=0)
        x, y = self.x - middle, self.y - middle
        squares = np.square(x).sum(axis=1), np.square(y).sum(axis=1)
        up = SLACK * (1 + self.d * UNIT)
        lengths = [np.sqrt(square + self.d * TINIEST) * up for square in squares]
        return _Moved(x, y, squares, (lengths[0], lengths[1]))

    def exact(self, rows: Array, columns: Array, values: Array | None = None) -> Known:
        """Costs of the pairs; `values` are theirs as `blocks` gave them, if at hand."""
        if self.is_exact and values is not None:
            nothing = np.zeros(len(rows))
            return Known(values, nothing, nothing)
        known = self._exactly.of(rows, columns)
        return Known(known.high, known.low, np.zeros(len(rows))) if self.is_exact else known

    def by_differences(self) -> tuple[float, Array]:
        """What sums of differences are off by, and those of inner products: a factor of the sum, and more by row."""
        rows = np.zeros(self.shape[0])
        if self.is_exact:
            return 0.0, rows
        if self.metric == "iou":
            return OF_A_SHARE, rows
        if self.metric == "inner":
            return 0.0, self._of_products(slice(None))
        rows += self.d * TINIEST
        if self.metric in DIRECTIONS:
            rows += self._of_directions(slice(None))
        return SLACK * (self.d + 3) * UNIT, SLACK * rows

    def starts(self) -> range:
        """The first rows of the blocks."""
        return range(0, self.shape[0], max(1, ENTRIES // self.shape[1]))

    def blocks(self) -> Iterator[Block]:
        """All rows."""
        for first in self.starts():
            yield self.block(first)

    def block(self, first: int) -> Block:
        """The block of rows that begins with `first`."""
        rows = slice(first, min(self.shape[0], first + self.starts().step))
        with np.errstate(under="ignore"):
            values, error = self._costs(rows)
        return Block(first, values, np.zeros((len(values), 1)) if self.is_exact else error)

    def _costs(self, rows: slice) -> tuple[Array, Array]:
        if self.metric == "iou":
            return self._boxes(rows)
        if self.metric == "inner":
            return -(self.x[rows] @ self.y.T), self._of_products(rows)[:, None]
        values, error = self._by_differences(rows) if self._is_direct() else self._by_products(rows)
        if self.metric in DIRECTIONS:
            return values / 2, SLACK * (error + self._of_directions(rows)[:, None])
        if self.metric == "euclidean":
            np.sqrt(values, out=values)
            floor = np.sqrt(error)
            error = SLACK * (error / np.maximum(values, np.maximum(floor, TINIEST)) + 2 * UNIT * values)
        return values, error

    def _is_direct(self) -> bool:
        return self.metric == "cityblock" or self.d <= DIRECT

    def _of_products(self, rows: slice) -> Array:
        """What inner products of rows are off by."""
        lengths = self._moved.lengths
        return np.asarray(SLACK * ((self.d + 2) * UNIT * lengths[0][rows] * lengths[1].max() + self.d * TINIEST))

    def _of_directions(self, rows: slice) -> Array:
        """What costs of rows are off by as their points are: half a squared distance of points that have moved."""
        moved = self._exactly.x.off[rows] + self._exactly.y.off.max()
        return np.asarray(4 * moved + 4 * moved * moved + 16 * UNIT)

    def _by_products(self, rows: slice) -> tuple[Array, Array]:
        x, y, squares, lengths = self._moved
        values = x[rows] @ y.T
        values *= -2
        values += squares[0][rows, None]
        values += squares[1]
        np.maximum(values, 0, out=values)
        reach = lengths[0][rows, None] + lengths[1].max()
        return values, SLACK * ((self.d + 6) * UNIT * reach * reach + self.d * TINIEST)

    def _by_differences(self, rows: slice) -> tuple[Array, Array]:
        x, y = self.x[rows], self.y
        values, away = np.zeros((len(x), len(y))), np.empty((len(x), len(y)))
        for k in range(self.d):
            np.subtract(x[:, k, None], y[:, k], out=away)
            if self.metric == "cityblock":
                np.abs(away, out=away)
            else:
                np.multiply(away, away, out=away)
            values += away
        largest = values.max(axis=1, keepdims=True)
        if self.metric == "cityblock":
            return values, SLACK * (self.d + 3) * UNIT * largest
        return values, SLACK * ((self.d + 3) * UNIT * largest + self.d * TINIEST)

    def _boxes(self, rows: slice) -> tuple[Array, Array]:
        a, b = self.x[rows], self.y
        sides = []
        for low, high in ((0, 2), (1, 3)):
            start = np.maximum(a[:, low, None], b[:, low])
            sides.append(np.maximum(np.minimum(a[:, high, None], b[:, high]) - start, 0))
        inside = sides[0] * sides[1]
        areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (a, b)]
        union = areas[0][:, None] + areas[1] - inside
        known = (inside > 0) & (union >= TINIEST)
        values = 1 - np.where(known, inside / np.where(known, union, 1.0), 0.0)
        tiny = (sides[0] > 0) & (sides[1] > 0) & (inside < TOO_SMALL) & (union < LARGE)
        return values, np.where(tiny, 1.0, OF_A_SHARE)


def _are_whole(cloud: Array) -> bool:
    return bool((np.rint(cloud) == cloud).all())
