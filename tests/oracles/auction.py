"""Slow and obvious answers for the auction: every assignment tried, and SciPy's dense solver."""

from fractions import Fraction
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


def exact_optimum(benefit: Array, permitted: Array, reject: Array | None = None) -> Fraction | None:
    """The optimum without any rounding, by dynamic programming over sets of columns; None when infeasible."""
    best = {0: Fraction(0)}
    for i in range(benefit.shape[0]):
        columns = [(1 << int(j), Fraction(benefit[i, j].item())) for j in np.flatnonzero(permitted[i])]
        out = [] if reject is None else [(0, Fraction(reject[i].item()))]
        found: dict[int, Fraction] = {}
        for taken, value in best.items():
            for column, more in columns + out:
                if not taken & column:
                    found[taken | column] = max(found.get(taken | column, value + more), value + more)
        best = found
    return max(best.values(), default=None)


def exact_objective(benefit: Array, permitted: Array, reject: Array | None, assignment: Array) -> Fraction | None:
    """What an assignment is worth without any rounding; None when it is none."""
    columns = [int(j) for j in assignment if j >= 0]
    if len(set(columns)) < len(columns) or (reject is None and len(columns) < assignment.size):
        return None
    value = Fraction(0)
    for i, j in enumerate(map(int, assignment)):
        if j >= 0 and not permitted[i, j]:
            return None
        entry = benefit[i, j] if j >= 0 or reject is None else reject[i]
        value += Fraction(entry.item())
    return value


def exact_allowance(benefit: Array, permitted: Array, reject: Array | None, objective: Fraction) -> Fraction:
    """1e-9 max(|objective|, S): S adds up the smallest non-zero size among each row's entries and its reject price."""
    smallest = Fraction(0)
    for i in range(benefit.shape[0]):
        entries = [*benefit[i, permitted[i]].tolist(), *([] if reject is None else [reject[i].item()])]
        smallest += min((abs(Fraction(entry)) for entry in entries if entry), default=Fraction(0))
    return Fraction(1e-9) * max(abs(objective), smallest)
