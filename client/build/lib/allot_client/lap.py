"""`lap.lapjv` (the packages lap and lapx), solved by Allot: change the import and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from allot_client.arrays import given
from allot_client.scipy import default_client


def lapjv(
    cost: Any, extend_cost: bool = False, cost_limit: float = np.inf, return_cost: bool = True
) -> tuple[Any, ...]:
    """Solve the linear assignment problem; see lapx's documentation.

    With a finite `cost_limit` a pair is formed only where it costs less than leaving both lines unassigned for
    `cost_limit`.

    Returns:
        The cost of the pairs (where `return_cost`), the column of each row, the row of each column; -1 for none.

    Raises:
        ValueError: not a matrix; not square, without `extend_cost` or a limit; no feasible assignment.
    """
    matrix = np.asarray(given(cost).value)
    if matrix.ndim != 2:
        raise ValueError("2-dimensional array expected")
    n_rows, n_cols = matrix.shape
    limited = cost_limit < np.inf
    if matrix.size == 0:
        x, y = np.full(n_rows, -1, np.int32), np.full(n_cols, -1, np.int32)
        return (0.0, x, y) if return_cost else (x, y)
    if n_rows != n_cols and not extend_cost and not limited:
        raise ValueError("Square cost array expected. If cost is intentionally non-square, pass extend_cost=True.")
    answer = default_client().lap(matrix, cost_limit=cost_limit if limited else None)
    if answer.termination == "infeasible":
        raise ValueError("cost matrix is infeasible")
    x = answer.assignment.astype(np.int32)
    rows = np.flatnonzero(x >= 0)
    y = np.full(n_cols, -1, np.int32)
    y[x[rows]] = rows
    total = float(matrix[rows, x[rows]].sum())
    return (total, x, y) if return_cost else (x, y)
