"""Costs of points as float64 has them, in plain Python, whose numbers they are: an operation at a time, as written.

The formulas and the order of their roundings are in `kernels/problems/clouds.py`.
"""

from collections.abc import Callable
from functools import reduce
from math import sqrt

import numpy as np

from kernels.problems.arrays import Array

Point = list[float]


def matrices(x: Array, y: Array, sizes: list[list[int]], metric: str) -> list[Array]:
    """The costs of each problem (n_rows, n_cols), whose points follow one another."""
    rows, columns = (np.asarray(cloud, np.float64).tolist() for cloud in (x, y))
    found, at = [], [0, 0]
    for n, m in sizes:
        left, right = rows[at[0] : at[0] + n], columns[at[1] : at[1] + m]
        table = [[COSTS[metric](p, q) for q in right] for p in left]
        found.append(np.array(table, np.float64).reshape(n, m))
        at = [at[0] + n, at[1] + m]
    return found


def iou(p: Point, q: Point) -> float:
    """1 - intersection / union of boxes; 1 where they share no area that float64 tells from 0."""
    sides = [min(p[k + 2], q[k + 2]) - max(p[k], q[k]) for k in (0, 1)]
    if min(sides) <= 0 or sides[0] * sides[1] == 0:
        return 1.0
    common = sides[0] * sides[1]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (p, q)]
    return 1.0 - common / ((areas[0] + areas[1]) - common)


def sqeuclidean(p: Point, q: Point) -> float:
    """The squares of the differences, added one after the other."""
    return reduce(lambda total, pair: total + (pair[0] - pair[1]) * (pair[0] - pair[1]), zip(p, q, strict=True), 0.0)


def euclidean(p: Point, q: Point) -> float:
    """The root of that."""
    return sqrt(sqeuclidean(p, q))


def cityblock(p: Point, q: Point) -> float:
    """The sizes of the differences, added one after the other."""
    return reduce(lambda total, pair: total + abs(pair[0] - pair[1]), zip(p, q, strict=True), 0.0)


COSTS: dict[str, Callable[[Point, Point], float]] = {
    "iou": iou,
    "sqeuclidean": sqeuclidean,
    "euclidean": euclidean,
    "cityblock": cityblock,
}
