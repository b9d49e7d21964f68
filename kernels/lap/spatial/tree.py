"""A balanced k-d tree over points, and the boxes of its nodes."""

from typing import NamedTuple

import numpy as np

from kernels.problems.arrays import Floats, Indices

LEAF = 16
"""Points of a leaf at most."""


class Tree(NamedTuple):
    """Places in the tree and the boxes of its nodes.

    order: the point at each place; points (n, d) by place; starts: the first place of each leaf, and n at the end.
    low, high (2 n_leaves, d): corners of the nodes' boxes. The children of node t are 2 t and 2 t + 1, node 1 is the
    root, and the last n_leaves nodes are the leaves.
    """

    order: Indices
    points: Floats
    starts: Indices
    low: Floats
    high: Floats


def tree_of(points: Floats) -> Tree:
    """Split at the middle of the widest side, level by level, until leaves are small."""
    n, d = points.shape
    levels = max(0, int(np.ceil(np.log2(n / LEAF))))
    order = np.arange(n)
    for level in range(levels):
        starts = _starts(n, 1 << level)
        placed = points[order]
        widths = np.maximum.reduceat(placed, starts[:-1]) - np.minimum.reduceat(placed, starts[:-1])
        part = np.repeat(np.arange(1 << level), np.diff(starts))
        order = order[np.lexsort((placed[np.arange(n), widths.argmax(axis=1)[part]], part))]
    leaves = 1 << levels
    starts, placed = _starts(n, leaves), np.ascontiguousarray(points[order])
    low, high = np.zeros((2 * leaves, d)), np.zeros((2 * leaves, d))
    low[leaves:] = np.minimum.reduceat(placed, starts[:-1])
    high[leaves:] = np.maximum.reduceat(placed, starts[:-1])
    for level in reversed(range(levels)):
        first = 1 << level
        low[first : 2 * first] = np.minimum(low[2 * first : 4 * first : 2], low[2 * first + 1 : 4 * first : 2])
        high[first : 2 * first] = np.maximum(high[2 * first : 4 * first : 2], high[2 * first + 1 : 4 * first : 2])
    return Tree(order, placed, starts, low, high)


def _starts(n: int, parts: int) -> Indices:
    """Where parts of nearly the same size begin, and n."""
    return np.arange(parts + 1, dtype=np.int64) * n // parts
