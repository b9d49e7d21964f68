"""Host arrays on their way to the device: out of page-locked memory they are copied from where they lie."""

from typing import Any

import cupy

from kernels.problems.arrays import Costs

LEAST_LOCKED = 1 << 20
"""Bytes from which it is worth asking whether an array is page-locked, or to lock memory for one."""
HOST = 1
"""cudaMemoryTypeHost: page-locked."""


def uploaded(array: Costs) -> Any:
    """The array on the device. One that is page-locked must stay as it is until the stream has passed."""
    if array.nbytes < LEAST_LOCKED or not array.flags.c_contiguous or not is_page_locked(array):
        return cupy.asarray(array)
    held = cupy.empty(array.shape, array.dtype)
    held.set(array)
    return held


def is_page_locked(array: Costs) -> bool:
    """Whether the device can read it by itself."""
    return int(cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type) == HOST
