from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def grid(n: int) -> Array:
    places = np.arange(n) / n
    return np.asarray((places[:, None] - places) ** 2)


def masses(k: int, n: int, seed: int = 0) -> Array:
    rng = np.random.default_rng([k, n, seed])
    found = rng.random((k, n)) * (rng.random((k, n)) < 0.6)
    found[:, 0] += 0.01
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def histograms(k: int, n: int, seed: int = 0) -> dict[str, Any]:
    return {"histograms": masses(k, n, seed), "cost": grid(n)}


def own_costs(k: int, m: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng([k, m, n])
    return {"histograms": masses(k, n), "cost": rng.random((k, m, n)) - 0.3, "measure_weights": rng.random(k)}


def points(k: int, m: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng([m, n])
    return {"histograms": masses(k, n), "x": rng.random((n, 2)), "support": rng.random((m, 2))}


def clouds(k: int, n: int, d: int = 2) -> dict[str, Any]:
    return {"x": np.random.default_rng([k, n, d]).random((k, n, d)) + np.arange(k)[:, None, None] / 2}


def one_place() -> dict[str, Any]:
    return {"histograms": np.array([[0, 2.0, 0], [0, 2.0, 0]]), "cost": np.zeros((1, 3))}


FAMILIES: list[tuple[str, Callable[[], Inputs], dict[str, Any]]] = [
    ("line-3x30", lambda: histograms(3, 30), {"reg": 0.05}),
    ("line-3x30-small-reg", lambda: histograms(3, 30), {"reg": 0.002, "tolerance": 1e-4}),
    ("own-costs-4x5x7", lambda: own_costs(4, 5, 7), {}),
    ("points-3x6x9", lambda: points(3, 6, 9), {"metric": "euclidean"}),
    ("debiased-3x12", lambda: histograms(3, 12), {"debiased": True, "iterations": 100}),
    ("exact-3x12", lambda: histograms(3, 12), {"reg": 0}),
    ("exact-own-costs", lambda: own_costs(3, 4, 6), {"method": "exact"}),
    ("free-3x10", lambda: clouds(3, 10), {}),
    ("free-2x8-3d", lambda: clouds(2, 8, 3), {"support_points": 5}),
    ("one-place", one_place, {"reg": 0}),
]
CASES = [Case("barycenter", label, make, options) for label, make, options in FAMILIES]
