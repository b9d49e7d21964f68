"""Projections onto the positive semidefinite matrices of a given trace.

The nearest such matrix to A = sum d_i u_i u_i' is sum max(d_i - s, 0) u_i u_i' with the one shift s that gives the
trace. `BySpectrum` finds it from eigenvalues (LAPACK). `ByProducts` needs products of matrices alone, which is what a
GPU does best: (A - s)+ is half of (A - s) plus (A - s) sign(A - s), and the sign is a limit of odd polynomials. It is
not exact, and its shift is corrected from one call to the next. The bounds that are made of it are proved apart.
"""

from types import ModuleType
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh


class Projection(Protocol):
    """What projects."""

    shift: float

    def __call__(self, matrix: Any, trace: float) -> Any:
        """The nearest positive semidefinite matrix of that trace; `matrix` may be overwritten."""


class BySpectrum:
    """Exact but for rounding, on the host: 4/3 m^3 operations for the reduction, 4 m^2 k for k positive eigenvalues."""

    def __init__(self) -> None:
        self.shift = 0.0

    def __call__(self, matrix: Any, trace: float) -> Any:
        """Project, and keep the shift."""
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
        descending = values[::-1].astype(np.float64)
        shifts = (np.cumsum(descending) - trace) / np.arange(1, len(values) + 1)
        kept = int(np.flatnonzero(descending > shifts)[-1]) + 1
        self.shift = float(shifts[kept - 1])
        chosen = vectors[:, len(values) - kept :]
        return (chosen * (values[len(values) - kept :] - values.dtype.type(self.shift))) @ chosen.T


class ByProducts:
    """By the matrix sign: about 20 products of order m, on whichever device the arrays of `xp` are.

    Attributes:
        smallest: eigenvalues below this share of the largest are not told apart from 0.
    """

    def __init__(self, xp: ModuleType, smallest: float = 1e-3) -> None:
        self.shift, self.smallest, self._xp = 0.0, smallest, xp

    def __call__(self, matrix: Any, trace: float) -> Any:
        """Project about the last shift, correct it once, and keep it."""
        xp, order = self._xp, len(matrix)
        at = xp.arange(order)
        matrix[at, at] -= matrix.dtype.type(self.shift)
        sign = self._sign(matrix)
        positive = 0.5 * (matrix + xp.matmul(matrix, sign))
        sign[at, at] += matrix.dtype.type(1.0)
        rank = max(1.0, 0.5 * float(xp.trace(sign)))
        more = (float(xp.trace(positive)) - trace) / rank
        self.shift += more
        positive -= sign * matrix.dtype.type(0.5 * more)
        return 0.5 * (positive + positive.T)

    def _sign(self, matrix: Any) -> Any:
        """Newton and Schulz's iteration, each step scaled so that the smallest eigenvalue of interest grows the most.

        Of the odd cubics that keep [low, 1] below 1, a x (3 - (a x)^2) / 2 with a^2 = 3 / (1 + low + low^2) lifts the
        lower end furthest, to its value at 1, where it is the same (Chen and Chow 2014).
        """
        xp, number = self._xp, matrix.dtype.type
        at = xp.arange(len(matrix))
        found = matrix / number(max(float(xp.linalg.norm(matrix)), 1e-30))
        square = xp.matmul(found, found)
        # no eigenvalue exceeds the eighth root of the sum of their eighth powers, which is 2.4 times as much at most
        size = float(xp.linalg.norm(xp.matmul(square, square))) ** 0.25 * 1.001
        found /= number(size)
        square /= number(size * size)
        low = self.smallest
        while True:
            scale = (3.0 / (1.0 + low + low * low)) ** 0.5
            square *= number(-0.5 * scale**3)
            square[at, at] += number(1.5 * scale)
            found = xp.matmul(found, square)
            low = 0.5 * scale * low * (3.0 - (scale * low) ** 2)
            if low > 1 - 1e-5:  # what is short of 1 is short of the trace, for each of m eigenvalues
                return found
            square = xp.matmul(found, found)
