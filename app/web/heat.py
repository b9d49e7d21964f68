"""A matrix as a small picture: means over blocks, and the sums at its edges."""

from itertools import pairwise
from typing import Any

import numpy as np

from kernels import Array, Csr

MOST = 64


def edges(count: int, most: int) -> Array:
    """Where the blocks begin that `count` lines are put into, and where the last one ends: all but it are alike."""
    return np.append(np.arange(0, count, -(-count // most)), count)


def heat_of(matrix: Array, most: int = MOST) -> dict[str, Any]:
    """A picture of at most `most` x `most` blocks. A block without a finite entry is None.

    Rows are read a block at a time, so a large matrix that is mapped from a file is never held whole.
    """
    rows, columns = edges(matrix.shape[0], most), edges(matrix.shape[1], most)
    picture: list[float | None] = []
    row_sums, column_sums = [], np.zeros(len(columns) - 1)
    for begin, end in pairwise(rows.tolist()):
        block = np.asarray(matrix[begin:end], dtype=np.float64)
        finite = np.isfinite(block)
        block = np.where(finite, block, 0)
        sums = np.add.reduceat(block.sum(axis=0), columns[:-1])
        counts = np.add.reduceat(finite.sum(axis=0), columns[:-1])
        picture += [_short(total / count) if count else None for total, count in zip(sums, counts, strict=True)]
        row_sums.append(_short(sums.sum()))
        column_sums += sums
    return _picture(picture, row_sums, column_sums)


def heat_of_sparse(matrix: Csr, most: int = MOST) -> dict[str, Any]:
    """The same of a sparse matrix: sums over blocks, None where nothing is stored."""
    rows, columns = edges(matrix.shape[0], most), edges(matrix.shape[1], most)
    height, width = len(rows) - 1, len(columns) - 1
    lines = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    at = (np.searchsorted(rows, lines, "right") - 1) * width + np.searchsorted(columns, matrix.indices, "right") - 1
    sums = np.bincount(at, matrix.values, height * width)
    counts = np.bincount(at, minlength=height * width)
    picture = [_short(total / count) if count else None for total, count in zip(sums, counts, strict=True)]
    grid = sums.reshape(height, width)
    return _picture(picture, [_short(one) for one in grid.sum(axis=1)], grid.sum(axis=0))


def _picture(picture: list[float | None], row_sums: list[float], column_sums: Array) -> dict[str, Any]:
    return {
        "height": len(row_sums),
        "width": len(column_sums),
        "values": picture,
        "rows": row_sums,
        "columns": [_short(one) for one in column_sums],
    }


def _short(value: float) -> float:
    """Five digits: a colour shows fewer."""
    return float(f"{value:.5g}")
