"""Host arrays on their way to the device: out of page-locked memory they are copied from where they lie.

Those that were sent there as they were read are taken from there (ahead.py).
"""

from typing import Any

import cupy

from kernels.ahead import sent_ahead
from kernels.problems.arrays import Costs

LEAST_LOCKED = 1 << 20
"""Bytes from which it is worth asking whether an array is page-locked, or to lock memory for one."""
HOST = 1
"""cudaMemoryTypeHost: page-locked."""


def uploaded(array: Costs) -> Any:
    """The array on the device. One that is page-locked must stay as it is until the stream has passed."""
    if (there := sent_ahead(array)) is not None:
        return there
    if array.nbytes < LEAST_LOCKED or not array.flags.c_contiguous or not is_page_locked(array):
        return cupy.asarray(array)
    held = cupy.empty(array.shape, array.dtype)
    held.set(array)
    return held


def is_page_locked(array: Costs) -> bool:
    """Whether the device can read it by itself."""
    return int(cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type) == HOST
