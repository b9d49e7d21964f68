"""Gromov-Wasserstein, checked in fractions: the sums of the plan, its objective, and the bound from the potentials.

The problem: min over couplings P of (1 - alpha) <M, P> + alpha sum (X_ik - Y_jl)^2 P_ij P_kl; (1 - alpha) is the
float64. Distances of points are those that float64 makes of them.
"""

from collections.abc import Mapping
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.problems.arrays import Array
from kernels.problems.worked_out import worked_out

Numbers = list[Fraction]
LARGEST_PRODUCTS, LARGEST_PIECES = 1 << 21, 1 << 20
"""Of fractions: up to which an objective, and the transports behind a bound, are worked out."""
CLOSE = Fraction(1, 10**9)
"""Of the sizes that an objective is a difference of: how far above the plan's own it may be stated."""
OPTIMAL = Fraction(11, 10**12)
"""Of the sizes that an objective is a difference of: 1e-11 and a tenth for rounding, for an optimum."""
SURE = Fraction(11, 10**10)
"""The same of the objective, or of the smallest distances and costs: dear ones that cancel may not hide the others."""


class Problem:
    """Both matrices, costs and weights of sum 1, as fractions."""

    def __init__(self, inputs: Inputs, options: Mapping[str, Any]) -> None:
        metric = options.get("metric", "sqeuclidean")
        self.x, self.y = (_fractions(_matrix(inputs, name, metric)) for name in "xy")
        self.n, self.m = len(self.x), len(self.y)
        self.a, self.b = _weights(inputs.get("a"), self.n), _weights(inputs.get("b"), self.m)
        cost: Any = inputs.get("cost")
        if "x_features" in inputs:
            cost = worked_out(_floats(inputs["x_features"]), _floats(inputs["y_features"]), "sqeuclidean")
        alpha = options.get("alpha")
        alpha = (1.0 if cost is None else 0.5) if alpha is None else float(alpha)
        self.alpha, self.rest = Fraction(alpha), Fraction(1 - alpha)
        self.cost = None if cost is None or alpha == 1 else _fractions(_floats(cost))

    @property
    def products(self) -> int:
        """Of one objective."""
        return self.n * self.m * (self.n + self.m)

    def value(self, plan: list[Numbers]) -> tuple[Fraction, Fraction]:
        """The objective of a plan, and the sum of the sizes that it is a difference of."""
        p, q = [sum(row) for row in plan], [sum(column) for column in zip(*plan, strict=True)]
        squares = sum((x * x * p[i] * p[k] for i, row in enumerate(self.x) for k, x in enumerate(row)), Fraction(0))
        squares += sum((y * y * q[j] * q[k] for j, row in enumerate(self.y) for k, y in enumerate(row)), Fraction(0))
        carried = [[_dot(row, column) for column in zip(*plan, strict=True)] for row in self.x]
        crossed = sum(
            (plan[i][j] * _dot(carried[i], self.y[j]) for i in range(self.n) for j in range(self.m) if plan[i][j]),
            Fraction(0),
        )
        value, size = self.alpha * (squares - 2 * crossed), self.alpha * squares
        if self.cost is not None:
            value += self.rest * sum((_dot(*pair) for pair in zip(self.cost, plan, strict=True)), Fraction(0))
            size += self.rest * sum(
                (abs(c) * p for r, s in zip(self.cost, plan, strict=True) for c, p in zip(r, s, strict=True)),
                Fraction(0),
            )
        return value, size

    def least(self) -> Fraction:
        """Of each space the smallest size but 0 times the middle one, and the smallest cost but 0."""
        found = Fraction(0)
        for matrix in (self.x, self.y):
            sizes = [abs(value) for row in matrix for value in row if value]
            found += self.alpha * min(sizes) * median(sizes) if sizes else Fraction(0)
        costs = [abs(value) for row in self.cost or [] for value in row if value]
        return found + (self.rest * min(costs) if costs else Fraction(0))

    def moved(self, off: Fraction) -> Fraction:
        """What sums that are off by so much may cost: three times that of the dearest entries, in both parts."""
        xs, ys = ([value for row in matrix for value in row] for matrix in (self.x, self.y))
        apart = max(max(xs) - min(ys), max(ys) - min(xs))
        dearest = Fraction(0) if self.cost is None else max(abs(value) for row in self.cost for value in row)
        return 3 * off * (self.rest * dearest + 3 * self.alpha * apart * apart)

    def third(self, f: Numbers, columns: bool) -> Fraction:
        """The third lower bound by rows or columns, at the potentials f and the best ones of the other side."""
        sides = []
        for matrix, weights in ((self.x, self.a), (self.y, self.b)):
            lines = [list(line) for line in zip(*matrix, strict=True)] if columns else matrix
            sides.append([sorted(zip(line, weights, strict=True)) for line in lines])
        total = sum((a * one for a, one in zip(self.a, f, strict=True)), Fraction(0))
        for j, (line, weight) in enumerate(zip(sides[1], self.b, strict=True)):
            costs = [self.alpha * on_a_line(other, line) for other in sides[0]]
            if self.cost is not None:
                costs = [cost + self.rest * self.cost[i][j] for i, cost in enumerate(costs)]
            total += weight * min(cost - one for cost, one in zip(costs, f, strict=True))
        return total


def on_a_line(left: list[tuple[Fraction, Fraction]], right: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The least sum of squared distances between two sorted distributions of (place, mass), of the same mass."""
    total, i, j = Fraction(0), 0, 0
    here, there = left[0][1], right[0][1]
    while True:
        moved = min(here, there)
        total += moved * (left[i][0] - right[j][0]) ** 2
        here, there = here - moved, there - moved
        while not here:
            i += 1
            if i == len(left):
                return total
            here = left[i][1]
        while not there:
            j += 1
            if j == len(right):
                return total
            there = right[j][1]


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer."""
    if claim.termination == "infeasible":
        return [Statement("infeasible", False, "the product of the weights is a plan, always")]
    problem, given = Problem(inputs, options), claim.arrays["plan"]
    if given.shape != (problem.n, problem.m) or not np.isfinite(given).all() or float(given.min()) < 0:
        return [Statement("answer", False, "it is not a plan of that shape, finite and not negative")]
    plan = _fractions(given)
    off = sum((abs(sum(row) - a) for row, a in zip(plan, problem.a, strict=True)), Fraction(0))
    off += sum(
        (abs(sum(column) - b) for column, b in zip(zip(*plan, strict=True), problem.b, strict=True)), Fraction(0)
    )
    covered = claim.max_violation is not None and off <= rational(claim.max_violation)
    said = [
        Statement("answer", off <= Fraction(1, 10**8), f"a plan whose sums are {float(off):.3g} from the weights"),
        Statement("violation", covered, f"{claim.max_violation} is stated, {float(off):.3g} found"),
    ]
    if problem.products > LARGEST_PRODUCTS:
        return [*said, Statement("objective", None, "it is too large to be worked out in fractions")]
    value, size = problem.value(plan)
    stated = None if claim.objective is None else rational(claim.objective)
    room = CLOSE * size + problem.moved(rational(claim.max_violation or 0)) + Fraction(1, 10**250)
    right = stated is not None and value <= stated <= value + room
    said.append(Statement("objective", right, f"{claim.objective} is stated, {plain(value)} found"))
    said.append(_bound(problem, claim))
    said += gap_statements(claim, value)
    if claim.optimal:
        most = min(OPTIMAL * size, SURE * max(abs(value), problem.least())) + Fraction(1, 10**250)
        close = claim.gap_abs is not None and rational(claim.gap_abs) <= most
        said.append(Statement("optimal", close, f"the gap is {claim.gap_abs}, the sizes are {float(size):.3g}"))
    if claim.termination == "gap_reached":
        asked = Fraction(options.get("tolerance", 1e-9))
        near = claim.gap_rel is not None and rational(claim.gap_rel) <= asked  # which was held against the gap above
        said.append(Statement("gap reached", near, f"{claim.gap_rel} is stated, {float(asked)} was asked"))
    return said


def _bound(problem: Problem, claim: Claim) -> Statement:
    if claim.bound is None:
        return Statement("bound", True, "none is stated")
    stated = rational(claim.bound)
    if stated <= 0 and (problem.cost is None or min(map(min, problem.cost)) >= 0):
        return Statement("bound", True, f"{claim.bound} is stated, and no cost is negative")
    if "f" not in claim.arrays or problem.products > LARGEST_PIECES:
        return Statement("bound", None, "the answer has no potentials, or is too large to be worked out in fractions")
    f = [Fraction(one) if np.isfinite(one) else Fraction(0) for one in claim.arrays["f"].tolist()]
    best = max(problem.third(f, columns) for columns in (False, True))
    return Statement("bound", True if stated <= best else None, f"{claim.bound} is stated, {plain(best)} found")


def _matrix(inputs: Inputs, name: str, metric: str) -> Array:
    if name in inputs:
        points = _floats(inputs[name])
        return worked_out(points, points, metric)
    return _floats(inputs[f"{name}_distance"])


def _floats(given: Any) -> Array:
    return np.asarray(given, np.float64)


def _fractions(matrix: Array) -> list[Numbers]:
    return [[Fraction(value) for value in row] for row in matrix.tolist()]


def _weights(given: Any, size: int) -> Numbers:
    if given is None:
        return [Fraction(1, size)] * size
    found = [Fraction(value) for value in _floats(given).tolist()]
    total = sum(found, Fraction(0))
    return [value / total for value in found]


def _dot(left: Any, right: Any) -> Fraction:
    return sum((x * y for x, y in zip(left, right, strict=True) if x and y), Fraction(0))
