from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def symmetric(n: int, high: int, seed: int) -> Array:
    upper = np.triu(np.random.default_rng([n, high, seed]).integers(0, high, (n, n)), 1)
    return np.asarray(upper + upper.T)


def grid(rows: int, columns: int) -> Array:
    x, y = np.divmod(np.arange(rows * columns), columns)
    return np.asarray(np.abs(x[:, None] - x) + np.abs(y[:, None] - y))


def asymmetric(n: int, low: int, high: int, seed: int) -> Array:
    return np.random.default_rng([n, low + 1000, high, seed]).integers(low, high, (n, n))


def small_grid() -> Inputs:
    return {"flow": symmetric(9, 10, 1), "distance": grid(3, 3)}


def one_sided() -> Inputs:
    return {"flow": symmetric(8, 100, 2), "distance": asymmetric(8, 0, 100, 3)}


def fully_asymmetric() -> Inputs:
    return {"flow": asymmetric(7, -20, 50, 4), "distance": asymmetric(7, -5, 30, 5), "linear": asymmetric(7, -9, 99, 6)}


def floats() -> Inputs:
    rng = np.random.default_rng(7)
    x = rng.random((8, 2))
    return {"flow": rng.random((8, 8)), "distance": np.linalg.norm(x[:, None] - x, axis=2)}


def forbidden() -> Inputs:
    linear = asymmetric(7, 0, 20, 8).astype(float)
    linear[0, 1:] = np.inf
    linear[3, 4] = np.inf
    return {"flow": symmetric(7, 30, 9), "distance": symmetric(7, 30, 10), "linear": linear}


def impossible() -> Inputs:
    linear = np.zeros((4, 4))
    linear[:2, 1:] = np.inf
    return {"flow": symmetric(4, 9, 11), "distance": symmetric(4, 9, 12), "linear": linear}


def wide() -> Inputs:
    return {"flow": symmetric(7, 2**28, 13), "distance": symmetric(7, 2**27, 14)}


def constant(n: int, value: int) -> Callable[[], Inputs]:
    return lambda: {"flow": np.full((n, n), value), "distance": np.full((n, n), value)}


def middling() -> Inputs:
    return {"flow": symmetric(40, 10, 15), "distance": grid(5, 8)}


SMALL: dict[str, Callable[[], Inputs]] = {
    "grid-9": small_grid,
    "one-sided-8": one_sided,
    "asymmetric-7": fully_asymmetric,
    "float-8": floats,
    "forbidden-7": forbidden,
    "wide-7": wide,
    "n-1": constant(1, 3),
    "n-2": constant(2, 2),
    "n-3": constant(3, 1),
    "zeros-6": constant(6, 0),
    "negative-5": constant(5, -1),
}
ROUNDS: dict[str, Any] = {"rounds": 3, "starts": 4}

CASES: list[Case] = [
    *(Case("qap", label, inputs, ROUNDS) for label, inputs in SMALL.items()),
    Case("qap", "impossible-4", impossible, ROUNDS),
    Case("qap", "middling-40", middling, ROUNDS),
    Case("qap", "2opt-9", small_grid, {"method": "2opt", "starts": 16, "rounds": 1}),
    Case("qap", "tabu-8", one_sided, {"method": "tabu", "iterations": 300, "tenure": (2, 6)}),
]
