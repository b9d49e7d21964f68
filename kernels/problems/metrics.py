"""Costs between points, as solvers work them out: float64 to rounding, blocks of rows in threads.

The problem is that of the real numbers that the formulas below give for the coordinates. What is worked out here may be
off by rounding; the certificate (`kernels/certificates/metrics/`) has arithmetic of its own and says what that costs.

    sqeuclidean   sum (x_k - y_k)^2          cosine        1 - <x, y> / (|x| |y|)
    euclidean     its root                   correlation   cosine of the points less the means of their coordinates
    cityblock     sum |x_k - y_k|            iou           1 - intersection / union of boxes (x1, y1, x2, y2)
    inner         -<x, y>
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from kernels.problems.arrays import AnyFloats, Costs, Floats, InvalidProblem
from kernels.problems.seen import seen_of

METRICS = ("sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "inner", "iou")
DIRECTIONS = ("cosine", "correlation")
BOX = 4
BLOCK = 1 << 19
"""Entries worked out together."""
FINE = 1 << 20
"""Coordinates of all pairs up to which the machine's widest floats are used, so that costs come correctly rounded."""
MOST_COORDINATE, MOST_INTEGER = 1e100, 2**53
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = min(4, CORES)


def check_points(metric: str, x: Costs, y: Costs) -> None:
    """Refuse points for which the metric says nothing, or squares that are not finite.

    Raises:
        InvalidProblem: names the point that is wrong.
    """
    if max(_largest(x), _largest(y)) > MOST_COORDINATE:
        raise InvalidProblem("x", "or y holds coordinates beyond 1e100, whose squares are not finite")
    for name, cloud in (("x", x), ("y", y)):
        if metric == "iou":
            _check_boxes(name, cloud)
        elif metric in DIRECTIONS:
            same = cloud[:, :1] if metric == "correlation" else cloud.dtype.type(0)
            nowhere = (cloud == same).all(axis=1)
            if nowhere.any():
                told = "the same coordinate throughout" if metric == "correlation" else "zeros alone"
                raise InvalidProblem(name, f"holds {told} at [{int(nowhere.argmax())}], which has no {metric} distance")


def _largest(cloud: Costs) -> float:
    """The largest size of a coordinate, without an array of sizes."""
    seen = seen_of(cloud)
    return float(max(-cloud.min(), cloud.max()) if seen is None else seen.largest)


def _check_boxes(name: str, boxes: Costs) -> None:
    if boxes.shape[1] != BOX:
        raise InvalidProblem(name, f"has {boxes.shape[1]} coordinates a box; expected x1, y1, x2, y2")
    turned = (boxes[:, :2] > boxes[:, 2:]).any(axis=1)
    if turned.any():
        at = int(turned.argmax())
        raise InvalidProblem(name, f"holds the box {boxes[at].tolist()} at [{at}]; expected x1 <= x2 and y1 <= y2")


def costs(x: Costs, y: Costs, metric: str) -> Floats:
    """The costs (m, n) of points x (m, d) and y (n, d) in float64."""
    wide: Any = np.longdouble if len(x) * len(y) * x.shape[1] <= FINE else np.float64
    left, right = (prepared(cloud, metric, wide) for cloud in (x, y))
    found = np.empty((len(x), len(y)))
    step = max(1, BLOCK // len(y))
    starts = range(0, len(x), step)

    def fill(first: int) -> None:
        found[first : first + step] = _block(left[first : first + step], right, metric)

    if len(starts) == 1:
        fill(0)
        return found
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fill, starts))
    return found


def prepared(cloud: Costs, metric: str, dtype: Any) -> AnyFloats:
    """The points in `dtype`, each of length 1 where only its direction counts."""
    points = cloud.astype(dtype, copy=False)
    if metric not in DIRECTIONS:
        return points
    _, power = np.frexp(np.abs(points).max(axis=1, keepdims=True))
    points = np.ldexp(points, -power)  # exact, so that no square under- or overflows
    if metric == "correlation":
        points = points - points[:, :1]  # what all coordinates have in common would cost digits
        points = points - points.mean(axis=1, keepdims=True)
    return np.asarray(points / np.sqrt((points * points).sum(axis=1, keepdims=True)))


def _block(x: AnyFloats, y: AnyFloats, metric: str) -> AnyFloats:
    if metric == "inner":
        return np.asarray(-(x @ y.T))
    if metric == "iou":
        return _boxes(x, y)
    from scipy.spatial.distance import cdist  # not loaded by a process that starts, as scipy takes half of it

    kind = "sqeuclidean" if metric in DIRECTIONS else metric
    away = _differences(x, y, kind) if x.dtype != np.float64 else cdist(x, y, kind)
    return np.asarray(away / 2 if metric in DIRECTIONS else away)


def _differences(x: AnyFloats, y: AnyFloats, metric: str) -> AnyFloats:
    total = np.zeros((len(x), len(y)), x.dtype)
    for k in range(x.shape[1]):
        step = np.abs(np.subtract.outer(x[:, k], y[:, k]))
        total += step if metric == "cityblock" else step * step
    return np.asarray(np.sqrt(total) if metric == "euclidean" else total)


def _boxes(x: AnyFloats, y: AnyFloats) -> AnyFloats:
    """1 - intersection / union; 1 for boxes that share no area, also where neither has any."""
    low = np.maximum(x[:, None, :2], y[None, :, :2])
    both = np.prod(np.maximum(np.minimum(x[:, None, 2:], y[None, :, 2:]) - low, 0), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (x, y)]
    alone = areas[0][:, None] + areas[1] - 2 * both
    whole = alone + both
    return np.asarray(np.where(both > 0, np.maximum(alone, 0) / np.where(whole > 0, whole, 1), 1))
