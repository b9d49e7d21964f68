"""Rows in their seats before any search: from old prices, each takes a column at its least, its earlier one if it can.

Prices are not touched here, so nothing that is done can spoil them: a row that is left without a column is led to one
by a shortest path (`whole_path.py`).
"""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.shortlist import jit, wide
from kernels.lap.cpu.whole import STRIDE, Whole, free_low, inlined, order, where_low
from kernels.problems.arrays import AnyIntegers, Integers32

TIES = 8
"""Columns at the least of a row along which rows are led, from old prices."""
ROUNDING = 2.0**-51
"""Half of what the certificate allows of the sizes of the pairs."""


@jit
def seat_rows(s: Whole, first: int, last: int, own: AnyIntegers) -> None:
    """Rows first to last - 1 take back their earlier column, or with `own` empty a free one at their least.

    `own`: bits of c - v of each row's earlier pair. Rounding may have left it a little above the least: half of what
    the certificate allows will do. After the last row, rows without a column are paired along columns at their least.
    """
    s = borrowed(s)
    for i in range(first, last):
        low = order(s, i)
        if low == s.shut:
            continue
        if own.size == 0:
            take_free(s, i, low)
            continue
        j = where_low(s, own[i], 0)
        if j < s.v.size and s.row_of[j] < 0 and s.reduced_bits[j] <= widened(s, i, low):
            s.row_of[j], s.col_of[i] = i, j
    if last == s.col_of.size:
        for i in range(own.size):
            if s.col_of[i] < 0:
                take_free(s, i, order(s, i))
        match_ties(s)


@inlined
def take_free(s: Whole, i: int, low: Any) -> None:
    """Row i, in `reduced_bits` with its least `low`, takes a column there if one is free."""
    j = free_low(s, low)
    if low != s.shut and s.row_of[j] < 0:
        s.row_of[j], s.col_of[i] = i, j


@jit
def match_ties(s: Whole) -> None:
    """Pair free rows along alternating paths of columns at the least of their rows, breadth first.

    What a search without success has seen leads to no free column, now or later, and is not seen again. Where a row has
    as many such columns as are listed, `augment` finds free ones sooner.
    """
    s = borrowed(s)
    n_rows, seen, dead = s.col_of.size, np.zeros(s.v.size, np.int32), np.int32(1 << 30)
    ties, n_ties, queue = np.empty((n_rows, TIES), np.int32), np.full(n_rows, -1, np.int32), np.empty(n_rows, np.int32)
    for source in range(n_rows):
        if s.col_of[source] >= 0:
            continue
        queue[0], at, n_queued, end, stamp = source, 0, 1, -1, np.int32(source + 1)
        while at < n_queued and end < 0:
            i = wide(queue[at])
            at += 1
            if n_ties[i] < 0:
                n_ties[i] = list_ties(s, i, ties[i])
                if n_ties[i] == TIES:
                    return
            for t in range(n_ties[i]):
                j = ties[i, t]
                if seen[j] == stamp or seen[j] == dead:
                    continue
                seen[j], s.parent[j] = stamp, i
                if s.row_of[j] < 0:
                    end = j
                    break
                queue[n_queued] = s.row_of[j]
                n_queued += 1
        if end >= 0:
            flip(s, end, source)
        else:
            for k in range(1, n_queued):
                seen[s.col_of[queue[k]]] = dead


@inlined
def list_ties(s: Whole, i: int, ties: Integers32) -> int:
    """Fill `ties` with columns at the least of row i, up to ROUNDING of its size; return how many."""
    low, found, j, bits = order(s, i), 0, 0, s.reduced_bits
    if low == s.shut:
        return 0
    limit = widened(s, i, low)
    while j < s.v.size and found < ties.size:
        hits, end = np.int32(0), j + STRIDE
        if end <= s.v.size:
            for k in range(j, j + STRIDE):
                hits += np.int32(1) if bits[k] <= limit else np.int32(0)
        if hits or end > s.v.size:
            for k in range(j, min(end, s.v.size)):
                if bits[k] <= limit and found < ties.size:
                    ties[found] = k
                    found += 1
        j = end
    return found


@inlined
def widened(s: Whole, i: int, low: Any) -> Any:
    """The bits of what a pair of row i may be and still count as least: `low` itself for integers."""
    if s.flip == 0:
        return low
    j, kept = where_low(s, low, 0), s.reduced_bits[0]
    least = s.cost[i, j] - s.v[j]
    s.reduced[0] = least + ROUNDING * (abs(least) + abs(s.v[j]))
    bits = s.reduced_bits[0]
    s.reduced_bits[0] = kept
    return bits ^ (s.flip if bits < 0 else 0)


@inlined
def flip(s: Whole, end: int, source: int) -> None:
    """Pair the rows on the way back from column `end` to row `source` with the columns that they reached."""
    j, i = end, -1
    while i != source:
        i = s.parent[j]
        s.row_of[j] = i
        s.col_of[i], j = j, s.col_of[i]
