"""A lower bound on every coupling's cost, so on every coupling's of low rank: optimal transport's, by potentials.

For any f, g_j = min_i (C_ij - f_i) makes f_i + g_j <= C_ij. So <C, P> >= <f, P 1> + <g, P' 1> = <f, a> + <g, b> for
every coupling. f is part of the answer and is not believed: a wrong one makes a worse bound. Costs are worked out
again here, block by block, and g is rounded down.

Arithmetic. gamma(k) as in objective.py.

Points. With z_i = x_i - c and w_j = y_j - c as they are worked out, each coordinate off by u of itself, |x_i - y_j|^2
is at least |z_i - w_j|^2 - 2.01 u (|z_i| + |w_j|)^2. That is |w_j|^2 + (|z_i|^2 - f_i) - 2 z_i . w_j, whose bracket
is a column beside -2 z_i in one product of matrices with (w_j, 1). |z_i|^2 goes through a sum over d and through that
product, so what is worked out is off by gamma(2 d + 8) times (|z_i| + |w_j|)^2 + |f_i| at most. Both are covered by
gamma(2 d + 24) ((Z + |w_j|)^2 + F), Z and F the largest |z_i| and |f_i|: one number for each column, taken off.

Factors. A_i . B_j - f_i is a product with one column more, off by gamma(k + 4) (sum_l max_i |A_il| |B_jl| + F).

A matrix. C_ij - f_i is rounded once. Rounding does not change which is least: one step down from the least is enough.
"""

import numpy as np

from kernels.certificates.lowrank.objective import LITTLE, gamma
from kernels.certificates.rounded import add_down, div_down, mul_down, sum_down, sum_up
from kernels.problems.arrays import Array
from kernels.problems.lowrank import LowRankTransport
from kernels.solution import unheard

BLOCK = 1 << 20
"""Costs that are looked at together."""
MOST_POTENTIAL = 1e250


def bound_of(problem: LowRankTransport, potentials: object, progress: object = unheard) -> float:
    """At most the cost of any coupling, from potentials (m,) of the rows that need not be any good.

    Where no cost is negative it is at least 0.
    """
    m = problem.shape[0]
    f = np.zeros(m)
    if isinstance(potentials, np.ndarray) and potentials.shape == (m,) and potentials.dtype.kind == "f":
        sound = np.isfinite(potentials) & (abs(potentials) < MOST_POTENTIAL)
        f = np.where(sound, potentials, 0.0).astype(np.float64)
    g = _columns(problem, f, progress)
    bound = float(add_down(_mean_down(problem.a, f), _mean_down(problem.b, g)))
    nothing_negative = problem.x is not None or (problem.cost is not None and float(problem.cost.min()) >= 0)
    return max(0.0, bound) if nothing_negative else bound


def _columns(problem: LowRankTransport, f: Array, progress: object) -> Array:
    """At most min_i (C_ij - f_i) for each column."""
    if problem.cost is not None:
        return np.nextafter(_least_of_matrix(problem.cost, f), -np.inf)
    largest = float(abs(f).max())
    if problem.x is not None and problem.y is not None:
        centre = problem.x.mean(axis=0)
        z, w = problem.x - centre, problem.y - centre
        of_z, of_w = (z * z).sum(axis=1), (w * w).sum(axis=1)
        rows, columns = np.hstack((-2 * z, (of_z - f)[:, None])), np.hstack((w, np.ones((len(w), 1))))
        reach = (float(of_z.max()) ** 0.5 + of_w**0.5) ** 2
        wide = gamma(2 * z.shape[1] + 24) * (reach + largest) + LITTLE
        return np.asarray(of_w + _least(rows, columns, progress) - wide - 8 * gamma(1) * (reach + largest))
    assert problem.left is not None
    assert problem.right is not None
    rows = np.hstack((problem.left, -f[:, None]))
    columns = np.hstack((problem.right, np.ones((len(problem.right), 1))))
    sizes = abs(problem.right) @ abs(problem.left).max(axis=0) + largest
    return np.asarray(_least(rows, columns, progress) - gamma(problem.width + 16) * sizes - LITTLE)


def _least(rows: Array, columns: Array, progress: object) -> Array:
    """min_i rows_i . columns_j of each column j, as floats have it."""
    found = np.empty(len(columns))
    step = max(1, BLOCK // len(rows))
    for first in range(0, len(columns), step):
        found[first : first + step] = (columns[first : first + step] @ rows.T).min(axis=1)
        if callable(progress):
            progress(0.2 + 0.8 * min(1.0, (first + step) / len(columns)))
    return found


def _least_of_matrix(cost: Array, f: Array) -> Array:
    step = max(1, BLOCK // cost.shape[1])
    found = np.full(cost.shape[1], np.inf)
    for first in range(0, len(cost), step):
        block = cost[first : first + step] - f[first : first + step, None]
        np.minimum(found, block.min(axis=0), out=found)
    return found


def _mean_down(weights: Array, values: Array) -> float:
    """At most sum weights values / sum weights."""
    scaled = np.ldexp(weights, -int(np.frexp(weights.max())[1]))  # exact: no weight is below 1e-250 of the largest
    total = sum_down(mul_down(scaled, values))
    return float(div_down(total, sum_up(scaled) if total >= 0 else sum_down(scaled)))
