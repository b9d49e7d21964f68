"""Loops over vectors of numbers, written as LLVM has them, for compiled code to call.

LLVM vectorises a loop over arrays only once it has compared the addresses of all of them, takes 32 or 64 numbers at a
time and the rest one by one, and leaves the minimum of floats alone. Here a step says which vectors it loads and
stores. An array is contiguous, and named by its place among the arguments; all other arguments are indices.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

INDEX = ir.IntType(64)


class VectorCode:
    """Writes vector code. Arrays and numbers of the call go by their place among its arguments."""

    def __init__(self, lanes: int, both: bool, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.lanes, self.both, self.builder, self._context, self._kinds = lanes, both, builder, context, signature.args
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
        """So many numbers of an array, from `index` on."""
        pointer, align = self._pointer(place, index)
        return self.builder.load(pointer, align=align)

    def put(self, number: Any, place: int, index: Any) -> None:
        """Put a number into an array."""
        self.builder.store(number, self.builder.gep(self.given[place], [index]))

    def widened(self, vector: Any, like: int) -> Any:
        """Numbers in the type of an array: float32 as float64."""
        wide = self._context.get_data_type(self._kinds[like].dtype)
        if vector.type.element == wide:
            return vector
        return self.builder.fpext(vector, ir.VectorType(wide, self.lanes))

    def size_bits(self, vector: Any) -> Any:
        """The sizes of numbers as whole numbers in their order: of floats the bits, NaN beyond -inf, and 0 for +inf.

        Those of integers are unsigned, as the size of the least one is no integer.
        """
        if not self._float:
            negative = self.builder.neg(vector)
            return self.builder.select(self.builder.icmp_signed(">", vector, negative), vector, negative)
        width = 64 if vector.type.element == ir.DoubleType() else 32
        words = ir.VectorType(ir.IntType(width), self.lanes)
        bits, top = self.builder.bitcast(vector, words), (0x7FF << 52 if width == 64 else 0xFF << 23)
        infinite = self.builder.icmp_signed("==", bits, ir.Constant(words, [top] * self.lanes))
        size = self.builder.and_(bits, ir.Constant(words, [(1 << width - 1) - 1] * self.lanes))
        return self.builder.select(infinite, ir.Constant(words, [0] * self.lanes), size)

    def larger_bits(self, x: Any, y: Any) -> Any:
        """The larger ones of `size_bits`."""
        compared = self.builder.icmp_signed if self._float else self.builder.icmp_unsigned
        return self.builder.select(compared(">", x, y), x, y)

    def store(self, vector: Any, place: int, index: Any) -> None:
        """Put so many numbers into an array."""
        pointer, align = self._pointer(place, index)
        self.builder.store(vector, pointer, align=align)

    def _pointer(self, place: int, index: Any) -> tuple[Any, int]:
        kind = self._kinds[place].dtype
        lanes = ir.VectorType(self._context.get_data_type(kind), self.lanes)
        pointer = self.builder.gep(self.given[place], [index])
        return self.builder.bitcast(pointer, lanes.as_pointer()), kind.bitwidth // 8

    def spread(self, number: Any) -> Any:
        """A number in every lane."""
        nothing = ir.Constant(ir.VectorType(number.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None))

    def counted(self) -> Any:
        """The indices 0, 1, ... in the lanes."""
        return ir.Constant(ir.VectorType(INDEX, self.lanes), list(range(self.lanes)))

    def halves(self, vector: Any) -> list[Any]:
        """The first and the second half of the lanes."""
        half = vector.type.count // 2
        ends = [ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(k, k + half))) for k in (0, half)]
        return [self.builder.shuffle_vector(vector, vector, end) for end in ends]

    def turned(self, rows: list[Any]) -> list[Any]:
        """The columns of as many vectors as there are lanes: weaving halves of them once for each power of two."""
        half = self.lanes // 2
        places = [k + own for k in range(self.lanes) for own in (0, self.lanes)]
        woven = [ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), part)
                 for part in (places[: self.lanes], places[self.lanes :])]  # fmt: skip
        for _ in range(half.bit_length()):
            pairs = zip(rows[:half], rows[half:], strict=True)
            rows = [self.builder.shuffle_vector(*pair, part) for pair in pairs for part in woven]
        return rows

    def first(self, vector: Any) -> Any:
        """The number in the first lane."""
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

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

    def smallest(self, vector: Any) -> Any:
        """The least number in a vector."""
        while vector.type.count > 1:
            vector = self.least(*self.halves(vector))
        return self.first(vector)

    def at_most(self, x: Any, y: Any) -> Any:
        """x <= y, by lanes."""
        return self.builder.fcmp_ordered("<=", x, y) if self._float else self.builder.icmp_signed("<=", x, y)

    def lesser(self, x: Any, y: Any) -> Any:
        """The lesser one of two indices."""
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)

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


def compiled(
    write: Callable[[VectorCode], Any], names: str, lanes: int, both: bool = False, returned: Any = types.void
) -> Any:
    """What compiled code calls with arrays and indices of these names.

    Args:
        both: what `write` asks for; a step that has two forms is compiled twice.
        returned: its type, or None for that of the first array's numbers.
    """

    def step(_: Any, *kinds: Any) -> Any:
        given = [kind if isinstance(kind, types.Array) else types.int64 for kind in kinds]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return write(VectorCode(lanes, both, context, builder, signature, values)) or context.get_dummy_value()

        return (kinds[0].dtype if returned is None else returned)(*given), generate

    asked = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("context", *names.split())]
    step.__signature__ = Signature(asked)  # type: ignore[attr-defined]
    step.__doc__ = write.__doc__
    return intrinsic(step)
