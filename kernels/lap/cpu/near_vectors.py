"""What is read of rows beside one another, by vectors, for the lists of `near_rows.py`."""

from typing import Any

from llvmlite import ir
from numba.core import types

from kernels.lap.cpu.near import LANES
from kernels.lap.cpu.vectors import VectorCode, compiled

ROWS = 8
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
    blocks = builder.mul(builder.udiv(builder.add(n_cols, to.whole(LANES - 1)), to.whole(LANES)), to.whole(TOGETHER))
    room, lowest = builder.add(blocks, to.whole(TOGETHER)), []
    for k in range(ROWS):
        here = builder.add(row, to.whole(k))
        here = builder.select(builder.icmp_signed("<", here, last_row), here, last_row)
        rows.append((builder.mul(here, n_cols), builder.mul(room, to.whole(k))))
        first = to.minus(to.widened(to.load(cost, rows[k][0]), v), to.load(v, to.whole(0)))
        lowest.append(to.variable(first))
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
            to.lower(lowest[k], least[k])
        if sizes is not None:
            builder.store(to.larger_bits(largest, builder.load(sizes)), sizes)
    for k, (_, first) in enumerate(rows):
        to.store(builder.load(lowest[k]), lows, builder.add(first, blocks))
    if most is not None:
        to.store(builder.load(sizes), most, to.whole(0))


def _marks(to: VectorCode) -> None:
    """`marks_and_sizes`."""
    cost, v, lows, most, bounds, marks = range(6)
    row, last_row, n_cols = to.given[6:]
    build, rows, lowest = to.builder, [], []
    blocks = build.udiv(build.add(n_cols, to.whole(LANES - 1)), to.whole(LANES))
    for k in range(ROWS):
        here = build.add(row, to.whole(k))
        rows.append(build.mul(build.select(build.icmp_signed("<", here, last_row), here, last_row), n_cols))
        first = to.minus(to.widened(to.load(cost, rows[k]), v), to.load(v, to.whole(0)))
        lowest.append(to.variable(first))
    sizes = to.variable(to.load(most, to.whole(0)))
    tops = [to.spread(to.one(bounds, to.whole(k))) for k in range(ROWS)]
    with to.loop(n_cols, None, LANES) as (j, _):
        begin, largest = _block_of(to, n_cols, j), build.load(sizes)
        for part in range(0, LANES, TOGETHER):
            at = build.add(begin, to.whole(part))
            price, byte = to.load(v, at), build.add(j, to.whole(part))
            for k in range(ROWS):
                entries = to.load(cost, build.add(rows[k], at))
                largest = to.larger_bits(to.size_bits(entries), largest)
                x = to.minus(to.widened(entries, v), price)
                to.lower(lowest[k], x)
                hits = build.bitcast(to.at_most(x, tops[k]), ir.IntType(TOGETHER))
                place = build.add(build.mul(to.whole(k * TOGETHER), blocks), build.udiv(byte, to.whole(TOGETHER)))
                build.store(hits, build.gep(to.given[marks], [place]))
        build.store(largest, sizes)
    for k in range(ROWS):
        to.store(build.load(lowest[k]), lows, to.whole(k * TOGETHER))
    to.store(build.load(sizes), most, to.whole(0))


def _lows_of_rows(to: VectorCode) -> None:
    _lows(to, None, *to.given[3:])


def _lows_and_sizes(to: VectorCode) -> None:
    _lows(to, 3, *to.given[4:])


def _smallest_of(to: VectorCode) -> Any:
    return to.smallest(to.load(0, to.given[1]))


def _some_within(to: VectorCode) -> Any:
    lows, bounds = range(2)
    at, place = to.given[2:]
    hits = to.at_most(to.load(lows, at), to.spread(to.one(bounds, place)))
    return to.builder.zext(to.builder.bitcast(hits, ir.IntType(TOGETHER)), ir.IntType(64))


def _within(to: VectorCode) -> Any:
    cost, v, bounds = range(3)
    begin, first, place = to.given[3:]
    build, bound, found = to.builder, to.spread(to.one(bounds, place)), to.whole(0)
    for part in range(0, LANES, TOGETHER):
        at = build.add(first, to.whole(part))
        x = to.minus(to.widened(to.load(cost, build.add(begin, at)), v), to.load(v, at))
        hits = build.zext(build.bitcast(to.at_most(x, bound), ir.IntType(TOGETHER)), ir.IntType(64))
        found = build.or_(found, build.shl(hits, to.whole(part)))
    return found


lows_of_rows = compiled(_lows_of_rows, "cost v lows row last_row n_cols", TOGETHER)
"""The least by lanes of each block of ROWS rows less the prices, then of all blocks; past `last_row`, that one anew."""
lows_and_sizes = compiled(_lows_and_sizes, "cost v lows most row last_row n_cols", TOGETHER)
"""The same, and by lanes the largest bits of the sizes of these costs into `most`, beside what it holds."""
marks_and_sizes = compiled(_marks, "cost v lows most bounds marks row last_row n_cols", TOGETHER)
"""Of ROWS rows less the prices: the least by lanes, sizes as in `lows_and_sizes`, and a bit for each entry that is at
most the row's bound, LANES bits for each block of the row (`marks`, bytes)."""
smallest_of = compiled(_smallest_of, "lows begin", TOGETHER, returned=None)
"""The least of TOGETHER numbers."""
some_within = compiled(_some_within, "lows bounds at place", TOGETHER, returned=types.uint64)
"""Which lanes of a block are at most the bound, as bits."""
within = compiled(_within, "cost v bounds begin first place", TOGETHER, returned=types.uint64)
"""Which of LANES entries, less their prices, are at most the bound, as bits."""
