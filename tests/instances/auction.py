from collections.abc import Callable

import numpy as np

from kernels import Array, Csr, Inputs
from tests.instances import Case


def planted(n_rows: int, n_cols: int, density: float, seed: int, dtype: type = np.int64, limit: int = 10_000) -> Csr:
    """Random edges with weights 1..limit and a planted full assignment."""
    rng = np.random.default_rng(seed)
    mask = rng.random((n_rows, n_cols)) < density
    mask[np.arange(n_rows), rng.permutation(n_cols)[:n_rows]] = True
    weight = rng.integers(1, limit + 1, (n_rows, n_cols))
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))])
    return Csr(indptr, np.nonzero(mask)[1].astype(np.int32), weight[mask].astype(dtype), (n_rows, n_cols))


def dense(n_rows: int, n_cols: int, seed: int, high: float = 10_000, dtype: type = np.int32) -> Array:
    return (np.random.default_rng(seed).random((n_rows, n_cols)) * high).astype(dtype)


def forbidden(n: int, seed: int) -> Array:
    """Floats with -inf in two thirds of the entries; the diagonal stays."""
    rng = np.random.default_rng(seed)
    benefit = rng.random((n, n)) * 100
    hole = rng.random((n, n)) < 2 / 3
    np.fill_diagonal(hole, False)
    benefit[hole] = -np.inf
    return benefit


def without_assignment(n: int, seed: int) -> Csr:
    """Sparse, and its first n // 4 rows share n // 4 - 1 columns."""
    graph = planted(n, n, 0.2, seed)
    crowd = n // 4
    keep = (np.repeat(np.arange(n), np.diff(graph.indptr)) >= crowd) | (graph.indices < crowd - 1)
    sizes = np.add.reduceat(keep, graph.indptr[:-1]) * (np.diff(graph.indptr) > 0)
    return Csr(np.concatenate([[0], np.cumsum(sizes)]), graph.indices[keep], graph.values[keep], graph.shape)


def spatial(n: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    x, y = rng.random((n, 2)), rng.random((n, 2))
    squared: Array = ((x[:, None] - y[None]) ** 2).sum(-1)
    return -squared


def clouds(m: int, n: int, d: int, seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    return {"x": rng.random((m, d)), "y": rng.random((n, d))}


def alike(n: int, kinds: int, seed: int, columns: bool = False) -> Array:
    """Rows of few kinds, and columns too if asked."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(1, 10_001, (kinds, kinds if columns else n), dtype=np.int32)[rng.integers(0, kinds, n)]
    return kind[:, rng.integers(0, kinds, n)] if columns else kind


FAMILIES: dict[str, Callable[[], Inputs]] = {
    "dense-int": lambda: {"benefit": dense(60, 60, 1)},
    "dense-float": lambda: {"benefit": dense(50, 50, 2, dtype=np.float64)},
    "dense-float32-wide": lambda: {"benefit": dense(40, 70, 3, high=1e6, dtype=np.float32)},
    "dense-ties": lambda: {"benefit": dense(60, 60, 4, high=4)},
    "dense-constant": lambda: {"benefit": np.full((70, 70), 7)},
    "dense-alike-rows": lambda: {"benefit": alike(80, 9, 20)},
    "dense-alike-both": lambda: {"benefit": alike(90, 5, 21, columns=True)},
    "dense-negative": lambda: {"benefit": -dense(45, 45, 5)},
    "dense-forbidden": lambda: {"benefit": forbidden(48, 6)},
    "dense-rectangular": lambda: {"benefit": dense(30, 90, 7)},
    "dense-product": lambda: {"benefit": np.outer(np.arange(1, 41), np.arange(1, 41))},
    "dense-spatial": lambda: {"benefit": spatial(64, 8)},
    "one-by-one": lambda: {"benefit": np.array([[-3]])},
    "one-row": lambda: {"benefit": dense(1, 9, 9)},
    "sparse-int": lambda: {"benefit": planted(120, 120, 0.1, 10)},
    "sparse-float": lambda: {"benefit": planted(80, 100, 0.15, 11, np.float64)},
    "sparse-thin": lambda: {"benefit": planted(150, 150, 0.01, 12)},
    "sparse-infeasible": lambda: {"benefit": without_assignment(40, 13)},
    "sparse-reject": lambda: {"benefit": without_assignment(40, 14), "reject": np.full(40, 1000)},
    "dense-reject": lambda: {"benefit": dense(50, 20, 15), "reject": np.full(50, 5000.5)},
    "empty-row": lambda: {"benefit": Csr(np.array([0, 1, 1]), np.array([1]), np.array([2]), (2, 2))},
}

EVERY = {"exact": {}, "scaled": {"finish": "auction"}}

CASES: list[Case] = [
    Case("auction", f"{family}-{label}", make, options)
    for family, make in FAMILIES.items()
    for label, options in EVERY.items()
] + [
    Case("auction", "dense-int-epsilon", FAMILIES["dense-int"], {"epsilon": 1.0}),
    Case("auction", "sparse-int-small-epsilon", FAMILIES["sparse-int"], {"epsilon": 0.3, "trace": True}),
    Case("auction", "sparse-float-epsilon", FAMILIES["sparse-float"], {"epsilon": 5.0}),
    Case("auction", "sparse-epsilon-paths", FAMILIES["sparse-int"], {"epsilon": 100.0, "finish": "paths"}),
    Case("auction", "points", lambda: clouds(90, 90, 2, 16)),
    Case("auction", "points-rectangular", lambda: clouds(60, 90, 3, 17), {"metric": "euclidean"}),
    Case("auction", "points-neighbours", lambda: clouds(90, 180, 2, 18), {"metric": "cityblock", "neighbours": 20}),
    Case("auction", "points-too-few-neighbours", lambda: clouds(120, 120, 2, 19), {"neighbours": 2}),
]
