"""Seeded transport problems: where costs come from, what masses look like, and what is balanced."""

import functools
from collections.abc import Callable

import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def cloud(m: int, n: int, d: int = 3, dtype: str = "float64") -> dict[str, Array]:
    """Points in the unit cube, the second cloud shifted; masses of sum 1 and 1.3."""
    rng = np.random.default_rng([1, m, n, d])
    a, b = rng.random(m) + 0.5, rng.random(n) + 0.5
    x, y = rng.random((m, d)), 0.2 + 0.8 * rng.random((n, d))
    return {"x": x.astype(dtype), "y": y.astype(dtype), "a": a / a.sum(), "b": 1.3 * b / b.sum()}


def matrix(m: int, n: int, dtype: str = "float64") -> dict[str, Array]:
    """`cloud` with its squared distances as a matrix."""
    given = cloud(m, n)
    cost = ((given["x"][:, None] - given["y"]) ** 2).sum(-1)
    return {"cost": cost.astype(dtype), "a": given["a"], "b": given["b"]}


def random_costs(m: int, n: int, low: float = 0.0) -> dict[str, Array]:
    return matrix(m, n) | {"cost": np.random.default_rng([2, m, n]).random((m, n)) + low}


def balanced(m: int, n: int) -> dict[str, Array]:
    given = matrix(m, n)
    return given | {"b": given["b"] / 1.3}


def forbidden(m: int, n: int) -> dict[str, Array]:
    """A fifth of the entries forbidden, one row and one column altogether."""
    given = matrix(m, n)
    out = np.random.default_rng([3, m, n]).random((m, n)) < 0.2
    out[m // 2] = out[:, n // 3] = True
    given["cost"][out] = np.inf
    return given


def zero_masses(m: int, n: int) -> dict[str, Array]:
    given = matrix(m, n)
    given["a"][::5] = 0
    given["b"][-3:] = 0
    return given


def batch(size: int, m: int, n: int) -> dict[str, Array]:
    rng = np.random.default_rng([4, size, m, n])
    masses = rng.random((size, m)) + 0.1
    masses[0, m // 2 :] = 0
    return {"cost": rng.random((size, m, n)), "a": masses / masses.sum(1, keepdims=True), "b": rng.random((size, n))}


def _case(label: str, inputs: Callable[[], Inputs], **options: object) -> Case:
    return Case("uot", label, inputs, options)


CASES: list[Case] = [
    _case("plain", functools.partial(matrix, 60, 50), reg=0.05),
    _case("float32", functools.partial(matrix, 70, 90, "float32"), reg=0.05),
    _case("strong-marginals", functools.partial(matrix, 60, 60), reg=0.01, reg_m=100.0),
    _case("weak-marginals", functools.partial(matrix, 60, 60), reg=0.01, reg_m=0.1),
    _case("small-reg", functools.partial(matrix, 50, 60, "float32"), reg=0.001, reg_m=10.0),
    _case("log", functools.partial(matrix, 50, 60, "float32"), reg=0.001, reg_m=1.0, method="log"),
    _case("random-costs", functools.partial(random_costs, 40, 70), reg=0.02),
    _case("negative-costs", functools.partial(random_costs, 40, 50, -0.5), reg=0.05, reg_m=2.0),
    _case("two-strengths", functools.partial(matrix, 40, 50), reg=0.05, reg_m=(0.5, 5.0)),
    _case("balanced", functools.partial(balanced, 40, 50), reg=0.05, reg_m="inf"),
    _case("balanced-rows", functools.partial(matrix, 40, 50), reg=0.05, reg_m=("inf", 1.0)),
    _case("balanced-columns", functools.partial(matrix, 40, 50), reg=0.05, reg_m=(1.0, "inf")),
    _case("uniform", functools.partial(matrix, 40, 50), reg=0.05, reference="uniform"),
    _case("forbidden", functools.partial(forbidden, 40, 50), reg=0.05),
    _case("zero-masses", functools.partial(zero_masses, 40, 50), reg=0.05),
    _case("zero-masses-uniform", functools.partial(zero_masses, 40, 50), reg=0.05, reference="uniform"),
    _case("one-row", functools.partial(matrix, 1, 9), reg=0.05),
    _case("one-column", functools.partial(matrix, 9, 1), reg=0.05),
    _case("one-entry", functools.partial(matrix, 1, 1), reg=0.05),
    _case("points", functools.partial(cloud, 40, 50), reg=0.05),
    _case("points-euclidean", functools.partial(cloud, 40, 50, 5, "float32"), reg=0.05, metric="euclidean"),
    _case("points-inner", functools.partial(cloud, 40, 50, 12), reg=0.05, metric="inner"),
    _case("potentials", functools.partial(matrix, 40, 50), reg=0.05, output="potentials", top_k=3),
    _case("map-uot", functools.partial(matrix, 40, 50), reg=0.05, method="map-uot"),
    _case(
        "map-uot-published",
        functools.partial(matrix, 40, 50),
        reg=0.05,
        method="map-uot",
        rule="published",
        iterations=50,
    ),
    _case("batch", functools.partial(batch, 3, 20, 30), reg=0.05),
]
