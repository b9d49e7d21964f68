"""`scipy.optimize.linear_sum_assignment`, solved by Allot: change the import and nothing else."""

from __future__ import annotations

import atexit
import functools
from typing import Any

import numpy as np

from allot_client.arrays import Array, held
from allot_client.client import Client

MOST = int(np.iinfo(np.int64).max) // 32
"""Whole numbers up to this over the number of lines are solved exactly; sums of larger ones might overflow."""


@functools.cache
def default_client() -> Client:
    """The client that the drop-in functions share: ALLOT_URL and ALLOT_API_KEY, else this machine."""
    client = Client()
    atexit.register(client.close)
    return client


def linear_sum_assignment(cost_matrix: Any, maximize: Any = False) -> tuple[Array, Array]:
    """Solve the linear assignment problem; see SciPy's documentation.

    Returns:
        Rows in ascending order, and the column of each.

    Raises:
        ValueError: not a matrix, an entry that is no number, or no feasible assignment.
        TypeError: an array of what is no number: text, complex numbers, objects; or of long doubles.
    """
    cost, maximize = _numbers(cost_matrix), bool(maximize)  # whatever is true, as for SciPy
    if cost.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if cost.dtype.kind == "f":
        worst = np.inf if not maximize else -np.inf
        if (np.isnan(cost) | (cost == -worst)).any():
            raise ValueError("matrix contains invalid numeric entries")
    answer = default_client().lap(cost, maximize=maximize)
    if answer.termination == "infeasible":
        raise ValueError("cost matrix is infeasible")
    rows = np.flatnonzero(answer.assignment >= 0)
    return rows, answer.assignment[rows]


def _numbers(cost_matrix: Any) -> Array:
    """The costs in a type that the service knows. Raises: ValueError, TypeError; both as SciPy does."""
    cost = np.asarray(held(cost_matrix).value)
    if cost.ndim != 2:
        raise ValueError(f"expected a matrix (2-D array), got a {cost.ndim} array")
    if not np.can_cast(cost.dtype, np.float64):
        if hasattr(cost_matrix, "dtype"):
            raise TypeError(
                f"Cannot cast array data from {cost.dtype!r} to dtype('float64') according to the rule 'safe'"
            )
        cost = np.asarray(cost_matrix, np.float64)  # lists: None is then no number
    if cost.dtype.kind not in "biuf":  # bfloat16
        return cost.astype(np.float64)
    if cost.dtype.kind in "iu" and cost.size and max(-int(cost.min()), int(cost.max())) > MOST // sum(cost.shape):
        return cost.astype(np.float64)  # which SciPy always does
    return cost
