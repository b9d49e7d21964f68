"""The loops of transport on CPUs give the same bits wherever their arrays lie in memory."""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numba import njit

from kernels import Array
from kernels.uot.cpu import loops

FAR = 400
"""Entries between arrays that are not near each other."""
NEAR = 72
"""Entries: more than the vectors of one step of a loop hold."""


@njit
def exp_row(arrays: Any) -> float:
    return loops._exp_row(arrays[0], 5.0, 0.3, arrays[1], arrays[2])


@njit
def add_rows(arrays: Any) -> float:
    loops._add_rows(arrays[0].reshape(1, -1), 0, arrays[1], 1, arrays[2])
    return 0.0


@njit
def fill_costs(arrays: Any) -> float:
    loops._fill_costs(arrays[0][:1].reshape(1, 1), arrays[1].reshape(1, -1), 1, 0, 1, arrays[2].reshape(1, -1))
    return 0.0


def laid_out(given: list[Array]) -> Iterator[list[Array]]:
    """The same arrays, two of them next to each other with a gap, in all orders."""
    n = len(given[0])
    for gap in range(NEAR):
        for starts in permutations((0, n + gap, 2 * n + gap + FAR)):
            memory = np.zeros(3 * n + gap + FAR, given[0].dtype)
            places = [memory[start : start + n] for start in starts]
            for place, values in zip(places, given, strict=True):
                place[:] = values
            yield places


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("loop", [exp_row, add_rows, fill_costs])
def test_bits_do_not_depend_on_where_arrays_lie(loop: Callable[..., float], kind: str) -> None:
    rng = np.random.default_rng(0)
    for n in (5, 7, 8, 10, 14, 16, 20, 31, 40, 57):
        given = list(rng.random((3, n)).astype(kind))
        found = {(loop(tuple(arrays)), arrays[2].tobytes()) for arrays in laid_out(given)}
        assert len(found) == 1, n
