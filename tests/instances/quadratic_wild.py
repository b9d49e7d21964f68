"""Quadratic assignments of strange numbers: scales, ties, zeros, forbidden pairs. Seeded."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import Array

Draw = Callable[[np.random.Generator, int], Array]

FLOATS: dict[str, Draw] = {
    "uniform": lambda rng, n: rng.random((n, n)),
    "normal": lambda rng, n: rng.normal(size=(n, n)),
    "symmetric": lambda rng, n: (m := rng.normal(size=(n, n))) + m.T,
    "zeros": lambda rng, n: np.zeros((n, n)),
    "constant": lambda rng, n: np.full((n, n), rng.normal()),
    "halves": lambda rng, n: rng.integers(-4, 5, (n, n)) * 0.5,
    "hundredths": lambda rng, n: np.round(rng.random((n, n)), 2),
    "sparse": lambda rng, n: rng.random((n, n)) * (rng.random((n, n)) < 0.3),
    "diagonal": lambda rng, n: np.diag(rng.normal(size=n)),
    "tiny": lambda rng, n: rng.random((n, n)) * 1e-150,
    "huge": lambda rng, n: rng.normal(size=(n, n)) * 1e140,
    "all scales": lambda rng, n: rng.normal(size=(n, n)) * 10.0 ** rng.integers(-140, 140, (n, n)),
}
INTEGERS: dict[str, Draw] = {
    "small": lambda rng, n: rng.integers(-9, 10, (n, n)),
    "symmetric": lambda rng, n: (m := rng.integers(0, 99, (n, n))) + m.T,
    "wide": lambda rng, n: rng.integers(0, 2**26, (n, n)),
    "zeros": lambda rng, n: np.zeros((n, n), np.int64),
    "constant": lambda rng, n: np.full((n, n), int(rng.integers(-3, 4))),
}


def inputs(seed: int, n: int, integer: bool) -> dict[str, Any]:
    """Flow, distance and sometimes linear costs, each of a family of its own; some pairs forbidden."""
    rng = np.random.default_rng([seed, n, integer])
    families = list((INTEGERS if integer else FLOATS).values())
    drawn = {name: np.asarray(families[rng.integers(len(families))](rng, n)) for name in ("flow", "distance", "linear")}
    if rng.random() < 0.4:
        del drawn["linear"]
    elif rng.random() < 0.5:
        barred = rng.random((n, n)) < 0.6 * rng.random()
        drawn["linear"] = np.where(barred, np.inf, drawn["linear"].astype(float))
    return drawn
