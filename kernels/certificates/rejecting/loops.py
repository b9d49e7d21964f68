"""The one look at the data that a proof of many small problems needs, compiled: no array is made for each problem.

It is the arithmetic of bound.py and proof.py in another form; tests hold the two against each other, and both against
fractions. Nothing here is allowed to reorder a sum or to drop a NaN: the flags that permit LLVM that are left out.

Loops over entries have no branch and run over slices, so that LLVM makes vectors of them: an index that could be
negative, or a branch, keeps it from that. Nor does it for the least of several floats, so that entries are compared
with the least of their lines one by one, for many lines at once. Where lines are rows, tiles are turned first.
"""

from typing import Any

import numpy as np

from kernels.certificates.compiled import held, inlined, jit, two_sum
from kernels.certificates.rejecting.sums import (
    LEFT,
    MISSING,
    MISSING_COLUMNS,
    UNBOUNDED,
    VIOLATION,
    added,
    conclude,
    turned,
)
from kernels.counter import taken
from kernels.problems.arrays import Array

NONE = -1
"""The column of a row that is left."""
TILE, ABREAST = 64, 8
"""Lines and entries of a tile. Lines are looked at in multiples of the second, for no vector to be left incomplete;
what the last of them come to is not read."""


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
    counter: Array, ends: Array, costs: Array, starts: Array, maximize: bool, barred: Any, worst: Any, most: Any,
    leaving: tuple[Array, Array], duals: tuple[Array, Array], assignment: Array, claimed: Array, told: Array,
    counts: Array,
) -> None:  # fmt: skip
    """Objective, bound, gap and violation of the problems of pieces that no other thread took, until there is none.

    `ends` by `pieces_of`, of which `counter` counts those that were taken. Of a problem that nobody takes nothing is
    SURE, and taken twice it is told the same, so that no proof rests on the counter.
    Pairs of arrays are those of all rows and of all columns, in the sense of the problem. `barred` marks a forbidden
    integer and a line that must be paired; it is None among floats, where an infinity does. `worst` is what a line
    without an entry has, `most` the largest price of use. `claimed` (count,) says which are called optimal. `told`
    (count, 4) and `counts` (count, 6): see above.
    """
    room, used = room_for(starts, told)
    tile = np.zeros((TILE, TILE), costs.dtype)
    while True:
        piece = taken(counter, 1)
        if piece >= len(ends) - 1:
            return
        for k in range(ends[piece], ends[piece + 1]):
            prove_one(
                k, starts, maximize, barred, worst, most, costs, starts[k, 0], leaving, duals, assignment, claimed,
                room, used, tile, told, counts,
            )  # fmt: skip


@held
def pieces_of(starts: Array, size: int) -> Array:
    """Where pieces of about `size` entries and lines begin among the problems, and behind them the end of the last."""
    count = len(starts) - 1
    ends, pieces, before = np.empty(count + 1, np.int64), 0, 0
    for k in range(count):
        work = starts[k, 0] + starts[k, 1] + starts[k, 2]
        if k == 0 or work - before >= size:
            ends[pieces], before = k, work
            pieces += 1
    ends[pieces] = count
    return ends[: pieces + 1]


@inlined
def room_for(starts: Array, like: Array) -> tuple[Array, Array]:
    """Of lines of the longest problem, in the type of `like`, and marks of its columns."""
    longest = max(1, max(most_of(starts, 1), most_of(starts, 2)))
    return np.empty((5, longest + ABREAST), like.dtype), np.empty(longest, np.int8)


@inlined
def prove_one(
    k: int, starts: Array, maximize: bool, barred: Any, worst: Any, most: Any, costs: Array, entry: int,
    leaving: tuple[Array, Array], duals: tuple[Array, Array], assignment: Array, claimed: Array, room: Array,
    used: Array, tile: Array, told: Array, counts: Array,
) -> None:  # fmt: skip
    """Of problem k, whose costs begin at `entry`."""
    at, end, nothing = starts[k], starts[k + 1], told.dtype.type(0)
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
        least_of_rows(costs, entry, n, maximize, barred, worst, price, tile, high, low)
    else:
        least_of_columns(costs, entry, m, m, maximize, barred, worst, price, high, low)
    matrix, chosen = costs[entry : entry + n * m].reshape((n, m)), assignment[at[1] : end[1]]
    objective, of_pairs = add_pairs(matrix, chosen, maximize, barred, worst, tops, used[:m], told[k], counts[k])
    if of_pairs < 0.0:
        return
    bound, of_lines = add_lines(tops[short], worst, price, high, low, counts[k])
    over = nothing
    for i in range(min(n, m)):
        over = max(over, beyond(turned(given[short][i], maximize), high[i], worst, most))
    for j in range(price.size):
        over = max(over, beyond(turned(given[long][j], maximize), tops[long][j], worst, most))
    told[k, VIOLATION] = over
    conclude(objective, bound, of_pairs + of_lines, maximize, barred, claimed[k], told[k], counts[k])


@inlined
def most_of(starts: Array, side: int) -> int:
    """The most entries (side 0), rows (1) or columns (2) that a problem has."""
    most = 0
    for k in range(len(starts) - 1):
        most = max(most, starts[k + 1, side] - starts[k, side])
    return most


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
    like: Array, counts: Array,
) -> Any:  # fmt: skip
    """Add up the pairs and the prices of the lines that are left, in the type of `like`.

    Returns what `added` keeps of the sum, and about the sum of their sizes; -1 where the pairs are none.
    """
    nothing = like.dtype.type(0)
    total, size = (nothing, nothing, nothing), 0.0
    for j in range(used.size):
        used[j] = 0
    for i in range(chosen.size):
        j = chosen[i]
        if j == NONE:
            counts[LEFT] += 1
            term = tops[0][i]
            if term == worst:
                counts[MISSING] += 1
                continue
        else:
            if j < 0 or j >= used.size or used[j]:
                return total, -1.0
            used[j] = 1
            term = reduced(matrix[i, j], nothing, maximize, barred, worst)
            if not abs(term) < worst:
                return total, -1.0
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
    return total, size


@jit
def add_lines(top: Array, worst: Any, price: Array, high: Array, low: Array, counts: Array) -> Any:
    """Let each line take its price of leaving where that is less, and add up lines and prices; returns as `add_pairs`.

    An error that is not needed becomes 0.
    """
    nothing = high.dtype.type(0)
    total, size = (nothing, nothing, nothing), 0.0
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
    return total, size


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
