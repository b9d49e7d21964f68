"""Rows and what lies near their least, read by vectors: the sweep that makes the lists of `near.py`.

ROWS rows are read side by side, so that a vector of prices is loaded once for all of them. Columns go by blocks of
LANES, the last of which ends with the row and may overlap the one before it. Pseudocode for one row:

    for each block:   low[block] = by lanes, the least of c - v
    least = of all lanes and blocks
    for each block with a lane of low[block] within the window above `least`:   list the columns that are

So a row is read once, and of its blocks those again in which something is listed: a fifth of 2048 columns.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import BOUND, CAPACITY, CROWDED, CROWDS, LANES, Near
from kernels.lap.cpu.near_vectors import (
    ROWS,
    TOGETHER,
    lows_and_sizes,
    lows_of_rows,
    marks_and_sizes,
    smallest_of,
    some_within,
    within,
)
from kernels.lap.cpu.seats import ROUNDING
from kernels.lap.cpu.shortlist import NIL, inner, jit
from kernels.lap.cpu.threads import in_threads
from kernels.lap.cpu.whole import Whole, inlined
from kernels.problems.arrays import AnyIntegers, Costs, Words
from kernels.solution import Termination

FEWEST, MOST = 6, 10
"""The window grows where fewer columns are listed, and shrinks where there are more."""
MOST_CROWDS = 16
"""After so many rows of a piece, and half, with more columns near their least than a list holds, none is listed."""
FIRST_GROUPS = 16
"""Groups of rows whose old least may be wrong before it is asked no more, and half of those that follow."""
PIECE = 1 << 20
"""Entries of the rows that are listed together. Each piece learns its own window, so that threads change no answer."""
A_THREAD = 1 << 20
"""Entries for each thread that takes pieces."""


@inner
def least_entry(s: Whole, i: int) -> Any:
    """The least of row i minus the prices; `inf` where nothing is permitted."""
    n, value = s.v.size, s.v.dtype.type
    least = value(s.inf)
    for j in range(n):
        least = min(least, value(s.cost[i, j] - s.v[j]))
    return least


@inner
def entries_within(s: Whole, near: Near, v: Costs, i: int, bound: Any, most: int) -> int:
    """Columns of row i up to `bound` at prices v, into `picked`; where they are more than `most`, so many and more."""
    s, near = borrowed(s), borrowed(near)
    n, found = v.size, int(NIL)
    near.window[BOUND] = bound
    if n < LANES:
        return few_within(s, near, v, i, bound)
    for j in range(0, n, LANES):
        found = pick_block(s, near, v, i, j, found)
        if found > most:
            return found
    return found


@inlined
def pick_block(s: Whole, near: Near, v: Costs, i: int, j: int, found: int) -> int:
    """The columns of a block of row i that are within the bound, into `picked`; how many there are then."""
    n = v.size
    first = min(j, n - LANES)
    hits = within(s.cost, v, near.window, i * n, first, BOUND)
    hits &= ~np.uint64(0) << np.uint64(j - first)  # columns of the block before
    one = np.uint64(1)
    for _ in range(2):  # written without a branch, which would be guessed wrong half of the time
        near.picked[found] = first + trailing_zeros(hits)
        found += 1 if hits != 0 else 0
        hits &= hits - one
    while hits != 0:
        near.picked[found] = first + trailing_zeros(hits)
        hits &= hits - one
        found += 1
    return found


@inlined
def pick_by_lows(s: Whole, near: Near, lows: Costs, begin: int, end: int, i: int) -> int:
    """As `entries_within`, of the blocks alone whose `lows` are within the bound.

    Branches are the ends of loops alone: others would be guessed wrong several times a row, at 5 ns each.
    """
    n, blocks, left = s.v.size, NIL, NIL
    for at in range(begin, end, TOGETHER):
        near.blocks[blocks] = (at - begin) // TOGETHER * LANES
        blocks += 1 if some_within(lows, near.window, at, BOUND) != 0 else 0
    for k in range(blocks):
        j = near.blocks[k]
        first = min(j, n - LANES)
        hits = within(s.cost, s.v, near.window, i * n, first, BOUND) & (~np.uint64(0) << np.uint64(j - first))
        near.blocks[left], near.hits[left] = first, hits
        left += 1 if hits != 0 else 0
    return pick_hits(near, left)


@inlined
def pick_hits(near: Near, left: int) -> int:
    """The columns of so many blocks with their hits into `picked`, and how many; CAPACITY and one more at most."""
    k, found, hits, one = 0, 0, near.hits[0], np.uint64(1)
    while k < left and found <= CAPACITY:
        near.picked[found] = near.blocks[k] + trailing_zeros(hits)
        found += 1
        later = near.hits[k + 1]
        hits &= hits - one
        k += 1 if hits == 0 else 0
        hits = later if hits == 0 else hits
    return found


@inner
def few_within(s: Whole, near: Near, v: Costs, i: int, bound: Any) -> int:
    """As `entries_within`, of a row that fills no vector."""
    found = 0
    for j in range(v.size):
        if v.dtype.type(s.cost[i, j] - v[j]) <= bound:
            near.picked[found] = j
            found += 1
    return found


@inlined
def learn(window: Costs, found: int) -> None:
    """The window widens where a row has few columns within it, and narrows where it has many."""
    value, now = window.dtype.type, window[0]
    narrower, wider = value(now - now / 16), min(window[2], value(now + now / 16 + window[1]))
    window[0] = narrower if found > MOST else wider if found < FEWEST else now


@inlined
def keep_list(s: Whole, near: Near, i: int, found: int, bound: Any) -> None:
    """So many of `picked` become the list of row i, where its list begins."""
    first = near.start[i]
    for t in range(found):
        j = near.picked[t]
        near.cols[first + t], near.costs[first + t] = j, s.cost[i, j]
    near.held[i], near.bound[i] = found, bound


@inlined
def list_row(s: Whole, near: Near, lows: Costs, begin: int, i: int) -> None:
    """List row i, whose `lows` stand from `begin` on, ties first; the window learns from it."""
    value, n = s.v.dtype.type, s.v.size
    end = begin + (n + LANES - 1) // LANES * TOGETHER
    least = smallest_of(lows, end) if n >= LANES else least_entry(s, i)
    near.held[i], near.bound[i], near.ties[i] = CROWDED, least, 0
    if least >= s.inf:
        return
    window, found, bound = near.window[0], 0, least
    for narrower in (2, 8, 256, 1):
        bound = value(least + window)
        near.window[BOUND] = bound
        found = pick_by_lows(s, near, lows, begin, end, i) if n >= LANES else few_within(s, near, s.v, i, bound)
        if found <= CAPACITY:
            break
        window = value(window / narrower)
    if window < near.window[0]:
        near.window[0] = value(near.window[0] - near.window[0] / 8)
    else:
        learn(near.window, found)
    if found > CAPACITY:
        near.seen[CROWDS] += 1
        return
    near.held[i], near.bound[i] = found, bound
    put_ties_first(s, near, i, found, least)


@inlined
def put_ties_first(s: Whole, near: Near, i: int, found: int, least: Any) -> None:
    """So many of `picked` become the list of row i, ties from its beginning on, and the others from its end.

    Ties are what lies at the least, up to half of what the certificate allows for rounding.
    """
    value, first, ties, others = s.v.dtype.type, near.start[i], 0, found - 1
    for t in range(found):
        j = near.picked[t]
        cost = s.cost[i, j]
        over, most = value(value(cost - s.v[j]) - least), 0.0
        if s.flip != 0:
            most = ROUNDING * (abs(least) + abs(cost))
        tied = over <= most
        at = first + (ties if tied else others)
        near.cols[at], near.costs[at] = j, cost
        ties += 1 if tied else 0
        others -= 0 if tied else 1
    near.ties[i] = ties


@inlined
def room_of_a_row(s: Whole) -> int:
    """Of what `lows_of_rows` leaves of it."""
    return (s.v.size + LANES - 1) // LANES * TOGETHER + TOGETHER


def rows_of_a_piece(s: Whole) -> int:
    """How many rows are listed together."""
    return max(1, PIECE // s.v.size)


def pieces_of(s: Whole, near: Near) -> list[Near]:
    """The lists with a window and scratch of its own for each piece of rows."""
    return [
        near._replace(
            window=near.window.copy(), picked=np.empty_like(near.picked),
            blocks=np.empty_like(near.blocks), hits=np.empty_like(near.hits), seen=np.zeros_like(near.seen),
        )
        for _ in range(0, s.col_of.size, rows_of_a_piece(s))
    ]  # fmt: skip


def gather(near: Near, pieces: list[Near]) -> None:
    """What pieces that are listed have learned."""
    near.seen[CROWDS] = sum(int(piece.seen[CROWDS]) for piece in pieces)
    near.window[0] = pieces[-1].window[0]


def list_in_pieces(s: Whole, near: Near, expired: Callable[[], Termination | None]) -> Termination | None:
    """Let all rows be listed, by threads; returns what `expired` said if that came before the end."""
    n_rows, rows = s.col_of.size, rows_of_a_piece(s)
    if rows >= n_rows:
        list_rows(s, near, 0, 0, n_rows)
        return None
    pieces = pieces_of(s, near)
    ended: list[Termination] = []

    def work(at: int) -> None:
        if not ended and (word := expired()):
            ended.append(word)
        if not ended:
            list_rows(s, pieces[at], at * rows, at * rows, min(n_rows, at * rows + rows))

    in_threads(work, range(len(pieces)), min(numba.get_num_threads(), max(1, s.cost.size // A_THREAD)))
    gather(near, pieces)
    return ended[0] if ended else None


@jit
def list_rows(s: Whole, near: Near, begin: int, first: int, last: int) -> None:
    """List rows first to last - 1 of the piece from row `begin` on. Those whose columns tie too much are CROWDED."""
    s, near = borrowed(s), borrowed(near)
    lows = np.empty(ROWS * room_of_a_row(s), s.v.dtype)
    for i in range(first, last, ROWS):
        if s.v.size >= LANES:
            lows_of_rows(s.cost, s.v, lows, i, last - 1, s.v.size)
        list_group(s, near, lows, begin, i, last)


@jit
def check_and_list(s: Whole, near: Near, most: AnyIntegers, old: Costs, rows: int) -> bool:
    """As `list_rows` of all rows, in pieces of `rows`; stops at rows with NaN or -inf, or with integers too large.

    Whether there were none. Then sizes of costs but +inf stand in `most` (TOGETHER,) as `VectorCode.size_bits`, before
    what ends it. Rows have LANES columns and more. Where `old`, if not empty, is a row's least, one reading tells all.
    """
    s, near = borrowed(s), borrowed(near)
    n, n_rows, crowds, first_window, groups, missed = s.v.size, s.col_of.size, 0, near.window[0], 0, 0
    lows, bounds = np.empty(ROWS * room_of_a_row(s), s.v.dtype), np.empty(ROWS, s.v.dtype)
    marks = np.zeros(ROWS * ((n + LANES - 1) // LANES), np.uint64)
    for begin in range(0, n_rows, rows):
        near.window[0], last = first_window, min(n_rows, begin + rows)
        near.seen[CROWDS] = 0
        for i in range(begin, last, ROWS):
            if old.size > 0 and 2 * missed <= groups + FIRST_GROUPS:
                groups += 1
                for k in range(ROWS):
                    bounds[k] = old[min(i + k, last - 1)] + near.window[0]
                marks_and_sizes(s.cost, s.v, lows, most, bounds, marks.view(np.uint8), i, last - 1, n)
                if most[:TOGETHER].max() >= most[TOGETHER]:
                    return False
                if list_marked(s, near, lows, bounds, marks, i, last):
                    continue
                missed += 1
            lows_and_sizes(s.cost, s.v, lows, most, i, last - 1, n)
            if most[:TOGETHER].max() >= most[TOGETHER]:
                return False
            list_group(s, near, lows, begin, i, last)
        crowds += near.seen[CROWDS]
    near.seen[CROWDS], near.window[BOUND] = crowds, 0
    return True


@inlined
def list_marked(s: Whole, near: Near, lows: Costs, bounds: Costs, marks: Words, i: int, last: int) -> bool:
    """List row i and those beside it by their marks; False where one of them is to be listed from its least."""
    value, n, window = s.v.dtype.type, s.v.size, near.window[0]
    blocks = (n + LANES - 1) // LANES
    again = np.uint64(blocks * LANES - n)  # columns of the last block that the one before it has too
    for k in range(min(ROWS, last - i)):
        left, least = 0, smallest_of(lows, k * TOGETHER)
        marks[(k + 1) * blocks - 1] &= ~np.uint64(0) << again
        for block in range(blocks):
            hits = marks[k * blocks + block]
            near.blocks[left], near.hits[left] = min(block * LANES, n - LANES), hits
            left += 1 if hits != 0 else 0
        found = pick_hits(near, left)
        if found > CAPACITY or not value(bounds[k] - least) >= value(0.75 * window):
            return False
        near.held[i + k], near.bound[i + k] = found, bounds[k]
        put_ties_first(s, near, i + k, found, least)
        learn(near.window, found)
    return True


@inlined
def list_group(s: Whole, near: Near, lows: Costs, begin: int, i: int, last: int) -> None:
    """List row i and those beside it, whose `lows` these are."""
    room = lows.size // ROWS
    for k in range(i, min(i + ROWS, last)):
        if near.seen[CROWDS] > MOST_CROWDS and near.seen[CROWDS] * 2 > k - begin:
            near.held[k], near.bound[k], near.ties[k] = CROWDED, s.inf, 0
            near.seen[CROWDS] += 1
        else:
            list_row(s, near, lows, (k - i) * room, k)
