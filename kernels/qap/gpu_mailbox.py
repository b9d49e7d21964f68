"""The host's end of incumbent.cuh: costs that kernels tell while they run, and the word to stop."""

from typing import Any

import cupy
import cupyx
import numpy as np

from kernels.problems.arrays import Integers
from kernels.qap.layout import RELAY, RING
from kernels.solution import Number

NOTHING = np.iinfo(np.int64).max


class Mailbox:
    """Mapped host memory (the word to stop, a ring of costs) and the device's relay of both."""

    def __init__(self, floating: bool) -> None:
        self._floating = floating
        self._words: Integers = cupyx.zeros_pinned(1 + 2 * RING, np.int64)
        self._relay: Any = cupy.asarray(np.array([NOTHING] + [0] * (len(RELAY) - 1)))
        self._read = 0
        self.least: Number | None = None
        """The least cost heard so far."""
        self.pointers = {"mailbox": self._words.ctypes.data, "relay": self._relay.data.ptr}

    def news(self) -> list[Number]:
        """Every cost told since the last call, also while kernels run, as far as each was the least so far."""
        found: list[Number] = []
        while (cost := self._next()) is not None:
            if self.least is None or cost < self.least:
                self.least = cost
                found.append(cost)
        return found

    def _next(self) -> Number | None:
        at = 1 + self._read % RING * 2
        number, told = int(self._words[at]), np.int64(self._words[at + 1])
        if number <= self._read or int(self._words[at]) != number:  # none yet, or one is being written
            return None
        self._read = number  # beyond the next when the ring went round: those between are lost
        if not self._floating:
            return int(told)
        bits = told if told >= 0 else told ^ np.int64(NOTHING)
        return float(bits.view(np.float64))

    def stop(self) -> None:
        """End the searches under way within 256 moves each."""
        self._words[0] = 1
