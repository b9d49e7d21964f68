import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def cloud(n: int, d: int, seed: int) -> Array:
    return np.random.default_rng([n, d, seed]).random((n, d))


def distances(points: Array) -> Array:
    return np.asarray(np.linalg.norm(points[:, None] - points, axis=2))


def weights(n: int, seed: int) -> Array:
    return np.asarray(np.random.default_rng([n, seed]).integers(0, 9, n) + np.eye(n)[0])


def matrices() -> Inputs:
    return {"x_distance": distances(cloud(9, 2, 1)), "y_distance": distances(cloud(9, 3, 2))}


def points() -> Inputs:
    return {"x": cloud(20, 2, 3), "y": cloud(13, 1, 4), "a": weights(20, 5), "b": weights(13, 6)}


def directed() -> Inputs:
    rng = np.random.default_rng(7)
    return {
        "x_distance": rng.integers(-9, 9, (7, 7)),
        "y_distance": rng.normal(size=(10, 10)),
        "cost": rng.normal(size=(7, 10)),
        "b": weights(10, 8),
    }


CASES = [
    Case("gromov", "matrices", matrices),
    Case("gromov", "points", points, {"starts": 2}),
    Case("gromov", "entropic", points, {"method": "entropic", "max_iterations": 50}),
    Case("gromov", "exact", matrices, {"method": "exact"}),
    Case("gromov", "directed", directed, {"alpha": 0.7}),
    Case("gromov", "one", lambda: {"x_distance": np.ones((1, 1)), "y": cloud(3, 2, 9)}),
]
