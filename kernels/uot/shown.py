"""Unbalanced transport between two clouds of points, whose plan is weighed again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems import Array
from kernels.problems.arrays import Floats

TOLERANCE = 1e-5


def demonstrations() -> tuple[Demonstration, ...]:
    """One."""
    return (clouds(300, 400, reg=0.05, reg_m=1.0),)


def clouds(m: int, n: int, reg: float, reg_m: float) -> Demonstration:
    """Sent as JSON."""
    rng = np.random.default_rng(5)
    x, y = rng.random((m, 2)), rng.random((n, 2)) + 0.1
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    a, b = rng.random(m), rng.random(n)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        found = value(arrays["plan"].astype(np.float64), cost, a, b, reg, reg_m)
        require(np.isclose(answer["objective"], found, rtol=1e-4), f"the plan is worth {found}", answer)
        require(answer["certificate"]["gap_rel"] <= TOLERANCE, "the plan is not within its tolerance", answer)

    inputs = {"cost": cost.tolist(), "a": a.tolist(), "b": b.tolist()}
    options = {"reg": reg, "reg_m": reg_m, "tolerance": TOLERANCE}
    return Demonstration("uot", f"{m} x {n}", "json", check, inputs=inputs, options=options)


def value(plan: Floats, cost: Floats, a: Floats, b: Floats, reg: float, reg_m: float) -> float:
    """The primal objective of a plan, written out."""

    def kl(p: Floats, q: Floats) -> float:
        logs = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / q), 0)
        return float((logs - p + q).sum())

    masses = kl(plan.sum(axis=1), a) + kl(plan.sum(axis=0), b)
    return float((plan * cost).sum()) + reg * kl(plan, np.outer(a, b)) + reg_m * masses
