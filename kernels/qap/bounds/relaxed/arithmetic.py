"""The steps of the semidefinite bound between products, written against the array API that numpy and cupy share.

`gpu_arithmetic.py` has the same as one kernel each, with every number that a step finds left on the device.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

STEP = 1.618
"""Of Z, in units of the penalty."""
PENALTY_LEAST, PENALTY_MOVES = 0.5, 1.1
"""Of beta, in units of n / 3, at least; and the factor by which an iteration changes it at most."""
BALANCE, NEAR_BALANCE = 30.0, 1.2
"""Beta rises where Y and W R W' differ by more than so many times what Y has moved by, both as shares, and falls where
they differ by less; within the second factor it stays."""
NOTHING = 1e-9
"""Norms below this are taken for it, where something is divided by them."""


def liftings(smallest: float) -> Iterator[tuple[float, float]]:
    """(a, b) of each step X <- X (a X^2 + b), by which eigenvalues from `smallest` to 1 come to 1.

    Newton and Schulz's iteration, each step scaled so that the smallest eigenvalue of interest grows the most. Of the
    odd cubics that keep [low, 1] below 1, a x (3 - (a x)^2) / 2 with a^2 = 3 / (1 + low + low^2) lifts the lower end
    furthest, to its value at 1, where it is the same (Chen and Chow 2014).
    """
    low = smallest
    while low <= 1 - 1e-5:  # what is short of 1 is short of the trace, for each of m eigenvalues
        scale = (3.0 / (1.0 + low + low * low)) ** 0.5
        yield -0.5 * scale**3, 1.5 * scale
        low = 0.5 * scale * low * (3.0 - (scale * low) ** 2)


class LiftedArithmetic:
    """On matrices of one array module.

    Args:
        xp: numpy, cupy, or what stands for it.
    """

    def __init__(self, xp: ModuleType) -> None:
        self.xp = xp

    def number(self, value: float) -> Any:
        """As the other methods take and return numbers."""
        return value

    def product(self, left: Any, right: Any) -> Any:
        """left @ right."""
        return self.xp.matmul(left, right)

    def norm(self, matrix: Any) -> Any:
        """Of all entries together."""
        flat = matrix.reshape(-1)
        return self.xp.sqrt(self.xp.dot(flat, flat))

    def largest(self, matrix: Any) -> float:
        """Of the sizes of all entries. Columns on a device, and the last step on the host: see `gpu_arithmetic`."""
        found = self.xp.abs(matrix).max(axis=0)
        return float(np.max(found.get() if hasattr(found, "get") else found))

    def together(self, y: Any, z: Any, beta: Any) -> Any:
        """Y + Z / beta."""
        return y + z * y.dtype.type(1 / beta)

    def advanced(self, y: Any, z: Any, lifted: Any, fixed: tuple[Any, Any], beta: Any) -> tuple[Any, Any, Any]:
        """One iteration from the projected Y, in the place of `y` and `z`.

        Args:
            fixed: the costs L, and the largest that each entry of Y may be.

        Returns:
            Y, the Z half a step on, and the norms of Y - W R W', Y, W R W', what Y moved by, and Z.
        """
        (costs, most), number, norm = fixed, y.dtype.type, self.norm
        half = z + (y - lifted) * number(beta)
        after = lifted - (costs + z) * number(1 / beta)
        self.xp.maximum(after, number(0), out=after)
        self.xp.minimum(after, most, out=after)
        apart = after - lifted
        z += apart * number(STEP * beta)
        return after, half, [float(norm(one)) for one in (apart, after, lifted, after - y, z)]

    def balanced(self, norms: Any, beta: Any, unit: float) -> Any:
        """Beta of the next iteration, so that both residuals fall together; `unit` is n / 3.

        Source: S. Boyd and others, Foundations and Trends in Machine Learning 3 (2011), section 3.4.1; the residuals
        as shares: B. Wohlberg, "ADMM penalty parameter selection by residual balancing" (2017).
        """
        apart, of_y, of_lifted, moved, of_z = norms
        primal, dual = apart / max(of_y, of_lifted), beta * moved / max(of_z, NOTHING)
        if primal > BALANCE * NEAR_BALANCE * dual:
            return beta * PENALTY_MOVES
        if BALANCE * dual > NEAR_BALANCE * primal:
            return max(beta / PENALTY_MOVES, PENALTY_LEAST * unit)
        return beta

    def turned(self, matrix: Any) -> Any:
        """Its transpose, by rows."""
        return self.xp.ascontiguousarray(matrix.T)

    def chosen(self, matrix: Any, indices: Any) -> Any:
        """Rows and columns of `indices`."""
        return matrix[indices[:, None], indices[None, :]]

    def spread(self, matrix: Any, indices: Any, order: int) -> Any:
        """The square matrix of that order whose rows and columns of `indices` are these; 0 elsewhere."""
        whole = self.xp.zeros((order, order), dtype=matrix.dtype)
        whole[indices[:, None], indices[None, :]] = matrix
        return whole

    def less_diagonal(self, matrix: Any, shift: Any) -> Any:
        """matrix - shift I, in its place."""
        at = self.xp.arange(len(matrix))
        matrix[at, at] -= matrix.dtype.type(shift)
        return matrix

    def of_norm_one(self, matrix: Any) -> Any:
        """The matrix over its norm."""
        return matrix / matrix.dtype.type(max(float(self.norm(matrix)), 1e-30))

    def within_one(self, found: Any, square: Any) -> tuple[Any, Any]:
        """A matrix and its square, with no eigenvalue above 1.

        None exceeds the eighth root of the sum of their eighth powers, which is 2.4 times as much at most.
        """
        number = found.dtype.type
        size = float(self.norm(self.product(square, square))) ** 0.25 * 1.001
        return found / number(size), square / number(size * size)

    def lifting(self, square: Any, factor: float, diagonal: float) -> Any:
        """factor square + diagonal I, in its place."""
        number, at = square.dtype.type, self.xp.arange(len(square))
        square *= number(factor)
        square[at, at] += number(diagonal)
        return square

    def signed(self, matrix: Any, smallest: float) -> tuple[Any, Any]:
        """The sign of a symmetric matrix, and matrix @ sign, by products alone.

        Args:
            smallest: eigenvalues below this share of the largest are not told apart from 0.
        """
        found = self.of_norm_one(matrix)
        found, square = self.within_one(found, self.product(found, found))
        for k, lifting in enumerate(liftings(smallest)):
            square = self.product(found, found) if k else square
            found = self.product(found, self.lifting(square, *lifting))
        return found, self.product(matrix, found)

    def projected(self, matrix: Any, product: Any, sign: Any, trace: float) -> tuple[Any, Any]:
        """Half of `matrix` + `product`, moved so that its trace is nearer to `trace`; and by how much the shift moves.

        Args:
            product: matrix @ sign.
            sign: of `matrix`, whose positive eigenvalues it counts.
        """
        xp, number, at = self.xp, matrix.dtype.type, self.xp.arange(len(matrix))
        positive = 0.5 * (matrix + product)
        sign[at, at] += number(1.0)
        rank = max(1.0, 0.5 * float(xp.trace(sign)))
        more = (float(xp.trace(positive)) - trace) / rank
        positive -= sign * number(0.5 * more)
        return 0.5 * (positive + positive.T), more
