"""Compiles what proves the nodes of a tree."""

import numpy as np


def warm_up() -> None:
    """On four facilities and four locations."""
    from kernels.certificates.tree import loops

    m = 4
    matrix = np.arange(m * m, dtype=np.int64).reshape(m, m)
    rows, columns = np.zeros((2, m, m, m), np.int64)
    loops.improve(matrix, matrix, matrix, rows, columns, np.zeros((m, m), bool), 1, 1 << 40, 2, 8, 0)
