"""Gromov-Wasserstein: matrices and points of every size and sign, weights with zeros, costs, all methods."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, floats, integers, one_of, polls, time_limit

TOP = 330
"""Distances up to 2^330, which is below 1e100; costs up to their squares."""


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    n, m = (one_of(draw, (3, 2, 1, 4, 5)) for _ in range(2))
    inputs: dict[str, Any] = {}
    kinds = [_space(draw, name, size, inputs) for name, size in (("x", n), ("y", m))]
    family = " x ".join(kinds)
    for name, size in (("a", n), ("b", m)):
        if chance(draw, 50):
            inputs[name] = weights(draw, size)
            family += f", {name}"
    options: dict[str, Any] = {"seed": draw.whole(0, 9), "starts": draw.whole(1, 3), "max_iterations": 30}
    if chance(draw, 40):
        inputs["cost"] = floats(draw, (n, m), 2 * TOP)[1] if chance(draw, 60) else integers(draw, (n, m), 1 << 50)[1]
        options["alpha"] = one_of(draw, (0.5, 0.1, 0.9, 0.0, 1.0, 0.3))
        family += ", cost"
    if chance(draw, 60):
        options["method"] = one_of(draw, ("auto", "proximal", "entropic", "exact"))
        if device == "gpu" and options["method"] == "exact":
            options["method"] = "auto"
    if chance(draw, 15):
        inputs["plan0"] = draw.wholes(0, 9, (n, m)) / 9
    return Case("gromov", family, inputs, options, time_limit(draw), polls=polls(draw))


def _space(draw: Draw, name: str, size: int, inputs: dict[str, Any]) -> str:
    if chance(draw, 20):
        inputs[name] = draw.wholes(-50, 50, (size, draw.whole(1, 3))) / one_of(draw, (1, 10, 2**20))
        return "points"
    if chance(draw, 30):
        kind, matrix = integers(draw, (size, size), 1 << 50)
    else:
        kind, matrix = floats(draw, (size, size), TOP)
    matrix = np.clip(matrix, -(2.0**TOP), 2.0**TOP) if matrix.dtype.kind == "f" else matrix
    if chance(draw, 70):
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
    inputs[f"{name}_distance"] = matrix
    return kind


def weights(draw: Draw, size: int) -> Array:
    """Relative to their sum: with zeros, far apart, or all the same."""
    kind = one_of(draw, ("some", "zeros", "far apart", "same"))
    if kind == "same":
        return np.full(size, 0.1)
    found = draw.wholes(0 if kind == "zeros" else 1, 9, (size,)) / 7
    if kind == "far apart":
        found = found * 10.0 ** -draw.wholes(0, 30, (size,))
    return found if found.any() else np.ones(size)
