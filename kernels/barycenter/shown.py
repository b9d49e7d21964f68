"""Barycenters of bumps on a line and of moving clouds, whose costs are worked out again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.demonstration import Demonstration, require
from kernels.problems import Array


def demonstrations() -> tuple[Demonstration, ...]:
    """One on given points, and one whose points move."""
    return bumps(3, 60), clouds(3, 40)


def bumps(k: int, n: int) -> Demonstration:
    """Histograms on a grid; the barycenter of masses on a line is the mean of their quantiles, where reg is small."""
    places = np.arange(n) / n
    centres = np.linspace(0.2, 0.8, k)
    masses = np.exp(-((places - centres[:, None]) ** 2) / 0.004)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        b, bound = arrays["barycenter"], answer["certificate"]["bound"]
        require(bool(abs(b.sum() - 1) < 1e-9 and (b >= 0).all()), "the barycenter has another mass than 1", answer)
        require(abs(float(places @ b) - centres.mean()) < 1e-2, "its mean is not the measures' mean", answer)
        apart = answer["objective"] - bound
        require(0 <= apart <= 1e-5 * abs(bound), "objective and bound do not meet", answer)

    inputs = {"histograms": masses.tolist(), "x": places[:, None].tolist()}
    return Demonstration("barycenter", f"{k} x {n}", "json", check, inputs=inputs, options={"reg": 0.005})


def clouds(k: int, n: int) -> Demonstration:
    """Clouds in the plane; a transport that is worked out apart is no dearer than a plan."""
    x = np.random.default_rng(3).random((k, n, 2)) + np.arange(k)[:, None, None]

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        points, plan = arrays["points"], arrays["plan"]
        costs = ((points[None, :, None] - x[:, None]) ** 2).sum(axis=3)
        found = float((plan * costs).sum()) / k
        require(abs(answer["objective"] - found) <= 1e-9 * found, f"the plans cost {found}", answer)
        require(answer["certificate"]["bound"] <= found, "the lower bound is above the answer", answer)

    return Demonstration("barycenter, free", f"{k} x {n}", "json", check, inputs={"x": x.tolist()})
