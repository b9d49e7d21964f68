"""The least of rows at their prices in one reading, written as vectors of LLVM for compiled code to call.

LLVM leaves the minimum of floats alone unless it may forget NaN. Here a step says which vectors it loads, and drops no
NaN: differences are compared with themselves, two vectors at a time. Columns go by blocks, the last of which ends with
the row and may overlap the one before it: a least number does not mind being looked at twice. ROWS rows go side by
side, so that a vector of prices is loaded once for all of them; a group that reaches past the last row has that one
several times.

Pseudocode of floats, for one row:

    for each block:   near[block] = by lanes, the least of sign c - v, to nearest
    least = of all lanes and blocks
    for each block with a lane of near[block] at `least`:
        for each c of it with sign c - v at `least`:   error = min(error, what rounding took from sign c - v)

assignment_bound.py says why least + error is the exact minimum, without rounding. No fast mathematics: TwoSum is exact
only if nobody reorders it, and LLVM does so only where it is told that it may.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from kernels.problems.arrays import FORBIDDEN

LANES, ROWS, WIDE = 8, 8, 64
"""Numbers of a vector, rows side by side, and columns of a block where rows have so many; else it is a vector."""
INDEX, BIT = ir.IntType(64), ir.IntType(1)
WEIGHTS, PRICE, NEAR, HIGH, LOW, FIRST, LAST, MAXIMIZE = range(8)
"""The places of a step's arguments."""


class Writer:
    """Writes one step: what is asked of a vector goes by the type of the prices, float64 or int64."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.builder, self._context, self._kinds = builder, context, signature.args
        arrays = [
            context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else None
            for kind, value in zip(signature.args, values, strict=True)
        ]
        self.given = [value if array is None else array.data for array, value in zip(arrays, values, strict=True)]
        self.n_cols = builder.extract_value(arrays[PRICE].shape, 0)  # type: ignore[union-attr]
        self.float = isinstance(signature.args[PRICE].dtype, types.Float)
        self.number = context.get_data_type(signature.args[PRICE].dtype)
        self.vector = ir.VectorType(self.number, LANES)

    def all(self, value: Any) -> Any:
        """A number that is known now, in every lane."""
        return ir.Constant(self.vector, [value] * LANES)

    def load(self, place: int, index: Any) -> Any:
        """The numbers from `index` on, in the type of the prices."""
        kind = self._kinds[place].dtype
        given = ir.VectorType(self._context.get_data_type(kind), LANES)
        pointer = self.builder.bitcast(self.builder.gep(self.given[place], [index]), given.as_pointer())
        vector = self.builder.load(pointer, align=kind.bitwidth // 8)
        if given == self.vector:
            return vector
        return self.builder.fpext(vector, self.vector) if self.float else self.builder.sext(vector, self.vector)

    def bits(self, place: int) -> int:
        """Of a number of an array."""
        return int(self._kinds[place].dtype.bitwidth)

    def store(self, vector: Any, place: int, index: Any) -> None:
        """Put the lanes from `index` on."""
        pointer = self.builder.gep(self.given[place], [index])
        self.builder.store(vector, self.builder.bitcast(pointer, self.vector.as_pointer()), align=8)

    def put(self, number: Any, place: int, index: Any) -> None:
        """Put one number."""
        self.builder.store(number, self.builder.gep(self.given[place], [index]))

    def spread(self, number: Any) -> Any:
        """A number in every lane."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        alone = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(alone, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))

    def lesser(self, x: Any, y: Any) -> Any:
        """The lesser of two; y where one is no number."""
        less = self.builder.fcmp_ordered("<", x, y) if self.float else self.builder.icmp_signed("<", x, y)
        return self.builder.select(less, x, y)

    def least(self, vector: Any) -> Any:
        """The least of the lanes."""
        left = LANES
        while left > 1:
            left //= 2
            halves = [ir.Constant(ir.VectorType(ir.IntType(32), left), list(range(k, k + left))) for k in (0, left)]
            vector = self.lesser(*(self.builder.shuffle_vector(vector, vector, half) for half in halves))
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    def some(self, lanes: Any) -> Any:
        """Whether one of so many truths is one."""
        bits = ir.IntType(LANES)
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(lanes, bits), ir.Constant(bits, 0))

    def variable(self, value: Any) -> Any:
        """What a loop changes; LLVM keeps it in a register. It begins anew each time that it is met."""
        place = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, place)
        return place

    def lower(self, place: Any, vector: Any) -> None:
        """Take the lesser one into a variable."""
        self.builder.store(self.lesser(vector, self.builder.load(place)), place)

    def loop(self, end: Any, step: int = 1) -> Any:
        """From 0 up to `end`."""
        return cgutils.for_range_slice(self.builder, INDEX(0), end, INDEX(step), intp=INDEX)

    def at_most(self, x: Any, y: Any) -> Any:
        """The lesser of two indices."""
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)


class Group:
    """The rows that go side by side, and the blocks of their columns."""

    def __init__(self, code: Writer, block: int) -> None:
        build, given = code.builder, code.given
        self.code, self.block = code, block
        self.blocks = build.udiv(build.add(code.n_cols, INDEX(block - 1)), INDEX(block))
        self._end = build.sub(code.n_cols, INDEX(block))
        self._last = build.sub(given[LAST], INDEX(1))
        plain, turned = (1, -1) if code.float else (0, -1)
        turn = build.select(build.trunc(given[MAXIMIZE], BIT), code.number(turned), code.number(plain))
        self._turn = code.spread(turn)

    def column(self, k: Any) -> Any:
        """The first column of a block."""
        return self.code.at_most(self.code.builder.mul(k, INDEX(self.block)), self._end)

    def row(self, r: Any) -> Any:
        """The place of a row of the group, or of the last one there is."""
        return self.code.at_most(self.code.builder.add(self.code.given[FIRST], r), self._last)

    def start(self, r: Any) -> Any:
        """Where its weights begin."""
        return self.code.builder.mul(self.row(r), self.code.n_cols)

    def weights(self, start: Any, column: Any) -> Any:
        """The weights of a row from a column on, as they are."""
        return self.code.load(WEIGHTS, self.code.builder.add(start, column))

    def costs(self, weights: Any) -> Any:
        """Floats in min form, times 1 or -1: without rounding."""
        return self.code.builder.fmul(weights, self._turn)

    def prices(self, column: Any) -> Any:
        """The prices from a column on; of integers that are maximised less 1, since -c = (c ^ -1) + 1."""
        prices = self.code.load(PRICE, column)
        return prices if self.code.float else self.code.builder.add(prices, self._turn)

    def nets(self, weights: Any, prices: Any) -> Any:
        """Costs in min form less prices: floats to nearest, integers exactly."""
        build = self.code.builder
        if self.code.float:
            return build.fsub(self.costs(weights), prices)
        return build.sub(build.xor(weights, self._turn), prices)

    def place(self, k: Any, r: Any) -> Any:
        """Where `near` has the lanes of a block and row; behind all blocks, of the row's least."""
        build = self.code.builder
        return build.mul(INDEX(LANES), build.add(build.mul(k, INDEX(ROWS)), r))


def _floats(code: Writer, block: int) -> None:
    """`high` and `low`, whose sum is a row's exact least; `high` is NaN where any row of the group holds a NaN."""
    group, build = Group(code, block), code.builder
    starts = [group.start(INDEX(r)) for r in range(ROWS)]
    least = [code.variable(code.all(float("inf"))) for _ in range(ROWS)]
    odd = code.variable(ir.Constant(ir.VectorType(BIT, LANES), [0] * LANES))
    with code.loop(group.blocks) as (k, _):
        column = group.column(k)
        near, unlike = _near(group, starts, column, build.load(odd))
        build.store(unlike, odd)
        for r in range(ROWS):
            code.store(near[r], NEAR, group.place(k, INDEX(r)))
            code.lower(least[r], near[r])
    any_odd = code.some(build.load(odd))
    for r in range(ROWS):
        code.store(build.load(least[r]), NEAR, group.place(group.blocks, INDEX(r)))
    with code.loop(INDEX(ROWS)) as (r, _):
        high = code.least(code.load(NEAR, group.place(group.blocks, r)))
        code.put(_error(group, r, code.spread(high)), LOW, group.row(r))
        code.put(build.select(any_odd, code.number(float("nan")), high), HIGH, group.row(r))


def _near(group: Group, starts: list[Any], column: Any, odd: Any) -> tuple[list[Any], Any]:
    """Of a block, the least differences of each row by lanes, and `odd` with what lanes met a NaN."""
    code, build = group.code, group.code.builder
    near: list[Any] = [None] * ROWS
    columns = [build.add(column, INDEX(k)) for k in range(0, group.block, LANES)]
    for k in range(0, len(columns), 2):
        pair = [(at, group.prices(at)) for at in columns[k : k + 2]]
        for r in range(ROWS):
            nets = [group.nets(group.weights(starts[r], at), prices) for at, prices in pair]
            odd = build.or_(odd, build.fcmp_unordered("uno", nets[0], nets[-1]))
            for net in nets:
                near[r] = net if near[r] is None else code.lesser(net, near[r])
    return near, odd


def _error(group: Group, r: Any, least: Any) -> Any:
    """The smallest rounding error among the differences of a row that are `least`; inf where there is none."""
    code, build = group.code, group.code.builder
    error, start = code.variable(code.all(float("inf"))), group.start(r)
    with code.loop(group.blocks) as (k, _):
        there = build.fcmp_ordered("==", code.load(NEAR, group.place(k, r)), least)
        with build.if_then(code.some(there), likely=False):
            column = group.column(k)
            with code.loop(INDEX(group.block), LANES) as (j, _):
                at = build.add(column, j)
                x, y = group.costs(group.weights(start, at)), group.prices(at)
                net = build.fsub(x, y)
                tied = build.fcmp_ordered("==", net, least)
                with build.if_then(code.some(tied), likely=False):
                    taken = build.fsub(net, x)  # TwoSum of x and -y
                    rest = build.fsub(build.fsub(x, build.fsub(net, taken)), build.fadd(y, taken))
                    code.lower(error, build.select(tied, rest, code.all(float("inf"))))
    return code.least(build.load(error))


def _integers(code: Writer, block: int) -> None:
    """`high`, a row's least; `FORBIDDEN` where any row of the group holds such an entry."""
    group, build, masked = Group(code, block), code.builder, code.bits(WEIGHTS) == 64
    starts = [group.start(INDEX(r)) for r in range(ROWS)]
    least = [code.variable(code.all(2**63 - 1)) for _ in range(ROWS)]
    barred = code.variable(code.all(0))
    with code.loop(group.blocks) as (k, _):
        column = group.column(k)
        for j in range(0, block, LANES):
            at = build.add(column, INDEX(j))
            prices = group.prices(at)
            for r in range(ROWS):
                weights = group.weights(starts[r], at)
                if masked:
                    code.lower(barred, weights)
                code.lower(least[r], group.nets(weights, prices))
    any_barred = build.icmp_signed("==", code.least(build.load(barred)), code.number(FORBIDDEN))
    for r in range(ROWS):
        high = code.least(build.load(least[r]))
        code.put(build.select(any_barred, code.number(FORBIDDEN), high), HIGH, group.row(INDEX(r)))


def _step(block: int) -> Any:
    """The rows from `first` on, ROWS or as many as there are before `last`, of at least `block` columns."""

    def step(_: Any, weights: Any, price: Any, near: Any, high: Any, low: Any, first: Any, last: Any, maximize: Any
             ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            code = Writer(context, builder, signature, values)
            (_floats if code.float else _integers)(code, block)
            return context.get_dummy_value()

        return types.void(weights, price, near, high, low, types.int64, types.int64, types.int64), generate

    return intrinsic(step)


wide_rows: Callable[..., None] = _step(WIDE)
narrow_rows: Callable[..., None] = _step(LANES)
