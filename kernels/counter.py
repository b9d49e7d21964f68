"""A number that threads share and add to without a lock, Python's included: who takes what, in compiled code."""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from kernels.compiling import njit
from kernels.problems.arrays import Integers


@intrinsic  # type: ignore[untyped-decorator]
def taken(typing_context: Any, counter: Any, count: Any) -> Any:
    """What `counter[0]` was before `count` was added to it: no two calls are told the same numbers.

    One atomic addition, in one order with all others and with every other access to memory (`seq_cst`).
    """

    def add(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind, (array, more) = signature.args[0], values
        place = context.make_array(kind)(context, builder, array).data
        return builder.atomic_rmw("add", place, more, "seq_cst")

    if not isinstance(counter, types.Array) or counter.dtype != types.int64 or not counter.mutable:
        return None  # numba says that there is no such function
    return types.int64(counter, types.int64), add


@njit(cache=True, nogil=True)
def take(counter: Integers, count: int) -> int:
    """`taken`, for Python."""
    return int(taken(counter, count))


def new_counter() -> Integers:
    """(1,), at 0."""
    return np.zeros(1, np.int64)
