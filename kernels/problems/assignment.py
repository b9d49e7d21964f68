"""The linear assignment problem, dense, batched or sparse."""

from dataclasses import dataclass

from kernels.problems.arrays import Array, Csr

UNASSIGNED = -1
"""The column of a row that has none, everywhere in Allot."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Choose at most one column per row, each column at most once, to minimise (or maximise) the sum of weights.

    `weights`: (n_rows, n_cols), (batch, n_rows, n_cols) or `Csr`; +inf (when minimising) or -inf (when
    maximising) marks a forbidden entry. min(n_rows, n_cols) pairs must be formed, unless `reject` (n_rows,)
    gives each row a price (in the units of the objective) for staying unassigned.
    `sizes`: (batch, 2) int32, rows and columns in use of each problem of a ragged batch; None means all.
    """

    weights: Array | Csr
    maximize: bool = False
    reject: Array | None = None
    sizes: Array | None = None
