"""Rows in their seats, over the lists of `near.py`: the same as `seats.py` does with whole rows."""

from typing import Any

import numpy as np

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import CROWDED, Near
from kernels.lap.cpu.seats import flip, take_free
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.whole import Whole, inlined, order
from kernels.problems.arrays import Indices, Indices32


@inlined
def take(col_of: Indices, row_of: Indices32, i: int, j: int) -> None:
    """Pair row i with column j if both are free."""
    if col_of[i] < 0 and row_of[j] < 0:
        col_of[i], row_of[j] = j, i


@jit
def seat_listed(s: Whole, near: Near) -> None:
    """Let each row take its column if only one is least, or if its list does not say. Then the others take theirs."""
    s, near = borrowed(s), borrowed(near)
    n_rows = s.col_of.size
    for i in range(n_rows):
        if near.held[i] == CROWDED:
            take_free(s, i, order(s, i))
        elif near.ties[i] == 1:
            take(s.col_of, s.row_of, i, near.cols[near.start[i]])
    for i in range(n_rows):
        for t in range(near.start[i], near.start[i] + near.ties[i]):
            take(s.col_of, s.row_of, i, near.cols[t])
    match_near(s, near)
    for i in range(n_rows):
        if s.col_of[i] >= 0:
            near.paid[i] = cost_of_pair(s, near, i)


@inlined
def cost_of_pair(s: Whole, near: Near, i: int) -> Any:
    """The cost of row i's pair, which nearly always is listed: the matrix itself is far away."""
    for t in range(near.start[i], near.start[i] + near.held[i]):
        if near.cols[t] == s.col_of[i]:
            return near.costs[t]
    return s.cost[i, s.col_of[i]]


@inner
def match_near(s: Whole, near: Near) -> None:
    """As `seats.match_ties`, over the lists."""
    seen, dead, queue = np.zeros(s.v.size, np.int32), np.int32(1 << 30), np.empty(s.col_of.size, np.int32)
    for source in range(s.col_of.size):
        if s.col_of[source] >= 0:
            continue
        queue[0], at, n_queued, end, stamp = source, 0, 1, -1, np.int32(source + 1)
        while at < n_queued and end < 0:
            i = queue[at]
            at += 1
            for t in range(near.start[i], near.start[i] + near.ties[i]):
                j = near.cols[t]
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
