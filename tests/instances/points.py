"""Clouds of points for every metric, square and rectangular, as float64, float32 and whole numbers."""

from collections.abc import Callable

import numpy as np

from kernels import Array, Inputs
from kernels.problems.metrics import METRICS
from tests.instances import Case

WRITTEN_OUT = ("cosine", "correlation", "inner", "iou")
"""Metrics of which an auction writes the whole matrix down."""


def clouds(metric: str, m: int, n: int, d: int, seed: int) -> Callable[[], Inputs]:
    """Points of a normal distribution, or boxes in the unit square."""

    def make() -> Inputs:
        rng = np.random.default_rng(seed)
        if metric != "iou":
            return {"x": rng.normal(size=(m, d)), "y": rng.normal(size=(n, d))}
        corners = [rng.random((k, 2)) for k in (m, n)]
        x, y = (np.concatenate([corner, corner + rng.random(corner.shape) / 4], axis=1) for corner in corners)
        return {"x": x, "y": y}

    return make


def narrow(dtype: type, seed: int) -> Callable[[], Inputs]:
    """Coordinates of a narrower type."""
    pair: Array = np.random.default_rng(seed).integers(0, 100, (2, 70, 5)).astype(dtype)
    return lambda: {"x": pair[0], "y": pair[1]}


CASES: list[Case] = [
    *(Case("lap", f"points-{metric}", clouds(metric, 90, 90, 12, 20), {"metric": metric}) for metric in METRICS),
    *(Case("lap", f"points-{metric}-tall", clouds(metric, 70, 40, 3, 21), {"metric": metric}) for metric in METRICS),
    *(
        Case("lap", f"points-{metric}-largest", clouds(metric, 40, 60, 5, 22), {"metric": metric, "maximize": True})
        for metric in METRICS
    ),
    *(
        Case("lap", f"points-{dtype.__name__}", narrow(dtype, 23), {"metric": "cityblock"})
        for dtype in (np.float32, np.float16, np.uint8, np.int16, np.bool_)
    ),
    *(Case("auction", f"points-{metric}", clouds(metric, 60, 80, 6, 24), {"metric": metric}) for metric in WRITTEN_OUT),
]
