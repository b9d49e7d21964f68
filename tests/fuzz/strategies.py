"""Hypothesis as the one who chooses: it draws the same families, and makes what fails small."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernels import Array


class Hypothetical:
    """A `Draw` whose choices are Hypothesis's."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def whole(self, low: int, high: int) -> int:
        found: int = self._data.draw(st.integers(low, high))
        return found

    def wholes(self, low: int, high: int, shape: tuple[int, ...]) -> Array:
        found: Array = self._data.draw(arrays.arrays(np.int64, shape, elements=st.integers(low, high)))
        return found
