"""Tight pairs of rows beside one another, by vectors, for `tight.py`."""

from llvmlite import ir

from kernels.lap.cpu.near import LANES
from kernels.lap.cpu.vectors import VectorCode, compiled

ROWS = 4
"""Of so many, the least and the bound of each stay in registers."""
TOGETHER = 8


def _tight(to: VectorCode) -> None:
    cost, v, bounds, least, most, tight = range(6)
    row, last_row, n_cols = to.given[6:]
    build, rows, lowest = to.builder, [], []
    blocks = build.udiv(build.add(n_cols, to.whole(LANES - 1)), to.whole(LANES))
    for k in range(ROWS):
        here = build.add(row, to.whole(k))
        here = build.select(build.icmp_signed("<", here, last_row), here, last_row)
        rows.append((build.mul(here, n_cols), build.mul(here, blocks)))
        lowest.append(to.variable(to.minus(to.load(cost, rows[k][0]), to.load(v, to.whole(0)))))
    tops = [to.spread(to.one(bounds, to.whole(k))) for k in range(ROWS)]
    sizes = to.variable(to.load(most, to.whole(0)))
    with to.loop(n_cols, None, LANES) as (j, _):
        last = build.sub(n_cols, to.whole(LANES))
        begin, words = build.select(build.icmp_signed("<", j, last), j, last), [to.whole(0)] * ROWS
        for part in range(0, LANES, TOGETHER):
            at = build.add(begin, to.whole(part))
            price = to.load(v, at)
            for k in range(ROWS):
                entries = to.load(cost, build.add(rows[k][0], at))
                build.store(to.larger_bits(to.size_bits(entries), build.load(sizes)), sizes)
                x = to.minus(entries, price)
                to.lower(lowest[k], x)
                hits = build.zext(build.bitcast(to.equal(x, tops[k]), ir.IntType(TOGETHER)), ir.IntType(64))
                words[k] = build.or_(words[k], build.shl(hits, to.whole(part)))
        for k in range(ROWS):
            place = build.add(rows[k][1], build.udiv(j, to.whole(LANES)))
            build.store(words[k], build.gep(to.given[tight], [place]))
    for k in range(ROWS):
        to.put(to.smallest(build.load(lowest[k])), least, to.whole(k))
    to.store(build.load(sizes), most, to.whole(0))


tight_of_rows = compiled(_tight, "cost v bounds least most tight row last_row n_cols", TOGETHER)
"""Of ROWS rows of integers less the prices: the least (`least`), and a bit for each entry that is the row's bound,
LANES bits for each block of the row (`tight`, of all rows). The largest sizes of the costs by lanes into `most`,
unsigned, beside what it holds. Past `last_row`, that one anew."""
