"""Exactly so many pairs, or the least largest cost: assignments that are judged by more than the sum of all lines."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernels.problems.arrays import Costs, Inputs, InvalidProblem
from kernels.problems.assignment import Assignment, dense_assignment

Judged = Literal["sum", "bottleneck"]
NOT_BESIDE = ("sizes", "u0", "v0", "reject_rows", "reject_cols")


@dataclass(frozen=True, eq=False)
class Selected:
    """Choose exactly `pairs` pairs, no row and no column twice.

    `weights` (n_rows, n_cols) as in `Assignment`. `objective`: the sum of the pairs' costs, or the largest of them
    (the smallest, when maximising), which is called their bottleneck.
    """

    weights: Costs
    pairs: int
    objective: Judged = "sum"
    maximize: bool = False


def selected_assignment(
    inputs: Inputs, maximize: bool, cardinality: int | None, objective: Judged, cost_limit: float | None
) -> Selected:
    """Build from `cost` (n_rows, n_cols).

    Raises:
        InvalidProblem: as `dense_assignment`; a batch, prices of lines or duals to start from; more pairs than lines.
    """
    field = "cardinality" if cardinality is not None else "objective"
    beside = next((name for name in NOT_BESIDE if name in inputs), None if cost_limit is None else "cost_limit")
    if beside is not None:
        raise InvalidProblem(beside, f"stands beside `{field}`; expected one of the two")
    problem: Assignment = dense_assignment(inputs, maximize)
    assert isinstance(problem.weights, np.ndarray)
    if problem.weights.ndim == 3:
        raise InvalidProblem(field, "is for one matrix, and cost is a batch; expected cost (n_rows, n_cols)")
    most = min(problem.weights.shape)
    pairs = most if cardinality is None else cardinality
    if pairs > most:
        raise InvalidProblem("cardinality", f"is {pairs}; expected at most {most}, the shorter side of the matrix")
    if objective == "bottleneck" and pairs < 1:
        raise InvalidProblem("cardinality", "is 0; expected at least 1, since no pair has no largest cost")
    return Selected(problem.weights, pairs, objective, maximize)
