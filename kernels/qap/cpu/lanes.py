"""Steps of a tabu search over rows of sixteen numbers at a time, written as LLVM's vectors.

LLVM would vectorise the same loops only for rows far longer than those of a quadratic assignment, and only after it
has compared the addresses of all arrays. Every array is flat; a row has `width` entries, a multiple of LANES, of which
those after n are padding. Sums of int32 and int64 wrap, as everywhere in a search.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

LANES = 16
"""One AVX-512 register of int32. LLVM takes several where registers are shorter or numbers longer."""
INDEX = ir.IntType(64)


@register_jitable
def width_of(n: int) -> int:
    """Entries of a row that holds n numbers."""
    return -(-n // LANES) * LANES


class _Writer:
    """Writes vector code. Arrays and numbers of the call go by their place among its arguments."""

    def __init__(self, both: bool, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.both, self.builder, self._context, self._kinds = both, builder, context, signature.args
        self.given = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, values, strict=True)
        ]
        self._float = isinstance(signature.args[0].dtype, types.Float)

    def whole(self, value: int) -> Any:
        """An index that is known now."""
        return ir.Constant(INDEX, value)

    def directions(self, width: Any) -> list[Any]:
        """Where the vectors of either direction of the flow begin."""
        return [self.whole(0), width][: 1 + self.both]

    def one(self, place: int, index: Any) -> Any:
        """A number of an array."""
        return self.builder.load(self.builder.gep(self.given[place], [index]))

    def load(self, place: int, index: Any) -> Any:
        """LANES numbers of an array, from `index` on."""
        pointer, align = self._pointer(place, index)
        return self.builder.load(pointer, align=align)

    def store(self, vector: Any, place: int, index: Any) -> None:
        """Put LANES numbers into an array."""
        pointer, align = self._pointer(place, index)
        self.builder.store(vector, pointer, align=align)

    def _pointer(self, place: int, index: Any) -> tuple[Any, int]:
        kind = self._kinds[place].dtype
        lanes = ir.VectorType(self._context.get_data_type(kind), LANES)
        pointer = self.builder.gep(self.given[place], [index])
        return self.builder.bitcast(pointer, lanes.as_pointer()), kind.bitwidth // 8

    def spread(self, number: Any) -> Any:
        """A number in every lane."""
        nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))

    def plus(self, x: Any, y: Any) -> Any:
        """x + y."""
        return self.builder.fadd(x, y) if self._float else self.builder.add(x, y)

    def minus(self, x: Any, y: Any) -> Any:
        """x - y."""
        return self.builder.fsub(x, y) if self._float else self.builder.sub(x, y)

    def times(self, x: Any, y: Any) -> Any:
        """x y."""
        return self.builder.fmul(x, y) if self._float else self.builder.mul(x, y)

    def less(self, x: Any, y: Any) -> Any:
        """x < y, by lanes."""
        return self.builder.fcmp_ordered("<", x, y) if self._float else self.builder.icmp_signed("<", x, y)

    def least(self, x: Any, y: Any) -> Any:
        """The lesser one; y where x is not a number."""
        return self.builder.select(self.less(x, y), x, y)

    def equal(self, x: Any, y: Any) -> Any:
        """x == y, by lanes or of two numbers."""
        return self.builder.fcmp_ordered("==", x, y) if self._float else self.builder.icmp_signed("==", x, y)

    def loop(self, end: Any, start: Any = None, step: int = 1) -> Any:
        """From `start`, or 0, up to `end`."""
        first = self.whole(0) if start is None else start
        return cgutils.for_range_slice(self.builder, first, end, self.whole(step), intp=INDEX)

    def variable(self, vector: Any) -> Any:
        """What a loop changes, as it begins each time that it is met; LLVM keeps it in a register."""
        place = cgutils.alloca_once(self.builder, vector.type)
        self.builder.store(vector, place)
        return place

    def lower(self, place: Any, vector: Any) -> None:
        """Take the lesser one into a variable."""
        self.builder.store(self.least(vector, self.builder.load(place)), place)


def _sweep(to: _Writer) -> None:
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


def _subtract(to: _Writer) -> None:
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


def _refresh(to: _Writer) -> None:
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


def _subtract_rows(to: _Writer) -> None:
    """One row less another, into a vector that begins at `to_place`."""
    out, matrix = range(2)
    to_place, first, second, width = to.given[2:]
    build = to.builder
    one, other = build.mul(first, width), build.mul(second, width)
    with to.loop(width, None, LANES) as (v, _):
        by = to.minus(to.load(matrix, build.add(one, v)), to.load(matrix, build.add(other, v)))
        to.store(by, out, build.add(to_place, v))


def _holds(to: _Writer) -> Any:
    """Whether any of LANES numbers is the one that stands at another place of the same array."""
    at, wanted = to.given[1:]
    build = to.builder
    found = to.equal(to.load(0, at), to.spread(to.one(0, wanted)))
    return build.icmp_unsigned("!=", build.bitcast(found, ir.IntType(LANES)), ir.Constant(ir.IntType(LANES), 0))


def _compiled(write: Callable[[_Writer], Any], names: str, both: bool = False, returned: Any = types.void) -> Any:
    """What compiled code calls with arrays and indices of these names; `both`: for each direction of the flow."""

    def step(_: Any, *kinds: Any) -> Any:
        given = [kind if isinstance(kind, types.Array) else types.int64 for kind in kinds]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return write(_Writer(both, context, builder, signature, values)) or context.get_dummy_value()

        return returned(*given), generate

    asked = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("context", *names.split())]
    step.__signature__ = Signature(asked)  # type: ignore[attr-defined]
    step.__doc__ = write.__doc__
    return intrinsic(step)


SWEEP = "delta until a h floor low low_free n width now"
SUBTRACT = "partial diagonal a h n width"
REFRESH = "delta until partial flow near near_back tabu column dates diagonal a h facility width"
sweep, sweep_both = _compiled(_sweep, SWEEP), _compiled(_sweep, SWEEP, both=True)
subtract, subtract_both = _compiled(_subtract, SUBTRACT), _compiled(_subtract, SUBTRACT, both=True)
refresh, refresh_both = _compiled(_refresh, REFRESH), _compiled(_refresh, REFRESH, both=True)
subtract_rows = _compiled(_subtract_rows, "out matrix to_place first second width")
holds = _compiled(_holds, "numbers at wanted", returned=types.boolean)
