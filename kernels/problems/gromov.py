"""The Gromov-Wasserstein problem, with or without costs between the spaces: the problem and its checks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.problems.arrays import Csr, Floats, Inputs, InvalidProblem, finite, numeric
from kernels.problems.worked_out import worked_out

LARGEST, LARGEST_COST = 1e100, 1e200
"""Of a distance or coordinate, and of a cost: objectives stay far inside float64."""
LIGHTEST = 1e-250
"""Of the largest weight: what is less counts as 0."""
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
    told: Mapping[str, Any] = field(default_factory=dict)

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
    a, b = _weights("a", inputs, n), _weights("b", inputs, m)
    cost = _cost(inputs, (n, m))
    if alpha is None:
        alpha = 1.0 if cost is None else 0.5
    if cost is None and alpha != 1:
        raise InvalidProblem("alpha", f"is {alpha} without cost or features; expected 1, or costs between the spaces")
    start = _real("plan0", inputs, (n, m), least=0.0) if "plan0" in inputs else None
    return GromovWasserstein(x_distance, y_distance, a, b, cost if alpha < 1 else None, alpha, x, y, start, told)


def _space(name: str, inputs: Inputs, metric: str, told: dict[str, Any]) -> tuple[Floats, Floats | None]:
    """The matrix of one space, and its points where squared Euclidean distances were made of them."""
    field_ = f"{name}_distance"
    if name in inputs and field_ in inputs:
        raise InvalidProblem(field_, f"is given beside {name}; expected either points or their distances")
    if name not in inputs and field_ not in inputs:
        raise InvalidProblem(field_, f"is missing; expected a square matrix, or points {name}")
    if field_ in inputs:
        matrix = _real(field_, inputs, None)
        if matrix.shape[0] != matrix.shape[1]:
            raise InvalidProblem(field_, f"has shape {matrix.shape}; expected a square matrix")
        return matrix, None
    points = _real(name, inputs, None)
    matrix = worked_out(points, points, metric)
    if not np.isfinite(matrix).all():
        raise InvalidProblem(name, f"has no {metric} distance between some of its points")
    told["distances"] = f"worked out in float64 from points: {metric}"
    return matrix, points if metric == "sqeuclidean" else None


def _real(name: str, inputs: Inputs, shape: tuple[int, int] | None, least: float = -math.inf) -> Floats:
    """A matrix in float64, finite and not too large."""
    given = inputs[name]
    if isinstance(given, Csr):
        raise InvalidProblem(name, "is sparse; expected a dense matrix")
    matrix = finite(name, numeric(name, given, ndim=(2,))).astype(np.float64)
    if shape is not None and matrix.shape != shape:
        raise InvalidProblem(name, f"has shape {matrix.shape}; expected {shape}")
    most = LARGEST_COST if name == "cost" else LARGEST
    if float(abs(matrix).max()) > most:
        raise InvalidProblem(name, f"holds {float(abs(matrix).max()):.3g}; expected at most {most} in absolute value")
    if float(matrix.min()) < least:
        raise InvalidProblem(name, f"holds {float(matrix.min()):.3g}; expected at least {least}")
    return matrix


def _weights(name: str, inputs: Inputs, size: int) -> Floats:
    if name not in inputs:
        return np.full(size, 1 / size)
    given = inputs[name]
    if isinstance(given, Csr):
        raise InvalidProblem(name, "is sparse; expected weights, one a point")
    weights = finite(name, numeric(name, given, ndim=(1,))).astype(np.float64)
    if weights.shape != (size,):
        raise InvalidProblem(name, f"has {weights.size} entries; expected {size}, one a point of its space")
    if float(weights.min()) < 0:
        at = int(weights.argmin())
        raise InvalidProblem(name, f"holds {weights[at]} at [{at}]; expected weights of at least 0")
    largest = float(weights.max())
    if not 0 < largest <= LARGEST or largest < 1 / LARGEST:
        raise InvalidProblem(name, f"has the largest weight {largest}; expected one from {1 / LARGEST} to {LARGEST}")
    return np.where(weights < LIGHTEST * largest, 0.0, weights)


def _cost(inputs: Inputs, shape: tuple[int, int]) -> Floats | None:
    features = [name for name in ("x_features", "y_features") if name in inputs]
    if not features:
        return _real("cost", inputs, shape) if "cost" in inputs else None
    if "cost" in inputs or len(features) == 1:
        raise InvalidProblem(features[0], "stands alone or beside cost; expected x_features and y_features, or cost")
    left, right = (_real(name, inputs, None) for name in features)
    if (len(left), len(right)) != shape or left.shape[1] != right.shape[1]:
        said = f"have the shapes {left.shape} and {right.shape}"
        raise InvalidProblem("y_features", f"and x_features {said}; expected a row a point, of one dimension")
    return worked_out(left, right, "sqeuclidean")
