"""The host's end of incumbent.cuh: costs that kernels tell while they run, and the word to stop."""

from typing import Any

import cupy
import cupyx
import numpy as np

from kernels.problems import Array
from kernels.solution import Number

NOTHING = np.iinfo(np.int64).max
STOP, LEAST = 0, 1


class Mailbox:
    """Mapped host memory (stop, least, generations, epochs) and the device's own copy of the least cost."""

    def __init__(self, floating: bool) -> None:
        self._floating = floating
        self._words: Array = cupyx.zeros_pinned(4, np.int64)
        self._words[LEAST] = NOTHING
        self._least: Any = cupy.full(1, NOTHING, cupy.int64)
        self.pointers = {"mailbox": self._words.ctypes.data, "least": self._least.data.ptr}

    @property
    def least(self) -> Number | None:
        """The least cost that any block has told, also while kernels run; None before the first."""
        told = np.int64(self._words[LEAST])
        if told == NOTHING:
            return None
        if not self._floating:
            return int(told)
        bits = told if told >= 0 else told ^ np.int64(NOTHING)
        return float(bits.view(np.float64))

    def stop(self) -> None:
        """End the searches under way within 256 moves each."""
        self._words[STOP] = 1
