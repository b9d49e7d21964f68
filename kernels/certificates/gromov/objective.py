"""At least the objective of a plan, and at least what its sums lack of the weights.

Arithmetic. Matrices are first multiplied by one power of two, exactly but for what underflows, so that the largest
distance is in [1/2, 1). With u = 2^-53 and gamma(k) = k u / (1 - k u), a sum of k products is off by gamma(k) times the
sum of their sizes at most, in any order of summation and with or without fused operations (N. J. Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, sections 3.1 and 3.5); LITTLE covers what underflows. Of a plan with row sums
p and column sums q

    sum (X_ik - Y_jl)^2 P_ij P_kl = sum X_ik^2 p_i p_k + sum Y_jl^2 q_j q_l - 2 <X P Y', P>.

The first two have no negative terms, and their factors p are sums of m entries: they are relatively off by
gamma(2 n + 2 m + 6). The last is off by gamma(n + 2 m + 4) <|X| P |Y|', P>, rows being summed exactly at the end.

A plan whose sums are off by delta in all (added up over rows and columns) is within 2 delta, entry by entry, of a
coupling (Altschuler, Weed, Rigollet 2017, lemma 7). Two plans of mass at most 1 + delta that differ by 2 delta differ
in value by at most 2 delta ((1 - alpha) max |M| + alpha (2 + delta) max (X - Y)^2), which is added: so the objective is
at least that of a true coupling as well as that of the plan.
"""

from dataclasses import dataclass

import numpy as np

from kernels.certificates.rounded import add_up, mul_up, sum_up
from kernels.problems.arrays import Array
from kernels.problems.gromov import GromovWasserstein

UNIT = 2.0**-53
LITTLE = 2.0**-900
"""More than what products of numbers below 1 lose by underflow, be it 2^100 of them."""


@dataclass(frozen=True)
class Worth:
    """Of a plan: `value` at least its objective, `size` about the sum of the sizes in it, `short` what sums lack.

    `least` is a size of the smallest distances and costs, which the dearest cannot lift.
    """

    value: float
    size: float
    short: float
    least: float


def gamma(count: int) -> float:
    """k u / (1 - k u), rounded up."""
    return 1.001 * count * UNIT


def shares(weights: Array) -> Array:
    """Weights over their sum, each relatively off by less than gamma(4)."""
    scaled = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    return np.asarray(scaled / sum_up(scaled))


def exponent_of(problem: GromovWasserstein) -> int:
    """k where the largest distance is in [2^(k - 1), 2^k); 0 where all are 0."""
    largest = max(float(abs(problem.x_distance).max()), float(abs(problem.y_distance).max()))
    return int(np.frexp(largest)[1])


def worth(problem: GromovWasserstein, plan: Array) -> Worth:
    """The objective of a plan that is finite and not negative, rounded up."""
    n, m = plan.shape
    power = exponent_of(problem)
    x, y = (np.ldexp(matrix, -power) for matrix in (problem.x_distance, problem.y_distance))
    p, q = plan.sum(axis=1), plan.sum(axis=0)
    short = _short(p, shares(problem.a), m) + _short(q, shares(problem.b), n)
    squares = float(p @ (x * x) @ p) + float(q @ (y * y) @ q)
    crossed = x @ plan @ y.T
    off = abs(x) @ plan @ abs(y).T if min(float(x.min()), float(y.min())) < 0 else crossed
    product = 2 * sum_up(-np.einsum("ij,ij->i", crossed, plan))
    sizes = float((off * plan).sum()) * (1 + gamma(4 * (n + m)))
    wide = gamma(2 * (n + m) + 8) * (squares + 2 * sizes) * (1 + gamma(4 * (n + m))) + LITTLE
    quadratic = max(0.0, float(add_up(add_up(squares, product), wide)))
    apart = max(float(x.max()) - float(y.min()), float(y.max()) - float(x.min()))
    moved = 2 * short * (2 + short) * apart * apart * (1 + 16 * UNIT)
    quadratic = float(np.ldexp(add_up(quadratic, moved), 2 * power)) * (1 + 2 * UNIT) + 5e-324
    size = float(np.ldexp(squares, 2 * power)) * problem.alpha
    value = mul_up(problem.alpha, quadratic) if x.any() or y.any() else np.float64(0)
    if problem.cost is not None and problem.cost.any():
        linear, of_linear = _linear(problem.cost, plan, short)
        value, size = add_up(value, mul_up(1 - problem.alpha, linear)), size + (1 - problem.alpha) * of_linear
    return Worth(float(value), size, short, _least(problem))


def _least(problem: GromovWasserstein) -> float:
    """Of each space the smallest size but 0 times the middle one, as when two near points change places; and of M."""
    found = 0.0
    for matrix in (problem.x_distance, problem.y_distance):
        sizes = abs(matrix[matrix != 0])
        found += problem.alpha * float(sizes.min()) * float(np.median(sizes)) if sizes.size else 0.0
    if problem.cost is not None and problem.cost.any():
        found += (1 - problem.alpha) * float(abs(problem.cost[problem.cost != 0]).min())
    return found


def _short(sums: Array, weights: Array, terms: int) -> float:
    """At least the sum of what sums of so many entries are away from weights."""
    return float(sum_up(abs(sums - weights) + gamma(terms + 8) * (sums + weights))) + LITTLE


def _linear(cost: Array, plan: Array, short: float) -> tuple[float, float]:
    """At least <cost, plan>, and about the sum of the sizes in it."""
    n, m = plan.shape
    rows, sizes = np.einsum("ij,ij->i", cost, plan), np.einsum("ij,ij->i", abs(cost), plan)
    size = float(sum_up(sizes))
    moved = 2 * short * float(abs(cost).max()) * (1 + 8 * UNIT)
    return float(
        add_up(add_up(sum_up(rows), gamma(m + 4) * size * (1 + gamma(2 * m + 8))), add_up(moved, n * m * 5e-324))
    ), size
