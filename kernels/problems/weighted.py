"""Weights of points, and matrices of real numbers, as problems of couplings take them: their checks."""

import math

import numpy as np

from kernels.problems.arrays import Csr, Floats, Inputs, InvalidProblem, finite, numeric

LARGEST, LARGEST_COST = 1e100, 1e200
"""Of a distance, a coordinate or an entry of a factor, and of a cost: objectives stay far inside float64."""
LIGHTEST = 1e-250
"""Of the largest weight: what is less counts as 0."""


def real_matrix(name: str, inputs: Inputs, shape: tuple[int, int] | None = None, *, least: float = -math.inf) -> Floats:
    """A matrix in float64, finite and not too large. Raises InvalidProblem."""
    given = inputs[name]
    if isinstance(given, Csr):
        raise InvalidProblem(name, "is sparse; expected a dense matrix")
    matrix = finite(name, numeric(name, given, ndim=(2,))).astype(np.float64)
    if shape is not None and matrix.shape != shape:
        raise InvalidProblem(name, f"has shape {matrix.shape}; expected {shape}")
    most = LARGEST_COST if name == "cost" else LARGEST
    if float(abs(matrix).max()) > most:
        raise InvalidProblem(name, f"holds {float(abs(matrix).max()):.3g}; expected at most {most} in absolute value")
    if float(matrix.min()) < least:
        raise InvalidProblem(name, f"holds {float(matrix.min()):.3g}; expected at least {least}")
    return matrix


def weights_of(name: str, inputs: Inputs, size: int) -> Floats:
    """Weights in float64, one a point, not all 0; equal ones where none are given. Raises InvalidProblem."""
    if name not in inputs:
        return np.full(size, 1 / size)
    given = inputs[name]
    if isinstance(given, Csr):
        raise InvalidProblem(name, "is sparse; expected weights, one a point")
    weights = finite(name, numeric(name, given, ndim=(1,))).astype(np.float64)
    if weights.shape != (size,):
        raise InvalidProblem(name, f"has {weights.size} entries; expected {size}, one a point")
    if float(weights.min()) < 0:
        at = int(weights.argmin())
        raise InvalidProblem(name, f"holds {weights[at]} at [{at}]; expected weights of at least 0")
    largest = float(weights.max())
    if not 1 / LARGEST <= largest <= LARGEST:
        raise InvalidProblem(name, f"has the largest weight {largest}; expected one from {1 / LARGEST} to {LARGEST}")
    return np.where(weights < LIGHTEST * largest, 0.0, weights)
