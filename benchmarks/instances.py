"""The instance families of the benchmarks. Seeds are fixed, so every peer anywhere gets the same arrays.

`python -m benchmarks.instances FOLDER` draws the dense assignment matrices ahead, on all cores: at n = 8192 that takes
seconds each. The benchmarks read them from the folder that $ALLOT_INSTANCES names.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
FloatArray = npt.NDArray[np.float64]


def uniform_integers(n: int, high: int) -> Array:
    """int32 in [0, high]."""
    return np.random.default_rng([1, n, high]).integers(0, high + 1, (n, n), dtype=np.int32)


def uniform(n: int) -> Array:
    """float64 in [0, 1000 n)."""
    return np.random.default_rng([2, n]).random((n, n)) * (1000.0 * n)


def squared_distances(x: FloatArray, y: FloatArray) -> FloatArray:
    """Between every row of x and every row of y, summed over the coordinates in order."""
    return np.asarray(((x[:, None] - y[None]) ** 2).sum(-1))


def _plane(rng: np.random.Generator, n: int) -> FloatArray:
    x, y = rng.random((n, 2)) * 1e3, rng.random((n, 2)) * 1e3
    return squared_distances(x, y)


def _clustered(rng: np.random.Generator, n: int) -> FloatArray:
    centre = rng.random((20, 2)) * 1e3
    x = centre[rng.integers(0, 20, n)] + rng.normal(0, 20, (n, 2))
    y = centre[rng.integers(0, 20, n)] + rng.normal(0, 20, (n, 2))
    return squared_distances(x, y)


def _gene50(rng: np.random.Generator, n: int) -> FloatArray:
    """Correlation distance of expression profiles drawn around 12 cell types."""
    centre = rng.normal(size=(12, 50))
    profiles = []
    for _ in range(2):
        x = centre[rng.integers(0, 12, n)] + rng.normal(0, 0.7, (n, 50))
        profiles.append(x)
    unit = []
    for x in profiles:
        x = x - x.mean(1, keepdims=True)
        unit.append(x / np.linalg.norm(x, axis=1)[:, None])
    return np.asarray(1 - unit[0] @ unit[1].T)


_STRUCTURED: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "sqeuclid": _plane,
    "euclid": lambda rng, n: np.sqrt(_plane(rng, n)),
    "clustered": _clustered,
    "gene50": _gene50,
    "lowrank8": lambda rng, n: rng.random((n, 8)) @ rng.random((8, n)) * 1e3,
    "powerlaw": lambda rng, n: rng.pareto(1.5, (n, n)) + 1,
    "product": lambda rng, n: np.outer(np.arange(1, n + 1.0), np.arange(1, n + 1.0)),
}
_RANGES = {"r01": 0.1, "r1": 1, "r10": 10}
LAP_FAMILIES = (*_RANGES, "u", *_STRUCTURED)
LAP_SIZES = (256, 512, 1024, 2048, 4096, 8192)


def lap(family: str, n: int) -> Array:
    """Square cost matrix: int32 for r01, r1, r10 (range 0.1 n, n, 10 n), float64 otherwise."""
    if (kept := Path(os.environ.get("ALLOT_INSTANCES", "nowhere")) / f"{family}_{n}.npy").exists():
        found: Array = np.load(kept)
        return found
    if family in _RANGES:
        return uniform_integers(n, int(_RANGES[family] * n))
    if family == "u":
        return uniform(n)
    rng = np.random.default_rng([9, n, sum(map(ord, family))])
    return _STRUCTURED[family](rng, n)


def redrawn(old: Array, seed: int, share: float) -> Array:
    """The same costs, but for a share of the rows, at least one: these have costs of other rows, in another order."""
    rng, n = np.random.default_rng(seed), len(old)
    rows = rng.permutation(n)[: max(1, round(share * n))]
    cost = old.copy()
    cost[rows] = old[rng.permutation(n)[: len(rows)]][:, rng.permutation(old.shape[1])]
    return cost


def lap_batch(batch: int, n: int) -> Array:
    """(batch, n, n) float32 uniform in [0, 1)."""
    return np.random.default_rng([4, batch, n]).random((batch, n, n), dtype=np.float32)


def uot(m: int, n: int | None = None, d: int = 3) -> tuple[Array, Array, Array]:
    """float32 squared distances (m, n) in the unit cube, the second cloud shifted, and masses of sum 1 and 1.3."""
    n = n or m
    rng = np.random.default_rng([5, m, n, d, 0])
    x, y = rng.random((m, d)), rng.random((n, d)) * 0.8 + 0.2
    a, b = rng.random(m) + 0.5, rng.random(n) + 0.5
    cost = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    return (
        np.maximum(cost, 0).astype(np.float32),
        (a / a.sum()).astype(np.float32),
        (1.3 * b / b.sum()).astype(np.float32),
    )


def _keep(case: tuple[str, int]) -> None:
    np.save(Path(sys.argv[1]) / f"{case[0]}_{case[1]}.npy", lap(*case))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:  # the largest first
        list(pool.map(_keep, [(family, n) for n, family in product(LAP_SIZES[::-1], LAP_FAMILIES)]))
