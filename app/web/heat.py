"""A matrix as a small picture: means over blocks, and the sums at its edges."""

from itertools import pairwise
from typing import Any

import numpy as np

from kernels import Array, Csr, Floats, Indices, Integers

MOST = 64
PIECE = 1 << 20
"""Entries that are looked at together."""


def edges(count: int, most: int) -> Indices:
    """Where the blocks begin that `count` lines are put into, and where the last one ends: all but it are alike."""
    return np.append(np.arange(0, count, -(-count // most)), count)


def heat_of(matrix: Array, most: int = MOST) -> dict[str, Any]:
    """A picture of at most `most` x `most` blocks. A block without a finite entry is None.

    It is read in pieces, so a large matrix that is mapped from a file is never held whole, and no piece becomes large
    where its entries are widened.
    """
    rows, columns = edges(matrix.shape[0], most), edges(matrix.shape[1], most)
    picture: list[float | None] = []
    row_sums, column_sums = [], np.zeros(len(columns) - 1)
    for begin, end in pairwise(rows.tolist()):
        sums, counts = _blocks(matrix[begin:end], columns)
        picture += [_short(total / count) if count else None for total, count in zip(sums, counts, strict=True)]
        row_sums.append(_short(sums.sum()))
        column_sums += sums
    return _picture(picture, row_sums, column_sums)


def _blocks(lines: Array, columns: Indices) -> tuple[Floats, Integers]:
    """Sums and numbers of the finite entries between the edges in `columns`."""
    cuts = np.union1d(columns[:-1], np.arange(0, columns[-1], PIECE))
    block_of = np.searchsorted(columns, cuts, "right") - 1
    sums, counts = np.zeros(len(columns) - 1), np.zeros(len(columns) - 1, np.int64)
    per_piece = max(1, int(PIECE // (columns[1] - columns[0])))  # blocks of one line that are looked at together
    for first in range(0, len(cuts), per_piece):
        mine = cuts[first : first + per_piece]
        end = cuts[first + per_piece] if first + per_piece < len(cuts) else columns[-1]
        height = max(1, int(PIECE // (end - mine[0])))
        for at in range(0, len(lines), height):
            piece = np.asarray(lines[at : at + height, mine[0] : end], dtype=np.float64)
            finite = np.isfinite(piece)
            found = np.where(finite, piece, 0).sum(axis=0)
            np.add.at(sums, block_of[first : first + per_piece], np.add.reduceat(found, mine - mine[0]))
            there = np.add.reduceat(finite.sum(axis=0), mine - mine[0])
            np.add.at(counts, block_of[first : first + per_piece], there)
    return sums, counts


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


def _picture(picture: list[float | None], row_sums: list[float], column_sums: Floats) -> dict[str, Any]:
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
