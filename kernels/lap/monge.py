"""Costs that sorting solves: products, distances along a line, and whatever else is Monge up to the order of its lines.

A matrix is Monge when c[i, j] + c[k, l] <= c[i, l] + c[k, j] for i < k, j < l; then the diagonal is an optimal
assignment (Monge 1781; Hoffman 1963), and its duals add up along the diagonal. Here the order of rows and columns is
not known: it is read off two rows and two columns. This is the case that shortest augmenting paths are worst at
(Machol and Wien 1976), as every path runs through every row.

The order is a guess, and whoever uses it sweeps over all entries before believing it: `solve` on the host, the proof's
kernel on a GPU (`gpu_monge.py`). On costs that have no such order `corner` takes 25 us, as 576 entries show it.

`xp` is numpy or cupy: the module whose arrays the weights are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.problems.arrays import Amounts, Costs
from kernels.solution import Solution, Termination

SAMPLE = 24
"""Rows and columns that are looked at before any line is read whole."""
SMALLEST = 64
ROWS_AT_ONCE = 64
"""Rows swept together: their sums stay in cache."""


def solve(weights: Costs, maximize: bool, at: tuple[int, int] | None = None) -> Solution | None:
    """Solve a square problem whose costs are Monge up to the order of its lines; None when they are not.

    Args:
        weights: (n, n) float32, float64, int32 or int64, on the host; never changed.
        maximize: find the largest sum instead.
        at: what `corner` answers, where that is known.
    Returns:
        `assignment`, `u`, `v` as the solvers return them, every entry checked against the duals.
    """
    sign = -1 if maximize else 1
    at = at or corner(weights, sign)
    found = None if at is None else guess(weights, sign, at)
    if found is None or not _feasible(weights, sign, found):
        return None
    arrays = {"assignment": found.assignment, "u": sign * found.u, "v": sign * found.v}
    return Solution(Termination.OPTIMAL, "monge", arrays)


def _feasible(weights: Costs, sign: int, found: "Guess") -> bool:
    """u_i + v_j <= c_ij everywhere, up to half of what the certificate allows for rounding."""
    n = len(weights)
    tolerated = tolerance(weights)
    for first in range(0, n, ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        over = found.v - sign * weights[rows].astype(found.v.dtype, copy=False)
        if not (over.max(axis=1) + found.u[rows] <= tolerated).all():
            return False
    return True


@dataclass(frozen=True)
class Guess:
    """An assignment (n,) int64 and the duals u, v (n,) of the minimisation under which its pairs are tight."""

    assignment: Any
    u: Any
    v: Any


def tolerance(weights: Any) -> float:
    """Half of what the certificate allows for rounding; 0 for integers."""
    if weights.dtype.kind == "i":
        return 0.0
    largest = max(abs(weights.max().item()), abs(weights.min().item()))
    return float(4 * np.finfo(np.float64).eps * len(weights) * largest)


def corner(weights: Costs, sign: int) -> tuple[int, int] | None:
    """A row and a column to read the order off, or None when a sample of the entries has no Monge order."""
    view = sample(weights)
    return None if view is None else corner_of(view, len(weights), sign)


def sample(weights: Any) -> Any:
    """A view of SAMPLE x SAMPLE entries at equal steps; None of matrices that are small or not square."""
    n = len(weights)
    if weights.shape != (n, n) or n < SMALLEST:
        return None
    lines = slice(0, (SAMPLE - 1) * _step(n) + 1, _step(n))
    return weights[lines, lines]


def _step(n: int) -> int:
    return (n - 1) // (SAMPLE - 1)


def corner_of(view: Costs, n: int, sign: int) -> tuple[int, int] | None:
    """As `corner`, of a matrix with `n` lines that has this `sample`."""
    turned: Amounts = view.astype(np.int64 if view.dtype.kind == "i" else np.float64)
    found = _largest_turn(sign * turned)
    return None if found is None else scaled(found, n)


def scaled(found: tuple[int, int], n: int) -> tuple[int, int]:
    """The lines of a matrix with `n` lines that are these of its sample."""
    return found[0] * _step(n), found[1] * _step(n)


def guess(weights: Any, sign: int, at: tuple[int, int], xp: Any = np) -> Guess | None:
    """The diagonal of `sign` * `weights` in Monge order, or None when what is read of it is not finite.

    `weights` (n, n) is read in O(n) places; `sign` is -1 when maximising; `at` is what `corner` answered. Duals are
    float64, or int64 for integers.
    """
    n = len(weights)
    value = np.int64 if weights.dtype.kind == "i" else np.float64
    columns = _order(sign * (weights[at[0]].astype(value) - weights[0].astype(value)), xp)
    first, last = int(columns[0]), int(columns[-1])
    rows = _order(sign * (weights[:, last].astype(value) - weights[:, first].astype(value)), xp)[::-1]
    top, bottom = int(rows[0]), int(rows[-1])
    columns = _order(sign * (weights[bottom].astype(value) - weights[top].astype(value)), xp)[::-1]
    if _turn(weights, sign, (top, bottom), (int(columns[0]), int(columns[-1]))) > 0:
        columns = columns[::-1]
    diagonal = sign * weights[rows, columns].astype(value)
    below = sign * weights[rows[1:], columns[:-1]].astype(value)
    if not bool(xp.isfinite(diagonal).all()) or not bool(xp.isfinite(below).all()):
        return None
    steps = xp.zeros(n, value)
    steps[1:] = xp.cumsum(below - diagonal[:-1])
    assignment, u, v = xp.empty(n, np.int64), xp.empty(n, value), xp.empty(n, value)
    assignment[rows], u[rows], v[columns] = columns, steps, diagonal - steps
    return Guess(assignment, u, v)


def _turn(weights: Any, sign: int, rows: tuple[int, int], columns: tuple[int, int]) -> int:
    """The sign of diagonal minus antidiagonal at the four corners."""
    (a, b), (c, d) = ((weights[i, j].item() for j in columns) for i in rows)
    return int(np.sign(sign * ((a + d) - (b + c))))


def _order(key: Any, xp: Any) -> Any:
    return xp.argsort(key, kind="stable")


def _largest_turn(sample: Amounts) -> tuple[int, int] | None:
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
    # an extreme first entry gives all turns one sign: neighbouring lines must agree with the order as well
    order = np.outer(np.sign(np.diff(turns[:, at[1]])), np.sign(np.diff(turns[at[0]]))) * signs[at]
    minors = np.diff(np.diff(sample, axis=0), axis=1)
    if ((np.abs(minors) > noise) & (np.sign(minors) * order < 0)).any():
        return None
    return int(at[0]), int(at[1])
