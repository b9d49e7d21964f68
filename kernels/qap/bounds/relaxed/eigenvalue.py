"""The largest eigenvalue of a symmetric matrix: an estimate from products, and a factorisation that shows a bound.

Both run wherever the arrays of `xp` are. On a device all eigenvalues would take far longer than a few factorisations.
The certificate shows the bound again, by itself.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

PRODUCTS = 60


def top(matrix: Any, xp: ModuleType) -> float:
    """About the largest eigenvalue, by Lanczos' method with every vector kept orthogonal to all before it."""
    order = len(matrix)
    steps = min(PRODUCTS, order)
    basis = xp.zeros((steps, order))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    vector = xp.asarray(np.random.default_rng(0).normal(size=order))
    vector /= xp.linalg.norm(vector)
    taken = steps
    for k in range(steps):
        basis[k] = vector
        product = matrix @ vector
        diagonal[k] = float(vector @ product)
        for _ in range(2):  # once leaves what rounding hides
            product -= basis[: k + 1].T @ (basis[: k + 1] @ product)
        beside[k] = float(xp.linalg.norm(product))
        if beside[k] <= 1e-13 * abs(diagonal[: k + 1]).max():
            taken = k + 1
            break
        vector = product / beside[k]
    between = beside[: taken - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal[:taken]) + np.diag(between, 1) + np.diag(between, -1))
    return float(values[-1] + beside[taken - 1] * abs(vectors[-1, -1]))


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
