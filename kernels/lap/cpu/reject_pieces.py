"""Small problems of `reject.py` one after the other, in compiled calls that share them out among themselves.

Each thread makes one call for many pieces. A call of Python's takes its lock twice: 16 threads that did so for each of
38 pieces took 3.0 ms on an H200 host for what one did there in 7.3. Who takes which piece is no part of the answer.
"""

import numpy as np

from kernels.counter import taken
from kernels.lap.cpu.between import Clouds, new_columns, work_out
from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.reject import (
    REDUCTIONS_PER_ROW,
    STUCK,
    WAITS,
    Room,
    close,
    new_room,
    place_all,
    reduce_rows,
    set_out,
)
from kernels.lap.cpu.reject_rows import turn
from kernels.lap.cpu.shortlist import NIL, inner, jit, wide
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Amount, Amounts, Indices, Integers, Mask


@jit
def solve_pieces(
    counter: Integers, ends: Indices, which: Indices, most: int, costs: Amounts, clouds: Clouds | None,
    starts: Indices, sizes: Indices, turned: Mask, sign: Amount, inf: Amount, first: Amounts, second: Amounts,
    col_of: Indices, u: Amounts, v: Amounts, solved: Mask,
) -> bool:  # fmt: skip
    """Solve pieces that no other thread took until there is none, or `most` entries were read; then True.

    A turned problem is solved with its columns as rows.

    Args:
        counter: of the pieces that were taken (kernels/counter.py).
        ends: (pieces + 1,) where each piece begins in `which`, the problems that are small.
        clouds: what costs are worked out from, a problem at a time, so that they stay in the core's cache; or None,
            and they are in `costs`.
        first, second: the prices of rows and columns in min form.
        solved: says which problems have an answer.
    """
    costs, points, first, second, col_of, u, v = (
        borrowed(costs), borrowed(clouds), borrowed(first), borrowed(second), borrowed(col_of), borrowed(u), borrowed(v)
    )  # fmt: skip
    longest = widest = 0
    for k in which:
        longest = max(longest, sizes[k, 0], sizes[k, 1])
        widest = max(widest, sizes[k, 0] * sizes[k, 1])
    room, flat = new_room(longest, longest, v), np.empty(widest, v.dtype)
    if clouds is not None:
        made = np.empty(widest)
        across, areas = new_columns(points, longest)
    other = np.empty(longest, np.int64)
    while most > 0:
        piece = taken(counter, 1)
        if piece >= len(ends) - 1:
            return False
        for at in range(ends[piece], ends[piece + 1]):
            k = which[at]
            n, m = sizes[k, 0], sizes[k, 1]
            most -= n * m
            r, c, last_r, last_c = starts[k, 1], starts[k, 2], starts[k + 1, 1], starts[k + 1, 2]
            if clouds is None:
                cost = costs[starts[k, 0] : starts[k + 1, 0]].reshape(n, m)
            else:
                work_out(points, r, c, across, areas, made[: n * m], m)
                cost = made[: n * m].reshape(n, m)
            way_out, top, of_rows, of_cols = first[r:last_r], second[c:last_c], u[r:last_r], v[c:last_c]
            seats, seated = col_of[r:last_r], other[:m]
            if turned[k]:
                wide = flat[: n * m]
                turn(cost, wide)
                cost, way_out, top, of_rows, of_cols = wide.reshape(m, n), top, way_out, of_cols, of_rows
                seats, seated = seated, seats
            solved[k] = solve_one(cost, sign, inf, way_out, top, seats, seated, of_rows, of_cols, room)
            for i in range(r, last_r):
                col_of[i] = max(col_of[i], UNASSIGNED)
    return True


@inner
def solve_one(
    cost: Amounts, sign: Amount, inf: Amount, way_out: Amounts, top: Amounts, col_of: Indices, row_of: Indices,
    u: Amounts, v: Amounts, room: Room,
) -> bool:  # fmt: skip
    """All steps, without a look at the clock; False where a row that must be paired finds no partner."""
    cost, way_out, top, col_of, row_of, u, v, room = (
        borrowed(cost), borrowed(way_out), borrowed(top), borrowed(col_of), borrowed(row_of), borrowed(u), borrowed(v),
        borrowed(room),
    )  # fmt: skip
    col_of[:] = WAITS
    row_of[:] = WAITS
    set_out(cost, sign, inf, top, v)
    reduce_rows(cost, sign, inf, way_out, v, col_of, row_of, REDUCTIONS_PER_ROW * len(cost), room)
    found = place_all(cost, sign, inf, way_out, v, col_of, row_of, NIL, wide(1 << 62), room) != STUCK
    close(cost, sign, inf, way_out, v, u, room)
    return found


@jit
def shared_out(starts: Indices, large: int, piece: int) -> tuple[Indices, Indices, int]:
    """The problems of fewer entries than `large`, where among them pieces of `piece` entries begin, and all entries.

    Pieces have about as many, and one more place is the end of the last, as `solve_pieces` takes them.
    """
    count = len(starts) - 1
    small, ends = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    taken = pieces = entries = 0
    own = NIL - 1
    for k in range(count):
        size = starts[k + 1, 0] - starts[k, 0]
        if size < large:
            entries += size
            if entries // piece != own:
                own = entries // piece
                ends[pieces] = taken
                pieces += 1
            small[taken] = k
            taken += 1
    ends[pieces] = taken
    return small[:taken], ends[: pieces + 1], entries
