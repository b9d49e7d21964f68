"""Costs that sorting solves: products, distances along a line, and whatever else is Monge up to the order of its lines.

A matrix is Monge when c[i, j] + c[k, l] <= c[i, l] + c[k, j] for i < k, j < l; then the diagonal is an optimal
assignment (Monge 1781; Hoffman 1963), and its duals add up along the diagonal. Here the order of rows and columns is
not known: it is read off two rows and two columns. This is the case that shortest augmenting paths are worst at
(Machol and Wien 1976), as every path runs through every row.

The order is a guess, and `solve` sweeps over all entries before it believes it. On costs that have no such order the
guess costs 40 to 250 us, as 576 entries show it.
"""

from dataclasses import dataclass

import numpy as np

from kernels.problems import Array
from kernels.solution import Solution, Termination

SAMPLE = 24
"""Rows and columns that are looked at before any line is read whole."""
SMALLEST = 64
ROWS_AT_ONCE = 64
"""Rows swept together: their sums stay in cache."""


def solve(weights: Array, maximize: bool) -> Solution | None:
    """Solve a square problem whose costs are Monge up to the order of its lines; None when they are not.

    Args:
        weights: (n, n) float32, float64, int32 or int64, on the host; never changed.
        maximize: find the largest sum instead.
    Returns:
        `assignment`, `u`, `v` as the solvers return them, every entry checked against the duals.
    """
    sign = -1 if maximize else 1
    found = guess(weights, sign)
    if found is None or not _feasible(weights, sign, found):
        return None
    arrays = {"assignment": found.assignment, "u": sign * found.u, "v": sign * found.v}
    return Solution(Termination.OPTIMAL, "monge", arrays)


def _feasible(weights: Array, sign: int, found: "Guess") -> bool:
    """u_i + v_j <= c_ij everywhere, up to half of what the certificate allows for rounding."""
    n = len(weights)
    largest = max(abs(weights.max().item()), abs(weights.min().item()))
    allowed = 0 if found.v.dtype.kind == "i" else 4 * np.finfo(np.float64).eps * n * largest
    for first in range(0, n, ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        over = found.v - sign * weights[rows].astype(found.v.dtype, copy=False)
        if not (over.max(axis=1) + found.u[rows] <= allowed).all():
            return False
    return True


@dataclass(frozen=True)
class Guess:
    """An assignment (n,) int64 and the duals u, v (n,) of the minimisation under which its pairs are tight."""

    assignment: Array
    u: Array
    v: Array


def guess(weights: Array, sign: int) -> Guess | None:
    """The diagonal of `sign` * `weights` in Monge order, or None when a sample of it has no such order.

    `weights` (n, n) is read in O(n) places; `sign` is -1 when maximising. Duals are float64, or int64 for integers.
    """
    n = len(weights)
    if weights.shape != (n, n) or n < SMALLEST:
        return None
    value = np.int64 if weights.dtype.kind == "i" else np.float64
    lines = np.linspace(0, n - 1, SAMPLE).astype(np.int64)
    corner = _largest_turn(sign * weights[np.ix_(lines, lines)].astype(value))
    if corner is None:
        return None
    columns = _order(sign * (weights[lines[corner[0]]].astype(value) - weights[0].astype(value)))
    first, last = columns[0], columns[-1]
    rows = _order(sign * (weights[:, last].astype(value) - weights[:, first].astype(value)))[::-1]
    columns = _order(sign * (weights[rows[-1]].astype(value) - weights[rows[0]].astype(value)))[::-1]
    if _turn(weights, sign, rows, columns) > 0:
        columns = columns[::-1]
    diagonal = sign * weights[rows, columns].astype(value)
    below = sign * weights[rows[1:], columns[:-1]].astype(value)
    if not np.isfinite(diagonal).all() or not np.isfinite(below).all():
        return None
    steps = np.zeros(n, value)
    np.cumsum(below - diagonal[:-1], out=steps[1:])
    assignment, u, v = np.empty(n, np.int64), np.empty(n, value), np.empty(n, value)
    assignment[rows], u[rows], v[columns] = columns, steps, diagonal - steps
    return Guess(assignment, u, v)


def _turn(weights: Array, sign: int, rows: Array, columns: Array) -> int:
    """The sign of diagonal minus antidiagonal at the four corners."""
    (a, b), (c, d) = weights[np.ix_(rows[[0, -1]], columns[[0, -1]])].tolist()
    return int(np.sign(sign * ((a + d) - (b + c))))


def _order(key: Array) -> Array:
    return np.argsort(key, kind="stable")


def _largest_turn(sample: Array) -> tuple[int, int] | None:
    """Where c[i, j] - c[i, 0] - c[0, j] + c[0, 0] is largest, if its signs are those of a product; else None."""
    if not np.isfinite(sample).all():
        return None
    turns = sample - sample[:, :1] - sample[:1] + sample[0, 0]
    noise = 0 if sample.dtype.kind == "i" else 64 * np.finfo(np.float64).eps * np.abs(sample).max()
    signs = np.where(np.abs(turns) <= noise, 0, np.sign(turns)).astype(np.int64)
    at = np.unravel_index(int(np.abs(turns).argmax()), turns.shape)
    pattern = np.outer(signs[:, at[1]], signs[at[0]]) * signs[at]
    if signs[at] == 0 or (signs * pattern < 0).any() or (signs[pattern == 0] != 0).any():
        return None
    return int(at[0]), int(at[1])
