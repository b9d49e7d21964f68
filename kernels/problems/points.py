"""Assignment between two clouds of points: the cost of a pair is its distance, and no matrix is given."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from kernels.problems.arrays import (
    Csr,
    Floats,
    Indices,
    Indices32,
    Inputs,
    Integers32,
    InvalidProblem,
    Reals,
    finite,
    numeric,
)
from kernels.problems.assignment import Assignment
from kernels.problems.metrics import MOST_INTEGER, check_points, costs
from kernels.problems.sparse import Auction

METRICS = ("sqeuclidean", "euclidean", "cityblock")
"""Those that the auction's kernels work out as they go, and that have nearest neighbours; of the others of
`metrics.METRICS` the whole matrix is written down."""
CHUNK = 1 << 22
"""Distances of neighbours worked out together."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows x (m, d), columns y (n, d), a metric, how many nearest columns a row may take (None: all)."""

    x: Reals
    y: Reals
    metric: str = "sqeuclidean"
    neighbours: int | None = None

    def benefits(self, rows: Indices, columns: Indices32 | None = None) -> Floats:
        """Minus the distances (rows, n_cols), or of the pairs (rows, columns): (rows, k) for columns (rows, k)."""
        if columns is None and self.metric not in METRICS:
            return np.negative(costs(self.x[rows], self.y, self.metric))
        if columns is None:
            from scipy.spatial.distance import cdist  # not loaded by a process that starts, as scipy takes half of it

            return np.asarray(-cdist(self.x[rows], self.y, self.metric))
        step = self.x[rows][:, None].astype(np.float64) - self.y[columns]
        distance = np.abs(step).sum(-1) if self.metric == "cityblock" else (step**2).sum(-1)
        return np.asarray(-np.sqrt(distance) if self.metric == "euclidean" else -distance)

    def nearest(self, rows: Indices) -> Integers32:
        """The `neighbours` nearest columns of each of `rows`, (rows, neighbours) int32, nearest first."""
        from scipy.spatial import cKDTree

        assert self.neighbours is not None
        tree, order = cKDTree(self.y), 1 if self.metric == "cityblock" else 2
        _, columns = tree.query(self.x[rows], k=range(1, self.neighbours + 1), p=order)
        return np.asarray(columns, np.int32)

    def graph_of_neighbours(self, columns: Indices32) -> Csr:
        """CSR of the edges from every row to its `columns` (m, k)."""
        columns = np.sort(columns.astype(np.int32), axis=1)
        m, k = columns.shape
        values = np.empty((m, k))
        step = max(1, CHUNK // k)
        for first in range(0, m, step):
            rows = np.arange(first, min(m, first + step))
            values[rows] = self.benefits(rows, columns[rows])
        return Csr(np.arange(m + 1, dtype=np.int64) * k, columns.reshape(-1), values.reshape(-1), (m, self.y.shape[0]))

    def all_benefits(self) -> Floats:
        """The whole matrix (m, n)."""
        from scipy.spatial.distance import cdist

        is_plain = self.metric in METRICS
        distances = cdist(self.x, self.y, self.metric) if is_plain else costs(self.x, self.y, self.metric)
        return np.asarray(np.negative(distances, out=distances))


@dataclass(frozen=True, eq=False)
class PointAuction(Auction):
    """An auction whose benefits are those of `points`; `weights` stays empty."""

    points: Points = field(default_factory=lambda: Points(np.empty((0, 0)), np.empty((0, 0))))

    @property
    def shape(self) -> tuple[int, int]:
        """n_rows, n_cols."""
        return int(self.points.x.shape[0]), int(self.points.y.shape[0])

    def with_benefits(self, weights: Floats | Csr) -> Auction:
        """The same auction over benefits that were worked out."""
        return Auction(weights, maximize=True, reject=self.reject, prices0=self.prices0, assignment0=self.assignment0)


@dataclass(frozen=True, eq=False)
class PointAssignment(Assignment):
    """An assignment whose costs are those of `points`; `weights` stays empty, in float64."""

    points: Points = field(default_factory=lambda: Points(np.empty((0, 0)), np.empty((0, 0))))

    @property
    def shape(self) -> tuple[int, int]:
        """n_rows, n_cols."""
        return int(self.points.x.shape[0]), int(self.points.y.shape[0])

    def written_out(self, work_out: Callable[[Reals, Reals, str], Floats] = costs) -> Assignment:
        """The same with a matrix of costs in float64, which are rounded; `work_out` says how."""
        cost = work_out(self.points.x, self.points.y, self.points.metric)
        return Assignment(cost, self.maximize, u0=self.u0, v0=self.v0)


def point_assignment(inputs: Inputs, metric: str, maximize: bool) -> PointAssignment:
    """Check `x`, `y` and the duals `u0`, `v0` of `inputs`, and that nothing is beside them.

    Raises:
        InvalidProblem: as `points_of`; another input beside the points; duals of another length.
    """
    points = points_of(inputs, metric, None)
    beside = sorted(set(inputs) - {"x", "y", "u0", "v0"})
    if beside:
        raise InvalidProblem(beside[0], "is given beside x or y; expected a matrix of costs or two clouds of points")
    duals = {}
    for name, side in (("u0", points.x), ("v0", points.y)):
        given = inputs.get(name)
        if given is None:
            continue
        if isinstance(given, Csr) or given.shape != (len(side),):
            raise InvalidProblem(name, f"has shape {given.shape}; expected ({len(side)},)")
        duals[name] = finite(name, numeric(name, given, ndim=(1,)))
    return PointAssignment(np.empty((0, 0)), maximize, u0=duals.get("u0"), v0=duals.get("v0"), points=points)


def points_of(inputs: Inputs, metric: str, neighbours: int | None) -> Points:
    """Check `x` and `y` of `inputs`.

    Raises:
        InvalidProblem: one of them missing, sparse, not finite, of another dimension, fewer columns than neighbours, or
            points for which the metric says nothing.
    """
    clouds = []
    for name in ("x", "y"):
        given = inputs.get(name)
        if given is None or isinstance(given, Csr):
            raise InvalidProblem(name, "is missing or sparse; expected points (number, dimension)")
        if given.dtype == np.bool_:  # fingerprints: 0 and 1
            given = given.astype(np.int8)
        cloud = finite(name, numeric(name, given, ndim=(2,)))
        if cloud.dtype.kind == "i" and max(-int(cloud.min()), int(cloud.max())) > MOST_INTEGER:
            raise InvalidProblem(name, "holds an integer beyond 2^53, which float64 would round; expected coordinates")
        clouds.append(cloud.astype(np.float64) if cloud.dtype.kind == "i" else cast(Reals, cloud))
    x, y = clouds
    if x.shape[1] != y.shape[1]:
        raise InvalidProblem("y", f"has dimension {y.shape[1]} and x {x.shape[1]}; expected the same")
    check_points(metric, x, y)
    if neighbours is not None and metric not in METRICS:
        raise InvalidProblem("neighbours", f"belongs to one of {', '.join(METRICS)}, and metric is {metric}")
    if neighbours is not None and neighbours > y.shape[0]:
        raise InvalidProblem("neighbours", f"is {neighbours} with {y.shape[0]} columns; expected no more than those")
    dtype = np.result_type(x, y)
    return Points(x.astype(dtype, copy=False), y.astype(dtype, copy=False), metric, neighbours)
