"""Costs between points, worked out in float64: the same bits wherever the same points are given.

Sums over coordinates are added one coordinate after the other, by additions and multiplications of single entries
alone, so that neither a library of linear algebra nor the number of threads has a say. Sines, cosines, arcs and square
roots are NumPy's.
"""

import numpy as np

from kernels.problems.arrays import Costs, Floats, InvalidProblem
from kernels.problems.made import make

WORKED_OUT = ("cityblock", "cosine", "correlation", "geodesic")
"""Metrics of which a problem is made by working out its costs."""
EXACT = ("sqeuclidean", "euclidean", "inner")


def worked_out(x: Costs, y: Costs, metric: str) -> Floats:
    """The costs (m, n) in float64.

    cosine: 1 - <x, y> / (|x| |y|). correlation: the same of rows less their means. cityblock: the sum of |x - y|.
    geodesic: the angle in radians between points on the sphere, given as unit vectors' directions (m, 3), or as
    longitude and latitude in degrees (m, 2). inner: -<x, y>.

    Raises:
        InvalidProblem: a row without direction, or points of another dimension.
    """
    make(len(x) * len(y))
    x, y = x.astype(np.float64), y.astype(np.float64)
    if metric == "geodesic":
        return _angles(_directions("x", x), _directions("y", y))
    if metric == "correlation":
        x, y = (points - points.mean(axis=1, keepdims=True) for points in (x, y))
    if metric in ("cosine", "correlation"):
        return np.asarray(np.maximum(0.0, 1.0 - _inner(_unit("x", x, metric), _unit("y", y, metric))))
    if metric == "inner":
        return -_inner(x, y)
    total = np.zeros((len(x), len(y)))
    for left, right in zip(x.T, y.T, strict=True):
        apart = left[:, None] - right
        total += abs(apart) if metric == "cityblock" else apart * apart
    return np.sqrt(total) if metric == "euclidean" else total


def _inner(x: Costs, y: Costs) -> Floats:
    total = np.zeros((len(x), len(y)))
    for left, right in zip(x.T, y.T, strict=True):
        total += left[:, None] * right
    return total


def _unit(name: str, points: Costs, metric: str) -> Floats:
    largest = abs(points).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        what = "all entries 0" if metric != "correlation" else "all entries the same"
        raise InvalidProblem(name, f"has {what} in row {int(largest.argmin())}; expected a direction, for {metric}")
    scaled = points / largest
    squares = np.zeros(len(points))
    for coordinate in scaled.T:
        squares += coordinate * coordinate
    return np.asarray(scaled / np.sqrt(squares)[:, None])


def _directions(name: str, points: Costs) -> Floats:
    if points.shape[1] == 3:
        return _unit(name, points, "geodesic")
    if points.shape[1] != 2:
        told = f"has dimension {points.shape[1]}"
        raise InvalidProblem(name, f"{told}; expected 3 (directions) or 2 (longitude and latitude in degrees)")
    longitude, latitude = np.radians(points).T
    if (abs(latitude) > np.pi / 2 * (1 + 1e-12)).any():
        raise InvalidProblem(name, "holds a latitude beyond 90 degrees; expected longitude, then latitude, in degrees")
    level = np.cos(latitude)
    return np.stack([level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)], axis=1)


def _angles(x: Floats, y: Floats) -> Floats:
    """2 asin(|x - y| / 2) up to a right angle, beyond it from |x + y|: right at small and at large angles."""
    apart, across = np.zeros((len(x), len(y))), np.zeros((len(x), len(y)))
    for left, right in zip(x.T, y.T, strict=True):
        apart += (left[:, None] - right) ** 2
        across += (left[:, None] + right) ** 2
    return np.asarray(2 * np.arctan2(np.sqrt(apart), np.sqrt(across)))
