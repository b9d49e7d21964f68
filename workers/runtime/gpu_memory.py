"""GPU memory as a worker's child sees it: page-locked staging of inputs, and what its errors mean.

Used in GPU children alone; cupy is imported when the first function is called.
"""

import contextlib
import ctypes
import functools
import os
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernels import Array, Bytes, Csr, note, seen_of

READERS = max(1, min(8, (os.cpu_count() or 1) // 2))
"""Threads that fill the staging area: one core copies 5 to 10 GB/s, the bus takes 55."""
PIECE = 8 << 20
LEAST_PIECE = 1 << 20
ALIGNMENT = 512
DRIVER = "libcuda.so.1"
OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY."""


class Staging:
    """A ring of page-locked memory that arrays from the store are read into, for copies at full bus speed.

    Page-locking is slow (about 0.3 s a GiB), so the memory is taken once, grown when a job needs more, and used by
    one job after another from the start. What is larger than `limit_bytes` stays as it is, in pageable memory.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._memory: Any = None
        self._held = 0
        self._used = 0

    def stage(self, inputs: dict[str, Array | Csr]) -> dict[str, Array | Csr]:
        """The same inputs in page-locked memory, valid until the next call."""
        parts = [part for value in inputs.values() for part in _parts(value)]
        needed = sum(_rounded(part.nbytes) for part in parts)
        if not 0 < needed <= self._limit:
            return inputs
        try:
            self._reserve(needed)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self._held = 0
            return inputs  # slower, and right
        self._used = 0
        return {name: self._staged(value) for name, value in inputs.items()}

    def _staged(self, value: Array | Csr) -> Array | Csr:
        if isinstance(value, Csr):
            return Csr(self._copy(value.indptr), self._copy(value.indices), self._copy(value.values), value.shape)
        return self._copy(value)

    def _reserve(self, needed: int) -> None:
        if self._held < needed:
            self._memory = None  # let go of the old one first
            self._held = min(self._limit, _power_of_two(needed))
            self._memory = page_locked(self._held)

    def _copy(self, array: Array) -> Array:
        if array.nbytes == 0:
            return array
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        raw = np.frombuffer(self._memory, dtype=np.uint8, count=array.nbytes, offset=self._used)
        self._used += _rounded(array.nbytes)
        staged: Array = raw.view(array.dtype).reshape(array.shape, order=order)
        note(staged, seen_of(array))  # of what was here before, nothing holds any more
        source = getattr(array, "filename", None)
        try:
            if source is None:
                np.copyto(staged, array)
            else:
                _read(Path(source), int(array.offset), raw)  # type: ignore[attr-defined]
        except FileNotFoundError:  # it was settled, and has another name now; the mapping is as good, and slower
            np.copyto(staged, array)
        return staged


def page_locked(size: int) -> Any:
    """A buffer of page-locked memory, freed with its last user."""
    import cupy

    return cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)


def _read(path: Path, offset: int, target: Bytes) -> None:
    view = memoryview(target)  # type: ignore[arg-type]
    piece = max(LEAST_PIECE, min(PIECE, -(-target.nbytes // READERS)))
    with path.open("rb", buffering=0) as file:
        read = [
            _readers().submit(_read_piece, file.fileno(), view[start : start + piece], offset + start)
            for start in range(0, target.nbytes, piece)
        ]
        wait(read)  # all of them: they use the file
    for one in read:
        one.result()


@functools.cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READERS, "staging")


def _read_piece(descriptor: int, view: memoryview, offset: int) -> None:
    done = 0
    while done < len(view):
        got = os.preadv(descriptor, [view[done:]], offset + done)
        if got == 0:
            raise OSError("the blob is shorter than its header says")
        done += got


def _parts(value: Array | Csr) -> list[Array]:
    return [value.indptr, value.indices, value.values] if isinstance(value, Csr) else [value]


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def wake(library: str = DRIVER) -> None:
    """Make the first device's context, which CuPy will use, ahead of CuPy's own import.

    It takes the driver about as long as Python takes for the import, and needs nothing of Python meanwhile. What fails
    here fails again when CuPy asks, in its words.
    """
    context, device = ctypes.c_void_p(), ctypes.c_int()
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL(library)
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def memory() -> tuple[int, int]:
    """Free and total bytes of the current device."""
    import cupy

    free, total = cupy.cuda.runtime.memGetInfo()
    return int(free), int(total)


def free_pool() -> None:
    """Give the pools' unused blocks back to the driver."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def is_out_of_memory(error: BaseException) -> bool:
    """True for CuPy's own exception and for the driver's and runtime's status of that meaning."""
    return _from_cupy(error) and (
        type(error).__name__ == "OutOfMemoryError" or getattr(error, "status", None) == OUT_OF_MEMORY
    )


def is_sticky(error: BaseException) -> bool:
    """True for a CUDA error after which every later call in this process fails too."""
    return (
        _from_cupy(error)
        and type(error).__name__ in ("CUDARuntimeError", "CUDADriverError")
        and not is_out_of_memory(error)
    )


def synchronize() -> None:
    """Let an error of a kernel that is still running surface here and not in the next job."""
    import cupy

    cupy.cuda.Device().synchronize()


def device_name() -> str:
    """Of the current device."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    return str(name.decode() if isinstance(name, bytes) else name)


def compiled_for() -> str:
    """The current device, and the versions of what compiles for it."""
    import cupy

    return f"{device_name()}, CuPy {cupy.__version__}, NVRTC {cupy.cuda.nvrtc.getVersion()}"


def forget(error: BaseException) -> None:
    """Drop the frames that an exception holds, and the device arrays in them."""
    with contextlib.suppress(RuntimeError):
        error.__traceback__ = None
    error.__context__ = None


def _from_cupy(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in ("cupy", "cupy_backends")
