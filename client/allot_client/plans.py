"""What is read off a transport plan: where each point goes, which label it takes, its strongest partners.

A plan is given as such, or by potentials; then its rows are worked out from the costs, some at a time, and never held
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from allot_client.arrays import Array
from allot_client.labels import coded, named

BLOCK = 1 << 22
"""Entries of the rows that are worked out at a time."""
Rows = Callable[[int, int], Array]
"""rows(start, stop): those rows of the plan."""


def given_rows(plan: Array) -> Rows:
    """The rows of a plan that is there."""
    return lambda start, stop: plan[start:stop]


def rows_from_potentials(
    f: Array, g: Array, costs: Rows, reg: float, a: Array | None = None, b: Array | None = None
) -> Rows:
    """The rows of the plan a_i b_j exp((f_i + g_j - c_ij) / reg), or without a and b where the reference is uniform."""

    def rows(start: int, stop: int) -> Array:
        exponent = (f[start:stop, None] + g[None] - costs(start, stop)) / reg
        plan = np.exp(exponent)
        if a is not None and b is not None:
            plan *= a[start:stop, None] * b[None]
        return np.asarray(plan)

    return rows


def blocks(m: int, n: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of blocks of rows of an m x n plan."""
    step = max(1, BLOCK // max(1, n))
    for start in range(0, m, step):
        yield start, min(m, start + step)


def barycentric(rows: Rows, m: int, points: Array) -> Array:
    """For each row the mean of the `points` (n, d) of its columns, weighted by mass; NaN for a row without mass."""
    found = np.empty((m, points.shape[1]))
    for start, stop in blocks(m, len(points)):
        plan = np.asarray(rows(start, stop), np.float64)
        mass = plan.sum(axis=1, keepdims=True)
        found[start:stop] = np.divide(plan @ points, mass, out=np.full((stop - start, points.shape[1]), np.nan),
                                      where=mass > 0)  # fmt: skip
    return found


def labels(rows: Rows, m: int, given: Any) -> tuple[Array, Array]:
    """(label, confidence) of each row: the label of its columns that most of its mass goes to, and that share."""
    codes, names = coded(given)
    chosen, share = np.full(m, -1), np.zeros(m)
    kinds = np.unique(codes)
    for start, stop in blocks(m, len(codes)):
        plan = np.asarray(rows(start, stop), np.float64)
        masses = np.stack([plan[:, codes == kind].sum(axis=1) for kind in kinds], axis=1)
        total = masses.sum(axis=1)
        chosen[start:stop] = np.where(total > 0, kinds[masses.argmax(axis=1)], -1)
        share[start:stop] = np.divide(masses.max(axis=1), total, out=np.zeros(stop - start), where=total > 0)
    return named(chosen, names), share


def top(rows: Rows, m: int, n: int, k: int) -> tuple[Array, Array]:
    """(columns, masses), both (m, k): the k largest entries of each row, the largest first; equal ones by column."""
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}; expected 1 to {n}, the number of columns")
    columns, masses = np.empty((m, k), np.int64), np.empty((m, k))
    for start, stop in blocks(m, n):
        plan = np.asarray(rows(start, stop), np.float64)
        order = np.argsort(-plan, axis=1, kind="stable")[:, :k]
        columns[start:stop] = order
        masses[start:stop] = np.take_along_axis(plan, order, axis=1)
    return columns, masses
