"""Host arrays on their way to the device: out of page-locked memory they are copied from where they lie.

Those that were sent there as they were read are taken from there (ahead.py).
"""

from typing import Any

import cupy

from kernels import locked
from kernels.ahead import sent_ahead
from kernels.problems.arrays import AnyIndices, Costs

LEAST_LOCKED = 1 << 20
"""Bytes from which it is worth asking whether an array is page-locked, or to lock memory for one."""
MOST_STAGED = 1 << 30
"""Bytes up to which CuPy copies an array to page-locked memory of its own first, of up to twice as many bytes. Larger
ones are locked where they are, for as long as the copy takes: docs/notes/device.md has what either takes."""
HOST = 1
"""cudaMemoryTypeHost: page-locked."""


def uploaded(array: Costs | AnyIndices) -> Any:
    """The array on the device. One that is page-locked must stay as it is until the stream has passed."""
    if (there := sent_ahead(array)) is not None:
        return there
    if array.nbytes < LEAST_LOCKED or not array.flags.c_contiguous:
        return cupy.asarray(array)
    page_locked = is_page_locked(array)
    if not page_locked and array.nbytes <= MOST_STAGED:
        return cupy.asarray(array)
    held = cupy.empty(array.shape, array.dtype)
    if page_locked:
        held.set(array)
    else:
        _set_locked(held, array)
    return held


def _set_locked(held: Any, array: Costs | AnyIndices) -> None:
    """Copy an array that is locked for it, if it can be: a file mapped for reading, for one, cannot everywhere."""
    try:
        unlock = locked.page_lock(array.ctypes.data, array.nbytes)
    except Exception:  # CUDA's; what is wrong with the device the copy says
        held.set(array)
        return
    try:
        held.set(array)
        cupy.cuda.get_current_stream().synchronize()
    finally:
        unlock()


def is_page_locked(array: Costs | AnyIndices) -> bool:
    """Whether the device can read it by itself."""
    return int(cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type) == HOST
