"""Planes under the prices of a tree's nodes: what a node offers a row at least, where prices change with the place.

Prices of an optimum lean: where mass must travel, they rise by as much as the way costs. The least price of a node then
belongs to one edge of its box and the least distance to another, and the two together promise far too much. So each
node has a plane of its own, price_j >= least + slope (y_j - middle) for all of its columns. A node offers no less than

    least + min over y of its box of  c(x, y) + slope (y - middle)

Any slope is right. Those of least squares leave `least` near the prices. For squares the minimum over the box is taken
one coordinate at a time, at x - slope / 2: near the place where the columns are that this row competes for. Sums of
sides are separate in each coordinate too. A distance |x - y| is at least slope (x - y) + (1 - |slope|) |x - y|, for a
slope of at most 1. So a node offers slope (x - middle) + (1 - |slope|) times the distance to its box; and the distance
to its box plus the least price, which is better close by. The larger of the two counts.
"""

import math
from typing import NamedTuple

import numpy as np

from kernels.compiling import njit
from kernels.lap.cpu.threads import in_threads
from kernels.lap.spatial.tree import Tree
from kernels.problems.arrays import Floats, Indices
from kernels.problems.metrics import METRICS

SQUARED, ROOT, CITY = (METRICS.index(name) for name in ("sqeuclidean", "euclidean", "cityblock"))
SAMPLE = 64
"""Columns of a node, evenly spaced, that its slope is fitted to."""
PIECE = 1 << 15
"""Columns that a thread takes at a time, in as many nodes of a level as hold them."""
STEEPEST = 8.0
"""Slopes at most, for coordinates of at most 1: the steepest that a square is there is 4."""
RIDGE = 1e-9
"""What is added to the squares of a fit, as a part of their sum, so that points on a line have a slope as well."""


class Planes(NamedTuple):
    """Of each node (2 n_leaves, d): the plane's slope and the middle of the box.

    least (2 n_leaves,): where the plane passes the middle; flat: the same for a slope of 0, which is the least price.
    """

    slopes: Floats
    middles: Floats
    least: Floats
    flat: Floats


@njit(cache=True, nogil=True)
def _solved(a: Floats, b: Floats, d: int) -> None:
    """Solve a s = b for a positive definite a, in place of b, by elimination."""
    for k in range(d):
        for r in range(k + 1, d):
            share = a[r, k] / a[k, k]
            for c in range(k, d):
                a[r, c] -= share * a[k, c]
            b[r] -= share * b[k]
    for k in range(d - 1, -1, -1):
        for c in range(k + 1, d):
            b[k] -= a[k, c] * b[c]
        b[k] /= a[k, k]


@njit(cache=True, nogil=True)
def lay_planes(points: Floats, prices: Floats, starts: Indices, first: int, planes: Planes, kind: int) -> None:
    """Lay a plane under the columns starts[q] to starts[q + 1] - 1 of each node first + q."""
    slopes, middles, least, flat = planes
    d = points.shape[1]
    squares, products, mean = np.empty((d, d)), np.empty(d), np.empty(d)
    for q in range(starts.size - 1):
        node, begin, end = first + q, starts[q], starts[q + 1]
        step = max(1, (end - begin) // SAMPLE)
        squares[:], products[:], mean[:] = 0.0, 0.0, 0.0
        count, level = 0, 0.0
        for j in range(begin, end, step):
            count += 1
            level += prices[j]
            for k in range(d):
                mean[k] += points[j, k] - middles[node, k]
        level /= count
        for k in range(d):
            mean[k] /= count
        for j in range(begin, end, step):
            over = prices[j] - level
            for k in range(d):
                side = points[j, k] - middles[node, k] - mean[k]
                products[k] += side * over
                for c in range(k + 1):
                    squares[k, c] += side * (points[j, c] - middles[node, c] - mean[c])
        total = 0.0
        for k in range(d):
            total += squares[k, k]
            for c in range(k):
                squares[c, k] = squares[k, c]
        if total > 0:
            for k in range(d):
                squares[k, k] += RIDGE * total
            _solved(squares, products, d)
        most, length = STEEPEST if kind == SQUARED else 1.0, 0.0
        for k in range(d):
            slopes[node, k] = min(most, max(-most, products[k]))
            length += slopes[node, k] ** 2
        if kind == ROOT and length > 1:
            for k in range(d):
                slopes[node, k] /= math.sqrt(length)
        lowest, cheapest = np.inf, np.inf
        for j in range(begin, end):
            above = prices[j]
            cheapest = min(cheapest, above)
            for k in range(d):
                above -= slopes[node, k] * (points[j, k] - middles[node, k])
            lowest = min(lowest, above)
        least[node], flat[node] = lowest, cheapest


def planes_under(prices: Floats, tree: Tree, kind: int, threads: int) -> Planes:
    """The planes under prices, which are by place in the tree."""
    n, leaves = len(prices), len(tree.starts) - 1
    planes = Planes(np.zeros_like(tree.low), 0.5 * (tree.low + tree.high), *np.zeros((2, 2 * leaves)))
    pieces: list[tuple[int, int]] = []
    first = 1
    while first <= leaves:
        nodes = max(1, PIECE * first // n)
        pieces += [(at, min(at + nodes, 2 * first)) for at in range(first, 2 * first, nodes)]
        first *= 2

    def lay(piece: tuple[int, int]) -> None:
        begin, end = piece
        level = 1 << (begin.bit_length() - 1)
        starts = tree.starts[(np.arange(begin, end + 1) - level) * (leaves // level)]
        lay_planes(tree.points, prices, starts, begin, planes, kind)

    in_threads(lay, pieces, min(threads, len(pieces)))
    return planes
