"""Two clouds of several clusters, coupled by as many components; the coupling is written out to check it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems import Array


def demonstrations() -> tuple[Demonstration, ...]:
    """One."""
    return (clusters(120, 90, 6),)


def clusters(m: int, n: int, rank: int) -> Demonstration:
    """Points around `rank` centres, and around those moved; sent as JSON."""
    rng = np.random.default_rng(3)
    centres = 4 * rng.random((rank, 3))
    x = centres[np.arange(m) % rank] + 0.1 * rng.normal(size=(m, 3))
    y = centres[np.arange(n) % rank] + 0.5 + 0.1 * rng.normal(size=(n, 3))

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        q, r, g = arrays["q"], arrays["r"], arrays["g"]
        plan = (q / g) @ r.T
        sums = abs(plan.sum(axis=1) - 1 / m).sum() + abs(plan.sum(axis=0) - 1 / n).sum()
        require(bool(plan.min() >= 0 and sums < 1e-9), f"its sums are {sums} off", answer)
        found = float((plan * ((x[:, None] - y) ** 2).sum(axis=2)).sum())
        require(np.isclose(answer["objective"], found, rtol=1e-7), f"the factors cost {found}", answer)
        require(answer["certificate"]["bound"] <= found, "the lower bound is above the answer", answer)

    inputs = {"x": x.tolist(), "y": y.tolist()}
    options = {"rank": rank, "starts": 1}
    return Demonstration("low rank", f"{m} x {n}, rank {rank}", "json", check, inputs=inputs, options=options)
