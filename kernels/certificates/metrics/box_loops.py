"""The search of `boxes.py`, compiled: which pairs of a row may have its least cost less price.

Bounds are worked out in float64, rounded to nearest, and a proved bound of their error is taken off. Write u for 2^-53
and d for the number of coordinates. A sum of d squares or sizes, d products of a slope and a price is off by (d + 4) u
times the sum of the terms' sizes: at most 3 u of a term, d - 1 additions of each sort, and two of the sorts. A root
halves what its square is off by, and adds u. STEPS leaves four for taking the error off and for what is worked out of
it. TINY is more than all that underflows. What overflows rules nothing out: its size is infinite, so is its error, and
the difference is -inf or NaN. Each test asks whether a box or a pair is dear enough, and these are not.
"""

import numpy as np

from kernels.certificates.compiled import inlined, jit
from kernels.problems.arrays import Floats, Indices

SQUARES, ROOTS, SIZES = range(3)
"""What costs are sums of, in the order of `problems.points.METRICS`: squares, squares before a root is taken, sizes."""
U = 2.0**-53 * (1 + 2.0**-20)
"""The unit roundoff, with what products of errors add."""
STEPS = 8.0
"""Errors of a bound or a cost beside one for each coordinate, in U."""
TINY, ROOT_TINY = 2.0**-1000, 2.0**-500
"""More than what underflows of a sum of squares, and of its root."""
LARGE = 2.0**1000
"""Sizes up to which a plane is laid; no sum of such terms overflows."""
DEEPEST = 64
"""Boxes that wait at most: one of each level."""


@jit
def cover(
    first: int, last: int, level: int, kind: int, points: Floats, prices: Floats, sides: Floats, tops: Floats
) -> None:
    """Find how high the planes of nodes `first` to before `last` of one level lie, and drop slopes that are of no use.

    Args:
        level: the first node of the level; each has the same number of consecutive places.
        points, prices: (places, d), (places,).
        sides: (nodes, 4, d): low and high corner, middle, slope. Written: a slope becomes 0 where it breaks what
            `least_of` needs, overflows, or does not follow the prices.
        tops: (nodes, 3), written: top and flat, so that v_j <= top + slope (y_j - middle) and v_j <= flat for all j of
            the node; for ROOTS also a number of at least 0, and at most 1 less the length of the slope.
    """
    d, size = points.shape[1], len(prices) // level
    off = (d + STEPS) * U
    for node in range(first, last):
        begin = (node - level) * size
        top, flat, over_all, price_all, steep, sound = -np.inf, -np.inf, 0.0, 0.0, 0.0, True
        for j in range(begin, begin + size):
            price = prices[j]
            over, sizes = price, abs(price)
            for k in range(d):
                lean = sides[node, 3, k] * (points[j, k] - sides[node, 2, k])
                over -= lean
                sizes += abs(lean)
            over += off * sizes + TINY
            sound = sound and sizes < LARGE
            top, flat = max(top, over), max(flat, price)
            over_all += over
            price_all += price
        for k in range(d):
            slope = sides[node, 3, k]
            steep += slope * slope
            sound = sound and (kind != SIZES or abs(slope) <= 1.0)
        rest = 1.0 - np.sqrt(steep) * (1.0 + off) - off
        sound = sound and (kind != ROOTS or rest >= 0.0)
        if not (sound and size * top - over_all < size * flat - price_all):
            top, rest = flat, 1.0
            for k in range(d):
                sides[node, 3, k] = 0.0
        tops[node, 0], tops[node, 1], tops[node, 2] = top, flat, rest


@inlined
def least_of(x: Floats, i: int, sides: Floats, tops: Floats, node: int, kind: int) -> float:
    """A lower bound of what the columns of a node cost row i less their prices; -inf or NaN where a size overflows.

    Of squares, (x - y)^2 - slope (y - middle) is least at y = x + slope / 2, and the less the nearer to that. No
    float64, so no column, is nearer than that sum rounded; and none from low to high is nearer than this, or the end
    next to it. (Half of a slope below 2^-1021 may be rounded; TINY is more than that moves.) Of sizes, for slopes from
    -1 to 1, the least is at the place next to x. A distance less slope (y - middle) is at least (1 - |slope|) times
    that to the box, less slope (x - middle). The distance to the box less the largest price is another bound.
    """
    d = x.shape[1]
    top, flat, rest = tops[node, 0], tops[node, 1], tops[node, 2]
    half = 0.5 if kind == SQUARES else 0.0
    total, leaning, sizes = 0.0, 0.0, 0.0
    for k in range(d):
        here, slope = x[i, k], sides[node, 3, k]
        place = min(max(here + half * slope, sides[node, 0, k]), sides[node, 1, k])
        step = here - place
        total += abs(step) if kind == SIZES else step * step
        lean = slope * ((here if kind == ROOTS else place) - sides[node, 2, k])
        leaning += lean
        sizes += abs(lean)
    off = (d + STEPS) * U
    if kind == ROOTS:
        total = np.sqrt(total)
        sizes += total + abs(top) + abs(flat)
        bound: float = max(rest * total - leaning - top, total - flat) - (off * sizes + ROOT_TINY)
    else:
        sizes += total + abs(top)
        bound = total - leaning - top - (off * sizes + TINY)
    return bound


@inlined
def weigh(
    x: Floats, i: int, points: Floats, prices: Floats, leaf: int, kind: int, low: Floats, high: Floats
) -> None:  # fmt: skip
    """Lower and upper ends of what each column of a leaf costs row i less its price."""
    d, size = x.shape[1], low.size
    off, least = (d + STEPS) * U, ROOT_TINY if kind == ROOTS else TINY
    for t in range(size):
        low[t] = 0.0
    for k in range(d):
        here = x[i, k]
        for t in range(size):
            step = here - points[leaf, k, t]
            low[t] += abs(step) if kind == SIZES else step * step
    for t in range(size):
        cost = np.sqrt(low[t]) if kind == ROOTS else low[t]
        price = prices[leaf, t]
        net, error = cost - price, off * (cost + abs(price)) + least
        low[t], high[t] = net - error, net + error


@inlined
def still(kept: Indices, ends: Floats, limit: float) -> int:
    """Move those of `kept` whose lower ends are not above the limit to the front, and say how many they are."""
    count = 0
    for c in range(kept.size):
        if not ends[c] > limit:
            kept[count], ends[count] = kept[c], ends[c]
            count += 1
    return count


@jit
def search(
    first: int, kind: int, most: int, x: Floats, partners: Indices, points: Floats, prices: Floats, sides: Floats,
    tops: Floats, owners: Indices, places: Indices, counts: Indices,
) -> int:  # fmt: skip
    """Find the pairs of the rows from `first` on that may have the least cost less price of their row.

    A row's partner gives a first upper end of that. Boxes and pairs whose lower ends are above the least upper end are
    left out, and so the pair that attains the least is never left out. A row is given up once it has `most` pairs and
    half of them are not left out by then: so pairs are moved about no more often than they are found.

    Args:
        most: pairs of a row at most.
        x, partners: (n_rows, d), (n_rows,): a place among the columns, or -1.
        points, prices: (leaves, d, size), (leaves, size).
        sides, tops: see `cover`; nodes 2 t and 2 t + 1 are the halves of node t, and node 1 is the root.
        owners, places: (room,), written: the row of each pair, ascending, and its place among the columns.
        counts: (n_rows,), written: how many pairs a row has, 0 where it was given up.

    Returns the first row that was not searched: n_rows, unless there is no room for `most` more pairs.
    """
    leaves, size = prices.shape
    low, high = np.empty(size), np.empty(size)
    waiting, bounds = np.empty(DEEPEST, np.int64), np.empty(DEEPEST)
    kept, ends = np.empty(most, np.int64), np.empty(most)
    room = 0
    for i in range(first, len(x)):
        if room + most > owners.size:
            return i
        limit, count = np.inf, 0
        if partners[i] >= 0:
            weigh(x, i, points, prices, partners[i] // size, kind, low, high)
            limit = high[partners[i] % size]
        waiting[0], bounds[0], depth = 1, -np.inf, 1
        while depth > 0 and count <= most:
            depth -= 1
            node, bound = waiting[depth], bounds[depth]
            while node < leaves and not bound > limit:
                near, far = 2 * node, 2 * node + 1
                bound = least_of(x, i, sides, tops, near, kind)
                other = least_of(x, i, sides, tops, far, kind)
                if other < bound:
                    near, far, bound, other = far, near, other, bound
                if not other > limit:
                    waiting[depth], bounds[depth] = far, other
                    depth += 1
                node = near
            if bound > limit:
                continue
            leaf = node - leaves
            weigh(x, i, points, prices, leaf, kind, low, high)
            some = 0
            for t in range(size):
                some += 0 if low[t] > limit else 1
            for t in range(size if some else 0):
                if low[t] > limit:
                    continue
                if count == most:
                    count = still(kept, ends, limit)
                    if 2 * count >= most:
                        count = most + 1
                        break
                kept[count], ends[count] = leaf * size + t, low[t]
                count += 1
                limit = min(limit, high[t])
        counts[i] = 0
        if count <= most:
            count = still(kept[:count], ends, limit)
            for c in range(count):
                owners[room + c], places[room + c] = i, kept[c]
            counts[i] = count
            room += count
    return len(x)
