"""Transport by couplings of low rank: the problem and its checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.problems.arrays import TOLD, Floats, Inputs, InvalidProblem
from kernels.problems.weighted import real_matrix, weights_of
from kernels.problems.worked_out import worked_out

MOST_PAIRS = 1 << 30
"""Rows times columns up to which a bound is worked out: each pass over them takes seconds."""
LARGEST_DIMENSION = 1024


@dataclass(frozen=True, eq=False)
class LowRankTransport:
    """min over couplings P = Q diag(1/g) R' of <C, P>, with Q (m, rank), R (n, rank) >= 0.

    Q has the row sums a / sum a, R has b / sum b, and both have the column sums g: weights count relative to their sum.
    C is one of three, each in float64: |x_i - y_j|^2 of points `x` (m, d) and `y` (n, d), as a real number; the product
    `left` (m, k) times `right` (n, k) transposed, as a real number; or `cost` (m, n). `rank` is at most min(m, n).
    `told` is what the answer says of how the problem came to be.
    """

    a: Floats
    b: Floats
    rank: int
    x: Floats | None = None
    y: Floats | None = None
    left: Floats | None = None
    right: Floats | None = None
    cost: Floats | None = None
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the coupling."""
        return self.a.size, self.b.size

    @property
    def width(self) -> int:
        """Products that one cost takes."""
        if self.x is not None:
            return int(self.x.shape[1]) + 2
        return 1 if self.left is None else int(self.left.shape[1])

    @property
    def bounded(self) -> bool:
        """Whether it is small enough for a bound."""
        return self.a.size * self.b.size <= MOST_PAIRS


def low_rank_transport(inputs: Inputs, *, rank: int, metric: str) -> LowRankTransport:
    """Check named inputs and return the problem. Weights left out are uniform.

    Args:
        inputs: `cost`, or `x` and `y`, or `row_factors` and `column_factors`; `a`, `b`.
        rank: of the coupling; more than min(m, n) means that.
        metric: of points.

    Raises:
        InvalidProblem: names the input that is wrong and what was expected.
    """
    told: dict[str, Any] = {}
    costs = _costs(inputs, metric, told)
    m, n = costs["cost"].shape if "cost" in costs else [len(side) for side in costs.values()]
    a, b = weights_of("a", inputs, m), weights_of("b", inputs, n)
    return LowRankTransport(a, b, min(rank, m, n), told=told, **costs)


def _costs(inputs: Inputs, metric: str, told: dict[str, Any]) -> dict[str, Floats]:
    ways = (("cost",), ("x", "y"), ("row_factors", "column_factors"))
    given = [way for way in ways if any(name in inputs for name in way)]
    if len(given) > 1:
        raise InvalidProblem(given[1][0], f"is given beside {given[0][0]}; expected costs, points or factors alone")
    if not given:
        raise InvalidProblem("cost", "is missing; expected a cost matrix, points x and y, or factors")
    names = given[0]
    missing = [name for name in names if name not in inputs]
    if missing:
        raise InvalidProblem(missing[0], f"is missing; expected both of {' and '.join(names)}")
    if "cost" in names:
        return {"cost": real_matrix("cost", inputs)}
    left, right = (real_matrix(name, inputs) for name in names)
    if left.shape[1] != right.shape[1]:
        raise InvalidProblem(names[-1], f"has {right.shape[1]} columns; expected {left.shape[1]}, as {names[0]}")
    if "row_factors" in names:
        return {"left": left, "right": right}
    if left.shape[1] > LARGEST_DIMENSION and metric in ("sqeuclidean", "inner"):
        expected = f"at most {LARGEST_DIMENSION}, or a cost matrix"
        raise InvalidProblem("x", f"has dimension {left.shape[1]}; expected {expected}")
    if metric == "sqeuclidean":
        return {"x": left, "y": right}
    if metric == "inner":
        return {"left": -left, "right": right}
    cost = worked_out(left, right, metric)
    if not np.isfinite(cost).all():
        raise InvalidProblem("x", f"and y have no {metric} distance between some of their points")
    told["costs"] = f"worked out in float64 from points: {metric}"
    return {"cost": cost}
