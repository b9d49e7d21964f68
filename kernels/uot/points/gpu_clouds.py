"""Launches of points.cu: two point clouds in place of a matrix, whose costs are worked out in every sweep."""

from typing import Any

import cupy as cp

from kernels.problems.transport import METRICS
from kernels.uot.iteration.gpu_geometry import Geometry, points_geometry
from kernels.uot.iteration.gpu_launch import LOG2E, Dense
from kernels.uot.iteration.layout import REFERENCE_OF_POINTS_ARGS

_scaled = cp.ElementwiseKernel(
    "float64 of_one, bool is_norm, float64 scale, float64 of_points",
    "float32 scaled",
    "scaled = (float)(of_one * (is_norm ? scale : of_points));",
    "uot_scaled_points",
)


class PointClouds(Dense):
    """Two point clouds in place of the matrix: O((m + n) d) device bytes."""

    @property
    def dimension(self) -> int:
        """Of the points, padded with zeros to a multiple of 4."""
        assert self.problem.x is not None
        return -(-int(self.problem.x.shape[1]) // 4) * 4

    @property
    def flat(self) -> bool:
        """True where the columns' coordinates fit registers."""
        assert self.problem.x is not None
        return bool(self.problem.x.shape[1] <= 3)

    def _geometry(self, teams: int, cluster: int) -> Geometry:
        return points_geometry(self.m, self.n, teams, cluster, self._ahead(*self._kind))

    @property
    def _kind(self) -> tuple[str, ...]:
        return f"-DMETRIC={METRICS.index(self.problem.metric)}", f"-DFLAT={int(self.flat)}"

    def _defines(self) -> tuple[str, ...]:
        return *self.cut.defines, *self._kind

    def _matrix(self) -> Any:
        """Columns (d, ld), rows (m + a group, d) and their norms; about their common centre, for short squares."""
        assert self.problem.x is not None
        assert self.problem.y is not None
        x, y = (cp.asarray(points, cp.float64) for points in (self.problem.x, self.problem.y))
        if self.problem.metric != "inner":
            centre = (x.mean(0) + y.mean(0)) / 2
            x, y = x - centre, y - centre
        padded = self.m + self.cut.group  # so that no row of the last group lies outside
        rows, columns = cp.zeros((padded, self.dimension)), cp.zeros((self.dimension, self.cut.ld))
        rows[: self.m, : x.shape[1]], columns[: x.shape[1], : self.n] = x, y.T
        row_norms, column_norms = (rows * rows).sum(1), (columns * columns).sum(0)
        self.farthest = float(max(row_norms.max(), column_norms.max()))
        squares = self.problem.metric == "sqeuclidean"
        row_norms, column_norms = row_norms * squares, column_norms * squares
        of_rows, of_columns = (cp.zeros(points.shape, cp.bool_) for points in (rows, columns))
        rows *= 2 if squares else 1
        if self.flat:
            rows[:, 3], of_rows[:, 3] = row_norms, True
        self._points = cp.concatenate([columns.ravel(), column_norms, rows.ravel(), row_norms])
        ones = [cp.ones(norms.shape, cp.bool_) for norms in (column_norms, row_norms)]
        self._is_norm = cp.concatenate([of_columns.ravel(), ones[0], of_rows.ravel(), ones[1]])
        return cp.empty(self._points.shape, cp.float32)

    def begin(self, reg: float, g: Any) -> None:
        """Start a stage at `reg`: scale the coordinates so that costs come in log2 units."""
        scale = LOG2E / reg
        _scaled(
            self._points, self._is_norm, scale, scale if self.problem.metric == "euclidean" else scale**0.5, self.matrix
        )
        super().begin(reg, g)

    def _refers(self, shared: dict[str, Any]) -> tuple[Any, ...]:
        own = {"points": self.matrix, "ld": self.cut.ld, "dimension": self.dimension}
        return REFERENCE_OF_POINTS_ARGS.packed(**shared, **own)
