"""Asking the processor for a line of memory ahead: what numba has no word for."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the line of array[index] into the cache, where there is one; any index will do, as nothing is read."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array_type, index_type = signature.args
        found = context.make_array(array_type)(context, builder, given[0])
        at = context.cast(builder, given[1], index_type, types.intp)
        stride = builder.extract_value(found.strides, 0)
        address = builder.gep(builder.bitcast(found.data, ir.IntType(8).as_pointer()), [builder.mul(at, stride)])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(call, [address, word(0), word(3), word(1)])  # to read, for all levels, data
        return context.get_dummy_value()

    return types.void(array, index), generate
