"""Lists that are made while the checks of a warm start read its costs: memory is read once for both.

The pieces are those of `near_rows.list_in_pieces`, so lists are the same whoever makes them. Where more than
MOST_THREADS threads would make them beside one another, they are sooner done than one thread that does both.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from kernels.lap.cpu import by_rows, near, near_rows, whole
from kernels.problems import ranges
from kernels.problems.arrays import Amounts, AnyIntegers, Costs, untouched

MOST_THREADS = 2
LARGEST = 1 << 26
"""Entries beyond which a look at the clock is wanted meanwhile."""
INFINITE: dict[Any, Any] = {np.dtype(np.float64): np.int64(0x7FF << 52), np.dtype(np.float32): np.int32(0xFF << 23)}
"""The bits of infinity."""


class Early:
    """Lists in the making. They are handed out once, as a search changes them."""

    def __init__(self, s: whole.Whole, lists: near.Near) -> None:
        self._made: tuple[whole.Whole, near.Near] | None = (s, lists)
        self._finite = False

    def __call__(self) -> float | None:
        """List all rows; returns the largest magnitude, or None where costs are not all finite."""
        assert self._made is not None
        s, lists = self._made
        none = INFINITE[s.cost.dtype]
        most: AnyIntegers = np.zeros(near_rows.TOGETHER + 1, none.dtype)
        most[-1] = none
        n, rows = len(s.cost), near_rows.rows_of_a_piece(s)
        self._pieces = near_rows.pieces_of(s, lists)
        for at, piece in enumerate(self._pieces):
            begin = at * rows
            if not near_rows.check_and_list(s, piece, most, begin, begin, min(n, begin + rows)):
                return None
        self._finite = True
        return float(most[:-1].view(s.cost.dtype).max())

    def take(self, cost: Costs, v: Costs) -> tuple[whole.Whole, near.Near] | None:
        """The search and its lists, if the rows of `cost` are listed at prices `v` and nobody has taken them yet."""
        made, self._made = self._made, None
        if made is None or not self._finite or not np.may_share_memory(made[0].cost, cost):
            return None
        if made[0].cost.shape != cost.shape or not np.array_equal(made[0].v, v):
            return None
        near_rows.gather(made[1], self._pieces)
        return made


def early(weights: Costs, maximize: bool, v0: Amounts) -> Early | None:
    """Empty lists of a square problem of floats to be minimised; None for others, and where they tie too much.

    `v0`: (n,) finite prices; what they are worth is asked later.
    """
    if weights.ndim != 2 or weights.dtype.kind != "f" or maximize or numba.get_num_threads() > MOST_THREADS:
        return None
    if weights.shape[0] != weights.shape[1] or len(weights) < near.LANES:
        return None
    if not by_rows.AT_ONCE < weights.size <= LARGEST:
        return None
    if not (weights.flags.c_contiguous and weights.flags.aligned):
        return None
    n = len(weights)
    s = whole.new_whole(untouched(weights), *by_rows.CONSTANTS["f"], v0.astype(np.float64), np.empty(n, np.int64))
    lists = near.new_near(s)
    return None if lists is None else Early(s, lists)


def warm_up() -> None:
    """Compile what lists and checks, and let problems be looked at with it from now on."""
    for dtype in INFINITE:
        costs = np.random.default_rng(0).random((near.LANES, near.LANES)).astype(dtype)
        s = whole.new_whole(
            untouched(costs), *by_rows.CONSTANTS["f"], np.zeros(len(costs)), np.empty(len(costs), np.int64)
        )
        lists = near.new_near(s)
        assert lists is not None
        Early(s, lists)()
    made: Callable[[Costs, bool, Amounts], Early | None] = early
    ranges.beside = made
