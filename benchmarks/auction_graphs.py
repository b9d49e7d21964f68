"""Graphs that the auction is measured on: the paper's weights, few edges a row, many edges."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from kernels import Array, Csr

KEPT: list[Path] = []
"""Where generated graphs are kept between runs, with --keep."""


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
