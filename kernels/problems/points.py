"""Assignment between two clouds of points: the benefit of a pair is minus its distance, and no matrix is given."""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from kernels.problems.arrays import Array, Csr, Inputs, InvalidProblem, finite, numeric
from kernels.problems.sparse import Auction

METRICS = ("sqeuclidean", "euclidean", "cityblock")
CHUNK = 1 << 22
"""Distances of neighbours worked out together."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows x (m, d), columns y (n, d), a metric of METRICS, how many nearest columns a row may take (None: all)."""

    x: Array
    y: Array
    metric: str = "sqeuclidean"
    neighbours: int | None = None

    def benefits(self, rows: Array, columns: Array | None = None) -> Array:
        """Minus the distances (rows, n_cols), or of the pairs (rows, columns): (rows, k) for columns (rows, k)."""
        if columns is None:
            return np.asarray(-cdist(self.x[rows], self.y, self.metric))
        step = self.x[rows][:, None].astype(np.float64) - self.y[columns]
        distance = np.abs(step).sum(-1) if self.metric == "cityblock" else (step**2).sum(-1)
        return np.asarray(-np.sqrt(distance) if self.metric == "euclidean" else -distance)

    def nearest(self, rows: Array) -> Array:
        """The `neighbours` nearest columns of each of `rows`, (rows, neighbours) int32, nearest first."""
        assert self.neighbours is not None
        tree, order = cKDTree(self.y), 1 if self.metric == "cityblock" else 2
        _, columns = tree.query(self.x[rows], k=range(1, self.neighbours + 1), p=order)
        return np.asarray(columns, np.int32)

    def graph_of_neighbours(self, columns: Array) -> Csr:
        """CSR of the edges from every row to its `columns` (m, k)."""
        columns = np.sort(columns.astype(np.int32), axis=1)
        m, k = columns.shape
        values = np.empty((m, k))
        step = max(1, CHUNK // k)
        for first in range(0, m, step):
            rows = np.arange(first, min(m, first + step))
            values[rows] = self.benefits(rows, columns[rows])
        return Csr(np.arange(m + 1, dtype=np.int64) * k, columns.reshape(-1), values.reshape(-1), (m, self.y.shape[0]))

    def all_benefits(self) -> Array:
        """The whole matrix (m, n)."""
        distances = cdist(self.x, self.y, self.metric)
        return np.asarray(np.negative(distances, out=distances))


@dataclass(frozen=True, eq=False)
class PointAuction(Auction):
    """An auction whose benefits are those of `points`; `weights` stays empty."""

    points: Points = field(default_factory=lambda: Points(np.empty((0, 0)), np.empty((0, 0))))

    @property
    def shape(self) -> tuple[int, int]:
        """n_rows, n_cols."""
        return int(self.points.x.shape[0]), int(self.points.y.shape[0])


def points_of(inputs: Inputs, metric: str, neighbours: int | None) -> Points:
    """Check `x` and `y` of `inputs`.

    Raises:
        InvalidProblem: one of them missing, sparse, not finite, of another dimension, or fewer columns than neighbours.
    """
    clouds = []
    for name in ("x", "y"):
        given = inputs.get(name)
        if given is None or isinstance(given, Csr):
            raise InvalidProblem(name, "is missing or sparse; expected points (number, dimension)")
        cloud = finite(name, numeric(name, given, ndim=(2,)))
        clouds.append(cloud.astype(np.float64) if cloud.dtype.kind == "i" else cloud)
    x, y = clouds
    if x.shape[1] != y.shape[1]:
        raise InvalidProblem("y", f"has dimension {y.shape[1]} and x {x.shape[1]}; expected the same")
    if max(float(np.abs(x).max()), float(np.abs(y).max())) > 1e100:
        raise InvalidProblem("x", "or y holds coordinates beyond 1e100, whose squares are not finite")
    if neighbours is not None and neighbours > y.shape[0]:
        raise InvalidProblem("neighbours", f"is {neighbours} with {y.shape[0]} columns; expected no more than those")
    dtype = np.result_type(x, y)
    return Points(x.astype(dtype), y.astype(dtype), metric, neighbours)
