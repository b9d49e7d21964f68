from typing import Any

import numpy as np

from kernels import Array, Inputs
from tests.instances import Case
from tests.instances.quadratic import symmetric


def general(m: int, n: int, dtype: Any = np.int64) -> dict[str, Array]:
    rng = np.random.default_rng([m, n])
    shape = (m, n, m, n)
    return {"cost": rng.integers(-9, 99, shape) if dtype is np.int64 else rng.normal(size=shape).astype(dtype)}


def products(n: int) -> dict[str, Array]:
    """Costs of Koopmans and Beckmann, in Lawler's form."""
    return {"cost": in_lawlers_form(symmetric(n, 10, 1), symmetric(n, 10, 2))}


def in_lawlers_form(flow: Array, distance: Array) -> Array:
    return np.asarray(np.einsum("ik,pq->ipkq", flow, distance))


def wide() -> Inputs:
    """Integers of which the bound sees multiples of a power of two alone."""
    return {"cost": np.random.default_rng(3).integers(-(2**50), 2**50, (10, 10, 10, 10))}


CASES = [
    Case("lawler", "small", lambda: general(6, 6)),
    Case("lawler", "few", lambda: general(3, 7, np.float32)),
    Case("lawler", "ten", lambda: general(10, 10), {"rounds": 10}),
    Case("lawler", "floats", lambda: general(9, 11, np.float64), {"rounds": 5}),
    Case("lawler", "affinities", lambda: general(12, 12, np.float64), {"maximize": True, "rounds": 5}),
    Case("lawler", "fixed", lambda: general(12, 14), {"fixed": {0: 3, 13: 1}, "rounds": 5, "duals": True}),
    Case("lawler", "products", lambda: products(12), {"rounds": 10, "sweeps": 20}),
    Case("lawler", "wide", wide, {"rounds": 3, "sweeps": 3}),
    Case("lawler", "constant", lambda: {"cost": np.full((9, 9, 9, 9), 7)}),
    Case("lawler", "one", lambda: {"cost": np.array([[[[-3.5]]]])}),
]
