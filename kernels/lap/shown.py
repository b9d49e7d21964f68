"""Two dense assignments, one large and a hundred small ones, compared with SciPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from kernels.demonstration import Demonstration, npy, require
from kernels.problems import Array


def demonstrations() -> tuple[Demonstration, ...]:
    """Both."""
    return one(500), batch(100, 32)


def one(n: int) -> Demonstration:
    """A dense assignment, sent as one .npy part. Whole numbers, as in the batch: one set of loops solves both."""
    cost = np.random.default_rng(1).integers(0, 1000 * n, (n, n))

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        found = int(cost[np.arange(n), arrays["assignment"]].sum())
        require(found == int(cost[linear_sum_assignment(cost)].sum()), "lap differs from SciPy", answer)
        require(answer["objective"] == found, "the objective is not its assignment's", answer)

    return Demonstration("lap", f"{n} x {n}", "file", check, name="cost", data=npy(cost), filename="cost.npy")


def batch(count: int, n: int) -> Demonstration:
    """Small assignments in one job, through an uploaded blob."""
    costs = np.random.default_rng(2).integers(0, 1000, (count, n, n))

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        best = sum(int(cost[linear_sum_assignment(cost)].sum()) for cost in costs)
        require(answer["objective"] == best, "a batch of laps differs from SciPy", answer)

    return Demonstration("lap, batch", f"{count} x {n} x {n}", "blob", check, name="cost", data=npy(costs))
