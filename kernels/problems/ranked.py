"""The best so many assignments of one matrix."""

from dataclasses import dataclass

import numpy as np

from kernels.problems.arrays import Costs, Inputs, InvalidProblem
from kernels.problems.assignment import dense_assignment

LONGEST = 1024
"""Lines: each assignment of the list keeps prices of all columns as its proof."""
NOT_BESIDE = ("sizes", "u0", "v0", "reject_rows", "reject_cols")
WAY_OUT = (
    "stands beside `k_best`, which forms every pair; expected one of the two, and for lines that may stay alone a "
    "column of its own for each row, at the price of that"
)
HINTS = {
    "sizes": "is for several matrices, and `k_best` for one; expected a job for each",
    "cost_limit": WAY_OUT,
    "reject_rows": WAY_OUT,
    "reject_cols": WAY_OUT,
}
"""What to do instead."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """List the `count` assignments of least cost, all min(n_rows, n_cols) pairs formed, each once.

    `weights` (n_rows, n_cols) as in `Assignment`.
    """

    weights: Costs
    count: int
    maximize: bool = False


def ranked_assignment(inputs: Inputs, maximize: bool, count: int, options: dict[str, bool]) -> Ranked:
    """Build from `cost` (n_rows, n_cols); `options` says of other options whether they are set.

    Raises:
        InvalidProblem: as `dense_assignment`; a batch, prices of lines or duals; an option that does not go with it.
    """
    beside = next(
        (name for name in NOT_BESIDE if name in inputs), next((name for name, on in options.items() if on), None)
    )
    if beside is not None:
        raise InvalidProblem(beside, HINTS.get(beside, "stands beside `k_best`; expected one of the two"))
    weights = dense_assignment(inputs, maximize).weights
    assert isinstance(weights, np.ndarray)
    if weights.ndim == 3 or max(weights.shape) > LONGEST:
        raise InvalidProblem(
            "k_best", f"is for one matrix of up to {LONGEST} lines, and cost has shape {weights.shape}"
        )
    return Ranked(weights, count, maximize)
