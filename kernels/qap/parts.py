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
