"""The size of a problem's costs: one number, in whose units strengths can be given.

The mean is that of |C_ij| over the permitted entries, weighted by a_i b_j. Strengths in its units keep plans from being
empty. Let F be the objective with the product reference, S = reg + r1 + r2, and let a and b sum to 1. A plan that no
factor improves has the mass (F(0) - F(P)) / S. That holds for the best plan, and for the best multiple t a b' of the
product, cut down to its permitted share phi. So the best plan has at least the mass of that one, which is at least
phi exp(-mean / S). With reg = .05 and reg_m = 1 in units of the mean this is 61% of phi, whatever the costs are.
"""

import numpy as np

from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport

KINDS = ("mean", "median")
MOST = 1 << 22
"""Entries looked at where there are more; rows and columns are drawn with a fixed seed. The mean is then that of the
drawn ones, and the share of mass above holds as far as they are like all."""
BLOCK = 1 << 20


def cost_scale(problem: UnbalancedTransport, kind: str) -> float:
    """The mean or median size of the permitted costs between lines with mass; 1 where all are 0 or there are none."""
    low, high = problem.cost_bounds
    top = max(abs(low), abs(high))
    rows, columns = np.flatnonzero(problem.a), np.flatnonzero(problem.b)
    if not (0 < top < np.inf and rows.size and columns.size):
        return 1.0
    if kind == "mean" and problem.cost is None and problem.metric == "sqeuclidean":
        found = _mean_square(problem)
    else:
        whole = kind == "mean" and problem.cost is not None and rows.size * columns.size <= MOST
        i, j = (rows, columns) if whole else _drawn(rows, columns)
        found = top * (_mean(problem, i, j, top) if kind == "mean" else _median(problem, i, j, top))
    return found if 0 < found < np.inf else 1.0


def _mean_square(problem: UnbalancedTransport) -> float:
    """Of squared distances, by their moments: the spread of x, and the distance of y from the centre of x."""
    assert problem.x is not None
    assert problem.y is not None
    x, y = (points.astype(np.float64) for points in (problem.x, problem.y))
    a, b = (mass / mass.max() for mass in (problem.a, problem.b))
    a, b = a / a.sum(), b / b.sum()
    centre = (a[:, None] * x).sum(axis=0)
    return float((a * ((x - centre) ** 2).sum(axis=1)).sum() + (b * ((y - centre) ** 2).sum(axis=1)).sum())


def _drawn(rows: Array, columns: Array) -> tuple[Array, Array]:
    """At most MOST entries."""
    rng = np.random.default_rng(0)
    most = max(int(MOST**0.5), MOST // max(1, min(rows.size, columns.size)))
    rows = rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))
    most = max(1, MOST // rows.size)
    return rows, columns if columns.size <= most else np.sort(rng.choice(columns, most, replace=False))


def _mean(problem: UnbalancedTransport, rows: Array, columns: Array, top: float) -> float:
    """In units of `top`."""
    a, b = problem.a[rows] / problem.a.max(), problem.b[columns] / problem.b.max()
    total, weight = 0.0, 0.0
    step = max(1, BLOCK // columns.size)
    for start in range(0, rows.size, step):
        sizes = _sizes(problem, rows[start : start + step], columns, top)
        held = np.isfinite(sizes)
        if held.all():
            some = a[start : start + step]
            total += float((some * np.einsum("ij,j->i", sizes, b)).sum())  # a BLAS would take all cores for it
            weight += float(some.sum() * b.sum())
            continue
        weights = np.where(held, a[start : start + step, None] * b, 0.0)
        total += float((np.where(held, sizes, 0.0) * weights).sum())
        weight += float(weights.sum())
    return total / weight if weight else 0.0


def _median(problem: UnbalancedTransport, rows: Array, columns: Array, top: float) -> float:
    sizes = _sizes(problem, rows, columns, top)
    sizes = sizes[np.isfinite(sizes)]
    return float(np.median(sizes)) if sizes.size else 0.0


def _sizes(problem: UnbalancedTransport, rows: Array, columns: Array, top: float) -> Array:
    """|C_ij| of some rows and columns, in units of `top`."""
    if problem.cost is not None:
        every = columns.size == problem.cost.shape[1]
        block = problem.cost[rows] if every else problem.cost[np.ix_(rows, columns)]
        return np.asarray(abs(block.astype(np.float64)) / top)
    assert problem.x is not None
    assert problem.y is not None
    x, y = problem.x[rows].astype(np.float64), problem.y[columns].astype(np.float64)
    if problem.metric == "inner":
        return np.asarray(abs(x @ y.T) / top)
    centre = x.mean(axis=0)
    x, y = x - centre, y - centre
    squares = np.maximum((x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * (x @ y.T), 0)
    return np.asarray((np.sqrt(squares) if problem.metric == "euclidean" else squares) / top)
