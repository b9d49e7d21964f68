"""Graphs that the auction is measured on: the paper's weights, few edges a row, many edges."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

from kernels import Array, Csr
from kernels.problems.arrays import Costs, Indices, Indices32

KEPT: list[Path] = []
"""Where generated graphs are kept between runs, with --keep."""
DRAWN_TOGETHER = 1 << 20
"""Edges that a thread draws in one go."""


def uniform(n: int, density: float, seed: int = 0) -> Array | Csr:
    """(n, n) int32 weights 1..10000, dense or CSR; a full assignment is planted."""
    names = [folder / f"uniform-{n}-{density:g}-{seed}" for folder in KEPT]
    if density == 1:
        return _kept([f"{name}.npy" for name in names], lambda: [np.asarray(_uniform(n, density, seed))])[0]

    def parts() -> list[Array]:
        graph = _uniform(n, density, seed)
        assert isinstance(graph, Csr)
        return [graph.indptr, graph.indices, graph.values]

    indptr, indices, values = _kept([f"{name}-{k}.npy" for name in names for k in range(3)], parts)
    return Csr(indptr, indices, values, (n, n))


def _kept(files: list[str], make: Callable[[], list[Array]]) -> list[Array]:
    if files and all(Path(file).exists() for file in files):
        return [np.load(file) for file in files]
    arrays = make()
    for file, array in zip(files, arrays, strict=False):
        np.save(file, array)
    return arrays


def _uniform(n: int, density: float, seed: int) -> Array | Csr:
    rng = np.random.default_rng([3, n, density < 1, *([seed] if seed else [])])
    planted = rng.permutation(n)
    blocks: list[tuple[Array, Array, Array]] = []
    for i in range(0, n, 1024):
        j = min(n, i + 1024)
        weight = rng.integers(1, 10001, (j - i, n), dtype=np.int32)
        if density < 1:
            keep = rng.random((j - i, n), dtype=np.float32) < density
            keep[np.arange(j - i), planted[i:j]] = True
            rows, columns = np.nonzero(keep)
            blocks.append((np.bincount(rows, minlength=j - i), columns.astype(np.int32), weight[keep]))
        else:
            blocks.append((np.zeros(0), np.zeros(0), weight))
    sizes, indices, values = (np.concatenate(part) for part in zip(*blocks, strict=True))
    if density == 1:
        return np.asarray(values)
    return Csr(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), indices, values, (n, n))


def few_edges(n: int, degree: int) -> Csr:
    """n rows with `degree` random columns each (fewer where two fall together) and a planted assignment."""
    rng = np.random.default_rng([6, n, degree])
    columns = rng.integers(0, n, (n, degree), dtype=np.int32)
    columns[:, 0] = rng.permutation(n)
    columns.sort(axis=1)
    keep = np.ones(columns.shape, bool)
    keep[:, 1:] = columns[:, 1:] != columns[:, :-1]
    indptr = np.concatenate([[0], np.cumsum(keep.sum(1))])
    return Csr(indptr, columns[keep], rng.integers(1, 10001, int(indptr[-1]), dtype=np.int32), (n, n))


def many_edges(n: int, degree: int) -> Csr:
    """n rows with `degree` edges each, one in every step of the columns, the diagonal among them."""
    step = n // degree
    indices, values = np.empty((n, degree), np.int32), np.empty((n, degree), np.int32)

    def fill(first: int) -> None:
        rng, rows = np.random.default_rng([7, n, degree, first]), np.arange(first, min(n, first + 8192))
        columns = np.arange(degree) * step + rng.integers(0, step, (rows.size, degree), dtype=np.int32)
        columns[np.arange(rows.size), np.minimum(rows // step, degree - 1)] = rows
        indices[rows[0] : rows[-1] + 1] = columns
        values[rows[0] : rows[-1] + 1] = rng.integers(1, 10001, columns.shape, dtype=np.int32)

    with ThreadPoolExecutor() as threads:
        list(threads.map(fill, range(0, n, 8192)))
    return Csr(np.arange(n + 1, dtype=np.int64) * degree, indices.reshape(-1), values.reshape(-1), (n, n))


def many_uniform(n: int, degree: int, dtype: Any) -> Csr | Costs:
    """n rows with `degree` edges each as `many_edges`, and weights 1..10000; with n edges a row a matrix.

    By compiled loops in threads: 4e9 edges take seconds on 16 cores.
    """
    return _drawn(n, degree, dtype, False)


def many_planted(n: int, degree: int, dtype: Any) -> Csr | Costs:
    """The same edges, and weights that one assignment is best for: row i takes column `planted_columns(n)[i]`.

    A weight is u_i + p_j there, and less everywhere else; u and p are `planted_duals`. The optimum is their sum.
    """
    return _drawn(n, degree, dtype, True)


def planted_columns(n: int) -> Indices:
    """The columns of the rows, in order."""
    return (np.arange(n) + n // 3) % n


def planted_duals(n: int) -> tuple[Indices, Indices]:
    """What rows earn, in [0, 1000), and columns cost, in [0, 100): so a planted edge is among the best of its row."""
    numbers = np.arange(n, dtype=np.uint64)
    u, p = (_mixed(numbers + np.uint64(salt << 32)) % np.uint64(most) for salt, most in ((1, 1000), (2, 100)))
    return u.astype(np.int64), p.astype(np.int64)


def _drawn(n: int, degree: int, dtype: Any, planted: bool) -> Csr | Costs:
    dense = degree == n
    values, indices = np.empty(n * degree, dtype), np.empty(0 if dense else n * degree, np.int32)
    columns, (u, p) = planted_columns(n), planted_duals(n)
    rows = max(1, DRAWN_TOGETHER // degree)

    def fill(first: int) -> None:
        _fill_rows(first, min(n, first + rows), degree, columns, u, p, planted, indices, values)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, range(0, n, rows)))
    if dense:
        return values.reshape(n, n)
    return Csr(np.arange(n + 1, dtype=np.int64) * degree, indices, values, (n, n))


@register_jitable
def _mixed(x: Any) -> Any:
    """64 bits that look random, of a number or numbers (SplitMix64)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit(nogil=True, cache=True)
def _fill_rows(
    first: int,
    last: int,
    degree: int,
    columns: Indices,
    u: Indices,
    p: Indices,
    planted: bool,
    indices: Indices32,
    values: Costs,
) -> None:
    """Rows from `first` to `last`: position t holds one column of step t, or the planted one."""
    n = columns.size
    step, half = n // degree, np.uint64(32)
    for i in range(first, last):
        own = min(columns[i] // step, degree - 1)
        for t in range(degree):
            at = np.int64(i) * degree + t
            word = _mixed(np.uint64(at))
            low, high = word & np.uint64(0xFFFFFFFF), word >> half
            j = columns[i] if t == own else t * step + np.int64(high * np.uint64(step) >> half)
            if not planted:
                values[at] = np.int64(low * np.uint64(10000) >> half) + 1
            else:
                values[at] = u[i] + p[j] - (0 if t == own else np.int64(low * np.uint64(2000) >> half) + 1)
            if indices.size:
                indices[at] = j
