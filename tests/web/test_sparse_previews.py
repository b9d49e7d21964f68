"""Previews of sparse matrices whose parts contradict each other: refused before anybody follows them."""

import numpy as np
import pytest

from app.web.shown import arrays
from kernels import Array, Csr
from workers.store.codec import InvalidUpload

THIRD = (2**64 + 2) // 3


def kept(array: Array | Csr) -> str:
    raise AssertionError(array)  # what is refused is not kept


@pytest.mark.parametrize(
    ("indptr", "stored", "rows"),
    [
        ([0, THIRD, 2 * THIRD - 2**64, 2], 2, 3),  # goes round int64 once, each step a rise
        ([0, 2, 1, 2], 2, 3),
        ([], 0, -1),
        ([1, 2], 2, 1),
    ],
)
def test_a_preview_of_what_is_no_sparse_matrix_says_so(indptr: list[int], stored: int, rows: int) -> None:
    parts = np.array(indptr, np.int64), np.arange(stored), np.ones(stored)
    with pytest.raises(InvalidUpload, match="is no sparse matrix"):
        arrays(kept, Csr(*parts, (rows, 3)), "a.npz")
