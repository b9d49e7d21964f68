"""Arrays that a compiled function reads without counting who holds them.

numba counts the holders of every array of a state at each function that the state is handed to, inlined ones too, with
two atomic additions an array and call. For a state of a dozen arrays that is 200 to 500 ns: ten times what it takes to
read a row of 64 numbers. A borrowed array has no counter, so nothing is counted and LLVM drops the code for it.

Borrow at the top of a compiled function, from its arguments alone: whoever called holds them until it returns.
"""

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing_context: Any, state: Any) -> Any:
    """The same array, or named tuple of arrays and numbers, without the counters of its arrays; None as it is."""

    def without_counters(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind, (value,) = signature.args[0], values
        if kind == types.none:
            return value
        if isinstance(kind, types.Array):
            return _uncounted(context, builder, kind, value)
        for place, part in enumerate(kind.types):
            if isinstance(part, types.Array):
                lent = _uncounted(context, builder, part, builder.extract_value(value, place))
                value = builder.insert_value(value, lent, place)
        return value

    return state(state), without_counters


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()
