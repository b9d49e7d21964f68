"""The compiled steps for assignments whose lines may be left at a price: row reductions, then shortest paths.

Everything is in min form, with rows as the side that is placed one by one. Each row has a way out at its own price:
nobody else can take it, so its own price never moves. A free column has v_j = s_j, the price of leaving it.

Invariant between steps: v_j <= s_j; u_i + v_j <= c_ij for u_i = min(r_i, min_j c_ij - v_j); a paired row's entry, and
a left row's price, is that minimum; prices v only fall; a column that was taken stays taken, a row that was left stays
left or out of reach.
"""

from typing import NamedTuple

import numpy as np

from kernels.lap.cpu.reject_rows import BEST, INF, SECOND, SIGN, least_of, look_at
from kernels.lap.cpu.shortlist import inner, jit
from kernels.problems.arrays import Amount, Amounts, Indices, Integers, Mask

WAITS, LEFT = -1, -2
"""In `col_of`: not placed yet; left at its price."""
REDUCTIONS_PER_ROW = 10
STUCK = -1


class Room(NamedTuple):
    """Arrays of one search, large enough for the largest problem."""

    distance: Amounts  # of each column from the source
    parent: Indices  # the row before each column
    done: Mask  # columns that were scanned
    order: Indices  # those columns, in order
    waiting: Integers  # rows
    look: Amounts  # what `reject_rows.py` is told of all rows, and found in one


@jit
def new_room(rows: int, cols: int, like: Amounts) -> Room:
    """Room for problems of at most so many rows and columns; `like` says the type."""
    return Room(
        np.empty(cols, like.dtype), np.empty(cols, np.int64), np.zeros(cols, np.bool_), np.empty(cols, np.int64),
        np.empty(rows, np.int64), np.zeros(4, like.dtype),
    )  # fmt: skip


@jit
def set_out(cost: Amounts, sign: Amount, inf: Amount, top: Amounts, v: Amounts) -> None:
    """Prices to begin with: what leaving a column costs, or its least entry where it must not be left."""
    n, m = cost.shape
    for j in range(m):
        v[j] = top[j]
        if top[j] >= inf:
            low = inf
            for i in range(n):
                low = min(low, cost[i, j] * sign)
            v[j] = low if low < inf else v.dtype.type(0)


@jit
def reduce_rows(
    cost: Amounts,
    sign: Amount,
    inf: Amount,
    way_out: Amounts,
    v: Amounts,
    col_of: Indices,
    row_of: Indices,
    steps: int,
    room: Room,
) -> None:
    """Each row takes its best column, whose price falls to its second choice, or leaves where that is best.

    The way out is one of the choices. Who is driven out comes next; who gains nothing waits for the paths.
    """
    n, look = len(cost), room.look
    look[SIGN], look[INF] = sign, inf
    size = n
    for turn in range(n):
        room.waiting[turn] = n - 1 - turn
    while size > 0 and steps > 0:
        steps -= 1
        size -= 1
        i = int(room.waiting[size])
        j = look_at(cost, v, i, look)
        best, second = look[BEST], look[SECOND]
        if j < 0 or way_out[i] < best:  # at a tie the pair is formed
            if way_out[i] < inf:
                col_of[i] = LEFT
            continue
        second = min(second, way_out[i])
        if second >= inf:
            continue
        price = cost[i, j] * sign - second
        falls = price < v[j]
        if not falls and row_of[j] >= 0:
            continue
        if falls:
            v[j] = price
        driven_out = row_of[j]
        col_of[i], row_of[j] = j, i
        if driven_out >= 0:
            col_of[driven_out] = WAITS
            room.waiting[size] = driven_out
            size += 1


@inner
def place(
    cost: Amounts,
    sign: Amount,
    inf: Amount,
    way_out: Amounts,
    v: Amounts,
    col_of: Indices,
    row_of: Indices,
    source: int,
    room: Room,
) -> bool:
    """Dijkstra's search from a row that waits to the nearest free column or way out; then prices and pairs.

    False where there is neither: the scanned columns are all that the tree's rows may take.
    """
    m = cost.shape[1]
    distance, parent, done, order = room.distance, room.parent, room.done, room.order
    for j in range(m):
        distance[j], done[j] = inf, False
    base: Amount
    i, base, own = source, v.dtype.type(0), v.dtype.type(0)
    shortest, end, leaver, scanned = inf, -1, -1, 0
    while True:
        if way_out[i] < inf:
            length = base + (way_out[i] - own)
            if length < shortest:
                shortest, end, leaver = length, -1, i
        nearest, near = inf, -1
        for j in range(m):
            if done[j]:
                continue
            entry = cost[i, j] * sign
            if entry < inf:
                length = max(base, base + ((entry - v[j]) - own)) if i != source else entry - v[j]
                if length < distance[j]:
                    distance[j], parent[j] = length, i
            if distance[j] < nearest or (distance[j] == nearest and near >= 0 and row_of[j] < 0):
                nearest, near = distance[j], j
        if near < 0 or nearest > shortest or (nearest == shortest and row_of[near] >= 0):
            break
        if row_of[near] < 0:
            shortest, end, leaver = nearest, near, -1
            break
        done[near] = True
        order[scanned] = near
        scanned += 1
        i, base = int(row_of[near]), nearest
        own = cost[i, near] * sign - v[near]
    if end < 0 and leaver < 0:
        return False
    for t in range(scanned):
        j = order[t]
        v[j] -= shortest - distance[j]
    j = end
    if leaver >= 0:
        j = int(col_of[leaver])
        col_of[leaver] = LEFT
        if leaver == source:
            return True
    i = -1
    while i != source:
        i = parent[j]
        row_of[j] = i
        col_of[i], j = j, col_of[i]
    return True


@jit
def place_all(
    cost: Amounts, sign: Amount, inf: Amount, way_out: Amounts, v: Amounts, col_of: Indices, row_of: Indices,
    first: int, work: int, room: Room,
) -> int:  # fmt: skip
    """Place the rows that wait, from `first` on, until about `work` entries were read; the next row, or STUCK."""
    n, m = len(cost), cost.shape[1]
    for i in range(first, n):
        if col_of[i] == WAITS:
            if not place(cost, sign, inf, way_out, v, col_of, row_of, i, room):
                return STUCK
            work -= n * m // 4 + m
            if work <= 0:
                return i + 1
    return n


@jit
def close(cost: Amounts, sign: Amount, inf: Amount, way_out: Amounts, v: Amounts, u: Amounts, room: Room) -> None:
    """The duals of the rows: the best of each at the prices, its way out among its choices."""
    look = room.look
    look[SIGN], look[INF] = sign, inf
    for i in range(len(cost)):
        low = min(way_out[i], least_of(cost, v, i, look))
        u[i] = low if low < inf else v.dtype.type(0)
