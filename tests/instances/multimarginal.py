from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def clouds(l: int, m: int, n: int, d: int = 2) -> dict[str, Any]:  # noqa: E741
    rng = np.random.default_rng([l, m, n, d])
    return {name: rng.random((size, d)) + at / 2 for at, (name, size) in enumerate(zip("xyz", (l, m, n), strict=True))}


def masses(size: int, seed: int) -> Array:
    rng = np.random.default_rng([size, seed])
    found = rng.random(size) * (rng.random(size) < 0.7)
    found[0] += 0.1
    return np.asarray(found)


def weighed(l: int, m: int, n: int) -> dict[str, Any]:  # noqa: E741
    sides = {name: masses(size, at) for at, (name, size) in enumerate(zip("abc", (l, m, n), strict=True))}
    return {**clouds(l, m, n), **sides, "pair_weights": np.array([2.0, 0.5, 1.0])}


def tensor(l: int, m: int, n: int) -> dict[str, Any]:  # noqa: E741
    rng = np.random.default_rng([l, m, n])
    return {"cost": rng.random((l, m, n)) - 0.3, "a": masses(l, 3), "c": masses(n, 4)}


FAMILIES: list[tuple[str, Callable[[], Inputs], dict[str, Any]]] = [
    ("clouds-9x11x13", lambda: clouds(9, 11, 13), {"reg": 0.1}),
    ("clouds-small-reg", lambda: clouds(8, 8, 8), {"reg": 0.003, "output": "marginals", "tolerance": 1e-4}),
    ("weighed-7x9x8", lambda: weighed(7, 9, 8), {"output": "plan"}),
    ("euclidean", lambda: clouds(6, 5, 4, 3), {"metric": "euclidean", "output": "marginals"}),
    ("tensor-5x6x7", lambda: tensor(5, 6, 7), {"reg": 0.05, "output": "plan"}),
    ("tensor-small-reg", lambda: tensor(6, 5, 9), {"reg": 1e-3, "tolerance": 1e-4}),
    ("exact-clouds", lambda: weighed(6, 7, 5), {"reg": 0}),
    ("exact-tensor", lambda: tensor(4, 6, 5), {"method": "exact", "output": "marginals"}),
    ("one-point", lambda: clouds(1, 5, 1), {"reg": 0.1, "output": "marginals"}),
    ("no-cost", lambda: {"cost": np.zeros((2, 3, 4))}, {}),
    ("one-triple", lambda: {"cost": np.full((1, 1, 1), -2.5)}, {"reg": 0}),
]
CASES = [Case("multimarginal", label, make, options) for label, make, options in FAMILIES]
