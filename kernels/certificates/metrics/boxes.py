"""Pairs of points that may have the least cost less price of their row; boxes of columns rule all others out.

A tree halves the columns at the middle of the widest side until a leaf has LEAF of them. Each node knows its box, and a
plane above its prices: v_j <= top + slope (y_j - middle). What its columns cost a row, less their prices, is at least

    min over y of the box of  c(x, y) - slope (y - middle)  -  top

A row whose partner's cost less price is below that need not look at any of them. Prices of an optimum rise as steeply
as costs do: along a side, that of a column rises by what its own partner's cost does. The mean of that over its columns
is a node's slope. Any slope and any partner would do. A plane's height is found by a look at each price, and what is
not ruled out is returned. All bounds are rounded outward (`box_loops.py`). So for any prices, a pair that is not
returned costs more, less its price, than one of its row that is. Rows know nothing of each other, so threads change
nothing.

A row with many such pairs is left to the sweep over all pairs: it has many ties, or costs that float64 cannot tell
apart. A search that rules nothing out takes a quarter to a third of the time of that sweep, so it is not given up for
that.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernels.certificates.threads import cut, in_threads
from kernels.problems.arrays import Floats, Indices
from kernels.problems.points import METRICS

LEAF = 32
"""Columns of a leaf at most."""
BLOCK, ROOM = 2048, 4
"""Rows that are searched together, and pairs of each that are returned together."""
A_THREAD = 1 << 15
"""Columns of a level that are worth a thread."""
INWARD = 1 - 2.0**-30
"""Keeps the mean of directions, each of length 1, no longer than 1."""


class _Tree(NamedTuple):
    """Columns by place. Nodes of a level have equally many, so some columns come twice.

    order (places,): the column at each; points (leaves, d, size) and prices (leaves, size) by leaf; sides (nodes, 4, d)
    and tops (nodes, 3): see `box_loops.cover`. The halves of node t are 2 t and 2 t + 1, and node 1 is the root.
    """

    order: Indices
    points: Floats
    prices: Floats
    sides: Floats
    tops: Floats


class Found(NamedTuple):
    """Pairs of some rows: which of `rows` each is of, ascending, and its column. `counts`: how many each row has."""

    rows: Indices
    owners: Indices
    columns: Indices
    counts: Indices


class Boxes:
    """Rows x (m, d) that look for columns y (n, d) of least cost less `price` (n,), which is finite.

    Pairs (lines, others), both (k,), are good ones, as an assignment has: no row or column twice. A row is searched
    next to rows whose partners are near its own, as these ask for the same boxes.
    """

    def __init__(self, x: Floats, y: Floats, metric: str, price: Floats, lines: Indices, others: Indices) -> None:
        self._kind = METRICS.index(metric)
        lean = np.zeros(y.shape)
        lean[others] = _slopes(x[lines], y[others], metric)
        self._tree = _tree_of(y, price, lean, self._kind)
        place = np.empty(len(y), np.int64)
        place[self._tree.order] = np.arange(len(self._tree.order))
        partners = np.full(len(x), -1)
        partners[lines] = place[others]
        self.rows = np.argsort(partners, kind="stable")
        self._x, self._partners = x[self.rows], partners[self.rows]

    def starts(self) -> range:
        """The first positions of the blocks of rows."""
        return range(0, len(self.rows), BLOCK)

    def search(self, first: int, most: int) -> Iterator[Found]:
        """The pairs of a block's rows, some rows at a time, as `box_loops.search` gives them."""
        from kernels.certificates.metrics import box_loops  # numba, which a process that only takes jobs must not load

        block, begin, tree = slice(first, first + BLOCK), 0, self._tree
        rows, asked = self.rows[block], (self._x[block], self._partners[block])
        owners, places = np.empty((2, ROOM * BLOCK + most), np.int64)
        counts = np.zeros(len(rows), np.int64)
        while begin < len(rows):
            given = (*asked, tree.points, tree.prices, tree.sides, tree.tops, owners, places, counts)
            end = box_loops.search(begin, self._kind, most, *given)
            found = int(counts[begin:end].sum())
            yield Found(rows[begin:end], owners[:found] - begin, tree.order[places[:found]], counts[begin:end])
            begin = end


def _slopes(x: Floats, y: Floats, metric: str) -> Floats:
    """How steeply the cost of a pair rises with y, rounded."""
    away: Floats = y - x
    if metric == "sqeuclidean":
        return 2 * away
    if metric == "cityblock":
        return np.asarray(np.sign(away))
    far = np.sqrt((away * away).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(INWARD * away, far, out=np.zeros_like(away), where=far > 0))


def _tree_of(y: Floats, price: Floats, lean: Floats, kind: int) -> _Tree:
    """`lean` (n, d) is the slope that each column would have by itself."""
    from kernels.certificates.metrics import box_loops

    n, d = y.shape
    levels = (-(-n // LEAF) - 1).bit_length()
    leaves = 1 << levels
    size = -(-n // leaves)
    order = _halved(y, np.arange(leaves * size) * n // (leaves * size), levels)
    placed, prices = y[order], price[order]
    leaf = placed.reshape(leaves, size, d)
    sides, tops = np.zeros((2 * leaves, 4, d)), np.zeros((2 * leaves, 3))
    sides[leaves:, 0], sides[leaves:, 1] = leaf.min(axis=1), leaf.max(axis=1)
    sides[leaves:, 3] = lean[order].reshape(leaves, size, d).mean(axis=1)
    for first in (1 << level for level in reversed(range(levels))):
        one, other = sides[2 * first : 4 * first : 2], sides[2 * first + 1 : 4 * first : 2]
        sides[first : 2 * first, 0] = np.minimum(one[:, 0], other[:, 0])
        sides[first : 2 * first, 1] = np.maximum(one[:, 1], other[:, 1])
        sides[first : 2 * first, 3] = (one[:, 3] + other[:, 3]) / 2
    sides[:, 2] = (sides[:, 0] + sides[:, 1]) / 2
    for first in (1 << level for level in range(levels + 1)):
        ends = [first + end for end in cut(first, len(order), A_THREAD)]
        in_threads(box_loops.cover, ends, (first, kind, placed, prices, sides, tops))
    return _Tree(order, np.ascontiguousarray(leaf.transpose(0, 2, 1)), prices.reshape(leaves, size), sides, tops)


def _halved(y: Floats, order: Indices, levels: int) -> Indices:
    """The points in the order of their places, halved so many times."""
    along = np.ascontiguousarray(y.T)
    for level in range(levels):
        parts = order.reshape(1 << level, -1)
        widest = np.argmax([np.ptp(one[parts], axis=1) for one in along], axis=0)
        side = along[widest[:, None], parts]
        order = np.take_along_axis(parts, np.argpartition(side, parts.shape[1] // 2, axis=1), axis=1).ravel()
    return order


def warm_up() -> None:
    """Compile the loops, or load them from numba's cache."""
    points = np.arange(6.0).reshape(3, 2)
    for metric in METRICS:
        list(Boxes(points, points, metric, np.zeros(3), np.arange(2), np.arange(2)).search(0, 4))
