"""The lifted problem: pairs (facility i, location j) are the n^2 indices of a matrix Y that stands for x x'.

For a permutation x, Y = x x' has trace n, no entry between two pairs that share a facility or a location, and lies in
the span of W R W'. W has the columns e / n and V (x) V, where V is an orthonormal basis of the vectors that sum to 0.
W is never formed. A Householder reflection h takes e / sqrt(n) to the first unit vector. So R is what h (x) h makes of
Y, without the rows and columns in which one index alone is the first: four products with an n x n matrix.
"""

from types import ModuleType
from typing import Any

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Floats, Indices, Mask
from kernels.qap.bounds.relaxed.arithmetic import LiftedArithmetic


def reflection(n: int) -> Floats:
    """The symmetric orthogonal (n, n) matrix that takes the vector of ones to a multiple of the first unit vector."""
    w = np.full(n, 1 / np.sqrt(n))
    w[0] += 1.0
    w /= np.sqrt(w @ w)
    return np.asarray(np.eye(n) - 2 * np.outer(w, w))


def inner_indices(n: int) -> Indices:
    """The indices, of n^2, that are left of a reflected matrix: (0, 0), and (a, b) with a and b above 0."""
    others = np.arange(1, n)
    return np.concatenate(([0], (others[:, None] * n + others).ravel()))


def open_entries(problem: QuadraticAssignment) -> Mask:
    """(n^2, n^2) bool, True where Y may be above 0: the diagonal, and pairs that share nothing; no forbidden pair."""
    n = problem.n
    apart = ~np.eye(n, dtype=bool)
    found = (apart[:, None, :, None] & apart[None, :, None, :]).reshape(n * n, n * n)
    np.fill_diagonal(found, True)
    if problem.forbidden is not None:
        allowed = ~problem.forbidden.ravel()
        found &= allowed[:, None] & allowed
    return found


def pair_costs(flow: Any, distance: Any, linear: Any, xp: ModuleType) -> Any:
    """The symmetric (n^2, n^2) matrix L with <L, x x'> the objective of x; its diagonal is what a pair pays alone."""
    n = len(flow)
    pays = flow[:, None, :, None] * distance[None, :, None, :]
    pays += flow.T[:, None, :, None] * distance.T[None, :, None, :]
    pays = pays.reshape(n * n, n * n)
    pays *= 0.5
    at = xp.arange(n * n)
    pays[at, at] = (xp.outer(xp.diagonal(flow), xp.diagonal(distance)) + linear).ravel()
    return pays


class Frame:
    """Takes a symmetric matrix of order n^2 into the span, as R of order (n - 1)^2 + 1, and back."""

    def __init__(self, n: int, xp: ModuleType, dtype: Any, arithmetic: Any = None) -> None:
        self.n, self._xp, self._by = n, xp, LiftedArithmetic(xp) if arithmetic is None else arithmetic
        self._turn = xp.asarray(reflection(n).astype(dtype))
        self._inner = xp.asarray(inner_indices(n))
        self.order = (n - 1) ** 2 + 1

    def inside(self, lifted: Any) -> Any:
        """W' Y W."""
        return self._by.chosen(self._turned(lifted), self._inner)

    def outside(self, reduced: Any) -> Any:
        """W R W'."""
        return self._turned(self._by.spread(reduced, self._inner, self.n**2))

    def _turned(self, matrix: Any) -> Any:
        n, turn, xp = self.n, self._turn, self._xp
        for _ in range(2):
            rows = xp.matmul(turn, matrix.reshape(n, n**3)).reshape(n, n, n * n)
            matrix = self._by.turned(xp.matmul(turn, rows).reshape(n * n, n * n))
        return matrix
