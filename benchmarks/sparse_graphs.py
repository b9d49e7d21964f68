"""Sparse graphs that the CPU's solvers are compared on: random, ties, neighbours in the plane, bands, few popular ones.

Every graph has an assignment of all its rows (one is planted), unless rows may stay out. Seeds are fixed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from kernels import Array, Csr


class SparseCase(NamedTuple):
    """A graph, drawn when it is wanted; whether rows may stay out of the assignment, for nothing."""

    family: str
    n: int
    draw: Callable[[], Csr]
    rejecting: bool = False


def _graph(rows: Array, columns: Array, shape: tuple[int, int], values: Callable[[int], Array]) -> Csr:
    """The graph of some edges, each taken once, and their benefits by `values`."""
    n_rows, n_cols = shape
    places = np.unique(rows.astype(np.int64) * n_cols + columns)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(places // n_cols, minlength=n_rows))])
    return Csr(indptr, (places % n_cols).astype(np.int32), values(places.size), (n_rows, n_cols))


def _drawn(rng: np.random.Generator, low: int, high: int) -> Callable[[int], Array]:
    return lambda size: rng.integers(low, high + 1, size, dtype=np.int32)


def _random(n: int, degree: int, low: int, high: int, n_cols: int = 0, planted: bool = True) -> Csr:
    """Columns drawn evenly, and a hidden assignment."""
    n_cols = n_cols or n
    rng = np.random.default_rng([11, n, degree, high, n_cols])
    columns = rng.integers(0, n_cols, (n, degree))
    if planted:
        columns[:, 0] = rng.permutation(n_cols)[:n]
    return _graph(np.repeat(np.arange(n), degree), columns.reshape(-1), (n, n_cols), _drawn(rng, low, high))


def _floats(n: int, degree: int) -> Csr:
    graph = _random(n, degree, 1, 10000)
    return replace(graph, values=np.random.default_rng([12, n]).random(graph.indices.size) * 1000.0)


def _regular(n: int) -> Csr:
    """Three permutations on top of each other."""
    rng = np.random.default_rng([13, n])
    columns = np.concatenate([rng.permutation(n) for _ in range(3)])
    return _graph(np.tile(np.arange(n), 3), columns, (n, n), _drawn(rng, 1, 10000))


def _banded(n: int, reach: int) -> Csr:
    rng = np.random.default_rng([14, n, reach])
    columns = np.arange(n)[:, None] + np.arange(-reach, reach + 1)
    inside = (columns >= 0) & (columns < n)
    rows = np.repeat(np.arange(n), 2 * reach + 1)[inside.reshape(-1)]
    return _graph(rows, columns[inside], (n, n), _drawn(rng, 1, 10000))


def _neighbours(n: int, k: int) -> Csr:
    """Points that moved by two spacings, their nearest new places and the true one; minus squared distances."""
    rng = np.random.default_rng([15, n, k])
    x = rng.random((n, 2)) * 1000
    hidden = rng.permutation(n)
    y = (x + rng.normal(0, 2000 / np.sqrt(n), (n, 2)))[hidden]
    nearest = cKDTree(y).query(x, k)[1]
    columns = np.concatenate([nearest, np.argsort(hidden)[:, None]], axis=1)
    graph = _graph(np.repeat(np.arange(n), k + 1), columns.reshape(-1), (n, n), lambda size: np.zeros(size, np.int64))
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    squares = ((x[rows] - y[graph.indices]) ** 2).sum(1)
    return replace(graph, values=-np.rint(squares * 100).astype(np.int64))


def _popular(n: int, degree: int) -> Csr:
    """Columns with a power law: a few are in most rows."""
    rng = np.random.default_rng([16, n, degree])
    columns = np.minimum((n * rng.random((n, degree)) ** 3).astype(np.int64), n - 1)
    columns[:, 0] = rng.permutation(n)
    return _graph(np.repeat(np.arange(n), degree), columns.reshape(-1), (n, n), _drawn(rng, 1, 10000))


CASES = (
    SparseCase("uniform 1..10000", 1_000, lambda: _random(1_000, 100, 1, 10000)),
    SparseCase("uniform 1..10000", 2_000, lambda: _random(2_000, 500, 1, 10000)),
    SparseCase("uniform 1..10000", 10_000, lambda: _random(10_000, 20, 1, 10000)),
    SparseCase("uniform 1..10000", 20_000, lambda: _random(20_000, 50, 1, 10000)),
    SparseCase("uniform 1..10000", 100_000, lambda: _random(100_000, 10, 1, 10000)),
    SparseCase("uniform 1..10000", 100_000, lambda: _random(100_000, 20, 1, 10000)),
    SparseCase("uniform 1..1e9", 20_000, lambda: _random(20_000, 50, 1, 10**9)),
    SparseCase("uniform float64", 10_000, lambda: _floats(10_000, 20)),
    SparseCase("uniform float64", 20_000, lambda: _floats(20_000, 50)),
    SparseCase("uniform 1..10", 10_000, lambda: _random(10_000, 20, 1, 10)),
    SparseCase("uniform 1..10", 100_000, lambda: _random(100_000, 10, 1, 10)),
    SparseCase("uniform 1..100", 20_000, lambda: _random(20_000, 50, 1, 100)),
    SparseCase("neighbours in the plane", 2_000, lambda: _neighbours(2_000, 10)),
    SparseCase("neighbours in the plane", 10_000, lambda: _neighbours(10_000, 10)),
    SparseCase("neighbours in the plane", 50_000, lambda: _neighbours(50_000, 20)),
    SparseCase("3-regular", 10_000, lambda: _regular(10_000)),
    SparseCase("3-regular", 100_000, lambda: _regular(100_000)),
    SparseCase("banded, 11 wide", 10_000, lambda: _banded(10_000, 5)),
    SparseCase("banded, 11 wide", 100_000, lambda: _banded(100_000, 5)),
    SparseCase("power law", 10_000, lambda: _popular(10_000, 10)),
    SparseCase("power law", 50_000, lambda: _popular(50_000, 20)),
    SparseCase("n x 1.5 n", 20_000, lambda: _random(20_000, 50, 1, 10000, 30_000)),
    SparseCase("n x n / 2, rows may stay out", 20_000, lambda: _random(20_000, 20, 1, 10000, 10_000, False), True),
)
