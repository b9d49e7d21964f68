"""At least what factors cost, and at least what the sums of their coupling lack of the weights.

P = Q diag(1/g) R', its entries not negative. Arithmetic: with u = 2^-53 and gamma(k) = k u / (1 - k u), a sum of k
products is off by gamma(k) times the sum of their sizes at most, in any order and with or without fused operations
(N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sections 3.1 and 3.5); where nothing is negative
that is gamma(k) of itself. Division by g is one rounding more. LITTLE covers what underflows.

Sums. Row i of P sums to sum_k Q_ik h_k / g_k, h_k = sum_j R_jk. Columns of Q and R are summed exactly and rounded once,
so this is relatively off by gamma(r + 6), and shares of the weights by gamma(4).

Points. For any centre c_k, with p_k = sum_i Q_ik, and moments about c_k,

    sum_ij Q_ik R_jk |x_i - y_j|^2 = h_k sum_i Q_ik |x_i - c_k|^2 + p_k sum_j R_jk |y_j - c_k|^2
                                     - 2 (sum_i Q_ik (x_i - c_k)) . (sum_j R_jk (y_j - c_k)).

The first two have no negative term. A difference is off by u of itself, its square by gamma(3), the sum over d and m,
and the product with h_k by gamma(m + n + d + 12) of themselves in all. The last is off by gamma(m + n + d + 12) of the
same with sizes in place of values. c_k is about the mean of the columns' points, so the last is next to nothing.

Factors of costs, C = A B': sum_l (sum_i Q_ik A_il) (sum_j R_jk B_jl) is off by gamma(m + n + l + 8) of the same with
sizes. A matrix: sum_i Q_ik (sum_j C_ij R_jk) likewise.

A plan whose sums are off by delta in all (added up over rows and columns) is within 2 delta, entry by entry, of a
coupling (Altschuler, Weed, Rigollet 2017, lemma 7), whose value is at most 2 delta max |C| more, which is added. So the
objective that is stated is at least that of the factors and that of a coupling with exact sums.
"""

from dataclasses import dataclass

import numpy as np

from kernels.certificates.rounded import add_up, mul_up, sum_up
from kernels.problems.arrays import Array
from kernels.problems.lowrank import LowRankTransport

UNIT = 2.0**-53
LITTLE = 2.0**-960
"""More than what products of shares underflow by, be they 2^60."""


@dataclass(frozen=True)
class Worth:
    """Of factors: `value` at least their objective, `short` at least what sums of P and of the factors lack."""

    value: float
    short: float


def gamma(count: int) -> float:
    """k u / (1 - k u), rounded up, for k up to 2^40."""
    return 1.001 * count * UNIT


def shares(weights: Array) -> Array:
    """Weights over their sum, each relatively off by less than gamma(4)."""
    scaled = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    return np.asarray(scaled / sum_up(scaled))


def short_of(problem: LowRankTransport, q: Array, r: Array, g: Array) -> tuple[float, float]:
    """What sums of P lack of the weights, and what sums of Q and R lack of g: added up, and rounded up."""
    p, h = (np.array([sum_up(column) for column in factor.T]) for factor in (q, r))
    wide = gamma(len(g) + 16)
    of_p = _apart(q @ (h / g), shares(problem.a), wide) + _apart(r @ (p / g), shares(problem.b), wide)
    return of_p, _apart(p, g, wide) + _apart(h, g, wide)


def _apart(sums: Array, wanted: Array, wide: float) -> float:
    return float(sum_up(abs(sums - wanted) * (1 + 4 * UNIT) + wide * (sums + wanted))) + LITTLE


def worth(problem: LowRankTransport, q: Array, r: Array, g: Array) -> Worth:
    """Price factors that are finite and not negative, with g above 0."""
    short, within = short_of(problem, q, r, g)
    most = dearest(problem)
    if most == 0:
        return Worth(0.0, short + within)
    if problem.x is not None and problem.y is not None:
        terms, sizes = _of_points(problem.x, problem.y, q, r)
    elif problem.left is not None and problem.right is not None:
        terms, sizes = _of_factors(problem.left, problem.right, q, r)
    else:
        assert problem.cost is not None
        terms, sizes = (q * (problem.cost @ r)).sum(axis=0), (q * (abs(problem.cost) @ r)).sum(axis=0)
    wide = 1.01 * gamma(sum(problem.shape) + problem.width + 16)
    each = terms / g + wide * (abs(terms) + sizes) / g
    value = add_up(sum_up(each), sum_up(8 * UNIT * abs(each)) + LITTLE)
    moved = mul_up(2.01 * short, most)
    return Worth(float(add_up(value, moved)), short + within)


def _of_points(x: Array, y: Array, q: Array, r: Array) -> tuple[Array, Array]:
    """Of each component its value, and the same with sizes; see above."""
    terms, sizes = [], []
    for of_x, of_y in zip(q.T, r.T, strict=True):
        p, h = float(of_x.sum()), float(of_y.sum())
        centre = (of_y @ y) / h if h > 0 else np.zeros(y.shape[1])
        from_x, from_y = x - centre, y - centre
        spread = h * float(of_x @ (from_x * from_x).sum(axis=1)) + p * float(of_y @ (from_y * from_y).sum(axis=1))
        crossed = float((of_x @ from_x) @ (of_y @ from_y))
        terms.append(spread - 2 * crossed)
        sizes.append(spread + 2 * float((of_x @ abs(from_x)) @ (of_y @ abs(from_y))))
    return np.array(terms), np.array(sizes)


def _of_factors(left: Array, right: Array, q: Array, r: Array) -> tuple[Array, Array]:
    terms = ((left.T @ q) * (right.T @ r)).sum(axis=0)
    return terms, ((abs(left).T @ q) * (abs(right).T @ r)).sum(axis=0)


def dearest(problem: LowRankTransport) -> float:
    """At least the largest cost's size."""
    if problem.x is not None and problem.y is not None:
        low = np.minimum(problem.x.min(axis=0), problem.y.min(axis=0))
        high = np.maximum(problem.x.max(axis=0), problem.y.max(axis=0))
        apart = high - low
        return float((apart * apart).sum()) * (1 + gamma(len(low) + 8)) + (LITTLE if apart.any() else 0.0)
    if problem.left is not None and problem.right is not None:
        left, right = abs(problem.left).max(axis=0), abs(problem.right).max(axis=0)
        return float(left @ right) * (1 + gamma(problem.width + 8)) + (
            LITTLE if ((left > 0) & (right > 0)).any() else 0.0
        )
    assert problem.cost is not None
    return float(abs(problem.cost).max())
