import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def cloud(n: int, d: int, seed: int) -> Array:
    return np.random.default_rng([n, d, seed]).random((n, d))


def weights(n: int, seed: int) -> Array:
    return np.asarray(np.random.default_rng([n, seed]).integers(0, 9, n) + np.eye(n)[0])


def points(m: int = 30, n: int = 20, d: int = 2) -> dict[str, Array]:
    return {"x": cloud(m, d, 1), "y": cloud(n, d, 2) + 0.3}


def weighted() -> dict[str, Array]:
    return points(25, 40) | {"a": weights(25, 3), "b": weights(40, 4)}


def costs(m: int = 20, n: int = 30) -> Inputs:
    return {"cost": np.random.default_rng(5).normal(size=(m, n)), "b": weights(n, 6)}


def factors() -> Inputs:
    rng = np.random.default_rng(7)
    return {"row_factors": rng.normal(size=(18, 4)), "column_factors": rng.normal(size=(22, 4))}


CASES = [
    Case("lowrank", "points", points, {"rank": 4}),
    Case("lowrank", "weights", weighted, {"rank": 3}),
    Case("lowrank", "costs", costs, {"rank": 5, "starts": 1}),
    Case("lowrank", "factors", factors, {"rank": 3, "init": "random"}),
    Case("lowrank", "directions", points, {"rank": 3, "metric": "cosine"}),
    Case("lowrank", "full", points, {"rank": 50}),
    Case("lowrank", "one", lambda: {"cost": np.zeros((1, 1))}),
]
