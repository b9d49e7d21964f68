"""Steps of a tabu search over rows of sixteen numbers at a time.

`kernels/lap/cpu/vectors.py` says why LLVM is not left to find the vectors. Every array is flat; a row has `width`
entries, a multiple of LANES, of which those after n are padding. Sums of int32 and int64 wrap, as in all searches.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import register_jitable

from kernels.lap.cpu.vectors import VectorCode, compiled

LANES = 16
"""One AVX-512 register of int32. LLVM takes several where registers are shorter or numbers longer."""


@register_jitable
def width_of(n: int) -> int:
    """Entries of a row that holds n numbers."""
    return -(-n // LANES) * LANES


def _sweep(to: VectorCode) -> None:
    """Update every delta; the least of each row and of all, by lanes, and of those that are not tabu."""
    delta, until, a, h, floor, low, low_free = range(7)
    n, width, now = to.given[7:]
    build, lanes = to.builder, to.whole(LANES)
    bigs, nows = to.spread(to.one(delta, to.whole(0))), to.spread(build.trunc(now, ir.IntType(32)))
    of_all = to.variable(bigs), to.variable(bigs)
    last = build.sub(n, to.whole(1))
    with to.loop(last) as (u, _):
        row, of_row = build.mul(u, width), (to.variable(bigs), to.variable(bigs))
        own = [[to.spread(to.one(x, build.add(d, u))) for x in (a, h)] for d in to.directions(width)]
        with to.loop(width, build.and_(build.add(u, to.whole(1)), to.whole(-LANES)), LANES) as (v, _):
            at = build.add(row, v)
            x = to.load(delta, at)
            for (own_a, own_h), d in zip(own, to.directions(width), strict=True):
                place = build.add(d, v)
                x = to.plus(x, to.times(to.minus(own_a, to.load(a, place)), to.minus(own_h, to.load(h, place))))
            to.store(x, delta, at)
            lowest = to.load(floor, v)
            to.lower(of_row[0], build.select(to.less(x, lowest), lowest, x))
            to.lower(of_row[1], build.select(build.icmp_signed("<", to.load(until, at), nows), x, bigs))
        for found, least, place in zip(of_row, of_all, (low, low_free), strict=True):
            to.store(build.load(found), place, build.mul(u, lanes))
            to.lower(least, build.load(found))
    for least, place in zip(of_all, (low, low_free), strict=True):
        to.store(build.load(least), place, build.mul(last, lanes))


def _subtract(to: VectorCode) -> None:
    """partial -= a h', and its diagonal with it."""
    partial, diagonal, a, h = range(4)
    n, width = to.given[4:]
    build = to.builder
    for d in to.directions(width):
        with to.loop(n) as (u, _):
            own, row = to.one(a, build.add(d, u)), build.mul(u, width)
            with build.if_then(build.not_(to.equal(own, ir.Constant(own.type, 0)))):
                by = to.spread(own)
                with to.loop(width, None, LANES) as (v, _):
                    at = build.add(row, v)
                    product = to.times(by, to.load(h, build.add(d, v)))
                    to.store(to.minus(to.load(partial, at), product), partial, at)
        with to.loop(width, None, LANES) as (v, _):
            product = to.times(to.load(a, build.add(d, v)), to.load(h, build.add(d, v)))
            to.store(to.minus(to.load(diagonal, v), product), diagonal, v)


def _refresh(to: VectorCode) -> None:
    """The deltas of one facility with all others, short of what the next sweep adds, and until when they are tabu."""
    delta, until, partial, flow, there, back, tabu, column, dates, diagonal, a, h = range(12)
    facility, width = to.given[12:]
    build = to.builder
    row, own_diagonal = build.mul(facility, width), to.spread(to.one(diagonal, facility))
    own = [[to.spread(to.one(x, build.add(d, facility))) for x in (a, h)] for d in to.directions(width)]
    with to.loop(width, None, LANES) as (v, _):
        at, soon = build.add(row, v), None
        x = to.load(column, v)
        for (own_a, own_h), d in zip(own, to.directions(width), strict=True):
            their_a, their_h = to.load(a, build.add(d, v)), to.load(h, build.add(d, v))
            x = to.minus(x, to.times(their_a, own_h))
            more = to.times(to.minus(their_a, own_a), to.minus(their_h, own_h))
            soon = more if soon is None else to.plus(soon, more)
        x = to.minus(to.minus(to.plus(x, to.load(partial, at)), own_diagonal), to.load(diagonal, v))
        x = to.plus(x, to.times(to.load(flow, at), to.plus(to.load(there, at), to.load(back, at))))
        to.store(to.minus(x, soon), delta, at)
        one, other = to.load(tabu, at), to.load(dates, v)
        to.store(build.select(build.icmp_signed("<", one, other), one, other), until, at)


def _subtract_rows(to: VectorCode) -> None:
    """One row less another, into a vector that begins at `to_place`."""
    out, matrix = range(2)
    to_place, first, second, width = to.given[2:]
    build = to.builder
    one, other = build.mul(first, width), build.mul(second, width)
    with to.loop(width, None, LANES) as (v, _):
        by = to.minus(to.load(matrix, build.add(one, v)), to.load(matrix, build.add(other, v)))
        to.store(by, out, build.add(to_place, v))


def _holds(to: VectorCode) -> Any:
    """Whether any of LANES numbers is the one that stands at another place of the same array."""
    at, wanted = to.given[1:]
    build = to.builder
    found = to.equal(to.load(0, at), to.spread(to.one(0, wanted)))
    return build.icmp_unsigned("!=", build.bitcast(found, ir.IntType(LANES)), ir.Constant(ir.IntType(LANES), 0))


SWEEP = "delta until a h floor low low_free n width now"
SUBTRACT = "partial diagonal a h n width"
REFRESH = "delta until partial flow near near_back tabu column dates diagonal a h facility width"
sweep, sweep_both = compiled(_sweep, SWEEP, LANES), compiled(_sweep, SWEEP, LANES, both=True)
subtract, subtract_both = compiled(_subtract, SUBTRACT, LANES), compiled(_subtract, SUBTRACT, LANES, both=True)
refresh, refresh_both = compiled(_refresh, REFRESH, LANES), compiled(_refresh, REFRESH, LANES, both=True)
subtract_rows = compiled(_subtract_rows, "out matrix to_place first second width", LANES)
holds = compiled(_holds, "numbers at wanted", LANES, returned=types.boolean)
