"""Slow and obvious answers for the auction: every assignment tried, and SciPy's dense solver."""

from itertools import permutations

import numpy as np
from scipy.optimize import linear_sum_assignment

from kernels import Array, Csr


def as_dense(benefit: Array | Csr) -> Array:
    """Benefits as float64 with -inf where there is no edge."""
    if isinstance(benefit, Csr):
        full = np.full(benefit.shape, -np.inf)
        full[np.repeat(np.arange(benefit.shape[0]), np.diff(benefit.indptr)), benefit.indices] = benefit.values
        return full
    return np.asarray(benefit, np.float64)


def best_of_all(benefit: Array | Csr) -> float:
    """The highest total over every way to give each row a column of its own; -inf when there is none."""
    full = as_dense(benefit)
    n_rows, n_cols = full.shape
    return max(float(full[range(n_rows), list(columns)].sum()) for columns in permutations(range(n_cols), n_rows))


def scipy_optimum(benefit: Array | Csr, reject: Array | None = None) -> float | None:
    """The optimum by SciPy, None when infeasible; `reject` becomes one more column per row."""
    full = as_dense(benefit)
    if reject is not None:
        private = np.full((full.shape[0], full.shape[0]), -np.inf)
        np.fill_diagonal(private, reject)
        full = np.hstack([full, private])
    try:
        rows, columns = linear_sum_assignment(full, maximize=True)
    except ValueError:
        return None
    return float(full[rows, columns].sum())
