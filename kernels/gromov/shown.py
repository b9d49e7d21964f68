"""Two drawings of one curve, of which the second is turned, moved and drawn in another order."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems import Array
from kernels.problems.arrays import Floats


def demonstrations() -> tuple[Demonstration, ...]:
    """One."""
    return (spirals(40, 60),)


def spirals(n: int, m: int) -> Demonstration:
    """Points of a spiral, n of it and m of it; sent as JSON."""
    x, y = (spiral(np.linspace(0, 1, size) ** 0.8) for size in (n, m))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    y = np.random.default_rng(7).permutation(y @ turn + 3)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        found = value(arrays["plan"], distances(x), distances(y))
        require(np.isclose(answer["objective"], found, rtol=1e-6, atol=1e-9), f"the plan is worth {found}", answer)
        require(answer["certificate"]["bound"] <= found, "the lower bound is above the answer", answer)

    inputs = {"x": x.tolist(), "y": y.tolist()}
    return Demonstration("gromov spirals", f"{n} x {m}", "json", check, inputs=inputs, options={"seed": 1})


def spiral(at: Floats) -> Floats:
    """Points of one turn and a half."""
    angle = 3 * np.pi * at
    return np.stack((at * np.cos(angle), at * np.sin(angle)), axis=1)


def distances(points: Floats) -> Floats:
    """Squared Euclidean distances."""
    return np.asarray(((points[:, None] - points[None]) ** 2).sum(axis=2))


def value(plan: Floats, x: Floats, y: Floats) -> float:
    """The objective, written out over one of the four indices."""
    return float(
        sum(
            (plan[i][:, None, None] * (row[None, :, None] - y[:, None, :]) ** 2 * plan[None]).sum()
            for i, row in enumerate(x)
        )
    )
