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
from llvmlite import ir
from numba.core import types
from numba.cpython.unsafe.numbers import trailing_zeros

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import BOUND, CAPACITY, CROWDED, CROWDS, LANES, Near
from kernels.lap.cpu.seats import ROUNDING
from kernels.lap.cpu.shortlist import inner, jit
from kernels.lap.cpu.threads import in_threads
from kernels.lap.cpu.vectors import VectorCode, compiled
from kernels.lap.cpu.whole import Whole, inlined
from kernels.problems.arrays import AnyIntegers, Costs
from kernels.solution import Termination

ROWS = 8
FEWEST, MOST = 6, 10
"""The window grows where fewer columns are listed, and shrinks where there are more."""
MOST_CROWDS = 16
"""After so many rows of a piece, and half, with more columns near their least than a list holds, none is listed."""
PIECE = 1 << 20
"""Entries of the rows that are listed together. Each piece learns its own window, so that threads change no answer."""
A_THREAD = 1 << 20
"""Entries for each thread that takes pieces."""
TOGETHER = 8
"""Lanes of the least numbers of a block."""


def _block_of(to: VectorCode, n_cols: Any, j: Any) -> Any:
    """Where a block begins: the last one ends with the row."""
    last = to.builder.sub(n_cols, to.whole(LANES))
    return to.builder.select(to.builder.icmp_signed("<", j, last), j, last)


def _lows(to: VectorCode, most: int | None, row: Any, last_row: Any, n_cols: Any) -> None:
    """`lows_of_rows`; the sizes of the costs go into the array `most`, if there is one."""
    cost, v, lows = range(3)
    builder, rows = to.builder, []
    room = builder.mul(builder.udiv(builder.add(n_cols, to.whole(LANES - 1)), to.whole(LANES)), to.whole(TOGETHER))
    for k in range(ROWS):
        here = builder.add(row, to.whole(k))
        here = builder.select(builder.icmp_signed("<", here, last_row), here, last_row)
        rows.append((builder.mul(here, n_cols), builder.mul(room, to.whole(k))))
    sizes = None if most is None else to.variable(to.load(most, to.whole(0)))
    with to.loop(n_cols, None, LANES) as (j, _):
        begin, least, largest = _block_of(to, n_cols, j), [None] * ROWS, None
        for part in range(0, LANES, TOGETHER):
            at = builder.add(begin, to.whole(part))
            price = to.load(v, at)
            for k, (first, _) in enumerate(rows):
                entries = to.load(cost, builder.add(first, at))
                if most is not None:
                    size = to.size_bits(entries)
                    largest = size if largest is None else to.larger_bits(size, largest)
                x = to.minus(to.widened(entries, v), price)
                least[k] = x if least[k] is None else to.least(x, least[k])
        place = builder.mul(builder.udiv(j, to.whole(LANES)), to.whole(TOGETHER))
        for k, (_, first) in enumerate(rows):
            to.store(least[k], lows, builder.add(first, place))
        if sizes is not None:
            builder.store(to.larger_bits(largest, builder.load(sizes)), sizes)
    if most is not None:
        to.store(builder.load(sizes), most, to.whole(0))


def _lows_of_rows(to: VectorCode) -> None:
    _lows(to, None, *to.given[3:])


def _lows_and_sizes(to: VectorCode) -> None:
    _lows(to, 3, *to.given[4:])


def _smallest_of(to: VectorCode) -> Any:
    begin, end = to.given[1:]
    low = to.variable(to.load(0, begin))
    with to.loop(end, begin, TOGETHER) as (at, _):
        to.lower(low, to.load(0, at))
    return to.smallest(to.builder.load(low))


def _some_within(to: VectorCode) -> Any:
    lows, bounds = range(2)
    at, place = to.given[2:]
    hits = to.at_most(to.load(lows, at), to.spread(to.one(bounds, place)))
    return to.builder.zext(to.builder.bitcast(hits, ir.IntType(TOGETHER)), ir.IntType(64))


def _within(to: VectorCode) -> Any:
    cost, v, bounds = range(3)
    begin, first, place = to.given[3:]
    x = to.minus(to.widened(to.load(cost, to.builder.add(begin, first)), v), to.load(v, first))
    hits = to.at_most(x, to.spread(to.one(bounds, place)))
    return to.builder.bitcast(hits, ir.IntType(LANES))


lows_of_rows = compiled(_lows_of_rows, "cost v lows row last_row n_cols", TOGETHER)
"""The least by lanes of each block of ROWS rows less the prices; past `last_row`, of that one again."""
lows_and_sizes = compiled(_lows_and_sizes, "cost v lows most row last_row n_cols", TOGETHER)
"""The same, and by lanes the largest bits of the sizes of these costs into `most`, beside what it holds."""
smallest_of = compiled(_smallest_of, "lows begin end", TOGETHER, returned=None)
"""The least of what `lows_of_rows` left of a row."""
some_within = compiled(_some_within, "lows bounds at place", TOGETHER, returned=types.uint64)
"""Which lanes of a block are at most the bound, as bits."""
within = compiled(_within, "cost v bounds begin first place", LANES, returned=types.uint64)
"""Which of LANES entries, less their prices, are at most the bound, as bits."""


@inner
def least_entry(s: Whole, i: int) -> Any:
    """The least of row i minus the prices; `inf` where nothing is permitted."""
    n, least = s.v.size, s.inf
    for j in range(n):
        least = min(least, s.v.dtype.type(s.cost[i, j] - s.v[j]))
    return least


@inner
def entries_within(s: Whole, near: Near, v: Costs, i: int, bound: Any, most: int) -> int:
    """Columns of row i up to `bound` at prices v, into `picked`; where they are more than `most`, so many and more."""
    s, near = borrowed(s), borrowed(near)
    n, found = v.size, 0
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
    """As `entries_within`, of the blocks alone whose `lows` are within the bound."""
    blocks, found = 0, 0
    for at in range(begin, end, TOGETHER):  # without a branch in it
        near.blocks[blocks] = (at - begin) // TOGETHER * LANES
        blocks += 1 if some_within(lows, near.window, at, BOUND) != 0 else 0
    for k in range(blocks):
        found = pick_block(s, near, s.v, i, near.blocks[k], found)
        if found > CAPACITY:
            break
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
    value = window.dtype.type
    if found > MOST:
        window[0] = value(window[0] - window[0] / 16)
    elif found < FEWEST:
        window[0] = min(window[2], value(window[0] + window[0] / 16 + window[1]))


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
    least = smallest_of(lows, begin, end) if n >= LANES else least_entry(s, i)
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
    keep_list(s, near, i, found, bound)
    put_ties_first(s, near, i, least)


@inlined
def put_ties_first(s: Whole, near: Near, i: int, least: Any) -> None:
    """Ties are what lies at the least, up to half of what the certificate allows for rounding."""
    cols, costs, first, ties = near.cols, near.costs, near.start[i], near.start[i]
    for t in range(first, first + near.held[i]):
        over = s.v.dtype.type(s.v.dtype.type(costs[t] - s.v[cols[t]]) - least)
        if over <= 0 or (s.flip != 0 and over <= ROUNDING * (abs(least) + abs(costs[t]))):
            cols[t], cols[ties] = cols[ties], cols[t]
            costs[t], costs[ties] = costs[ties], costs[t]
            ties += 1
    near.ties[i] = ties - first


def rows_of_a_piece(s: Whole) -> int:
    """How many rows are listed together."""
    return max(1, PIECE // s.v.size)


def pieces_of(s: Whole, near: Near) -> list[Near]:
    """The lists with a window and scratch of its own for each piece of rows."""
    return [
        near._replace(
            window=near.window.copy(), picked=np.empty_like(near.picked),
            blocks=np.empty_like(near.blocks), seen=np.zeros_like(near.seen),
        )
        for _ in range(0, s.col_of.size, rows_of_a_piece(s))
    ]  # fmt: skip


def gather(near: Near, pieces: list[Near]) -> None:
    """What pieces that are listed have learned."""
    near.seen[CROWDS] = sum(int(piece.seen[CROWDS]) for piece in pieces)
    near.window[0] = pieces[-1].window[0]


def list_in_pieces(s: Whole, near: Near, expired: Callable[[], Termination | None]) -> Termination | None:
    """Let all rows be listed, by threads; returns what `expired` said if that came before the end."""
    n_rows, rows, pieces = s.col_of.size, rows_of_a_piece(s), pieces_of(s, near)
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
    room = (s.v.size + LANES - 1) // LANES * TOGETHER
    lows = np.empty(ROWS * room, s.v.dtype)
    for i in range(first, last, ROWS):
        if s.v.size >= LANES:
            lows_of_rows(s.cost, s.v, lows, i, last - 1, s.v.size)
        list_group(s, near, lows, begin, i, last)


@jit
def check_and_list(s: Whole, near: Near, most: AnyIntegers, begin: int, first: int, last: int) -> bool:
    """As `list_rows`, and the sizes of floats into `most` (TOGETHER,), as bits; stops at rows that are not all finite.

    Whether there were none; rows have LANES columns and more.
    """
    s, near = borrowed(s), borrowed(near)
    room = (s.v.size + LANES - 1) // LANES * TOGETHER
    lows = np.empty(ROWS * room, s.v.dtype)
    for i in range(first, last, ROWS):
        lows_and_sizes(s.cost, s.v, lows, most, i, last - 1, s.v.size)
        if most[:TOGETHER].max() >= most[TOGETHER]:
            return False
        list_group(s, near, lows, begin, i, last)
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
