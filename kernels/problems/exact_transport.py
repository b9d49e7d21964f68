"""Optimal transport without an entropic term: the problem and its checks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.problems.arrays import FORBIDDEN, TOLD, Amounts, Floats, Inputs, InvalidProblem, Mask, finite, numeric
from kernels.problems.worked_out import worked_out

LARGEST_WHOLE = 1 << 60
"""Of the sum of whole masses, and of a whole cost."""
SAME_MASS = 1e-5  # relative difference of two float32 sums of the same masses


@dataclass(frozen=True, eq=False)
class ExactTransport:
    """min over P >= 0 of <C, P> with the row sums a and the column sums b.

    `cost` (m, n) is float64, where +inf forbids an entry, or int64, where FORBIDDEN does. `a` (m,), `b` (n,) are
    float64, or both int64 with one sum. `mass_factor` is what float masses b were multiplied with, so that both sums
    are one but for rounding. `told` is what the answer says of how the costs were worked out.
    """

    cost: Amounts
    a: Amounts
    b: Amounts
    mass_factor: float = field(default=1.0, metadata=TOLD)
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)
    batch: None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the plan."""
        return self.a.size, self.b.size

    @property
    def whole(self) -> bool:
        """True where costs and masses are integers, which leaves nothing to rounding."""
        return self.cost.dtype == np.int64 and self.a.dtype == np.int64

    @property
    def permitted(self) -> Mask:
        """The entries that a plan may use, as booleans."""
        if self.cost.dtype == np.int64:
            return np.asarray(self.cost != FORBIDDEN)
        return np.isfinite(self.cost)


def exact_transport(inputs: Inputs, metric: str) -> ExactTransport:
    """Check named inputs and return the problem. Masses left out are uniform and sum to one.

    Raises:
        InvalidProblem: names the input that is wrong and what was expected.
    """
    cost, told = costs_of(inputs, metric)
    a, b = (masses_of(name, inputs.get(name), size) for name, size in zip("ab", cost.shape, strict=True))
    if a.dtype == b.dtype == np.int64:
        if a.sum() != b.sum():
            raise InvalidProblem("b", f"sums to {b.sum()} and a to {a.sum()}; expected the same sum")
        return ExactTransport(cost, a, b, 1.0, told)
    a, scaled = a.astype(np.float64), b.astype(np.float64)
    of_a, of_b = math.fsum(a), math.fsum(scaled)
    if abs(of_a - of_b) > SAME_MASS * of_a:
        raise InvalidProblem("b", f"sums to {of_b:.9g} and a to {of_a:.9g}; expected the same sum for method exact")
    factor = of_a / of_b if of_b else 1.0
    return ExactTransport(cost, a, scaled if factor == 1 else scaled * factor, factor, told)


def costs_of(inputs: Inputs, metric: str) -> tuple[Amounts, dict[str, Any]]:
    """Costs (m, n), float64 or int64, of one problem without an entropic term; and what the answer says of them."""
    if "x" in inputs or "y" in inputs:
        if "cost" in inputs:
            raise InvalidProblem("cost", "is given beside x or y; expected either a cost matrix or two point clouds")
        x, y = (_points(name, inputs) for name in ("x", "y"))
        if x.shape[1] != y.shape[1]:
            raise InvalidProblem("y", f"has points of dimension {y.shape[1]}; expected {x.shape[1]}, as in x")
        cost = worked_out(x, y, metric)
        if not np.isfinite(cost).all():
            raise InvalidProblem("x", "has costs beyond float64; expected points nearer to each other")
        return cost, {"costs": "worked out in float64"}
    given = inputs.get("cost")
    if not isinstance(given, np.ndarray):
        raise InvalidProblem("cost", "is missing or sparse; expected a cost matrix, or point clouds x and y")
    found = finite("cost", numeric("cost", given, ndim=(2,)), allow=np.inf)
    if found.dtype.kind == "f":
        return found.astype(np.float64), {}
    whole = found.astype(np.int64)
    if abs(whole[whole != FORBIDDEN].astype(np.float64)).max(initial=0.0) > LARGEST_WHOLE:
        raise InvalidProblem("cost", "holds integers beyond 2^60; expected smaller ones, or floats")
    return whole, {}


def _points(name: str, inputs: Inputs) -> Floats:
    given = inputs.get(name)
    if not isinstance(given, np.ndarray):
        raise InvalidProblem(name, "is missing or sparse; expected both point clouds")
    return finite(name, numeric(name, given, ndim=(2,)), allow=None).astype(np.float64)


def masses_of(name: str, value: Any, size: int) -> Amounts:
    """Masses of one side, float64 or int64, with a sum above 0; uniform of sum 1 where none are given."""
    if value is None:
        return np.full(size, 1.0 / size)
    if not isinstance(value, np.ndarray):
        raise InvalidProblem(name, "is sparse; expected a dense array")
    found = finite(name, numeric(name, value, ndim=(1,)), allow=None)
    if found.shape != (size,):
        raise InvalidProblem(name, f"has shape {found.shape}; expected {(size,)}")
    if (found < 0).any():
        raise InvalidProblem(name, f"holds {found.min()} at [{int(found.argmin())}]; expected masses of at least 0")
    whole = found.dtype.kind == "i"
    total = float(found.sum(dtype=np.float64))
    if not (0 < total < (LARGEST_WHOLE if whole else math.inf)):
        raise InvalidProblem(name, f"sums to {total}; expected a sum above 0" + (" and at most 2^60" if whole else ""))
    return found.astype(np.int64 if whole else np.float64)
