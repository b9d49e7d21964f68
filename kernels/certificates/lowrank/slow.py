"""Low-rank transport, checked in fractions: the sums of the factors, their objective, and the bound of potentials.

The third implementation, to be read: it shares nothing with a solver or with the certificate that answers jobs. Costs
of points by sqeuclidean and inner, and products of factors, are those of the real numbers; other metrics are those that
float64 makes of the points.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.problems.arrays import Array
from kernels.problems.worked_out import worked_out

LARGEST = 1 << 18
"""Of products of fractions, up to which costs are worked out."""
CLOSE = Fraction(1, 10**9)
"""How far above the factors' own an objective may be stated, of the dearest cost."""
MOVED = Fraction(203, 100)
"""What mass that sums lack may cost on its way, of the dearest: two, and what rounds it up."""
LITTLE = Fraction(1, 2**900)
"""What underflows."""
OPTIMAL = Fraction(11, 10**10)
"""Relative gap of an optimum, and a tenth for rounding."""
Matrix = list[list[Fraction]]


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Say of each statement of an answer whether it holds."""
    if claim.termination == "infeasible":
        return [Statement("infeasible", False, "there always is a coupling")]
    arrays = [claim.arrays.get(name) for name in ("q", "r", "g")]
    if any(one is None for one in arrays):
        return [Statement("answer", False, "there are no factors")]
    q, r, g = (np.asarray(one, np.float64) for one in arrays)
    left, right, cost = _costs(inputs, options)
    m, n = (len(cost), len(cost[0])) if cost is not None else (len(left), len(right))
    a, b = _weights(inputs.get("a"), m), _weights(inputs.get("b"), n)
    sound = q.shape == (m, g.size) and r.shape == (n, g.size) and g.size <= int(options.get("rank", 10))
    if not sound or not all(np.isfinite(one).all() and one.min() >= 0 for one in (q, r, g)) or not g.all():
        return [Statement("answer", False, "these are no factors of that rank")]
    if m * n * (1 if cost is not None else len(left[0])) > LARGEST:
        return [Statement("answer", None, "it is too large to be checked in fractions")]
    full = cost if cost is not None else [[_dot(row, other) for other in right] for row in left]
    reach = max(abs(one) for row in full for one in row)
    if cost is None:
        reach = sum((max(map(abs, one)) * max(map(abs, other)) for one, other in _sides(left, right)), Fraction(0))
    if "x" in inputs and options.get("metric", "sqeuclidean") == "sqeuclidean":
        reach = sum(((max(one + other) - min(one + other)) ** 2 for one, other in _sides(left, right)), Fraction(0))
        full = [
            [sum(((s - t) ** 2 for s, t in zip(row, other, strict=True)), Fraction(0)) for other in right]
            for row in left
        ]
    plan = _plan(_fractions(q), _fractions(r), [Fraction(value) for value in g.tolist()])
    said = _said(full, plan, (_short(plan, a, b, q, r, g), reach), (a, b), claim)
    return [*said, *_earned(claim, Fraction(options.get("tolerance", 1e-6)))]


def _earned(claim: Claim, tolerance: Fraction) -> list[Statement]:
    """Whether the stated gap, checked beside it, allows the word that the answer ended with."""
    most = {"optimal": OPTIMAL, "gap_reached": tolerance}.get(claim.termination)
    if most is None:
        return []
    if claim.objective is None or claim.bound is None:
        return [Statement(claim.termination, False, "no objective or no bound is stated")]
    objective, bound = rational(claim.objective), rational(claim.bound)
    close = objective - bound <= most * max(abs(objective), abs(bound))
    return [Statement(claim.termination, close, f"objective and bound are {plain(objective - bound)} apart")]


def _said(
    cost: Matrix,
    plan: Matrix,
    apart: tuple[Fraction, Fraction],
    weights: tuple[list[Fraction], list[Fraction]],
    claim: Claim,
) -> list[Statement]:
    """`apart`: what sums lack, and what no cost exceeds, as the certificate has it from sides alone."""
    short, reach = apart
    value = sum((_dot(*pair) for pair in zip(cost, plan, strict=True)), Fraction(0))
    stated = rational(claim.max_violation or 0)
    said = [
        Statement("answer", True, "factors that are not negative"),
        Statement("violation", short <= stated <= CLOSE, f"sums are {plain(short)} off, {plain(stated)} is stated"),
    ]
    if claim.objective is None:
        return [*said, Statement("objective", False, "there is none")]
    objective = rational(claim.objective)
    right = value <= objective <= value + CLOSE * (reach + abs(value)) + MOVED * reach * stated + LITTLE
    said.append(Statement("objective", right, f"the factors cost {plain(value)}, {plain(objective)} is stated"))
    if claim.bound is None:
        return [*said, *gap_statements(claim, objective)]
    f = claim.arrays.get("f")
    if f is None or f.shape != (len(cost),):
        return [*said, Statement("bound", None, "there are no potentials")]
    potentials = [Fraction(one) if np.isfinite(one) else Fraction(0) for one in np.asarray(f, np.float64).tolist()]
    g = [min(row[j] - one for row, one in zip(cost, potentials, strict=True)) for j in range(len(cost[0]))]
    proved = _dot(potentials, weights[0]) + _dot(g, weights[1])
    if min(map(min, cost)) >= 0:
        proved = max(proved, Fraction(0))
    said.append(Statement("bound", rational(claim.bound) <= proved, f"potentials prove {plain(proved)}"))
    return [*said, *gap_statements(claim, objective)]


def _short(plan: Matrix, a: list[Fraction], b: list[Fraction], q: Array, r: Array, g: Array) -> Fraction:
    """What the sums of the plan lack of the weights, and those of the factors of g."""
    pairs = [*zip(map(sum, plan), a, strict=True), *zip(map(sum, zip(*plan, strict=True)), b, strict=True)]
    for factor in (q, r):
        sums = [sum(map(Fraction, column)) for column in factor.T.tolist()]
        pairs += [*zip(sums, map(Fraction, g.tolist()), strict=True)]
    return sum((abs(Fraction(one) - other) for one, other in pairs), Fraction(0))


def _plan(q: Matrix, r: Matrix, g: list[Fraction]) -> Matrix:
    thin = [[value / mass for value, mass in zip(row, g, strict=True)] for row in q]
    return [[_dot(row, other) for other in r] for row in thin]


def _costs(inputs: Inputs, options: Mapping[str, Any]) -> tuple[Matrix, Matrix, Matrix | None]:
    """Points or factors of both sides, or the costs themselves."""
    metric = options.get("metric", "sqeuclidean")
    if "cost" in inputs:
        return [], [], _fractions(_floats(inputs["cost"]))
    names = ("row_factors", "column_factors") if "row_factors" in inputs else ("x", "y")
    left, right = (_floats(inputs[name]) for name in names)
    if names[0] == "x" and metric not in ("sqeuclidean", "inner"):
        return [], [], _fractions(worked_out(left, right, metric))
    sign = -1 if names[0] == "x" and metric == "inner" else 1
    return _fractions(sign * left), _fractions(right), None


def _sides(left: Matrix, right: Matrix) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """Of each column its numbers on either side."""
    return (
        (list(one), list(other)) for one, other in zip(zip(*left, strict=True), zip(*right, strict=True), strict=True)
    )


def _weights(given: Any, size: int) -> list[Fraction]:
    if given is None:
        return [Fraction(1, size)] * size
    weights = np.asarray(given, np.float64)
    masses = [Fraction(one) for one in np.where(weights < 1e-250 * weights.max(), 0.0, weights).tolist()]
    return [mass / sum(masses) for mass in masses]


def _floats(given: Any) -> Array:
    return np.asarray(given, np.float64)


def _fractions(matrix: Array) -> Matrix:
    return [[Fraction(one) for one in row] for row in matrix.tolist()]


def _dot(left: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((one * other for one, other in zip(left, right, strict=True)), Fraction(0))
