"""The projection bound of a quadratic assignment (Hadley, Rendl and Wolkowicz 1992), rigorous in float64.

Let V be an orthonormal basis of the vectors that sum to 0. A permutation matrix X is J / n + V Y V' with Y orthogonal,
so for symmetric F and D with zero diagonals, row sums r and s, and every other cost in L,

    tr(F X D X') + <L, X>  =  tr(V'FV Y V'DV Y') + <L + (2/n) r s', X> - sum(r) sum(s) / n^2.

The first term is at least the minimal scalar product of the eigenvalues of V'FV and V'DV, the second at least any dual
value of the assignment problem. Where one matrix is symmetric, the other is replaced by the mean of it and its
transpose, which changes no objective.

Eigenvalues come as evidence, with vectors, and are not believed. Let the columns of W be the vectors with their means
taken off, c the (tiny) sums of the columns, M the diagonal matrix of the values, and Z = V'W with polar factor U. As
||Z - U|| <= ||Z'Z - I||, and UMU' has eigenvalues M exactly, Weyl's inequality puts every eigenvalue of B = V'FV
within ||BU - UM|| of its value, which is at most

    ||FW - WM - 1m'||  +  ||F1|| ||c|| / n  +  (||F|| + ||M||) omega,   omega = ||W'W - I|| + ||c||^2 / n,

in Frobenius norms and for any m, since V'1 = 0. So wrong evidence makes the bound worse, never false.

Rounding: an inner product of k terms errs by at most k u / (1 - k u) times that of the absolute values, u = 2^-53, in
any order of summation and with or without fused operations (N. J. Higham, "Accuracy and Stability of Numerical
Algorithms", 2nd edition, SIAM 2002, section 3.1); sums of squares and products of norms follow. `_gamma` takes twice
that, which pays for the few roundings of the bounds themselves. Matrices are divided by powers of two first, so that
the largest entry lies in [1/2, 1): what underflows then, and the squares of what is below 2^-511, `TINY` pays for.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from kernels.certificates import rounded
from kernels.certificates.quadratic_bounds import FARTHEST, float_prices
from kernels.certificates.quadratic_exact import Whole
from kernels.problems import Array, QuadraticAssignment
from kernels.solution import Number

TINY = 2.0**-480
WIDEST = 400
"""Beyond 2^400 times the products of flow and distance, linear costs are too large for one scale: no bound."""


class Side(NamedTuple):
    """One matrix, symmetric with a zero diagonal, its largest entry in [1/2, 1), times 2^exponent.

    `error` bounds the Frobenius norm of what rounding has changed.
    """

    matrix: Array
    exponent: int
    error: float


def projection(problem: QuadraticAssignment, data: Whole | None, evidence: Mapping[str, Array]) -> Number | None:
    """A lower bound, in the units of `data` if that is given; None where neither matrix is symmetric or evidence fails.

    Args:
        evidence: anything. For flow and distance `{name}_values` (n - 1,) and `{name}_vectors` (n, n - 1) of V'MV, M
            divided by the power of two that leaves its largest entry in [1/2, 1); and `v` (n,), prices of the
            locations in the problem's units.
    """
    n = problem.n
    source = problem if data is None else data
    raw = [m - np.diag(m.diagonal()) for m in (source.flow, source.distance)]
    symmetric = [bool((m == m.T).all()) for m in raw]
    if n < 2 or not any(symmetric):
        return None
    sides = [_side(m, alone) for m, alone in zip(raw, symmetric, strict=True)]
    exponent = sides[0].exponent + sides[1].exponent
    shift = 0 if data is None else data.exponent
    found = [
        _spectrum(side, evidence.get(f"{name}_vectors"), evidence.get(f"{name}_values"))
        for name, side in zip(("flow", "distance"), sides, strict=True)
    ]
    total = _assigned_down(problem, source, sides, exponent, evidence.get("v"), shift)
    if total is None or any(one is None for one in found):
        return None
    (low, off), (high, away) = (one for one in found if one is not None)
    with np.errstate(all="ignore"):  # evidence beyond all measure
        total = float(rounded.add_down(total, _scalar_product_down(low, off, high, away)))
    if not np.isfinite(total):
        return None
    exact = Fraction(total) * Fraction(2) ** exponent
    return rounded.down(exact) if data is None else data.rounded_up(ceil(exact))


def _gamma(terms: int) -> float:
    return terms * 2.0**-52


def _side(matrix: Array, symmetric: bool) -> Side:
    """Symmetrised, and divided by a power of two."""
    exponent = int(np.frexp(np.abs(matrix.astype(np.float64)).max())[1])
    scaled = np.ldexp(matrix.astype(np.float64), -exponent)
    scaled = scaled if symmetric else (scaled + scaled.T) / 2
    size = float(np.sqrt((scaled**2).sum()))
    return Side(scaled, exponent, _gamma(4) * size + TINY if size else 0.0)


def _norm_up(matrix: Array) -> float:
    """The Frobenius norm, or a little more."""
    return float(np.sqrt((matrix**2).sum())) * (1 + _gamma(matrix.size + 4)) + TINY


def _spectrum(side: Side, vectors: Array | None, values: Array | None) -> tuple[Array, float] | None:
    """Eigenvalues of V'MV in ascending order, and how far any may be from the true one; None without evidence."""
    matrix, n = side.matrix, len(side.matrix)
    if not matrix.any():
        return np.zeros(n - 1), 0.0
    shapes = vectors is not None and vectors.shape == (n, n - 1) and values is not None and values.shape == (n - 1,)
    if not shapes or vectors is None or values is None or {vectors.dtype.kind, values.dtype.kind} != {"f"}:
        return None
    with np.errstate(all="ignore"):  # what is not finite makes the bound useless, and is dropped by the caller
        vectors, values = vectors.astype(np.float64), values.astype(np.float64)
        centred = vectors - vectors.mean(axis=0)
        sums = np.abs(centred.sum(axis=0)) + _gamma(n) * np.abs(centred).sum(axis=0)
        size, width, largest = _norm_up(matrix), _norm_up(centred), float(np.abs(values).max())
        left = matrix @ centred - centred * values
        left = left - left.mean(axis=0)
        residual = _norm_up(left) * (1 + _gamma(2)) + _gamma(n + 4) * (size + largest) * width
        residual += _norm_up(np.abs(matrix).sum(axis=1)) * (1 + _gamma(n)) * _norm_up(sums) / n
        omega = _norm_up(centred.T @ centred - np.eye(n - 1)) + _gamma(n + 4) * (width**2 + 1)
        omega += _norm_up(sums) ** 2 / n
        distance = (residual + (size + largest) * omega + side.error) * (1 + _gamma(16))
    return (np.sort(values), distance) if np.isfinite(distance) else None


def _scalar_product_down(low: Array, off: float, high: Array, away: float) -> float:
    """The minimal scalar product of two spectra known to within `off` and `away`, or a little less."""
    sizes = float(np.abs(low).sum()), float(np.abs(high).sum())
    lost = off * sizes[1] + away * sizes[0] + len(low) * off * away
    lost += _gamma(len(low) + 2) * float(np.abs(low) @ np.abs(high)[::-1])
    return float(low @ high[::-1]) - lost * (1 + _gamma(len(low) + 16))


def _assigned_down(
    problem: QuadraticAssignment, source: QuadraticAssignment | Whole, sides: list[Side], exponent: int,
    prices: Array | None, shift: int,
) -> float | None:  # fmt: skip
    """A dual value of the assignment problem less sum(r) sum(s) / n^2, divided by 2^exponent, rounded down."""
    n = problem.n
    linear = np.zeros((n, n)) if source.linear is None else source.linear.astype(np.float64)
    linear_given = bool(linear.any())
    if linear_given and int(np.frexp(np.abs(linear).max())[1]) - exponent > WIDEST:
        return None
    diagonals = [
        np.ldexp(m.diagonal().astype(np.float64), -side.exponent)
        for m, side in zip((source.flow, source.distance), sides, strict=True)
    ]
    if max(float(np.abs(d).max()) for d in diagonals) > 2.0**WIDEST:
        return None
    own, linear = np.outer(*diagonals), np.ldexp(linear, -exponent)
    sums, sizes = [s.matrix.sum(axis=1) for s in sides], [np.abs(s.matrix).sum(axis=1) for s in sides]
    costs = own + linear + (2.0 / n) * np.outer(*sums)
    weights = np.abs(own) + np.abs(linear) + (2.0 / n) * np.outer(*sizes)
    prices = float_prices(prices, n)
    with np.errstate(over="ignore"):
        scaled = np.zeros(n) if prices is None else np.ldexp(prices, -shift - exponent)
    prices = np.clip(scaled, -FARTHEST, FARTHEST)
    permitted = np.ones((n, n), bool) if problem.forbidden is None else ~problem.forbidden
    left = np.where(permitted, rounded.sub_down(costs, prices), np.inf).min(axis=1)
    constant = float(sums[0].sum() * sums[1].sum()) / n**2
    # sums of n terms, their products, two more terms; symmetrised entries have lost 4 roundings of their own
    lost = np.where(permitted, weights, 0).max(axis=1).sum() + sizes[0].sum() * sizes[1].sum() / n**2
    empty = not (linear_given or all(d.any() for d in diagonals) or all(s.any() for s in sizes))
    lost = 0.0 if empty else float(_gamma(2 * n + 24) * lost * (1 + _gamma(n + 8))) + n * TINY
    return rounded.sum_down(np.concatenate((left, prices, [-constant, -lost])))
