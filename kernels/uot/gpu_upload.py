"""Rows of a matrix from the host to the device, and room for those that come back: through page-locked memory."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import cupy as cp
import cupyx
import numpy as np

from kernels.ahead import TO_DEVICE, sent_ahead
from kernels.gpu_locked import LEAST_LOCKED, is_page_locked
from kernels.locked import ANSWERS
from kernels.problems.arrays import Array, Bytes, Reals

STAGING_BYTES = 1 << 25
ALIGNED = 256
"""Bytes to which arrays that are sent together begin."""
LARGE = 64 << 20
"""Bytes of a plan, page-locked from LEAST_LOCKED on, from which its memory is ANSWERS', not that of CuPy's pool."""


def upload(rows: Reals, into: Any) -> None:
    """Copy host rows (k, n) into the top left of the device matrix `into`.

    They go straight from page-locked memory, else through two buffers of it. Rows that are page-locked must stay as
    they are until the stream has come so far.
    """
    k, n = rows.shape
    there = rows if isinstance(rows, cp.ndarray) else sent_ahead(rows)
    if there is not None:  # already here, in benchmarks from the start
        into[:k, :n], into[:k, n:] = there, 0
        return
    if rows.dtype == into.dtype and rows.flags.c_contiguous and is_page_locked(rows):
        into[:k, n:] = 0
        width, pitch = n * rows.itemsize, into.strides[0]
        stream = cp.cuda.get_current_stream().ptr
        cp.cuda.runtime.memcpy2DAsync(into.data.ptr, pitch, rows.ctypes.data, width, width, k, TO_DEVICE, stream)
        return
    step = max(1, STAGING_BYTES // (into.shape[1] * into.dtype.itemsize))
    stream = cp.cuda.get_current_stream()
    pinned = [_pinned(min(step, k) * into.shape[1] * into.dtype.itemsize, slot, into.device.id) for slot in (0, 1)]
    events = [cp.cuda.Event(), cp.cuda.Event()]
    for number, start in enumerate(range(0, k, step)):
        stop = min(k, start + step)
        slot = number & 1
        if number > 1:
            events[slot].synchronize()  # the copy out of this buffer has ended
        buffer = pinned[slot][: (stop - start) * into.shape[1] * into.dtype.itemsize]
        staged = buffer.view(into.dtype).reshape(stop - start, into.shape[1])
        staged[:, :n] = rows[start:stop]
        staged[:, n:] = 0
        into[start:stop].set(staged)
        events[slot].record(stream)
    stream.synchronize()


def together(*arrays: Array) -> list[Any]:
    """Host arrays on the device, by one copy: each takes the host a tenth of a millisecond, however small it is."""
    places, size = _places(arrays)
    packed = np.zeros(size, np.uint8)
    for place, array in zip(places, arrays, strict=True):
        packed[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _parts(cp.asarray(packed), places, arrays)


def back(*arrays: Any) -> list[Any]:
    """Arrays of the device on the host, by one copy: each would wait for the device by itself."""
    places, size = _places(arrays)
    packed = cp.zeros(size, np.uint8)
    for part, array in zip(_parts(packed, places, arrays), arrays, strict=True):
        part[...] = array
    return _parts(packed.get(), places, arrays)


def _places(arrays: Sequence[Any]) -> tuple[list[int], int]:
    """Where each begins among the bytes of all, and how many these are."""
    places, size = [], 0
    for array in arrays:
        places.append(size)
        size += -(-array.nbytes // ALIGNED) * ALIGNED
    return places, size


def _parts(packed: Any, places: Sequence[int], arrays: Sequence[Any]) -> list[Any]:
    """The pieces of those bytes, on the device or on the host, as arrays like these."""
    return [
        packed[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
        for place, array in zip(places, arrays, strict=True)
    ]


def empty(shape: tuple[int, int], dtype: Any) -> Reals:
    """An array for what comes from the device, page-locked and used again where it is large."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    if not LEAST_LOCKED <= count <= ANSWERS.most:
        return np.empty(shape, dtype)
    try:
        if count < LARGE:
            return np.asarray(cupyx.empty_pinned(shape, dtype))
        return ANSWERS.bytes(count).view(dtype).reshape(shape)
    except (MemoryError, cp.cuda.runtime.CUDARuntimeError):  # no more memory can be locked
        return np.empty(shape, dtype)


@functools.lru_cache(maxsize=32)
def _pinned(size: int, slot: int, device: int) -> Bytes:
    memory = cp.cuda.alloc_pinned_memory(size)
    return np.frombuffer(memory, np.uint8, size)
