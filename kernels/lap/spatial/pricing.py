"""Pricing: the columns of least reduced cost of a row, found in a tree without looking at most of them.

The reduced cost of a pair is (c_ij - base_j) + rise_j, in this order of operations. A node of the tree offers no less
than what `to_box` says. Rounding of that bound may hide a column whose reduced cost is within rounding of what was
asked for, and no other.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from kernels.compiling import njit
from kernels.deadline import Deadline
from kernels.lap.columns.level import Cheapest, in_blocks
from kernels.lap.spatial.planes import CITY, ROOT, SQUARED, planes_under
from kernels.lap.spatial.tree import Tree
from kernels.problems.arrays import Floats, Indices, Integers32

BLOCK = 2048
"""Rows priced by a thread between two looks at the deadline."""
DEEPEST = 64
THREADS = numba.get_num_threads()
"""All that compiled loops may take: rows are priced side by side, and a host of a GPU has dozens of cores."""


class Offers(NamedTuple):
    """Columns by place in their tree: prices (n,) in two parts, and the planes under the prices of each node."""

    points: Floats
    starts: Indices
    low: Floats
    high: Floats
    base: Floats
    rise: Floats
    slopes: Floats
    middles: Floats
    least: Floats
    flat: Floats


def offers_of(tree: Tree, base: Floats, rise: Floats, kind: int) -> Offers:
    """The columns of a tree at prices base - rise, by place."""
    planes = planes_under(rise - base, tree, kind, THREADS)
    return Offers(tree.points, tree.starts, tree.low, tree.high, base, rise, *planes)


@njit(inline="always")
def _distance(x: Floats, i: int, y: Floats, j: int, kind: int) -> float:
    total = 0.0
    for k in range(x.shape[1]):
        step = x[i, k] - y[j, k]
        total += abs(step) if kind == CITY else step * step
    return math.sqrt(total) if kind == ROOT else total


@njit(inline="always")
def to_box(x: Floats, i: int, offers: Offers, node: int, kind: int) -> float:
    """What a node offers row i at least (`planes.py`).

    No array is read inside a branch: numba would count references to it there, which took three times as long.
    """
    least: float = offers.least[node]
    flat: float = offers.flat[node]
    half = 0.5 if kind == SQUARED else 0.0
    total, leaning, steep = 0.0, 0.0, 0.0
    for k in range(x.shape[1]):
        here, slope, middle = x[i, k], offers.slopes[node, k], offers.middles[node, k]
        place = min(max(here - half * slope, offers.low[node, k]), offers.high[node, k])
        step = here - place
        total += abs(step) if kind == CITY else step * step
        leaning += slope * ((here if kind == ROOT else place) - middle)
        steep += slope * slope
    if kind == ROOT:
        length = math.sqrt(total)
        return max(length + flat, leaning + max(0.0, 1.0 - math.sqrt(steep)) * length + least)
    return total + leaning + least


@njit(cache=True, nogil=True)
def price_rows(x: Floats, rows: Indices, limits: Floats, offers: Offers, kind: int, found: Cheapest) -> None:
    """Find for each of `rows` the columns whose reduced cost is below its limit, the least ones first.

    The nearer child of a node is looked at first; the other waits on a stack with its bound.
    """
    leaves, most = offers.starts.size - 1, found.columns.shape[1]
    waiting, bounds = np.empty(DEEPEST, np.int64), np.empty(DEEPEST)
    for q in range(rows.size):
        i, limit, count = rows[q], limits[q], 0
        waiting[0], bounds[0], depth = 1, -np.inf, 1
        while depth > 0:
            depth -= 1
            node, bound = waiting[depth], bounds[depth]
            while bound < limit and node < leaves:
                near, far = 2 * node, 2 * node + 1
                bound, other = to_box(x, i, offers, near, kind), to_box(x, i, offers, far, kind)
                if other < bound:
                    near, far, bound, other = far, near, other, bound
                if other < limit:
                    waiting[depth], bounds[depth] = far, other
                    depth += 1
                node = near
            if bound >= limit:
                continue
            for j in range(offers.starts[node - leaves], offers.starts[node - leaves + 1]):
                value = (_distance(x, i, offers.points, j, kind) - offers.base[j]) + offers.rise[j]
                if value >= limit:
                    continue
                count = min(count + 1, most)
                at = count - 1
                while at > 0 and found.values[q, at - 1] > value:
                    found.values[q, at], found.columns[q, at] = found.values[q, at - 1], found.columns[q, at - 1]
                    at -= 1
                found.values[q, at], found.columns[q, at] = value, j
                if count == most:
                    limit = min(limit, found.values[q, most - 1])
        found.counts[q] = count


@njit(cache=True, nogil=True)
def price_edges(x: Floats, y: Floats, indptr: Indices, columns: Integers32, base: Floats, kind: int) -> Floats:
    """c_ij - base_j of every edge of a graph by rows, with the operations of `price_rows`."""
    values = np.empty(columns.size)
    for i in range(indptr.size - 1):
        for t in range(indptr[i], indptr[i + 1]):
            values[t] = _distance(x, i, y, columns[t], kind) - base[columns[t]]
    return values


class Pricing(NamedTuple):
    """Rows `x` that look for columns of a tree in the metric `kind`."""

    x: Floats
    tree: Tree
    kind: int

    def cheapest(
        self, base: Floats, rise: Floats, rows: Indices, limits: Floats, most: int, deadline: Deadline
    ) -> Cheapest | None:
        """The `most` least columns of each of `rows` below its limit; None once time is up."""
        k, offers = len(rows), offers_of(self.tree, base, rise, self.kind)
        found = Cheapest(np.zeros((k, most), np.int32), np.full((k, most), np.inf), np.zeros(k, np.int32))

        def price(part: slice, own: Cheapest) -> None:
            price_rows(self.x, rows[part], limits[part], offers, self.kind, own)

        return in_blocks(found, BLOCK, THREADS, deadline, price)

    def edges(self, indptr: Indices, columns: Integers32, base: Floats) -> Floats:
        """c_ij - base_j of every edge of a graph by rows; columns by their places in the tree."""
        return price_edges(self.x, self.tree.points, indptr, columns, base, self.kind)
