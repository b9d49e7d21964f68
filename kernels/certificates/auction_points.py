"""Minus the distances of points, for the certificate of an auction: each one that counts to some 100 bits.

The benefit of a pair is the real number -d(x_i, y_j) of the coordinates as given. SciPy's `cdist` gives it within
(dimension + 8) 2^-52 of its size, whatever the order of its sums, and picks the pairs that may be a row's best. Those,
and the chosen ones, are worked out as sums of two float64: differences by TwoSum and squares by TwoProduct, both exact,
their sum with a relative error below 16 (dimension + 1) 2^-104, the root by one step of Newton's. That error, and what
may underflow, is stated with the number and goes to the weak side of every bound.

Sources: T. J. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18
(1971) (TwoProduct, square root); T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput.
26 (2005), propositions 3.1 to 3.3 (TwoProduct under underflow: at most 5 times 2^-1074 is lost).
"""

import numpy as np
from scipy.spatial.distance import cdist

from kernels.certificates.auction_floats import Exact
from kernels.certificates.auction_rows import ENTRIES, Block, ends_of_rows
from kernels.certificates.rounded import SPLITTER, two_sum
from kernels.problems import Array
from kernels.problems.points import Points

CHECKED = 1 << 28
"""Coordinates compared to see whether named neighbours are the nearest: one or two seconds. Else a sample is."""
LEAST = 5e-324
"""The smallest float64: of this, 1e-9 is rounded down to nothing."""
SAMPLE = 256
"""Rows of the smallest sample."""


class Distances:
    """Benefits of points: of all pairs, or of every row's named `neighbours` (n_rows, k)."""

    def __init__(self, points: Points, neighbours: Array | None) -> None:
        self.x, self.y = points.x.astype(np.float64), points.y.astype(np.float64)
        self.metric = points.metric
        self.neighbours = None if neighbours is None else np.sort(neighbours.astype(np.int64), axis=1)
        self.shape = (self.x.shape[0], self.y.shape[0])
        self.dimension = self.x.shape[1]
        self.error = (self.dimension + 8) * 2.0**-52
        self.tiny = {"cityblock": 0.0, "sqeuclidean": 2.0**-1060, "euclidean": 2.0**-530}[self.metric] * self.dimension

    def ends(self) -> list[int]:
        """See `Benefits`."""
        return ends_of_rows(self.shape[0], self.shape[1] if self.neighbours is None else self.neighbours.shape[1])

    def block(self, first: int, last: int) -> Block:
        """See `Benefits`."""
        if self.neighbours is None:
            return Block(-cdist(self.x[first:last], self.y, self.metric))
        columns, k = self.neighbours[first:last].reshape(-1), self.neighbours.shape[1]
        high = self._exact(np.repeat(np.arange(first, last), k), columns).high
        return Block(high, columns, np.full(last - first, k))

    def sizes(self, first: int, last: int) -> Block:
        """See `Benefits`. What underflows may have come out as 0, or as more than it is."""
        block = self.block(first, last)
        sizes = np.abs(block.values) - self.tiny
        rows, columns, _ = block.where(sizes <= 0)
        same = (self.x[first + rows] == self.y[columns]).all(axis=1)
        sizes[sizes <= 0] = np.where(same, 0.0, LEAST)
        return block._replace(values=sizes)

    def exact(self, rows: Array, columns: Array, values: Array) -> Exact:
        """See `Benefits`."""
        return self._exact(rows, columns)

    def chosen(self, rows: Array, columns: Array) -> Exact | None:
        """See `Benefits`."""
        if self.neighbours is not None and not (self.neighbours[rows] == columns[:, None]).any(axis=1).all():
            return None
        return self._exact(rows, columns)

    def _exact(self, rows: Array, columns: Array) -> Exact:
        high, low, error = (np.zeros(rows.size) for _ in range(3))
        step = ENTRIES
        for first in range(0, rows.size, step):
            here = slice(first, first + step)
            high[here], low[here], error[here] = self._some(self.x[rows[here]], self.y[columns[here]])
        return Exact(-high, -low, error)

    def _some(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """Distances of the points (k, dimension), as high + low within error."""
        high, low = np.zeros(len(x)), np.zeros(len(x))
        small = np.zeros(len(x), bool)
        for axis in range(self.dimension):
            step, rest = two_sum(x[:, axis], -y[:, axis])
            if self.metric == "cityblock":
                term, part = np.abs(step), np.where(step < 0, -rest, rest)
            else:
                term, part = _square(step)
                part = part + 2 * step * rest + rest * rest
                small |= (step != 0) & (np.abs(step) < 2.0**-450)
            high, lost = two_sum(high, term)
            low = low + (lost + part)
        high, low = two_sum(high, low)
        error = 16 * (self.dimension + 1) * 2.0**-104 * high + np.where(small, self.dimension * 2.0**-1060, 0)
        return _root(high, low, error) if self.metric == "euclidean" else (high, low, error)


def _square(x: Array) -> tuple[Array, Array]:
    """x * x rounded, and its error; exact unless it underflows."""
    square, c = x * x, x * SPLITTER
    high = c - (c - x)
    low = x - high
    return square, low * low - ((square - high * high) - 2 * high * low)


def _root(high: Array, low: Array, error: Array) -> tuple[Array, Array, Array]:
    """The square root of high + low, known within `error`, as such a sum; one step of Newton's is exact to 2^-104."""
    root = np.sqrt(high)
    square, rest = _square(root)
    twice = np.where(root > 0, 2 * root, 1.0)
    step = ((high - square) - rest + low) / twice
    off = np.where(root > 0, 2 * error / twice + 2.0**-100 * root, 2 * np.sqrt(error))
    first, second = two_sum(root, np.where(root > 0, step, 0.0))
    return first, second, off


def named(points: Points, neighbours: Array) -> bool:
    """Whether `neighbours` names `points.neighbours` different columns of every row."""
    m, n = points.x.shape[0], points.y.shape[0]
    if neighbours.shape != (m, points.neighbours) or neighbours.dtype.kind not in "iu":
        return False
    if ((neighbours < 0) | (neighbours >= n)).any():
        return False
    return not (np.diff(np.sort(neighbours, axis=1), axis=1) == 0).any()


def nearest(points: Points, neighbours: Array) -> tuple[int, int]:
    """How many rows were looked at, and how many of them have a column nearer than one that is named.

    Distances that differ by no more than the error of `cdist` count as the same.
    """
    whole = Distances(points, None)
    (m, n), step = whole.shape, max(1, ENTRIES // whole.shape[1])
    many = max(SAMPLE, CHECKED // (n * whole.dimension))
    rows = np.arange(m) if many >= m else np.unique(np.linspace(0, m - 1, many).astype(np.int64))
    wrong = 0
    for first in range(0, rows.size, step):
        some = rows[first : first + step]
        distances = cdist(whole.x[some], whole.y, whole.metric)
        mine = np.take_along_axis(distances, neighbours[some].astype(np.int64), axis=1)
        nearer = mine.max(axis=1) * (1 - 4 * whole.error) - 4 * whole.tiny
        counts = (distances < nearer[:, None]).sum(axis=1)
        wrong += int((counts != (mine < nearer[:, None]).sum(axis=1)).sum())
    return int(rows.size), wrong
