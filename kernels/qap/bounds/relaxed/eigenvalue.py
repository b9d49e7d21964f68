"""The largest eigenvalue of a symmetric matrix: an estimate from products, and a factorisation that shows a bound.

Both run wherever the arrays of `xp` are. On a device all eigenvalues would take far longer than a few factorisations.
The certificate shows the bound again, by itself.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

PRODUCTS = 60
TINY = 1e-300


def top(matrix: Any, xp: ModuleType) -> tuple[float, float]:
    """Two numbers between which the largest eigenvalue lies, nearly always: the second one can be too low.

    By Lanczos' method, with every vector kept orthogonal to all before it: the largest eigenvalue in what they span,
    and how far from it one of the matrix can be.
    """
    order = len(matrix)
    steps = min(PRODUCTS, order)
    basis = xp.zeros((steps, order))
    found = xp.zeros((2, steps))  # read once, at the end: a look a step would take a device longer than the step
    vector = xp.asarray(np.random.default_rng(0).normal(size=order))
    vector /= xp.sqrt(vector @ vector)
    for k in range(steps):
        basis[k] = vector
        product = matrix @ vector
        found[0, k] = vector @ product
        for _ in range(2):  # once leaves what rounding hides
            product -= basis[: k + 1].T @ (basis[: k + 1] @ product)
        length = xp.sqrt(product @ product)
        found[1, k] = length
        vector = product / xp.maximum(length, TINY)
    diagonal, beside = np.asarray(found.get() if hasattr(found, "get") else found)
    spent = beside <= 1e-13 * np.maximum.accumulate(abs(diagonal))  # the vectors before span what the first one reaches
    taken = int(spent.argmax()) + 1 if spent.any() else steps
    diagonal, beside = diagonal[:taken], beside[:taken]
    between = beside[: taken - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(between, 1) + np.diag(between, -1))
    return float(values[-1]), float(values[-1] + beside[taken - 1] * abs(vectors[-1, -1]))


def exceeds(value: float, matrix: Any, factorise: Callable[[Any], Any], xp: ModuleType) -> bool:
    """Whether a factorisation, which raises LinAlgError where there is none, finds value - matrix positive definite."""
    shifted = -matrix
    at = xp.arange(len(matrix))
    shifted[at, at] += value
    try:
        factorise(shifted)
    except np.linalg.LinAlgError:
        return False
    return True
