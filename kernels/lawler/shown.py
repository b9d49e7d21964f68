"""Two drawings of the same triangle mesh, matched by how alike the lines between their corners are."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems.arrays import Indices


def demonstrations() -> tuple[Demonstration, ...]:
    """One."""
    return (corners(10),)


def corners(n: int) -> Demonstration:
    """Points in the plane and the same ones turned, in another order. A pair of pairs costs what two lines differ in
    length and in direction, which no flow and distance say."""
    rng = np.random.default_rng(8)
    points, order = rng.integers(0, 100, (n, 2)), rng.permutation(n)
    turned = points[:, ::-1] * np.array([1, -1])
    moved = np.empty_like(turned)
    moved[order] = turned
    lines, others = points[:, None] - points, moved[:, None] - moved
    quarter = lines[:, :, ::-1] * np.array([1, -1])
    cost = np.abs(quarter[:, None, :, None] - others[None, :, None, :]).sum(axis=4)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Indices]) -> None:
        found = arrays["permutation"]
        require(found.tolist() == order.tolist(), f"the order is {order.tolist()}", answer)
        proved = answer["objective"] == 0 and answer["certificate"]["gap_abs"] == 0
        require(proved, "it is not proved optimal", answer)

    return Demonstration("lawler", f"{n} facilities", "json", check, inputs={"cost": cost.tolist()}, options={})
