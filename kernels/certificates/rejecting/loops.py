"""The two looks at the data that a proof of many small problems needs, compiled: no array is made for each problem.

It is the arithmetic of bound.py and proof.py in another form; tests hold the two against each other. Nothing here is
allowed to reorder a sum or to drop a NaN: the flags that permit LLVM that are left out.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from kernels.problems.arrays import Array

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile on first call, cached on disk, without the GIL, in strict IEEE 754."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@jit
def two_sum(x: Any, y: Any) -> Any:
    """(s, e) with s = x + y rounded to nearest and s + e = x + y exactly; e is 0 for integers."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


@jit
def least_of_lines(
    costs: Array, starts: Array, sign: Any, barred: Any, worst: Any,
    tops: tuple[Array, Array], prices: tuple[Array, Array], highs: tuple[Array, Array], lows: tuple[Array, Array],
) -> None:  # fmt: skip
    """min(top, min c - price) of each line of the shorter side, as high + low without error (bound.smallest).

    Pairs of arrays are those of all rows and of all columns. `barred` marks a forbidden integer, None where there is no
    such; `worst` is what a line without an entry has. Of the longer side nothing is written.
    """
    for k in range(len(starts) - 1):
        entry, row, col = starts[k, 0], starts[k, 1], starts[k, 2]
        n, m = starts[k + 1, 1] - row, starts[k + 1, 2] - col
        if n <= m:
            for i in range(row, row + n):
                _least_of_a_row(costs, entry, col, m, sign, barred, worst, tops[0], prices[1], highs[0], lows[0], i)
                entry += m
        else:
            _least_of_columns(costs, entry, row, n, col, m, sign, barred, worst, prices[0], highs[1], lows[1])
            for j in range(col, col + m):
                _leave(tops[1], highs[1], lows[1], worst, j)


@jit
def _less(best: Any, c: Any, price: Any, sign: Any, barred: Any) -> Any:
    """The lesser of `best` and a reduced cost that is permitted."""
    if barred is None or c != barred:
        reduced = sign * c - price
        return reduced if reduced < best else best
    return best


@jit
def _least_of_a_row(
    costs: Array, entry: int, col: int, m: int, sign: Any, barred: Any, worst: Any, top: Array, price: Array,
    high: Array, low: Array, i: int,
) -> None:  # fmt: skip
    best, second, third, fourth = worst, worst, worst, worst
    for j in range(0, m - 3, 4):  # four minima do not wait for each other
        best = _less(best, costs[entry + j], price[col + j], sign, barred)
        second = _less(second, costs[entry + j + 1], price[col + j + 1], sign, barred)
        third = _less(third, costs[entry + j + 2], price[col + j + 2], sign, barred)
        fourth = _less(fourth, costs[entry + j + 3], price[col + j + 3], sign, barred)
    for j in range(m - m % 4, m):
        best = _less(best, costs[entry + j], price[col + j], sign, barred)
    best = min(min(best, second), min(third, fourth))
    high[i], low[i] = best, worst
    if best < worst and best <= top[i]:
        for j in range(m):
            c = costs[entry + j]
            if (barred is None or c != barred) and sign * c - price[col + j] == best:
                error = two_sum(sign * c, -price[col + j])[1]
                low[i] = error if error < low[i] else low[i]
    _leave(top, high, low, worst, i)


@jit
def _least_of_columns(
    costs: Array, entry: int, row: int, n: int, col: int, m: int, sign: Any, barred: Any, worst: Any, price: Array,
    high: Array, low: Array,
) -> None:  # fmt: skip
    """By rows, as the entries lie, with the best of each column so far."""
    for j in range(m):
        high[col + j] = low[col + j] = worst
    for i in range(n):
        for j in range(m):
            c = costs[entry + i * m + j]
            high[col + j] = _less(high[col + j], c, price[row + i], sign, barred)
    for i in range(n):
        for j in range(m):
            c = costs[entry + i * m + j]
            if (barred is None or c != barred) and sign * c - price[row + i] == high[col + j] and high[col + j] < worst:
                error = two_sum(sign * c, -price[row + i])[1]
                low[col + j] = error if error < low[col + j] else low[col + j]


@jit
def _leave(top: Array, high: Array, low: Array, worst: Any, at: int) -> None:
    """A line takes its price where that is less than its best entry; an error that was not needed is 0."""
    if low[at] == worst:
        low[at] = 0
    if top[at] < high[at] or (top[at] == high[at] and low[at] > 0):
        high[at], low[at] = top[at], 0


@jit
def add_up(
    costs: Array, starts: Array, sign: Any, tops: tuple[Array, Array], prices: tuple[Array, Array],
    highs: tuple[Array, Array], lows: tuple[Array, Array], assignment: Array, used: Array, sums: Array, sizes: Array,
) -> None:  # fmt: skip
    """Objective and bound of each problem in min form.

    `sums` (count, 2, 3): the sum in working precision, the sum of its errors, and about how far off that is at most.
    `sizes` (count,): about the sum of all terms' sizes. `assignment` (all rows): columns that are there, -1 for none.
    """
    for k in range(len(starts) - 1):
        entry, row, col = starts[k, 0], starts[k, 1], starts[k, 2]
        n, m = starts[k + 1, 1] - row, starts[k + 1, 2] - col
        of_pairs, of_lines = sums[k, 0], sums[k, 1]
        for i in range(n):
            j = assignment[row + i]
            _add(of_pairs, sizes, k, tops[0][row + i] if j < 0 else sign * costs[entry + i * m + j])
        for j in range(col, col + m):
            if not used[j]:
                _add(of_pairs, sizes, k, tops[1][j])
        short, long = (0, 1) if n <= m else (1, 0)
        first, count = (row, n) if n <= m else (col, m)
        for line in range(first, first + count):
            _add(of_lines, sizes, k, highs[short][line])
            _add(of_lines, sizes, k, lows[short][line])
        first, count = (col, m) if n <= m else (row, n)
        for line in range(first, first + count):
            _add(of_lines, sizes, k, prices[long][line])


@jit
def _add(total: Array, sizes: Array, k: int, term: Any) -> None:
    total[0], error = two_sum(total[0], term)
    total[1], beyond = two_sum(total[1], error)
    total[2] += abs(beyond)
    sizes[k] += abs(term)
