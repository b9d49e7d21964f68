"""Entropic unbalanced optimal transport: the problem and its checks."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from kernels.problems.arrays import TOLD, Array, Floats, Inputs, Integers, InvalidProblem, Reals, finite, numeric
from kernels.problems.seen import seen_of

STRONGEST = 1e8
"""Of reg_m over the larger of reg and the costs: the certificate multiplies the rounding of a marginal by reg_m."""
METRICS = ("sqeuclidean", "euclidean", "inner")
REFERENCES = ("product", "uniform")

LARGEST_DIMENSION = 1024
LARGEST_EXPONENT = 500.0  # exp(500) squared is still a float64
LARGEST_REG = 1e300  # whatever float64 adds up and scales by powers of two stays below its largest
LARGEST_RANGE = 1e12  # cost range over reg: beyond it float64 cannot tell two plans apart
FEW_COORDINATES = 7  # up to which the squares of points are added up column by column
SAME_MASS = 1e-5  # relative difference of two float32 sums of the same masses


@dataclass(frozen=True, eq=False)
class UnbalancedTransport:
    """min over P >= 0 of <C, P> + reg Omega(P) + reg_m[0] KL(P 1 | a) + reg_m[1] KL(P' 1 | b).

    Omega(P) is KL(P | a x b) for `reference` "product" and sum P (log P - 1), the negative entropy, for
    "uniform"; KL(p | q) is sum p log(p / q) - p + q. `reg_m` = inf makes that marginal exact (balanced).

    Either `cost` (m, n) or the point clouds `x` (m, d), `y` (n, d) with `metric` are given: C is then
    |x - y|^2 ("sqeuclidean"), |x - y| ("euclidean") or -<x, y> ("inner"). A `cost` of +inf forbids an entry.
    `a` (m,), `b` (n,) are float64, need not sum to one, and may hold zeros: such rows and columns of P are zero. A
    side may hold nothing but zeros: the one plan left is then zero, unless the other side has mass and is exact.
    With a batch, `cost` is (batch, m, n), `a` (batch, m), `b` (batch, n); zeros at the end of a and b pad ragged
    problems. `f0`, `g0` are potentials to start from (float64, shapes of a and b). `mass_factor` is what b was
    multiplied with, once, so that two balanced sides have one mass; one factor for each problem of a batch. `told` is
    what the answer says of how the problem came to be: the scale of its costs, and how they were worked out. `labels`
    (n,) int64, from 0 on, are what the columns are known as; they change nothing of the plan.
    """

    a: Array
    b: Array
    reg: float
    reg_m: tuple[float, float]
    cost: Reals | None = None
    x: Reals | None = None
    y: Reals | None = None
    metric: str = "sqeuclidean"
    reference: str = "product"
    f0: Floats | None = None
    g0: Floats | None = None
    mass_factor: float | tuple[float, ...] = field(default=1.0, metadata=TOLD)
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)
    labels: Integers | None = None

    @functools.cached_property
    def cost_bounds(self) -> tuple[float, float]:
        """Bounds (low, high) on the finite costs; exact for a matrix, from the norms for point clouds."""
        return _cost_bounds(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of one plan."""
        return self.a.shape[-1], self.b.shape[-1]

    @property
    def batch(self) -> int | None:
        """Number of problems, None when there is one without a batch axis."""
        return self.a.shape[0] if self.a.ndim == 2 else None

    def one(self, k: int) -> "UnbalancedTransport":
        """Problem `k` of the batch (views, no copies)."""
        pick = {name: value[k] for name in ("a", "b", "cost", "f0", "g0") if (value := getattr(self, name)) is not None}
        factor = self.mass_factor[k] if isinstance(self.mass_factor, tuple) else self.mass_factor
        return UnbalancedTransport(reg=self.reg, reg_m=self.reg_m, reference=self.reference, mass_factor=factor, **pick)


def transport(
    inputs: Inputs,
    *,
    reg: float,
    reg_m: tuple[float, float],
    metric: str = "sqeuclidean",
    reference: str = "product",
    settle: Callable[[UnbalancedTransport], UnbalancedTransport] | None = None,
    in_range: bool = True,
) -> UnbalancedTransport:
    """Check named inputs and return the problem.

    Masses left out are uniform and sum to one. With both sides balanced, b is rescaled to the mass of a when the two
    differ by rounding alone. `settle` gives a problem its strengths where these follow from its costs.
    Without `in_range` nobody looks whether float64 can answer it with these strengths.

    Raises:
        InvalidProblem: names the input or option that is wrong and what was expected.
    """
    if not (reg > 0 and np.isfinite(reg)):
        raise InvalidProblem("reg", f"is {reg}; expected a finite number above 0")
    if not all(strength > 0 for strength in reg_m):
        raise InvalidProblem("reg_m", f"is {reg_m}; expected numbers above 0 (inf for an exact marginal)")
    if metric not in METRICS:
        raise InvalidProblem("metric", f"is {metric!r}; expected one of {', '.join(METRICS)}")
    if reference not in REFERENCES:
        raise InvalidProblem("reference", f"is {reference!r}; expected one of {', '.join(REFERENCES)}")
    geometry = _clouds(inputs, metric) if "x" in inputs or "y" in inputs else _cost(inputs)
    cost = geometry.get("cost")
    lead = () if cost is None else cost.shape[:-2]
    m, n = (len(geometry["x"]), len(geometry["y"])) if cost is None else cost.shape[-2:]
    a = masses_of("a", inputs.get("a"), (*lead, m))
    b = masses_of("b", inputs.get("b"), (*lead, n))
    factor: float | tuple[float, ...] = 1.0
    if np.isinf(reg_m).all():
        b, factor = same_mass(a, b)
    start = {name: start_of(name, inputs[name], of.shape) for name, of in (("f0", a), ("g0", b)) if name in inputs}
    arrays: dict[str, Any] = geometry | start
    problem = UnbalancedTransport(a, b, reg, reg_m, metric=metric, reference=reference, mass_factor=factor, **arrays)
    problem = problem if settle is None else settle(problem)
    if in_range:
        check_range(problem)
    return problem


def _clouds(inputs: Inputs, metric: str) -> dict[str, Array]:
    if "cost" in inputs:
        raise InvalidProblem("cost", "is given beside x or y; expected either a cost matrix or two point clouds")
    for name, other in (("x", "y"), ("y", "x")):
        if name not in inputs:
            raise InvalidProblem(name, f"is missing; expected both point clouds, and {other} is here")
    x, y = (real(name, inputs[name], (2,)) for name in ("x", "y"))
    if x.shape[1] != y.shape[1]:
        raise InvalidProblem("y", f"has points of dimension {y.shape[1]}; expected {x.shape[1]}, as in x")
    if x.shape[1] > LARGEST_DIMENSION:
        raise InvalidProblem("x", f"has dimension {x.shape[1]}; expected at most {LARGEST_DIMENSION}, or a cost matrix")
    dtype = np.result_type(x, y)
    return {"x": x.astype(dtype, copy=False), "y": y.astype(dtype, copy=False)}


def _cost(inputs: Inputs) -> dict[str, Array]:
    if "cost" not in inputs:
        raise InvalidProblem("cost", "is missing; expected a cost matrix, or point clouds x and y")
    return {"cost": real("cost", inputs["cost"], (2, 3), allow=np.inf)}


def real(name: str, value: Any, ndim: tuple[int, ...], allow: float | None = None) -> Reals:
    """A dense array of floats, looked through. Raises InvalidProblem."""
    if not isinstance(value, np.ndarray):
        raise InvalidProblem(name, "is sparse; expected a dense array")
    array = finite(name, numeric(name, value, ndim=ndim), allow=allow)
    return cast(Reals, array) if array.dtype.kind == "f" else array.astype(np.float64)


def masses_of(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Masses of a side, looked through; uniform where none are given. Raises InvalidProblem."""
    if value is None:
        return np.full(shape, 1.0 / shape[-1])
    array = real(name, value, (1, 2)).astype(np.float64)
    if array.ndim == 1 and len(shape) == 2 and array.shape[0] == shape[1]:
        array = np.ascontiguousarray(np.broadcast_to(array, shape))
    if array.shape != shape:
        raise InvalidProblem(name, f"has shape {array.shape}; expected {shape}")
    if (array < 0).any():
        where = ", ".join(str(int(i)) for i in np.unravel_index(int(array.argmin()), shape))
        raise InvalidProblem(name, f"holds {array.min()} at [{where}]; expected masses of at least 0")
    total = array.sum(axis=-1)
    if not np.isfinite(total).all():
        raise InvalidProblem(name, "sums to more than float64 holds; expected a finite total mass")
    return array


def same_mass(a: Floats, b: Floats) -> tuple[Floats, float | tuple[float, ...]]:
    """b times the factor that gives it the mass of a, and the factor; 1 where the exact sums round to the same.

    No factor brings mass to a side that has none: where one has none both stay as they are, and the answer says
    what follows.
    """
    factor = mass_factors(*(exact_sums(np.atleast_2d(masses)) for masses in (a, b)))
    scaled = b if (factor == 1).all() else b * factor.reshape(*a.shape[:-1], 1)
    return scaled, tuple(factor.tolist()) if a.ndim == 2 else float(factor[0])


def mass_factors(of_a: Floats, of_b: Floats) -> Floats:
    """What brings each sum of b to that of a. Raises InvalidProblem where more than rounding keeps them apart."""
    some = (of_a > 0) & (of_b > 0)
    apart = some & (abs(of_a - of_b) > SAME_MASS * of_a)
    if apart.any():
        k = int(apart.argmax())
        raise InvalidProblem(
            "b",
            f"has mass {float(of_b[k]):.9g} and a has {float(of_a[k]):.9g}; expected equal masses when both"
            " sides are balanced (reg_m inf), or a finite reg_m on one side",
        )
    return np.asarray(np.where(some, of_a, 1.0) / np.where(some, of_b, 1.0))


def exact_sums(lines: Floats) -> Floats:
    """Of each line, rounded once. Lines that are all alike, as masses that were left out, are added up once."""
    if len(lines) > 1 and (lines == lines[0]).all():
        return np.full(len(lines), math.fsum(lines[0].tolist()))
    return np.array([math.fsum(line.tolist()) for line in lines])


def start_of(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Potentials to start from. Raises InvalidProblem."""
    if not isinstance(value, np.ndarray) or value.shape != shape:
        raise InvalidProblem(name, f"has shape {getattr(value, 'shape', None)}; expected {shape}")
    array = numeric(name, value, ndim=(1, 2)).astype(np.float64)
    if np.isnan(array).any():
        raise InvalidProblem(name, "holds NaN; expected potentials")
    # Rows without mass or without an allowed entry end at -inf and +inf; they are worked out afresh.
    return np.where(np.isfinite(array), array, 0.0)


def _cost_bounds(problem: UnbalancedTransport) -> tuple[float, float]:
    if problem.cost is not None:
        seen = seen_of(problem.cost)
        if seen is not None and seen.low is not None and seen.high is not None and not seen.minus:
            return float(seen.low), float(seen.high)
        high = problem.cost.max()
        if high == np.inf:
            high = np.max(problem.cost, where=np.isfinite(problem.cost), initial=-np.inf)
        return float(problem.cost.min()), float(high)
    assert problem.x is not None
    assert problem.y is not None
    return bounds_between(float(norms(problem.x).max()), float(norms(problem.y).max()), problem.metric)


def norms(points: Reals) -> Floats:
    """How far each point (k, d) is from the origin, in float64."""
    wide = points.astype(np.float64)
    with np.errstate(over="ignore"):
        if wide.shape[1] > FEW_COORDINATES:
            return np.asarray(np.linalg.norm(wide, axis=1))
        squares = wide[:, 0] * wide[:, 0]  # a sum over a row of two costs more than the row
        for column in wide.T[1:]:
            squares += column * column
        return np.asarray(np.sqrt(squares))


def bounds_between(of_x: float, of_y: float, metric: str) -> tuple[float, float]:
    """Bounds on the costs between points that are no farther than this from the origin."""
    if metric == "inner":
        return -of_x * of_y, of_x * of_y
    span = of_x + of_y
    return 0.0, span * span if metric == "sqeuclidean" else span


def in_range(bounds: tuple[float, float], reg: float, reg_m: tuple[float, float]) -> bool:
    """Whether `check_range` refuses no problem with these strengths whose finite costs are all within these bounds."""
    low, high = bounds
    if not math.isfinite(high - low) or high - low > LARGEST_RANGE * reg or not reg <= LARGEST_REG:
        return False
    if any(STRONGEST * reg < strength < math.inf for strength in reg_m):
        return False
    return -low / (reg + sum(reg_m)) <= LARGEST_EXPONENT and -low / min(reg_m) <= LARGEST_EXPONENT


def check_range(problem: UnbalancedTransport) -> None:
    """Refuse what no float64 arithmetic can answer, so that no exponential overflows later."""
    name = "x" if problem.cost is None else "cost"
    low, high = problem.cost_bounds
    if problem.cost is not None and low == np.inf:
        return  # every entry is forbidden: an answer, not an error
    if not problem.reg <= LARGEST_REG:
        raise InvalidProblem("reg", f"is {problem.reg:g}; expected at most {LARGEST_REG:g}")
    if not math.isfinite(high - low) or high - low > LARGEST_RANGE * problem.reg:
        raise InvalidProblem(
            name, f"ranges over {high - low:.3g}, more than {LARGEST_RANGE:g} times reg; expected a larger reg"
        )
    most = STRONGEST * max(problem.reg, abs(low), abs(high))
    if any(most < strength < math.inf for strength in problem.reg_m):
        expected = f'at most {most:g}, beyond which float64 cannot show a gap, or "inf" for an exact marginal'
        raise InvalidProblem("reg_m", f"is {problem.reg_m}; expected {expected}")
    # One entry alone would carry exp(-cost / (reg + sum of reg_m)); the row and column potentials are of that order.
    exponent = -low / (problem.reg + sum(problem.reg_m))
    if exponent > LARGEST_EXPONENT or -low / min(problem.reg_m) > LARGEST_EXPONENT:
        raise InvalidProblem(
            name,
            f"goes down to {low:.6g}, and creating mass there pays up to exp({-low / min(problem.reg_m):.3g}); expected"
            f" costs above {-LARGEST_EXPONENT:g} times reg_m",
        )
