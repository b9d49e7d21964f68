"""What the checks of a warm start make of int32 while they read it: lists, or tight pairs where costs tie.

Whether costs lie within NARROW, so that int32 suffices, is known once all are read. Where they do not, nothing is made:
what was worked out until then has wrapped round, and is dropped.
"""

from typing import Any

import numpy as np

from kernels.lap.cpu.near import LANES, Near, empty_lists
from kernels.lap.cpu.near_rows import check_and_list
from kernels.lap.cpu.shortlist import NIL, jit
from kernels.lap.cpu.tight import mark_tight
from kernels.lap.cpu.tight_vectors import TOGETHER
from kernels.lap.cpu.whole import NARROW, Whole, inlined, new_whole
from kernels.problems.arrays import AnyIntegers, Costs, Indices, Integers, Words

NOTHING, LISTED, MARKED = range(3)


@inlined
def within_top(number: Any, top: int) -> Any:
    """The nearest number within +-top."""
    return max(min(number, top), -top)


@jit
def list_narrow(
    cost: Costs, limits: Costs, bits: AnyIntegers, v0: Integers, u0: Integers, col_of: Indices, rows: int
) -> tuple[int, int, Whole, Near, Words, Costs]:
    """A search at prices v0 with its lists, or its tight pairs and what the least of each row less the prices is.

    Which of these was made; the largest size of the costs, and of the prices whether it is at most four times as large.

    Args:
        v0: (n_cols,), within +-4 NARROW, or nothing is made.
        u0: (n_rows,) what the least of each row may be, or empty.
        rows: of a piece, between two looks at the sizes.
    """
    n_rows, n_cols, most_price, top = col_of.size, v0.size, NIL, 4 * NARROW
    v, old = np.empty(n_cols, limits.dtype), np.empty(u0.size, limits.dtype)
    for j in range(n_cols):
        most_price = max(most_price, abs(within_top(v0[j], 2 * top)))
        v[j] = within_top(v0[j], top)
    for i in range(u0.size):
        old[i] = within_top(u0[i], 2 * top)
    s = new_whole(cost, limits, bits, v, col_of)
    lists, blocks, made, sizes = (
        empty_lists(s),
        (n_cols + LANES - 1) // LANES,
        NOTHING,
        np.zeros(TOGETHER + 1, np.uint32),
    )
    most: Any = sizes
    most[TOGETHER] = NARROW + 1
    tied = lists.window[0] <= 0
    tight, u = np.empty((n_rows if tied else 0, blocks), np.uint64), np.empty(n_rows if tied else 0, limits.dtype)
    if most_price <= top and tied:
        made, first = MARKED, NIL
        while first < n_rows and made != NOTHING:
            mark_tight(s, tight, old, u, most[:TOGETHER].view(u.dtype), first, min(n_rows, first + rows))
            made, first = MARKED if most[:TOGETHER].max() <= NARROW else NOTHING, first + rows
    elif most_price <= top and check_and_list(s, lists, most, old, rows):
        made = LISTED
    largest = int(most[:TOGETHER].max())
    return made if most_price <= 4 * largest else -made, largest, s, lists, tight, u
