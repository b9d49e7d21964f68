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

from kernels.qap.bounds.relaxed.arithmetic import LiftedArithmetic


class Projection(Protocol):
    """What projects."""

    shift: Any

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

    def __init__(self, xp: ModuleType, smallest: float = 1e-3, arithmetic: Any = None) -> None:
        self.smallest, self._by = smallest, LiftedArithmetic(xp) if arithmetic is None else arithmetic
        self.shift: Any = self._by.number(0.0)

    def __call__(self, matrix: Any, trace: float) -> Any:
        """Project about the last shift, correct it once, and keep it."""
        by = self._by
        matrix = by.less_diagonal(matrix, self.shift)
        sign, product = by.signed(matrix, self.smallest)
        found, more = by.projected(matrix, product, sign, trace)
        self.shift = self.shift + more
        return found
