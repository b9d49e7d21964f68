"""Costs of points as fractions, and the re-check of an assignment between two clouds of points.

Sums, products and quotients are exact. A square root is within 2^-200 of itself, which is all that cosine, correlation
and Euclidean distances lose.
"""

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from kernels.certificates.exact import assignment
from kernels.certificates.exact.statement import Claim, Inputs, Statement, dyadic, gap_statements, rational
from kernels.problems.arrays import Array, Csr

Point = list[Fraction]
DIRECTIONS = ("cosine", "correlation")
ROOTED = ("euclidean", *DIRECTIONS)
"""Metrics with a square root in them."""
PLACES = 200


def clouds(inputs: Inputs, options: dict[str, Any]) -> tuple[list[Point], list[Point], str]:
    """The points x and y, and the metric."""
    x, y = inputs["x"], inputs["y"]
    assert not isinstance(x, Csr)
    assert not isinstance(y, Csr)
    points_x, points_y = ([[Fraction(c) for c in point] for point in cloud.tolist()] for cloud in (x, y))
    return points_x, points_y, options.get("metric") or "sqeuclidean"


def cost(p: Point, q: Point, metric: str) -> Fraction:
    """The cost of a pair of points, see `kernels/problems/metrics.py` for the formulas."""
    if metric == "iou":
        return _overlap(p, q)
    if metric == "inner":
        return -_product(p, q)
    if metric == "correlation":
        return cost(_centred(p), _centred(q), "cosine")
    if metric == "cosine":
        return 1 - _product(p, q) / root(_product(p, p) * _product(q, q))
    steps = [abs(a - b) for a, b in zip(p, q, strict=True)]
    if metric == "cityblock":
        return sum(steps, Fraction(0))
    squared = sum((step * step for step in steps), Fraction(0))
    return squared if metric == "sqeuclidean" else root(squared)


def root(square: Fraction) -> Fraction:
    """The square root, rounded down by at most 2^-PLACES of itself."""
    whole = square.numerator * square.denominator
    extra = max(0, 2 * PLACES - whole.bit_length())
    extra += extra % 2
    return Fraction(isqrt(whole << extra), square.denominator << (extra // 2))


def _product(p: Point, q: Point) -> Fraction:
    return sum((a * b for a, b in zip(p, q, strict=True)), Fraction(0))


def _centred(p: Point) -> Point:
    mean = sum(p, Fraction(0)) / len(p)
    return [c - mean for c in p]


def _overlap(p: Point, q: Point) -> Fraction:
    """1 - intersection / union of boxes; 1 where they share no area."""
    width, height = (min(p[2 + k], q[2 + k]) - max(p[k], q[k]) for k in (0, 1))
    if width <= 0 or height <= 0:
        return Fraction(1)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (p, q)]
    return 1 - width * height / (sum(areas, Fraction(0)) - width * height)


def table(inputs: Inputs, options: dict[str, Any]) -> tuple[list[list[Fraction]], Fraction]:
    """All costs, and what their sum over any pairing may be off by."""
    x, y, metric = clouds(inputs, options)
    scaled = metric in ("sqeuclidean", "cityblock", "inner")
    if not scaled:
        costs = [[cost(p, q, metric) for q in y] for p in x]
    else:  # whole numbers over one power of two are ten times as fast as fractions
        arrays = [np.asarray(inputs[name]) for name in "xy"]
        (left, right), shift = dyadic(*arrays)
        power = shift if metric == "cityblock" else 2 * shift
        costs = [[Fraction(_whole(p, q, metric), 1 << power) for q in right] for p in left]
    if metric not in ROOTED:
        return costs, Fraction(0)
    largest = sum((max((max(abs(c), Fraction(1, 2**1000)) for c in row)) for row in costs), Fraction(0))
    near_one = len(costs) if metric in DIRECTIONS else 0
    return costs, (largest + near_one) / 2 ** (PLACES - 10)


def allowed(inputs: Inputs, options: dict[str, Any], size: Fraction, least: Fraction = Fraction(1)) -> Fraction:
    """By how much a sum of costs may be stated too large, before it is rounded.

    Each is known to some 100 bits of itself, of inner products and directions to as many of the terms they are made of,
    and no better than products near the smallest float64 are. A root is off by that over itself: `least` is the
    smallest cost of the sum that is not 0. A share of an area is known to 2^-150 beside.
    """
    x, y, metric = clouds(inputs, options)
    underflow = Fraction(min(len(x), len(y)) * (len(x[0]) + 16), 2**1058)
    if metric == "euclidean":
        underflow /= min(least, Fraction(1))
    if metric == "iou":  # shares of areas that are far apart in size
        underflow += Fraction(min(len(x), len(y)), 2**149)
    return _share_of(x, y, metric, size) + underflow


def _share_of(x: list[Point], y: list[Point], metric: str, size: Fraction) -> Fraction:
    share = Fraction((len(x[0]) + 16) ** 2, 2**92)
    if metric in DIRECTIONS:
        return share * (min(len(x), len(y)) + size)
    if metric == "inner":
        longest = (max(sum((abs(c) for c in point), Fraction(0)) for point in cloud) for cloud in (x, y))
        return share * min(len(x), len(y)) * next(longest) * next(longest)
    return share * size


def _whole(p: list[int], q: list[int], metric: str) -> int:
    if metric == "inner":
        return -sum(a * b for a, b in zip(p, q, strict=True))
    if metric == "cityblock":
        return sum(abs(a - b) for a, b in zip(p, q, strict=True))
    return sum((a - b) ** 2 for a, b in zip(p, q, strict=True))


def check(inputs: Inputs, options: dict[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of the answer of an assignment between points."""
    if claim.termination == "infeasible":
        return [Statement("infeasible", False, "every pair of points may be formed, so that there is an answer")]
    costs, slack = table(inputs, options)
    maximize = bool(options.get("maximize"))
    chosen: list[int] = claim.arrays["assignment"].tolist()
    shape = (len(costs), len(costs[0]))
    taken, wrong = assignment.pairing(np.zeros(shape), chosen)
    if wrong:
        return [Statement("answer", False, wrong)]
    said = [Statement("answer", True, f"{len(taken)} pairs, no column twice")]
    values = [costs[i][j] for i, j in taken]
    size = sum((abs(value) for value in values), Fraction(0))
    objective = sum(values, Fraction(0)) if len(taken) == min(shape) else None
    least = min((value for value in values if value), default=Fraction(1))
    slack_of_all = allowed(inputs, options, size, least) + slack
    said.append(assignment.stated_objective(claim, objective, size + slack_of_all * 2**53, len(taken)))
    u, v = (_known(claim.arrays[name]) for name in "uv")
    matrix: Any = costs
    sign = -1 if maximize else 1
    shown = [Fraction(bound) + sign * slack for bound in assignment.dual_bounds(matrix, u, v, maximize)]
    said.append(assignment.stated_bound(claim, shown, maximize))
    nearer = None if objective is None else objective - sign * slack
    said += gap_statements(claim, nearer, maximize)
    if claim.optimal:
        returned = sum((abs(u[i]) + abs(v[j]) for i, j in taken), Fraction(0))
        duals = max(returned, Fraction(assignment.tightened(matrix, u, v, taken, maximize)))
        said.append(_earned(claim, size + duals + slack, costs))
    return said


def _known(duals: Array) -> Any:
    """Duals as fractions, 0 for what is no number."""
    return [Fraction(dual) for dual in np.where(np.isfinite(duals), duals, 0.0).tolist()]


def _earned(claim: Claim, magnitude: Fraction, costs: list[list[Fraction]]) -> Statement:
    """As `assignment.earned`, whatever the type of the coordinates: costs of points are certified as floats."""
    smallest = sum((min((abs(c) for c in row if c), default=Fraction(0)) for row in costs), Fraction(0))
    if claim.gap_abs is None or claim.objective is None:
        return Statement("optimal", False, "an optimum is claimed without a gap")
    gap = rational(claim.gap_abs)
    most = min(assignment.EARNED * magnitude, assignment.FROM_DATA * max(abs(rational(claim.objective)), smallest))
    return Statement("optimal", gap <= most, f"the gap may be {float(most)} and is {claim.gap_abs}")
