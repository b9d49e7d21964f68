from collections.abc import Callable

import numpy as np

from kernels import Array, Inputs
from tests.instances import Case


def uniform_int(n_rows: int, n_cols: int, share: float, seed: int = 0) -> Array:
    """Integers in [0, share * n_cols]."""
    return np.random.default_rng([1, seed]).integers(0, int(share * n_cols) + 1, (n_rows, n_cols), dtype=np.int32)


def uniform_float(n_rows: int, n_cols: int, seed: int = 0) -> Array:
    """float64 in [0, 1000 n)."""
    return np.random.default_rng([2, seed]).random((n_rows, n_cols)) * 1000.0 * n_cols


def spatial(n_rows: int, n_cols: int, seed: int = 0) -> Array:
    """Squared distances between points of the plane."""
    rng = np.random.default_rng([3, seed])
    x, y = rng.random((n_rows, 1, 2)), rng.random((1, n_cols, 2))
    return ((x - y) ** 2).sum(-1) * 1e6  # type: ignore[no-any-return]


def forbidden(n_rows: int, n_cols: int, density: float, seed: int = 0) -> Array:
    """float64 with entries forbidden at random; a full assignment is planted."""
    rng = np.random.default_rng([4, seed])
    cost = rng.random((n_rows, n_cols)) * 100
    barred = rng.random((n_rows, n_cols)) >= density
    short = min(n_rows, n_cols)
    barred[rng.permutation(n_rows)[:short], rng.permutation(n_cols)[:short]] = False
    cost[barred] = np.inf
    return cost


def planted_permutation(n: int) -> Array:
    """All entries forbidden but one per row."""
    cost = np.full((n, n), np.inf)
    cost[np.arange(n), np.random.default_rng(5).permutation(n)] = np.arange(n) - n / 3
    return cost


def wide_range(n: int) -> Array:
    """Magnitudes from 1e-300 to 1e300."""
    rng = np.random.default_rng(6)
    return np.where(rng.random((n, n)) < 0.5, 1e-300, 1e300) * rng.random((n, n))


def no_room(n_rows: int, n_cols: int) -> Array:
    """Infeasible: the first four rows (or columns, when there are fewer) share three partners."""
    cost = np.random.default_rng(7).random((n_rows, n_cols))
    if n_rows <= n_cols:
        cost[:4, 3:] = np.inf
    else:
        cost[3:, :4] = np.inf
    return cost


def product(n: int) -> Array:
    """Machol and Wien: the longest augmenting paths there are."""
    return np.outer(np.arange(1, n + 1), np.arange(1, n + 1))


def batch(count: int, n_rows: int, n_cols: int) -> Array:
    """float32 uniform in [0, 1)."""
    return np.random.default_rng(8).random((count, n_rows, n_cols), dtype=np.float32)


RAGGED = np.array([[5, 9], [12, 12], [12, 3], [1, 1], [2, 12]], np.int32)

_DENSE: dict[str, Callable[[], Array]] = {
    "r01": lambda: uniform_int(150, 150, 0.1),
    "r1": lambda: uniform_int(150, 150, 1),
    "r10-int64": lambda: uniform_int(150, 150, 10).astype(np.int64),
    "u": lambda: uniform_float(200, 200),
    "u-float32": lambda: uniform_float(130, 130).astype(np.float32),
    "spatial": lambda: spatial(160, 160),
    "ties": lambda: uniform_int(100, 100, 0.02),
    "constant": lambda: np.full((90, 90), 7),
    "constant-float": lambda: np.full((90, 90), 0.1),
    "negative": lambda: -uniform_float(70, 70),
    "wide": lambda: uniform_float(60, 170),
    "tall": lambda: uniform_int(170, 60, 1),
    "wide-spatial": lambda: spatial(100, 140),
    "1x1": lambda: np.array([[3.5]]),
    "1xN": lambda: uniform_float(1, 1000),
    "Nx1": lambda: uniform_float(1000, 1),
    "forbidden": lambda: forbidden(120, 120, 0.1),
    "forbidden-wide": lambda: forbidden(60, 150, 0.03),
    "forbidden-tall": lambda: forbidden(150, 60, 0.03),
    "one-per-row": lambda: planted_permutation(80),
    "wide-range": lambda: wide_range(60),
    "product": lambda: product(90),
    "no-room": lambda: no_room(40, 40),
    "no-room-wide": lambda: no_room(40, 70),
    "no-room-tall": lambda: no_room(70, 40),
}


def _inputs(make: Callable[[], Array]) -> Callable[[], Inputs]:
    return lambda: {"cost": make()}


LAP_CASES = [Case("lap", label, _inputs(make)) for label, make in _DENSE.items()] + [
    Case("lap", "maximize", _inputs(lambda: uniform_int(80, 80, 3)), {"maximize": True}),
    Case("lap", "maximize-float-tall", _inputs(lambda: spatial(90, 50)), {"maximize": True}),
    Case("lap", "maximize-forbidden", _inputs(lambda: -forbidden(70, 70, 0.2)), {"maximize": True}),
    Case("lap", "batch", _inputs(lambda: batch(7, 33, 33))),
    Case("lap", "batch-wide-int", _inputs(lambda: (batch(5, 20, 41) * 100).astype(np.int32))),
    Case("lap", "ragged", lambda: {"cost": batch(5, 12, 12), "sizes": RAGGED}),
    Case("lap", "ragged-maximize", lambda: {"cost": batch(5, 12, 12), "sizes": RAGGED}, {"maximize": True}),
]

CASES: list[Case] = LAP_CASES
