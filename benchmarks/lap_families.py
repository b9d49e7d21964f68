"""Thirty families of dense costs. The last ten were to be held back, but were seen when the CPU's limits were chosen.

Seeds are fixed: every run and every peer gets the same arrays. All are in min form.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]
Rng = np.random.Generator


def _integers(rng: Rng, n: int, high: int) -> Array:
    return rng.integers(0, high + 1, (n, n), dtype=np.int32)


def _between(x: Floats, y: Floats, squared: bool = False) -> Floats:
    """Distances of all rows of x to all rows of y."""
    square = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    square = np.maximum(square, 0)
    return np.asarray(square if squared else np.sqrt(square))


def _space(rng: Rng, n: int, dimension: int, squared: bool = False) -> Floats:
    return _between(rng.random((n, dimension)) * 1e3, rng.random((n, dimension)) * 1e3, squared)


def _clusters(rng: Rng, n: int, count: int, width: float, squared: bool = True) -> Floats:
    centre = rng.random((count, 2)) * 1e3
    x, y = (centre[rng.integers(0, count, n)] + rng.normal(0, width, (n, 2)) for _ in range(2))
    return _between(x, y, squared)


def _nested(rng: Rng, n: int) -> Floats:
    """Clusters within clusters: each level a tenth as wide."""
    sides = []
    levels = [rng.normal(size=(4, 2)) * 10.0**-level for level in range(6)]
    for _ in range(2):
        sides.append(sum(level[rng.integers(0, 4, n)] for level in levels))
    return _between(*sides) * 1e3  # type: ignore[arg-type]


def _stretched(rng: Rng, n: int) -> Floats:
    """A strip a thousand times as long as wide: nearly a line."""
    scale = np.array([1e3, 1.0])
    return _between(rng.random((n, 2)) * scale, rng.random((n, 2)) * scale, squared=True)


def _profiles(rng: Rng, n: int) -> Floats:
    """Correlation distance of profiles around 12 kinds."""
    centre, unit = rng.normal(size=(12, 50)), []
    for _ in range(2):
        x = centre[rng.integers(0, 12, n)] + rng.normal(0, 0.7, (n, 50))
        x -= x.mean(1, keepdims=True)
        unit.append(x / np.linalg.norm(x, axis=1)[:, None])
    return np.asarray(1 - unit[0] @ unit[1].T)


def _noisy_product(rng: Rng, n: int) -> Floats:
    lines = np.arange(1, n + 1.0)
    return np.asarray(np.outer(lines, lines) + rng.random((n, n)) * n)


def _line(rng: Rng, n: int) -> Floats:
    """Distances along a line that are off by a percent."""
    x, y = rng.random((n, 1)) * 1e3, rng.random((1, n)) * 1e3
    return np.asarray(np.abs(x - y) + rng.random((n, n)) * 10)


def _forbidden(rng: Rng, n: int) -> Floats:
    """Nine tenths of the entries are forbidden; an assignment is planted."""
    cost = np.where(rng.random((n, n)) < 0.1, rng.random((n, n)) * 100, np.inf)
    rows = rng.permutation(n)
    cost[rows, np.arange(n)] = 50 + 50 * rng.random(n)
    return cost


def _two_sizes(rng: Rng, n: int) -> Array:
    """Small integers, and a tenth of them a million times as large."""
    return np.where(rng.random((n, n)) < 0.1, 10**6, 1) * rng.integers(1, 100, (n, n))


def _kinds(rng: Rng, n: int) -> Array:
    """Twenty kinds of rows: alike but for the number of their kind."""
    return rng.integers(0, 1000, (20, n), dtype=np.int32)[rng.integers(0, 20, n)]


def _wide(rng: Rng, n: int, ratio: float) -> Floats:
    return rng.random((n, int(n * ratio) + 1)) * 1e3


FAMILIES: dict[str, Callable[[Rng, int], Array]] = {
    "ints 0..99": lambda rng, n: _integers(rng, n, 99),
    "ints 0..0.1 n": lambda rng, n: _integers(rng, n, max(1, n // 10)),
    "ints 0..n": lambda rng, n: _integers(rng, n, n),
    "ints 0..10 n": lambda rng, n: _integers(rng, n, 10 * n),
    "ints 0..1e9": lambda rng, n: _integers(rng, n, 10**9),
    "floats": lambda rng, n: rng.random((n, n)),
    "floats float32": lambda rng, n: rng.random((n, n), dtype=np.float32),
    "plane, squared": lambda rng, n: _space(rng, n, 2, squared=True),
    "plane": lambda rng, n: _space(rng, n, 2),
    "eight dimensions": lambda rng, n: _space(rng, n, 8),
    "20 clusters": lambda rng, n: _clusters(rng, n, 20, 20),
    "profiles": _profiles,
    "low rank": lambda rng, n: rng.random((n, 8)) @ rng.random((8, n)) * 1e3,
    "power law": lambda rng, n: rng.pareto(1.5, (n, n)) + 1,
    "product": lambda rng, n: np.outer(np.arange(1, n + 1.0), np.arange(1, n + 1.0)),
    "noisy product": _noisy_product,
    "stretched": _stretched,
    "nested": _nested,
    "wide 1.01": lambda rng, n: _wide(rng, n, 1.01),
    "wide 2": lambda rng, n: _wide(rng, n, 2),
    "ties 0..3": lambda rng, n: _integers(rng, n, 3),
    "steep": lambda rng, n: np.exp(rng.normal(size=(n, n)) * 6),
    "three dimensions": lambda rng, n: _space(rng, n, 3),
    "3 tight clusters": lambda rng, n: _clusters(rng, n, 3, 1, squared=False),
    "noisy line": _line,
    "normal int64": lambda rng, n: (rng.normal(size=(n, n)) * 1e4).astype(np.int64),
    "a tenth permitted": _forbidden,
    "two sizes": _two_sizes,
    "20 kinds of rows": _kinds,
    "plane, wide 1.05": lambda rng, n: _between(rng.random((n, 2)), rng.random((int(n * 1.05) + 1, 2))),
}


def costs(family: str, n: int) -> Array:
    """The matrix of a family with n rows."""
    seed = [11, n, sum((at + 1) * ord(letter) for at, letter in enumerate(family))]
    return np.ascontiguousarray(FAMILIES[family](np.random.default_rng(seed), n))
