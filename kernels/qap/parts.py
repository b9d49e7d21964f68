"""A quadratic assignment as symmetric and antisymmetric parts, the form that memetic.cu searches."""

from dataclasses import dataclass

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Amounts


@dataclass(frozen=True)
class Matrices:
    """A quadratic assignment split as memetic.cu wants it: `scale` times the objective, diagonals folded into `linear`.

    `a`, `b` (n, n) are symmetric with zero diagonals, `a_skew`, `b_skew` antisymmetric or None; objective * scale =
    sum over i < j of (a b + a_skew b_skew) + sum of `linear`. `delta` is the C type that holds every exchange value.
    """

    a: Amounts
    b: Amounts
    a_skew: Amounts | None
    b_skew: Amounts | None
    linear: Amounts | None
    scale: int
    delta: str


FAR = {"float": 1e30, "double": 1e300, "int": 2**29, "long long": 2**61}
"""The price of a place that a facility of `padded` may not take, by type of an exchange. The type still holds twice as
much with what an exchange is worth beside it, and that is above 0. Of floats it is lost in the rounding."""


def split(problem: QuadraticAssignment) -> Matrices:
    """Return `problem` as symmetric and antisymmetric parts; exact, whatever the symmetry of its matrices."""
    flow, distance = problem.flow.copy(), problem.distance.copy()
    linear = np.outer(flow.diagonal(), distance.diagonal())
    if problem.linear is not None:
        linear = linear + problem.linear
    np.fill_diagonal(flow, 0)
    np.fill_diagonal(distance, 0)
    a_skew = b_skew = None
    scale = 1
    if (flow == flow.T).all():
        a, b = flow, distance + distance.T
    elif (distance == distance.T).all():
        a, b = flow + flow.T, distance
    else:
        a, b, a_skew, b_skew, scale = flow + flow.T, distance + distance.T, flow - flow.T, distance - distance.T, 2
    linear = linear * scale
    return Matrices(
        a, b, a_skew, b_skew, linear if linear.any() else None, scale, _delta_type(a, b, a_skew, b_skew, linear)
    )


def _delta_type(a: Amounts, b: Amounts, a_skew: Amounts | None, b_skew: Amounts | None, linear: Amounts) -> str:
    if a.dtype.kind == "f" or b.dtype.kind == "f" or linear.dtype.kind == "f":
        return "double"
    # |D| <= sum_k |a_uk - a_vk| |b_.. - b_..| + 4 max |linear|, in Python integers, which do not overflow; and what it
    # is short of on the way, |x_u - x_v| |y_u - y_v| of up to four moves.
    largest = 4 * int(np.abs(linear).max())
    for x, y in ((a, b), (a_skew, b_skew)):
        if x is not None and y is not None:
            largest += (4 * int(np.abs(x).sum(axis=1).max()) + 64 * int(np.abs(x).max())) * int(np.abs(y).max())
    return "float" if largest < 1 << 24 else "int" if largest < 1 << 30 else "long long"


def padded(matrices: Matrices, size: int, delta: str) -> Matrices:
    """The same problem among `size` facilities: those from n on do nothing, and belong at the location of their number.

    Every other pair that one of them is part of has the price FAR of the type `delta`. An exchange with one of them is
    worth more than 0 then, which aspiration never asks for, and else it is tabu for ever: no search moves them.
    """
    n = len(matrices.a)
    kind = np.int64 if delta in ("int", "long long") else np.float64
    linear: Amounts = np.full((size, size), FAR[delta], kind)
    linear[:n, :n] = 0 if matrices.linear is None else matrices.linear
    np.fill_diagonal(linear[n:, n:], 0)
    a, b, skews = matrices.a, matrices.b, (matrices.a_skew, matrices.b_skew)
    a_skew, b_skew = (None if skew is None else _beside_zeros(skew, size) for skew in skews)
    sides = _beside_zeros(a, size), _beside_zeros(b, size)
    return Matrices(*sides, a_skew, b_skew, linear, matrices.scale, delta)


def _beside_zeros(matrix: Amounts, size: int) -> Amounts:
    return np.pad(matrix, (0, size - len(matrix)))
