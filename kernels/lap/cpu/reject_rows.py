"""What `reject.py` reads of a row, by vectors: its least entries at the present prices.

Each lane keeps the least number that it met, where that was, and the second one. Halves of lanes are then compared
until one lane is left. The last vector ends with the row, and so may begin within the one before: what was read already
is `inf` there. A row of fewer numbers than a vector has is read one by one. What is not below `inf` is never chosen.
"""

from typing import Any

from numba.core import types

from kernels.lap.cpu.vectors import VectorCode, compiled
from kernels.lap.cpu.whole import inlined
from kernels.problems.arrays import Amounts

LANES = 4
"""With 8, a thousand frames of 10 to 60 boxes take 3 to 5% longer."""
SIGN, INF, BEST, SECOND = range(4)
"""Places in `look`: what a cost is multiplied by and what no sum is above, which are read; the two that are found."""
NOWHERE = 1 << 62


def _net(to: VectorCode, begin: Any, sign: Any, at: Any) -> Any:
    """Costs less prices from `at` on; arguments 0 and 1 are `cost` and `v`."""
    return to.minus(to.times(to.load(0, to.builder.add(begin, at)), sign), to.load(1, at))


def _last(to: VectorCode, count: Any) -> tuple[Any, Any, Any]:
    """Where the last vector begins, the places of its lanes, and which of them were read before."""
    last = to.builder.sub(count, to.whole(LANES))
    places = to.builder.add(to.counted(), to.spread(last))
    read = to.builder.and_(to.builder.add(last, to.whole(LANES - 1)), to.whole(-LANES))
    return last, places, to.builder.icmp_signed("<", places, to.spread(read))


def _two_least(to: VectorCode) -> Any:
    look, builder = 2, to.builder
    begin, count = to.given[3:]
    sign, inf = (to.spread(to.one(look, to.whole(place))) for place in (SIGN, INF))
    best, second, at = to.variable(inf), to.variable(inf), to.variable(to.spread(to.whole(NOWHERE)))
    places = to.variable(to.counted())

    def take(x: Any, here: Any) -> None:
        low = builder.load(best)
        less = to.less(x, low)
        builder.store(builder.select(less, here, builder.load(at)), at)
        builder.store(builder.select(less, x, low), best)
        to.lower(second, builder.select(less, low, x))

    last, places_of_last, read = _last(to, count)
    with to.loop(last, None, LANES) as (j, _):
        here = builder.load(places)
        take(_net(to, begin, sign, j), here)
        builder.store(builder.add(here, to.spread(to.whole(LANES))), places)
    take(builder.select(read, inf, _net(to, begin, sign, last)), places_of_last)
    low, more, where = builder.load(best), builder.load(second), builder.load(at)
    for _ in range(LANES.bit_length() - 1):
        (x, y), (i, j), others = to.halves(low), to.halves(where), to.halves(more)
        first = builder.or_(to.less(x, y), builder.and_(to.equal(x, y), builder.icmp_signed("<", i, j)))
        low, where = builder.select(first, x, y), builder.select(first, i, j)
        more = to.least(builder.select(first, y, x), to.least(*others))
    to.put(to.first(low), look, to.whole(BEST))
    to.put(to.first(more), look, to.whole(SECOND))
    return to.first(where)


def _least(to: VectorCode) -> Any:
    look = 2
    begin, count = to.given[3:]
    sign, inf = (to.spread(to.one(look, to.whole(place))) for place in (SIGN, INF))
    low = to.variable(inf)
    last = to.builder.sub(count, to.whole(LANES))
    with to.loop(last, None, LANES) as (j, _):
        to.lower(low, _net(to, begin, sign, j))
    to.lower(low, _net(to, begin, sign, last))
    return to.smallest(to.builder.load(low))


def _turn(to: VectorCode) -> None:
    builder = to.builder
    n, m = to.given[2:]
    last_i, last_j = (builder.sub(count, to.whole(LANES)) for count in (n, m))
    with to.loop(n, None, LANES) as (i, _):
        row = to.lesser(i, last_i)
        with to.loop(m, None, LANES) as (j, _):
            column = to.lesser(j, last_j)
            vectors = [
                to.load(0, builder.add(builder.mul(builder.add(row, to.whole(k)), m), column)) for k in range(LANES)
            ]
            for k, vector in enumerate(to.turned(vectors)):
                to.store(vector, 1, builder.add(builder.mul(builder.add(column, to.whole(k)), n), row))


two_least = compiled(_two_least, "cost v look begin count", LANES, returned=types.int64)
"""Where the least of `count` costs from `begin` on less the prices is, the first among equal ones; both into `look`."""
least = compiled(_least, "cost v look begin count", LANES, returned=None)
"""The least of them, at most `inf`."""
turned = compiled(_turn, "cost into n m", LANES)
"""n rows of m costs with columns as rows. What the last vectors have in common with those before is written twice."""


@inlined
def look_at(cost: Amounts, v: Amounts, i: int, look: Amounts) -> int:
    """The best column of row i, or -1; what it and the second best one cost into `look`, `inf` where there is none."""
    m = cost.shape[1]
    if m >= LANES:
        j = two_least(cost, v, look, i * m, m)
        return j if look[BEST] < look[INF] else -1
    sign, best, second, j = look[SIGN], look[INF], look[INF], -1
    for t in range(m):
        value = cost[i, t] * sign - v[t]
        if value < second:
            if value < best:
                second, best, j = best, value, t
            else:
                second = value
    look[BEST], look[SECOND] = best, second
    return j


@inlined
def least_of(cost: Amounts, v: Amounts, i: int, look: Amounts) -> Any:
    """What the best column of row i costs; `inf` where there is none."""
    m = cost.shape[1]
    if m >= LANES:
        return least(cost, v, look, i * m, m)
    low = look[INF]
    for j in range(m):
        low = min(low, cost[i, j] * look[SIGN] - v[j])
    return low


@inlined
def turn(cost: Amounts, into: Amounts) -> None:
    """The costs with columns as rows, into an array of their number."""
    n, m = cost.shape
    if n >= LANES and m >= LANES:
        turned(cost, into, n, m)
        return
    for i in range(n):
        for j in range(m):
            into[j * n + i] = cost[i, j]
