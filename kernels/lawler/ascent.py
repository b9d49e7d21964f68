"""A lower bound that rises: dual ascent on the level-1 reformulation (Hahn and Grant 1998).

The loops are those of `kernels/qap/bounds/rlt1.py`, which take any costs of pairs of pairs. Integers are multiplied by
a power of two first, so that spreading loses little; all arithmetic is exact.
"""

import threading

import numpy as np

from kernels.lawler.form import FoldedForm
from kernels.problems.arrays import AnyIntegers, Integers
from kernels.qap.bounds.lap import assign
from kernels.qap.bounds.rlt1 import gather, spread, visit

NARROW, WIDE = 29, 56
"""Bits of an objective times its scale: with them, sums and duals fit int32 and int64."""
LARGEST_SCALE = 1024
PIECE = 4_000_000
"""Work between two looks at the flag that ends it, in entries of submatrices times k: about 5 ms."""
FIRST_SWEEPS, LAST = 12, 5
"""An ascent goes on for so many sweeps at least; beyond, it has stalled once so many gained next to nothing."""
LITTLE = 20_000
"""Of the bound, divided by this: next to nothing."""


class RisingBound:
    """A dual ascent under way. One thread steps; others read `value`, and call `stop`.

    `value` is the bound so far in the form's integers, its constant included; None ahead of the first sweep.
    """

    def __init__(self, form: FoldedForm) -> None:
        k = form.k
        self.form = form
        room = NARROW if form.reach < 1 << 26 else WIDE
        self.scale = 1
        while self.scale < LARGEST_SCALE and form.reach * self.scale * 2 < 1 << room:
            self.scale *= 2
        self.leaders = form.singles * self.scale
        self.submatrices: AnyIntegers = (form.costs * self.scale).astype(np.int32 if room == NARROW else np.int64)
        self.rows, self.columns = np.zeros((k, k, k), np.int64), np.zeros((k, k, k), np.int64)
        self.gains: list[int] = []
        self.value: int | None = None
        self.rng = np.random.default_rng(0)
        self.ended = threading.Event()

    @property
    def sweeps(self) -> int:
        """Made so far."""
        return len(self.gains)

    def stop(self) -> None:
        """End it within some milliseconds."""
        self.ended.set()

    def step(self) -> None:
        """One sweep, or as much of it as there is time for: pairs that were not visited have spread their leaders."""
        k = self.form.k
        order = self.rng.permutation(k * k)
        spread(self.leaders, self.submatrices, self.rows)
        few = max(1, PIECE // k**3)
        for at in range(0, k * k, few):
            visit(self.leaders, self.submatrices, self.rows, self.columns, order[at : at + few], self.sweeps > 0)
            if self.ended.is_set():
                break
        self.gains.append(int(gather(self.leaders)))
        least = -(-sum(self.gains) // self.scale)
        grain = self.form.grain
        self.value = (-(-least // grain) * grain if grain else 0) + self.form.constant

    def stalled(self) -> bool:
        """True when the last sweeps gained next to nothing."""
        least = max(abs(sum(self.gains)), self.scale)
        return self.sweeps > FIRST_SWEEPS and sum(self.gains[-LAST:]) * LITTLE < least

    def climb(self, most: int) -> None:
        """Step until it is stopped, has stalled, or has made that many sweeps."""
        while not self.ended.is_set() and self.sweeps < most and not self.stalled():
            self.step()

    def multipliers(self) -> dict[str, Integers]:
        """What proves the bound: `exponent`, what `rows` and `columns` have given their leaders, `prices`.

        `exponent` (1,): multipliers are in units of cost 2^exponent. Call it once nobody steps.
        """
        k = self.form.k
        collected = self.form.singles * self.scale + self.rows.sum(axis=2) + self.columns.sum(axis=2)
        u, prices = np.empty(k, np.int64), np.empty(k, np.int64)
        assign(collected, u, prices, np.empty(k, np.int64))
        exponent = np.array([self.form.exponent + self.scale.bit_length() - 1])
        return {"exponent": exponent, "rows": self.rows, "columns": self.columns, "prices": prices}
