"""Arrays of a device cut out of one allocation: each of its own takes the host as long as a kernel's launch."""

import math
from collections.abc import Mapping
from typing import Any

import cupy
import numpy as np

from kernels.problems.arrays import Bytes

ALIGNED = 256
"""Bytes to which arrays begin, as CuPy's own do."""
Parts = Mapping[str, tuple[tuple[int, ...], Any]]
"""Shape and type by name."""


class Carved:
    """Arrays by name: first those that are 0, then those whose bytes are all ones (-1), then those that hold anything.

    Each is made when it is asked for: a launch needs no more than its address.

    Attributes:
        at: the address of each on the current device.
    """

    def __init__(self, zeros: Parts, ones: Parts, rest: Parts) -> None:
        self._kinds = {**zeros, **ones, **rest}
        self._places: dict[str, int] = {}
        ends = [0]
        for parts in (zeros, ones, rest):
            size = ends[-1]
            for name, kind in parts.items():
                self._places[name] = size
                size += -(-_bytes(kind) // ALIGNED) * ALIGNED
            ends.append(size)
        self._memory = cupy.empty(max(1, ends[-1]), np.uint8)
        begin, stream = int(self._memory.data.ptr), cupy.cuda.get_current_stream().ptr
        for value, first, last in ((0, 0, ends[1]), (0xFF, ends[1], ends[2])):
            if first < last:
                cupy.cuda.runtime.memsetAsync(begin + first, value, last - first, stream)
        self.at = {name: begin + place for name, place in self._places.items()}

    def array(self, name: str) -> Any:
        """One of them."""
        shape, dtype = self._kinds[name]
        return cupy.ndarray(shape, dtype, self._memory.data + self._places[name])

    def fetched(self, first: str, last: str) -> dict[str, Any]:
        """What lies from one array to another on the host, by one copy."""
        begin, end = self._places[first], self._places[last] + _bytes(self._kinds[last])
        found: Bytes = self._memory[begin:end].get()
        return {name: self._part(found, name, begin) for name, at in self._places.items() if begin <= at < end}

    def _part(self, found: Bytes, name: str, begin: int) -> Any:
        (shape, dtype), at = self._kinds[name], self._places[name] - begin
        return found[at : at + _bytes(self._kinds[name])].view(dtype).reshape(shape)


def _bytes(kind: tuple[tuple[int, ...], Any]) -> int:
    return int(math.prod(kind[0]) * np.dtype(kind[1]).itemsize)
