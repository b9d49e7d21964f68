"""Lists that are made while the checks of a warm start read its costs: memory is read once for both.

The pieces are those of `near_rows.list_in_pieces`, so lists are the same whoever makes them. Where more than
MOST_THREADS threads would make them beside one another, they are sooner done than one thread that does both.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numba
import numpy as np

from kernels import ranging
from kernels.lap.cpu import by_rows, near, near_narrow, near_rows, whole
from kernels.lap.cpu.near_vectors import TOGETHER
from kernels.lap.cpu.shortlist import jit
from kernels.lap.cpu.tight import Marks
from kernels.lap.cpu.whole import inlined
from kernels.lap.warm import OUT_OF_PROPORTION, RUN, SAMPLE
from kernels.problems import ranges
from kernels.problems.arrays import Amounts, AnyIntegers, Costs, Indices, Integers, untouched

MOST_THREADS = 2
LARGEST = 1 << 26
"""Entries beyond which a look at the clock is wanted meanwhile."""
NOTHING, NO_INTEGERS = np.zeros(0), np.zeros(0, np.int64)
INFINITE: dict[Any, Any] = {np.dtype(np.float64): ranging.INFINITE, np.dtype(np.float32): ranging.INFINITE_32}
"""The bits of infinity."""


class Made(NamedTuple):
    """A search and its lists, which are empty where integers tie: then there are tight pairs (`tight.py`)."""

    s: whole.Whole
    lists: near.Near
    tight: Marks | None


class Early:
    """Lists in the making. They are handed out once, as a search changes them.

    `given` are the prices as they came, `prices` the same in the type of a search, whose `by_rows.CONSTANTS` are those
    of `kind`.
    """

    def __init__(self, cost: Costs, v0: Amounts, old: Any = NOTHING) -> None:
        """`old`: (n_rows,) what the least of each row less the prices may be, or nothing."""
        self.kind, self.given, self.prices, self._old = "f", v0, v0, old
        self._cost, self._useful = cost, False
        self._made: Made | None = None

    def __call__(self) -> float | None:
        """List all rows; returns the largest magnitude, or None where costs are NaN or -inf or tie too much."""
        rows, col_of = max(1, near_rows.PIECE // self.given.size), np.empty(len(self._cost), np.int64)
        if self._cost.dtype == np.int32:
            return self._list_narrow(rows, col_of)
        none = INFINITE[self._cost.dtype]
        most: AnyIntegers = np.zeros(TOGETHER + 1, none.dtype)
        most[-1] = none
        v = self.prices = self.given.astype(np.float64)
        given = untouched(self._cost), *by_rows.CONSTANTS["f"], v, untouched(self._old)
        made, self._useful, s, lists = list_all(*given, col_of, most, rows)
        if not made:
            return None
        self._made = Made(s, lists, None)
        return float(most[:-1].view(self._cost.dtype).max())

    def _list_narrow(self, rows: int, col_of: Indices) -> int | None:
        """The same of int32; None where they do not suffice."""
        self.kind = "narrow"
        v0, u0 = cast(Integers, untouched(self.given)), cast(Integers, untouched(self._old))
        given = untouched(self._cost), *by_rows.CONSTANTS["narrow"]
        made, largest, s, lists, tight, u = near_narrow.list_narrow(*given, v0, u0, col_of, rows)
        if made == near_narrow.NOTHING:
            return None
        self._useful, self.prices = made > 0, cast(Amounts, s.v)
        self._made = Made(s, lists, (tight, u) if abs(made) == near_narrow.MARKED else None)
        return int(largest)

    def suits(self, v0: Costs | None) -> bool:
        """Whether lists are made at these very prices, and a search may start from them as they are (`warm.py`)."""
        return self._made is not None and self._useful and v0 is self.given

    def take(self, cost: Costs, v: Costs) -> Made | None:
        """The search and its lists, if the rows of `cost` are listed at prices `v` and nobody has taken them yet."""
        made, self._made = self._made, None
        if made is None or self._cost.shape != cost.shape or not np.may_share_memory(self._cost, cost):
            return None
        return made if v is self.prices or np.array_equal(self.prices, v) else None


@jit
def list_all(
    cost: Costs, limits: Costs, bits: AnyIntegers, v: Costs, old: Costs, col_of: Indices, most: AnyIntegers, rows: int
) -> tuple[bool, bool, whole.Whole, near.Near]:
    """A search at prices `v` with its lists; whether these are made, and whether the prices are of use.

    See `whole.new_whole` and `check_and_list`. One call from Python, as each that hands over a search takes 10 us.
    """
    fine, known = largest_bits(v, bits) < bits[0], largest_bits(old, bits) < bits[0]
    if not fine:  # NaN or an infinity, which `build` refuses later
        v[:] = 0.0
    s = whole.new_whole(cost, limits, bits, v, col_of)
    lists = near.empty_lists(s)
    made = fine and lists.window[0] > 0 and near_rows.check_and_list(s, lists, most, old if known else old[:0], rows)
    return made, made and in_proportion(cost, np.abs(v).max(), most), s, lists


@inlined
def largest_bits(numbers: Costs, bits: AnyIntegers) -> Any:
    """Of the sizes of floats: those of infinity or more where one is no number or not finite."""
    size = bits[0] * 0
    for word in numbers.view(bits.dtype):
        size = max(size, word & bits[1])
    return size


@inlined
def in_proportion(cost: Costs, size: float, most: AnyIntegers) -> bool:
    """Whether `warm.proportionate` keeps duals of this size, and `warm.cut` cuts none. At times False where they do.

    The middle of the sample, as `warm.middle` takes it, is not below what half of the sample and more is not below.
    `most`: the bits of what is at most the size of a cost by lanes.
    """
    flat, least, seen, small = cost.reshape(cost.size), size / OUT_OF_PROPORTION, 0, 0
    apart = flat.size * RUN // SAMPLE | 1
    for first in range(0, flat.size - RUN, apart):
        for k in range(first, first + RUN):
            entry = abs(flat[k])
            seen += 1 if (entry > 0) & (entry < math.inf) else 0
            small += 1 if (entry > 0) & (entry < least) else 0
    return seen > 0 and 2 * small < seen and size <= 4.0 * most[:TOGETHER].view(cost.dtype).max()


def early(weights: Costs, maximize: bool, v0: Amounts, u0: Any = None) -> Early | None:
    """Empty lists of a problem of floats or int32 to be minimised, square or wide in float64; None for others.

    `v0`: (n_cols,) prices, float64 or int64 as the costs are, and `u0` duals of rows or something else: nobody has
    checked them so far.
    """
    exact = weights.dtype == np.int32
    if weights.ndim != 2 or not (exact or weights.dtype.kind == "f") or maximize:
        return None
    if numba.get_num_threads() > MOST_THREADS or v0.dtype.kind != ("i" if exact else "f"):
        return None
    if exact and not (v0.dtype == np.int64 and v0.flags.c_contiguous and v0.flags.aligned):
        return None
    wide = weights.shape[0] < weights.shape[1] and weights.itemsize == 8
    if not (wide or weights.shape[0] == weights.shape[1]) or len(weights) < near.LANES:
        return None
    if not by_rows.AT_ONCE < weights.size <= LARGEST:
        return None
    if not (weights.flags.c_contiguous and weights.flags.aligned):
        return None
    nothing = NO_INTEGERS if exact else NOTHING
    known = isinstance(u0, np.ndarray) and u0.shape == weights.shape[:1] and u0.dtype == nothing.dtype
    return Early(weights, v0, u0 if known and u0.flags.c_contiguous and u0.flags.aligned else nothing)


def warm_up() -> None:
    """Compile what lists and checks, and let problems be looked at with it from now on."""
    for dtype in INFINITE:
        costs = np.random.default_rng(0).random((near.LANES, near.LANES)).astype(dtype)
        Early(costs, np.zeros(len(costs)))()
    Early(costs.astype(np.int32), np.zeros(len(costs), np.int64))()
    made: Callable[[Costs, bool, Amounts, Any], Early | None] = early
    ranges.beside = made
