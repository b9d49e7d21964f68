"""Clouds of points for every metric: floats and whole numbers of every size, points twice, boxes without area."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.draw import Draw, chance, floats, integers, narrowed, one_of

METRICS = ("sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "inner", "iou")


def clouds(draw: Draw, n_rows: int, n_cols: int, metric: str) -> tuple[Array, Array]:
    """Points x and y for a metric; some of y may be points of x."""
    d = 4 if metric == "iou" else draw.whole(4, 24) if chance(draw, 20) else draw.whole(1, 4)
    pair = [_cloud(draw, (n, d)) for n in (n_rows, n_cols)]
    if chance(draw, 25):  # the same points again, so that costs of 0 matter
        pair[1] = pair[0][draw.wholes(0, n_rows - 1, (n_cols,))]
    if metric == "iou":
        pair = [_boxes(points) for points in pair]
    return narrowed(draw, pair[0]), narrowed(draw, pair[1])


def _cloud(draw: Draw, shape: tuple[int, int]) -> Array:
    if chance(draw, 25):
        return integers(draw, shape, 2**53)[1]
    points = floats(draw, shape, 300, -500)[1]
    return points + 2.0 ** draw.whole(0, 30) if chance(draw, 20) else points


def _boxes(points: Array) -> Array:
    return np.concatenate([np.minimum(points[:, :2], points[:, 2:]), np.maximum(points[:, :2], points[:, 2:])], axis=1)


def draw_points(draw: Draw, n_rows: int, n_cols: int, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A family's name and its inputs; the metric goes to the options."""
    options["metric"] = one_of(draw, METRICS)
    x, y = clouds(draw, n_rows, n_cols, options["metric"])
    return f"points, {options['metric']}", {"x": x, "y": y}
