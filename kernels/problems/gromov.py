"""The Gromov-Wasserstein problem, with or without costs between the spaces: the problem and its checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.problems.arrays import TOLD, Floats, Inputs, InvalidProblem
from kernels.problems.weighted import real_matrix, weights_of
from kernels.problems.worked_out import worked_out

WITHIN = ("sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "geodesic", "inner")
"""Metrics of the points of one space."""


@dataclass(frozen=True, eq=False)
class GromovWasserstein:
    """min over couplings P of (1 - alpha) <M, P> + alpha sum_ijkl (X_ik - Y_jl)^2 P_ij P_kl.

    1 - alpha is that of float64. A coupling has P >= 0, row sums a / sum a and column sums b / sum b: weights count
    relative to their sum. X is `x_distance` (n, n), Y is `y_distance` (m, m), any real numbers, symmetric or not; M is
    `cost` (n, m), None where alpha is 1. All are float64. `a` (n,), `b` (m,) are not negative and not all 0. `x`, `y`
    are the points behind squared Euclidean distances, for solvers that gain by them: the problem is that of the
    matrices. `start` (n, m) is a plan to begin with. `told` is what the answer says of how the matrices came to be.
    """

    x_distance: Floats
    y_distance: Floats
    a: Floats
    b: Floats
    cost: Floats | None = None
    alpha: float = 1.0
    x: Floats | None = None
    y: Floats | None = None
    start: Floats | None = None
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the plan."""
        return self.a.size, self.b.size

    @property
    def symmetric(self) -> bool:
        """Whether both matrices are."""
        return all(bool((matrix == matrix.T).all()) for matrix in (self.x_distance, self.y_distance))


def gromov_wasserstein(inputs: Inputs, *, metric: str, alpha: float | None) -> GromovWasserstein:
    """Check named inputs and return the problem. Weights left out are uniform.

    Args:
        inputs: of each space either its points (`x`, `y`) or its matrix (`x_distance`, `y_distance`); `a`, `b`;
            `cost`, or `x_features` and `y_features` whose squared distances are the cost; `plan0`.
        metric: of the points of one space.
        alpha: share of the quadratic part; None: 1 without costs, 1/2 with them.

    Raises:
        InvalidProblem: names the input or option that is wrong and what was expected.
    """
    told: dict[str, Any] = {}
    (x_distance, x), (y_distance, y) = (_space(name, inputs, metric, told) for name in ("x", "y"))
    n, m = len(x_distance), len(y_distance)
    a, b = weights_of("a", inputs, n), weights_of("b", inputs, m)
    cost = _cost(inputs, (n, m))
    if alpha is None:
        alpha = 1.0 if cost is None else 0.5
    if cost is None and alpha != 1:
        raise InvalidProblem("alpha", f"is {alpha} without cost or features; expected 1, or costs between the spaces")
    start = real_matrix("plan0", inputs, (n, m), least=0.0) if "plan0" in inputs else None
    return GromovWasserstein(x_distance, y_distance, a, b, cost if alpha < 1 else None, alpha, x, y, start, told)


def _space(name: str, inputs: Inputs, metric: str, told: dict[str, Any]) -> tuple[Floats, Floats | None]:
    """The matrix of one space, and its points where squared Euclidean distances were made of them."""
    field_ = f"{name}_distance"
    if name in inputs and field_ in inputs:
        raise InvalidProblem(field_, f"is given beside {name}; expected either points or their distances")
    if name not in inputs and field_ not in inputs:
        raise InvalidProblem(field_, f"is missing; expected a square matrix, or points {name}")
    if field_ in inputs:
        matrix = real_matrix(field_, inputs)
        if matrix.shape[0] != matrix.shape[1]:
            raise InvalidProblem(field_, f"has shape {matrix.shape}; expected a square matrix")
        return matrix, None
    points = real_matrix(name, inputs)
    matrix = worked_out(points, points, metric)
    if not np.isfinite(matrix).all():
        raise InvalidProblem(name, f"has no {metric} distance between some of its points")
    told["distances"] = f"worked out in float64 from points: {metric}"
    return matrix, points if metric == "sqeuclidean" else None


def _cost(inputs: Inputs, shape: tuple[int, int]) -> Floats | None:
    features = [name for name in ("x_features", "y_features") if name in inputs]
    if not features:
        return real_matrix("cost", inputs, shape) if "cost" in inputs else None
    if "cost" in inputs or len(features) == 1:
        raise InvalidProblem(features[0], "stands alone or beside cost; expected x_features and y_features, or cost")
    left, right = (real_matrix(name, inputs) for name in features)
    if (len(left), len(right)) != shape or left.shape[1] != right.shape[1]:
        said = f"have the shapes {left.shape} and {right.shape}"
        raise InvalidProblem("y_features", f"and x_features {said}; expected a row a point, of one dimension")
    return worked_out(left, right, "sqeuclidean")
