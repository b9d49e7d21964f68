"""Warm starts of integers that tie: the tight pairs of old prices as bits, and as many rows as these can pair.

    mark_tight      u_i = min_j c_ij - v_j, and a bit for each column at it
    match_tight     rows take a free column of theirs; those left search breadth first along tight pairs

Rows with ten columns at their least and more fill no lists (`near.py`). But so many tight pairs mostly hold a full
assignment: the old one is there but for the changed rows. A word of bits stands for LANES columns, so a search looks at
a row of 2048 in 32 steps, for 8 KiB of its costs. Who finds no partner here is led to one by a shortest path.

Word w of a row has the columns from min(w LANES, n - LANES) on, without those of the word before.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from kernels.lap.cpu.borrowed import borrowed
from kernels.lap.cpu.near import LANES
from kernels.lap.cpu.near_rows import A_THREAD, PIECE
from kernels.lap.cpu.near_search import DONE, SEATED
from kernels.lap.cpu.near_vectors import within
from kernels.lap.cpu.seats import flip
from kernels.lap.cpu.shortlist import NIL, jit, wide
from kernels.lap.cpu.threads import in_threads
from kernels.lap.cpu.tight_vectors import ROWS, TOGETHER, tight_of_rows
from kernels.lap.cpu.whole import Whole, inlined, new_whole
from kernels.lap.warm import cut
from kernels.problems.arrays import Costs, Indices32, Words, untouched
from kernels.solution import Termination

Marks = tuple[Words, Costs]
"""The tight pairs, and the least of each row less the prices."""
VISITS = 8
"""Rows that all searches may look at, for each row that there is: as long as half a reading of the costs."""


def new_tight(n_rows: int, n_cols: int) -> Words:
    """Room for the bits."""
    return np.empty((n_rows, (n_cols + LANES - 1) // LANES), np.uint64)


def seat_tied(
    s: Whole, old: Costs | None, marks: Marks | None, u: Costs, expired: Callable[[], Termination | None]
) -> int | Termination:
    """Pair rows along tight pairs, and the least of each row less the prices into `u`.

    DONE or SEATED (`near_search.py`); or what `expired` said, if that came before.

    Args:
        s: integers with LANES columns and more, and nobody in a seat.
        old: (n_rows,) what the least of each row may be. Where it is, one reading tells all.
        marks: what `mark_tight` would find, where it is known.
    """
    if marks is not None:
        u[:] = marks[1]
        return SEATED if match_tight(s, marks[0]) else DONE
    rows = u[:0] if old is None else np.asarray(cut(old, 1 << 8 * s.v.itemsize - 2, True), s.v.dtype)
    tight, apart = new_tight(*s.cost.shape), max(1, PIECE // s.v.size)
    if apart >= u.size:
        return SEATED if mark_and_match(s, tight, rows, u) else DONE
    ended: list[Termination] = []

    def work(first: int) -> None:
        if not ended and (word := expired()):
            ended.append(word)
        if not ended:
            mark_tight(s, tight, rows, u, new_sizes(s.v), first, min(u.size, first + apart))

    in_threads(work, range(0, u.size, apart), min(numba.get_num_threads(), max(1, s.cost.size // A_THREAD)))
    if ended:
        return ended[0]
    return SEATED if match_tight(s, tight) else DONE


@jit
def mark_and_match(s: Whole, tight: Words, old: Costs, u: Costs) -> int:
    """`mark_tight` of all rows and `match_tight` in one call, as each that hands over a search takes 10 us."""
    mark_tight(s, tight, old, u, new_sizes(s.v), NIL, s.col_of.size)
    return int(match_tight(s, tight))


@jit
def new_sizes(v: Costs) -> Costs:
    """Room for the sizes of costs by lanes."""
    return np.zeros(TOGETHER, v.dtype)


@jit
def mark_tight(s: Whole, tight: Words, old: Costs, u: Costs, most: Costs, first: int, last: int) -> None:
    """The bits of rows first to last - 1, and their least less the prices into `u`. Rows without an entry have none.

    The sizes of the costs by lanes into `most` (TOGETHER,), unsigned.
    """
    s = borrowed(s)
    n, blocks = s.v.size, tight.shape[1]
    again = np.uint64(blocks * LANES - n)  # columns of the last word that the one before has too
    least, bounds = np.empty(ROWS, s.v.dtype), np.empty(ROWS, s.v.dtype)
    for i in range(first, last, ROWS):
        for k in range(ROWS):
            bounds[k] = old[min(i + k, last - 1)] if old.size > 0 else s.inf
        tight_of_rows(s.cost, s.v, bounds, least, most, tight, i, last - 1, n)
        for k in range(i, min(last, i + ROWS)):
            u[k] = least[k - i]
            if u[k] >= s.inf:
                tight[k] = np.uint64(0)
            elif u[k] != bounds[k - i]:
                for w in range(blocks):
                    tight[k, w] = within(s.cost, s.v, u, k * n, min(w * LANES, n - LANES), k)
            tight[k, blocks - 1] &= ~np.uint64(0) << again


@inlined
def some_of(some: Words, others: Words) -> bool:
    """Whether two sets of columns have one in common."""
    common = np.uint64(0)
    for w in range(some.size):
        common |= some[w] & others[w]
    return bool(common != 0)


@inlined
def first_of(some: Words, others: Words, n: int, begin: int) -> int:
    """The first column from word `begin` on that both sets have, where they have one."""
    blocks, w = some.size, begin
    while some[w] & others[w] == 0:
        w = w + 1 if w + 1 < blocks else 0
    place: int = trailing_zeros(some[w] & others[w])
    return min(w * LANES, n - LANES) + place


@inlined
def strike(some: Words, n: int, j: int) -> None:
    """Take a column out of a set."""
    w = j // LANES
    some[w] &= ~(np.uint64(1) << np.uint64(j - min(w * LANES, n - LANES)))


@jit
def match_tight(s: Whole, tight: Words) -> int:
    """Pair as many rows as tight pairs can, nobody in a seat: one after the other, then along alternating paths.

    How many have no column then.

    What a search without success has seen leads to no free column, now or later, and is not seen again. Where searches
    look at many rows, the last ones are left out.
    """
    s = borrowed(s)
    n, n_rows, blocks, left, n_free = s.v.size, s.col_of.size, tight.shape[1], VISITS * s.col_of.size, 0
    free, dead, seen = np.empty(blocks, np.uint64), np.zeros(blocks, np.uint64), np.empty(blocks, np.uint64)
    queue = np.empty(n_rows, np.int32)
    free[:] = ~np.uint64(0)
    for i in range(n_rows):
        if some_of(tight[i], free):
            j = first_of(tight[i], free, n, i % blocks)
            s.row_of[j], s.col_of[i] = i, j
            strike(free, n, j)
    for source in range(n_rows):
        if s.col_of[source] >= 0:
            continue
        n_free += 1
        if left <= 0:
            continue
        seen[:] = dead
        queue[0] = source
        end, n_queued = search_tight(s, tight, free, seen, queue)
        left -= n_queued
        if end >= 0:
            flip(s, end, source)
            strike(free, n, end)
            n_free -= 1
        else:
            dead[:] = seen
    return n_free


@inlined
def search_tight(s: Whole, tight: Words, free: Words, seen: Words, queue: Indices32) -> tuple[int, int]:
    """A free column that tight pairs lead to from row queue[0], which has none itself, or -1; how many rows were seen.

    Rows are asked for a free column as they are found: one in ten of them is looked at again.
    """
    n, blocks, at, n_queued = s.v.size, tight.shape[1], NIL, NIL + 1
    while at < n_queued:
        i = wide(queue[at])
        at += 1
        for w in range(blocks):
            new = tight[i, w] & ~seen[w]
            seen[w] |= new
            while new != 0:
                j = min(w * LANES, n - LANES) + wide(trailing_zeros(new))
                new &= new - np.uint64(1)
                k = wide(s.row_of[j])
                s.parent[j], queue[n_queued] = i, k
                n_queued += 1
                if some_of(tight[k], free):
                    end = first_of(tight[k], free, n, k % blocks)
                    s.parent[end] = k
                    return end, n_queued
    return NIL - 1, n_queued


def warm_up() -> None:
    """Compile the steps for both types."""
    kinds: tuple[Any, ...] = np.int32, np.int64
    for kind in kinds:
        cost: Any = np.tile(np.arange(LANES, dtype=kind) // 9, (LANES, 1))
        v, top = np.zeros(LANES, kind), np.iinfo(kind).max
        limits, bits = np.array([top, -top], kind), np.array([top, 0], kind)
        s = new_whole(untouched(cost), limits, bits, v, np.empty(LANES, np.int64))
        seat_tied(s, None, None, v.copy(), lambda: None)
        mark_tight(s, tight := new_tight(LANES, LANES), v, v.copy(), new_sizes(v), 0, LANES)
        match_tight(s, tight)
