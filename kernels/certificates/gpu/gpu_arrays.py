"""Input arrays in device memory: as the solver left them there, or copied once more; and their checksums."""

import functools
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.checksum import InputChanged, Pending
from kernels.cuda import attribute, kernel
from kernels.problems import Array
from kernels.problems.arrays import Records
from kernels.solution import Solution

BLOCK = 256
STAGE = 1 << 25
"""Bytes of each of two page-locked buffers."""
COPIERS = 4
"""Threads that fill a buffer: one core copies 5 to 10 GB/s, the bus takes 55."""
ALIGNED = 256
"""Bytes to which arrays that are sent together begin."""
HOST = 1
"""cudaMemoryTypeHost: page-locked."""


def on_device(array: Array, solution: Solution) -> Any:
    """The array on the device: contiguous, aligned to a word."""
    held = next((found.device for found in solution.uploads if found.host is array), None)
    if held is None or held.shape != array.shape or held.dtype != array.dtype or held.device != cupy.cuda.Device():
        return copied(array)
    return held if held.flags.c_contiguous and held.data.ptr % 8 == 0 else held.copy(order="C")


def copied(array: Array) -> Any:
    """A copy on the device of a contiguous array, large ones through page-locked memory."""
    held = cupy.empty(array.shape, array.dtype)
    if array.nbytes <= STAGE or _is_page_locked(array):
        held.set(array)
    else:
        _through_stages(array.reshape(-1).view(np.uint8), held.reshape(-1).view(np.uint8))
    return held


def sent(*arrays: Any) -> list[Any]:
    """Short host arrays on the device, by one copy: each by itself takes the host as long as a launch."""
    places, size = [], 0
    for array in arrays:
        places.append(size)
        size += -(-array.nbytes // ALIGNED) * ALIGNED
    packed = np.empty(max(1, size), np.uint8)
    for place, array in zip(places, arrays, strict=True):
        packed[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    there = cupy.empty(packed.size, np.uint8)
    there.set(packed)
    both = zip(places, arrays, strict=True)
    return [cupy.ndarray(array.shape, array.dtype, there.data + place) for place, array in both]


def as_passed(struct: Records) -> Records:
    """The bytes of a struct, as a launch takes them: of an array with fields CuPy has NumPy describe each one anew."""
    return struct.view(np.dtype((np.void, struct.dtype.itemsize)))


def _is_page_locked(array: Array) -> bool:
    return int(cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type) == HOST


def _through_stages(raw: Array, into: Any) -> None:
    """Two buffers in turn: one is filled by some threads while the other is on its way."""
    stream, events = cupy.cuda.get_current_stream(), (cupy.cuda.Event(), cupy.cuda.Event())
    for number, start in enumerate(range(0, raw.size, STAGE)):
        piece, slot = raw[start : start + STAGE], number & 1
        if number > 1:
            events[slot].synchronize()  # the copy out of this buffer has ended
        staged = _stage(slot)[: piece.size]
        ends = np.linspace(0, piece.size, COPIERS + 1).astype(int).tolist()
        parts = [slice(begin, end) for begin, end in pairwise(ends)]
        list(_copiers().map(np.copyto, [staged[part] for part in parts], [piece[part] for part in parts]))
        into[start : start + STAGE].set(staged)
        events[slot].record(stream)
    stream.synchronize()


@functools.cache
def _stage(slot: int) -> Array:
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(STAGE), np.uint8, STAGE)


@functools.cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(COPIERS, "copier")


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
