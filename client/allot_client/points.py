"""Costs between points by name: where they are needed here, or a solver of the service does not take the metric.

Cosine and correlation distances are squared euclidean ones between other points: with rows scaled to length
1 / sqrt(2), |x - y|^2 = 1 - cos(x, y), and correlation is the cosine of centred rows. So points stay points, and no
matrix is sent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from allot_client.arrays import Array

AS_POINTS = ("cosine", "correlation")
ROUNDED = ("iou", "sqeuclidean", "euclidean", "cityblock")
"""Of these the service works costs out as `cost_matrix` does, to the last bit."""
METRICS = ("sqeuclidean", "euclidean", "cityblock", "inner", *AS_POINTS)
NAMES = (*METRICS, "iou", "geodesic")
"""What the service knows: lap and auction take all but geodesic, uot all but iou."""
FEW = 1 << 10
"""Pairs of which all coordinates are taken together."""
BLOCK = 1 << 22
"""Entries of the largest intermediate array."""


def as_points(points: Array, metric: str, side: str = "points", names: Sequence[Any] | None = None) -> Array:
    """Points whose squared euclidean distances are the metric's: cosine or correlation.

    An error calls them `side`, and a row by its name where there are `names`.

    Raises:
        ValueError: a row that holds no finite numbers, or is without direction: zero, or for correlation constant.
    """
    rows = np.asarray(points, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"{side} has shape {rows.shape}; expected (n_points, dimension)")
    if not np.isfinite(rows).all():
        row, column = (int(place) for place in np.argwhere(~np.isfinite(rows))[0])
        called = "" if names is None else f", the row {names[row]!r}"
        raise ValueError(f"{side} holds {rows[row, column]} at [{row}, {column}]{called}; expected finite numbers")
    if metric == "correlation":
        rows = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (lengths > 0).all():
        at = int((lengths[:, 0] <= 0).argmax())
        flaw = "constant" if metric == "correlation" else "zero"
        called = f"row {at}" if names is None else f"row {at} ({names[at]!r})"
        raise ValueError(f"{side} has a {flaw} point in {called}, which has no {metric} distance; leave it out")
    return np.asarray(rows / lengths * np.sqrt(0.5))


def sent_in_place(solver: str, inputs: Mapping[str, Any]) -> Iterator[dict[str, Array]]:
    """What is sent in the place of points of a transport, were it asked for by each of these metrics."""
    clouds = {name: inputs[name] for name in ("x", "y") if getattr(inputs.get(name), "ndim", 0) == 2}
    if solver == "uot" and clouds:
        for metric in AS_POINTS:
            with contextlib.suppress(ValueError):  # a row without a direction
                yield {name: as_points(cloud, metric, name) for name, cloud in clouds.items()}


def cost_matrix(x: Any, y: Any, metric: str = "sqeuclidean") -> Array:
    """Costs (m, n) between points x (m, d) and y (n, d), added up coordinate after coordinate. Raises: ValueError."""
    if metric not in NAMES:
        raise ValueError(f"metric {metric!r} is unknown; expected one of {', '.join(NAMES)}")
    if metric in AS_POINTS:
        return cost_matrix(as_points(x, metric, "x"), as_points(y, metric, "y"))
    left, right = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(f"points have shapes {left.shape} and {right.shape}; expected (m, d) and (n, d)")
    if metric == "iou":
        return _of_boxes(left, right)
    if metric == "geodesic":
        return _angles(_on_sphere(left), _on_sphere(right))
    if metric == "inner":
        return np.asarray(-(left @ right.T))
    few = len(left) * len(right) <= FEW
    total = _sum_of_few if few and left.shape[1] else _sum
    costs = total(left, right, np.abs if metric == "cityblock" else np.square)
    return np.asarray(np.sqrt(costs)) if metric == "euclidean" else costs


def _sum(left: Array, right: Array, size: np.ufunc) -> Array:
    """The sizes of the differences, added up coordinate after coordinate: for all pairs at a time."""
    costs = np.zeros((len(left), len(right)))
    step = max(1, BLOCK // max(1, len(right)))
    for start in range(0, len(left), step):
        rows = costs[start : start + step]
        for own, other in zip(left[start : start + step].T, right.T, strict=True):
            apart = own[:, None] - other
            rows += size(apart, out=apart)
    return costs


def _sum_of_few(left: Array, right: Array, size: np.ufunc) -> Array:
    """The same in a few calls of NumPy, which keeps each sum on its way; its plain sum would add up by pairs."""
    apart = left[:, None] - right[None]
    return np.add.accumulate(size(apart, out=apart), axis=2, out=apart)[:, :, -1].copy()


def _of_boxes(left: Array, right: Array) -> Array:
    """1 - intersection over union of boxes x1, y1, x2, y2; 1 where they share no area."""
    for name, side in (("x", left), ("y", right)):
        if side.shape[1] != 4 or (side[:, 2:] < side[:, :2]).any():
            raise ValueError(f"{name} holds no boxes; expected rows x1, y1, x2, y2 with x1 <= x2 and y1 <= y2")
    low, high = np.maximum(left[:, None, :2], right[:, :2]), np.minimum(left[:, None, 2:], right[:, 2:])
    common = np.maximum(high - low, 0.0).prod(axis=2)
    areas = [(side[:, 2:] - side[:, :2]).prod(axis=1) for side in (left, right)]
    union = areas[0][:, None] + areas[1] - common
    return np.asarray(1.0 - np.divide(common, union, out=np.zeros_like(common), where=common > 0))


def _on_sphere(points: Array) -> Array:
    """Unit vectors (n, 3) of such directions, or of longitudes and latitudes in degrees (n, 2)."""
    if points.shape[1] == 2:
        longitude, latitude = np.radians(points).T
        level = np.cos(latitude)
        return np.stack([level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)], axis=1)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    if points.shape[1] != 3 or not (lengths > 0).all():
        raise ValueError("geodesic takes directions (n, 3), none of them zero, or longitude and latitude (n, 2)")
    return np.asarray(points / lengths)


def _angles(left: Array, right: Array) -> Array:
    """In radians, right at small and at large angles."""
    apart, across = ((left[:, None] + sign * right) for sign in (-1, 1))
    return np.asarray(2 * np.arctan2(np.linalg.norm(apart, axis=2), np.linalg.norm(across, axis=2)))
