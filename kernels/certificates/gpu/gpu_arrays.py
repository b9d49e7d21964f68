"""Input arrays in device memory: as the solver left them there, or copied once more; and their checksums."""

from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.checksum import InputChanged, Pending
from kernels.cuda import attribute, kernel
from kernels.problems import Array
from kernels.solution import Solution

BLOCK = 256


def on_device(array: Array, solution: Solution) -> Any:
    """The array on the device: contiguous, aligned to a word."""
    held = next((found.device for found in solution.uploads if found.host is array), None)
    if held is None or held.shape != array.shape or held.dtype != array.dtype or held.device != cupy.cuda.Device():
        held = cupy.asarray(array)
    return held if held.flags.c_contiguous and held.data.ptr % 8 == 0 else held.copy(order="C")


def add_checksum(array: Any, total: Any) -> None:
    """Add the checksum of a device array to `total` (uint64 on the device); nothing waits."""
    blocks = max(1, min(8 * attribute("MultiProcessorCount"), -(-array.nbytes // (8 * BLOCK))))
    add_up = kernel("certificates/gpu/checksum.cu", "add_up_words", cooperative=False)
    add_up((blocks,), (BLOCK,), (array, np.uint64(array.nbytes), total))


def compare(arrays: list[Array], totals: list[int], checksums: Pending) -> None:
    """Hold the device's checksums against those of what arrived.

    Raises:
        InputChanged: they differ.
    """
    for array, found in zip(arrays, totals, strict=True):
        expected = checksums.of(array)
        if found % 2**64 != expected:
            shape = " x ".join(map(str, array.shape))
            raise InputChanged(
                f"the input of {shape} {array.dtype} has the checksum {found % 2**64:016x} on the device"
                f" and {expected:016x} where it arrived"
            )
