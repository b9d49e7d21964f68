"""The one look at the data that a proof of many small problems needs, compiled: no array is made for each problem.

It is the arithmetic of bound.py and proof.py in another form; tests hold the two against each other, and both against
fractions. Nothing here is allowed to reorder a sum or to drop a NaN: the flags that permit LLVM that are left out.

Loops over entries have no branch and run over slices, so that LLVM makes vectors of them: an index that could be
negative, or a branch, keeps it from that. Nor does it for the least of several floats, so that entries are compared
with the least of their lines one by one, for many lines at once. Where lines are rows, tiles are turned first.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from kernels.compiling import njit
from kernels.problems.arrays import Array

F = TypeVar("F", bound=Callable[..., Any])
NONE = -1
"""The column of a row that is left."""
OBJECTIVE, BOUND, VIOLATION = 0, 3, 6
"""Where they begin in `sums`. A sum takes three places: itself in working precision, the sum of its errors, and about
how far off that is at most."""
MISSING_ROWS, MISSING_COLUMNS, LEFT, UNBOUNDED, ALONE = range(5)
"""Places in `counts`: lines that must be paired and are not, of each side; lines that are left; lines that nothing
bounds from below; whether the pairs are none."""
TILE, ABREAST = 64, 8
"""Lines and entries of a tile. Lines are looked at in multiples of the second, for no vector to be left incomplete;
what the last of them come to is not read."""


def jit(function: F) -> F:
    """Compile on first call, cached on disk, without the GIL, in strict IEEE 754."""
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def inlined(function: F) -> F:
    """Compile into whatever compiled function calls it."""
    return njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)


@inlined
def two_sum(x: Any, y: Any) -> Any:
    """(s, e) with s = x + y rounded to nearest and s + e = x + y exactly; e is 0 for integers."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


@inlined
def added(total: Any, term: Any) -> Any:
    """A sum with one more term."""
    first, error = two_sum(total[0], term)
    second, beyond = two_sum(total[1], error)
    return first, second, total[2] + abs(beyond)


@inlined
def turned(value: Any, maximize: bool) -> Any:
    """In min form."""
    return -value if maximize else value


@inlined
def reduced(c: Any, price: Any, maximize: bool, barred: Any, worst: Any) -> Any:
    """A cost less a price, rounded to nearest; `worst` where the entry is forbidden."""
    if barred is None:
        return turned(c, maximize) - price
    return worst if c == barred else turned(c, maximize) - price


@inlined
def usable(price: Any, cap: Any, most: Any) -> Any:
    """`bound.usable` of one price."""
    kept = price if -most <= price and price <= most else most - most
    return kept if kept < cap else cap


@jit
def prove(
    first: int, last: int, starts: Array, maximize: bool, barred: Any, worst: Any, most: Any, costs: Array,
    leaving: tuple[Array, Array], duals: tuple[Array, Array], assignment: Array, sums: Array, sizes: Array,
    counts: Array,
) -> None:  # fmt: skip
    """Objective, bound and violation of the problems from `first` to before `last`, in min form.

    Pairs of arrays are those of all rows and of all columns, in the sense of the problem. `barred` marks a forbidden
    integer and a line that must be paired; it is None among floats, where an infinity does. `worst` is what a line
    without an entry has, `most` the largest price of use. `sums` (count, 7) and `counts` (count, 5): see above.
    `sizes` (count,): about the sum of all terms' sizes.
    """
    longest = 1
    for k in range(first, last):
        longest = max(longest, max(starts[k + 1, 1] - starts[k, 1], starts[k + 1, 2] - starts[k, 2]))
    room, used = np.empty((5, longest + ABREAST), sums.dtype), np.empty(longest, np.int8)
    tile, nothing = np.zeros((TILE, TILE), costs.dtype), sums.dtype.type(0)
    for k in range(first, last):
        at, end = starts[k], starts[k + 1]
        n, m = end[1] - at[1], end[2] - at[2]
        tops = room[0, :n], room[1, :m]
        for i in range(n):
            tops[0][i] = reduced(leaving[0][at[1] + i], nothing, maximize, barred, worst)
        for j in range(m):
            tops[1][j] = reduced(leaving[1][at[2] + j], nothing, maximize, barred, worst)
        given = duals[0][at[1] : end[1]], duals[1][at[2] : end[2]]
        short, long = (0, 1) if n <= m else (1, 0)
        price, high, low = room[2, : max(n, m)], room[3], room[4]
        for j in range(price.size):
            price[j] = usable(turned(given[long][j], maximize), tops[long][j], most)
        if n <= m:
            least_of_rows(costs, at[0], n, maximize, barred, worst, price, tile, high, low)
        else:
            least_of_columns(costs, at[0], m, m, maximize, barred, worst, price, high, low)
        matrix, chosen = costs[at[0] : end[0]].reshape((n, m)), assignment[at[1] : end[1]]
        sizes[k] = add_pairs(matrix, chosen, maximize, barred, worst, tops, used[:m], sums[k], counts[k])
        sizes[k] += add_lines(tops[short], worst, price, high, low, sums[k], counts[k])
        over = nothing
        for i in range(min(n, m)):
            over = max(over, beyond(turned(given[short][i], maximize), high[i], worst, most))
        for j in range(price.size):
            over = max(over, beyond(turned(given[long][j], maximize), tops[long][j], worst, most))
        sums[k, VIOLATION] = over


@inlined
def beyond(dual: Any, allowed: Any, worst: Any, most: Any) -> Any:
    """By how much a dual is above what is allowed; `worst` where it is of no use."""
    sane = usable(dual, worst, most)
    if sane != dual:
        return worst
    return most - most if allowed == worst else sane - allowed


@jit
def add_pairs(
    matrix: Array, chosen: Array, maximize: bool, barred: Any, worst: Any, tops: tuple[Array, Array], used: Array,
    sums: Array, counts: Array,
) -> float:  # fmt: skip
    """Add up the pairs and the prices of the lines that are left; returns about the sum of their sizes."""
    total, size = (sums[0], sums[1], sums[2]), 0.0
    for j in range(used.size):
        used[j] = 0
    for i in range(chosen.size):
        j = chosen[i]
        if j == NONE:
            counts[LEFT] += 1
            term = tops[0][i]
            if term == worst:
                counts[MISSING_ROWS] += 1
                continue
        else:
            if j < 0 or j >= used.size or used[j]:
                counts[ALONE] = 1
                return 0.0
            used[j] = 1
            term = reduced(matrix[i, j], sums.dtype.type(0), maximize, barred, worst)
            if not abs(term) < worst:
                counts[ALONE] = 1
                return 0.0
        total = added(total, term)
        size += abs(term)
    for j in range(used.size):
        if not used[j]:
            counts[LEFT] += 1
            if tops[1][j] == worst:
                counts[MISSING_COLUMNS] += 1
            else:
                total = added(total, tops[1][j])
                size += abs(tops[1][j])
    sums[OBJECTIVE], sums[OBJECTIVE + 1], sums[OBJECTIVE + 2] = total
    return size


@jit
def add_lines(top: Array, worst: Any, price: Array, high: Array, low: Array, sums: Array, counts: Array) -> float:
    """Let each line take its price of leaving where that is less, and add up lines and prices; returns as `add_pairs`.

    An error that is not needed becomes 0.
    """
    total, size = (sums[BOUND], sums[BOUND + 1], sums[BOUND + 2]), 0.0
    for i in range(top.size):
        rest = low[i]
        if top[i] < high[i] or (top[i] == high[i] and rest > 0) or not rest < worst:
            high[i], rest = min(top[i], high[i]), high.dtype.type(0)
        if high[i] == worst:
            counts[UNBOUNDED] += 1
            continue
        total = added(total, high[i])
        second, left = two_sum(total[1], rest)
        total = total[0], second, total[2] + abs(left)
        size += abs(high[i]) + abs(rest)
    for j in range(price.size):
        total = added(total, price[j])
        size += abs(price[j])
    sums[BOUND], sums[BOUND + 1], sums[BOUND + 2] = total
    return size


@jit
def least_of_columns(
    costs: Array, entry: int, count: int, stride: int, maximize: bool, barred: Any, worst: Any, price: Array,
    high: Array, low: Array,
) -> None:  # fmt: skip
    """The least c - price of each column: rounded, and the smallest error of those that attain it."""
    wide = -(-count // ABREAST) * ABREAST
    for j in range(wide):
        high[j] = low[j] = worst
    for i in range(price.size):
        lower(costs[entry + i * stride : entry + i * stride + wide], price[i], maximize, barred, worst, high, low)


@jit
def least_of_rows(
    costs: Array, entry: int, count: int, maximize: bool, barred: Any, worst: Any, price: Array, tile: Array,
    high: Array, low: Array,
) -> None:  # fmt: skip
    """The same of rows, a tile at a time."""
    for i in range(-(-count // ABREAST) * ABREAST):
        high[i] = low[i] = worst
    for first in range(0, count, TILE):
        lines = min(TILE, count - first)
        wide = -(-lines // ABREAST) * ABREAST
        for start in range(0, price.size, TILE):
            own = price[start : start + TILE]
            for i in range(lines):
                begin = entry + (first + i) * price.size + start
                row = costs[begin : begin + own.size]
                for j in range(row.size):
                    tile[j, i] = row[j]
            for j in range(own.size):
                lower(tile[j, :wide], own[j], maximize, barred, worst, high[first:], low[first:])


@inlined
def lower(line: Array, price: Any, maximize: bool, barred: Any, worst: Any, high: Array, low: Array) -> None:
    """Take an entry of each of the lines that are looked at together into account."""
    for i in range(line.size):
        net = reduced(line[i], price, maximize, barred, worst)
        error = two_sum(turned(line[i], maximize), -price)[1]
        less = (net < high[i]) | ((net == high[i]) & (error < low[i]))
        high[i] = net if less else high[i]
        low[i] = error if less else low[i]
