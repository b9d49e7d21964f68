"""Memoli's third lower bound, proved: transport between spaces whose costs are transports on a line.

Whatever the coupling P, sum_kl (X_ik - Y_jl)^2 P_kl is at least T_ij, the squared 2-Wasserstein distance between the
distributions of row i of X under a and of row j of Y under b: P itself couples the two. So the objective is at least
<(1 - alpha) M + alpha T, P>, and that at least the transport of these costs (F. Memoli, "Gromov-Wasserstein distances
and the metric approach to object matching", Foundations of Computational Mathematics 11 (2011), section 6). The same
holds of columns.

T from below. T_ij is the squared distance of two quantile functions in L2[0, 1]. Replacing each by its means A_ik, B_jk
over K equal intervals is a projection, so sqrt(T_ij) >= |A_i - B_j| / sqrt(K). Where n = m = K and weights are equal
the two are equal, and the means are the sorted rows, without any error. Other means are worked out from sums of weights
with an error eta = gamma(n + 6) each. Moving the steps of a quantile function by eta moves it by eta R in L1, R being
the range of the row. That moves the means by at most eta R sqrt(K) in L2: an interval's error is K times what it has of
that, and squares add up to at most the square of the sum. Adding up the pieces of a mean is off by gamma(n + 4) times
the largest size, and the ends of the intervals are off by u, K times over. The triangle inequality takes all three,
`off`, from sqrt(T).

|A_i - B_j|^2 is worked out as |A_i|^2 + |B_j|^2 - 2 A_i . B_j, which is off by gamma(K + 6) (|A_i| + |B_j|)^2 at most.

The bound. For any f, g_j = min_i (C_ij - f_i) rounded down makes sum a f + sum b g, divided by the sums of weights and
rounded down, at most the transport's value. f is part of the answer and is not believed: a wrong one makes a worse
bound. Without one it is 0.
"""

import numpy as np

from kernels.certificates.gromov.objective import LITTLE, UNIT, exponent_of, gamma, shares
from kernels.certificates.rounded import add_down, div_down, mul_down, sub_down, sum_down, sum_up
from kernels.problems.arrays import Array
from kernels.problems.gromov import GromovWasserstein

NEXT_TO_NOTHING = 1e-290
"""What is less may have been rounded up by a power of two; no transport on a line costs less than 0."""
MOST_PRODUCTS = 1 << 33
"""Of means, in one T: some seconds of a core. Fewer means make a worse bound, not a false one."""


def third(problem: GromovWasserstein, lines: str, potentials: object) -> float:
    """The bound by rows or by columns, rounded down.

    Args:
        potentials: (n,) of the first space, anything.
    """
    return transport_down(problem, _costs(problem, lines), potentials)


def transport_down(problem: GromovWasserstein, costs: Array, potentials: object) -> float:
    """At most the transport of these costs, from potentials of the rows that need not be any good."""
    n = problem.shape[0]
    f = np.zeros(n)
    if isinstance(potentials, np.ndarray) and potentials.shape == (n,) and potentials.dtype.kind == "f":
        f = np.where(np.isfinite(potentials) & (abs(potentials) < 1e250), potentials, 0.0).astype(np.float64)
    g = sub_down(costs, f[:, None]).min(axis=0)
    return float(add_down(_mean_down(problem.a, f), _mean_down(problem.b, g)))


def _costs(problem: GromovWasserstein, lines: str) -> Array:
    """At most (1 - alpha) M + alpha T, entry by entry."""
    scaled, power = _local(problem, lines)
    costs = mul_down(problem.alpha, np.ldexp(scaled, 2 * power))
    costs = np.where(costs > NEXT_TO_NOTHING, costs, 0.0)
    if problem.cost is None:
        return costs
    return add_down(mul_down(1 - problem.alpha, problem.cost), costs)


def _local(problem: GromovWasserstein, lines: str) -> tuple[Array, int]:
    """At most T_ij of the matrices divided by 2^power, which makes their entries at most 1; and that power."""
    power = exponent_of(problem)
    levels, plain = _levels(problem)
    sides, off = [], 0.0
    for matrix, weights in ((problem.x_distance, problem.a), (problem.y_distance, problem.b)):
        rows = np.ldexp(matrix if lines == "rows" else matrix.T, -power)
        sides.append(np.sort(rows, axis=1) if plain else _means(rows, weights, levels))
        size, count = float(abs(rows).max()), len(weights)
        reach = float(rows.max()) - float(rows.min())
        moved = gamma(count + 6) * reach * levels**0.5 + (gamma(count + 4) + 4 * levels * UNIT) * size
        off += 0.0 if plain else 1.01 * moved
    p, q = sides
    of_p, of_q = (p * p).sum(axis=1), (q * q).sum(axis=1)
    squares = of_p[:, None] + of_q[None, :] - 2 * (p @ q.T)
    wide = 2.02 * gamma(levels + 6) * (of_p[:, None] + of_q[None, :]) + LITTLE
    roots = np.sqrt(np.maximum(0.0, squares - wide) / levels) * (1 - 4 * UNIT) - off
    return np.where(roots > 0, roots * roots * (1 - 4 * UNIT), 0.0), power


def _levels(problem: GromovWasserstein) -> tuple[int, bool]:
    """The number of intervals, and whether sorted rows are their means."""
    n, m = problem.shape
    if n == m and all(bool((weights == weights[0]).all()) for weights in (problem.a, problem.b)):
        return n, True
    return max(16, min(4 * max(n, m), MOST_PRODUCTS // (n * m))), False


def _means(rows: Array, weights: Array, levels: int) -> Array:
    """Of each row's quantile function, the means over `levels` equal intervals; see above for their errors."""
    order = np.argsort(rows, axis=1, kind="stable")
    each = shares(weights)
    found = np.empty((len(rows), levels))
    grid = np.arange(1, levels) / levels
    for i, by_size in enumerate(order):
        steps = np.minimum(np.cumsum(each[by_size])[:-1], 1.0)
        ends = np.concatenate((steps, grid))
        at = np.argsort(ends, kind="stable")
        ends = ends[at]
        lengths = np.diff(np.concatenate(([0.0], ends, [1.0])))
        from_steps = np.concatenate(([0], np.cumsum(at < len(steps))))  # steps, and so values, gone by before a piece
        values = rows[i, by_size][from_steps]
        levels_of = np.concatenate(([0], np.cumsum(at >= len(steps))))
        found[i] = np.bincount(levels_of, lengths * values, levels) * levels
    return found


def _mean_down(weights: Array, values: Array) -> float:
    """At most sum weights values / sum weights."""
    scaled = np.ldexp(weights, -int(np.frexp(weights.max())[1]))  # exact: no weight is below 1e-250 of the largest
    total = sum_down(mul_down(scaled, values))
    return float(div_down(total, sum_up(scaled) if total >= 0 else sum_down(scaled)))
