"""GPU memory as a worker's child sees it: page-locked staging of inputs, and what its errors mean.

Used in GPU children alone; cupy is imported when the first function is called.
"""

import contextlib
import ctypes
import functools
import os
import weakref
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from kernels import ANSWERS, Ahead, Array, Bytes, Csr, Locked, note, seen_of
from workers.runtime.locked_slabs import LockedSlabs
from workers.store.arena import Arena, is_slab, leased

READERS = max(1, min(8, (os.cpu_count() or 1) // 2))
"""Threads that fill the staging area: one core copies 5 to 10 GB/s, the bus takes 55."""
LEAST_PIECE, PIECE, EACH = 1 << 20, 8 << 20, 2
"""Bytes of a piece, and how many pieces are worth another thread."""
ALIGNMENT = 512
AHEAD = 64 << 20
"""Bytes whose pages are found in one step between jobs: 15 ms at 4 GiB/s (docs/notes/device.md)."""
HELD_BYTES, OF_STAGING = 512 << 20, 4
"""Of slabs that stay page-locked where they lie, and which part of staging's own limit they have at most."""
DRIVER = "libcuda.so.1"
OF_CONTEXTS = 0.04
"""Of a device's memory: what several processes have there beside CuPy's pools."""
OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY."""


class Staging:
    """Page-locked memory that arrays from the store are read into, for copies at full bus speed.

    Finding and locking it is slow, so it is grown when a job needs more, kept, and used by one job after another from
    the start. What is larger than `limit_bytes` stays as it is, in pageable memory.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._memory: Locked | None = None
        self._used = 0
        self._several = False
        self._noted: list[weakref.ref[Array]] = []  # staged arrays of which something is noted
        self._slabs = LockedSlabs(min(HELD_BYTES, limit_bytes // OF_STAGING))

    @contextlib.contextmanager
    def several(self) -> Iterator[None]:
        """A block in which inputs are put behind those before: of jobs that are solved together, all are needed."""
        Ahead.forget()
        self._used, self._several = 0, True
        try:
            yield
        finally:
            self._several = False

    def ready(self, count: int) -> None:
        """Have so many bytes before a job needs them, within the limit. Raises as `Locked.ready`."""
        self._of_all().ready(min(count, self._limit))

    def find(self, count: int) -> None:
        """Have the pages of so many bytes, within the limit. Raises as `Locked.find`."""
        self._of_all().find(min(count, self._limit))

    def _of_all(self) -> Locked:
        if self._memory is None:
            self._memory = Locked(self._limit)
        return self._memory

    def stage(self, inputs: dict[str, Array | Csr], whole: Container[str] = ()) -> dict[str, Array | Csr]:
        """The same inputs in page-locked memory, valid until the next call, and in a block of `several` until its end.

        Where that memory has no room left they stay as they are. One of those that a solver copies to the device as
        they lie, `whole`, is sent there from where it lies, if it can be; else it is as it is read, if it comes from a
        file.
        """
        if not self._several:
            Ahead.forget()
        sent = {name for name, value in inputs.items() if name in whole and self._slabs.sent(value)}
        return inputs | self._all_staged({name: value for name, value in inputs.items() if name not in sent}, whole)

    def _all_staged(self, inputs: dict[str, Array | Csr], whole: Container[str]) -> dict[str, Array | Csr]:
        begin = self._used if self._several else 0
        parts = [part for value in inputs.values() for part in _parts(value)]
        needed = sum(_rounded(part.nbytes) for part in parts)
        if not 0 < needed <= self._limit - begin:
            return inputs
        try:
            self.ready(begin + needed)
        except MemoryError:
            return inputs  # slower, and right
        self._used = begin
        if begin == 0:
            self._forget()
        return {name: self._staged(value, name in whole and not self._several) for name, value in inputs.items()}

    def _forget(self) -> None:
        """Nothing holds any more of what was here before: what comes may be a part of what has its place."""
        for noted in self._noted:
            if (array := noted()) is not None:
                note(array, None)
        self._noted.clear()

    def _staged(self, value: Array | Csr, whole: bool) -> Array | Csr:
        if isinstance(value, Csr):
            return Csr(self._copy(value.indptr), self._copy(value.indices), self._copy(value.values), value.shape)
        return self._copy(value, whole)

    def _copy(self, array: Array, whole: bool = False) -> Array:
        if array.nbytes == 0:
            return array
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        assert self._memory is not None
        raw = self._memory.bytes(self._used + array.nbytes)[self._used :]
        self._used += _rounded(array.nbytes)
        staged: Array = raw.view(array.dtype).reshape(array.shape, order=order)
        if (seen := seen_of(array)) is not None:
            note(staged, seen)
            self._noted.append(weakref.ref(staged))
        source = getattr(array, "filename", None)
        try:
            if source is None:
                np.copyto(staged, array)
            else:
                sent = Ahead.of(staged) if whole else None
                _read(Path(source), int(array.offset), raw, sent)  # type: ignore[attr-defined]
        except FileNotFoundError:  # the name is gone, or another slab's by now; the mapping is as good, and slower
            np.copyto(staged, array)
        return staged


def taken_ahead(staging: Staging, count: int, arena: Arena | None = None) -> list[Callable[[], None]]:
    """Steps that take page-locked memory before a job needs it: half of `count` for inputs, half for plans.

    Beside them grow two slabs of the arena of as much each, for an upload and a result: half of the arena at most.

    A job that comes meanwhile waits for one of them. Pages are found a few at a time, and locked at last, all at once
    and much faster. Memory that grows is locked anew from its front on: copies may cross no border of what is locked.
    A first job would wait for all of it.
    """
    half = count // 2 // AHEAD * AHEAD
    slab = [] if arena is None else [partial(_found_in, arena, half)]
    found: list[Callable[[], None]] = []
    for size in range(AHEAD, half + 1, AHEAD):
        found += [*slab, partial(staging.find, size), *slab, partial(ANSWERS.find, size)]
    return [*found, *(partial(ready, half) for ready in (staging.ready, ANSWERS.ready) if half)]


def _found_in(arena: Arena, most: int) -> None:
    with contextlib.suppress(OSError):  # an upload finds its memory itself, or goes to the disk
        arena.find_ahead(AHEAD, most)


def _read(path: Path, offset: int, target: Bytes, sent: Ahead | None = None) -> None:
    """Fill memory from a file by this thread and others, which may wake late; a piece is `sent` on once it is there."""
    view = memoryview(target)  # type: ignore[arg-type]
    piece = max(LEAST_PIECE, min(PIECE, -(-target.nbytes // READERS)))
    starts = iter(range(0, target.nbytes, piece))
    with leased(path) if is_slab(path) else _opened(path) as descriptor:

        def some() -> None:
            for start in starts:
                end = min(start + piece, target.nbytes)
                _read_piece(descriptor, view[start:end], offset + start)
                if sent is not None:
                    sent.send(start, end)

        others = [_readers().submit(some) for _ in range(min(READERS, target.nbytes // piece // EACH) - 1)]
        try:
            some()
        finally:
            begun = [one for one in others if not one.cancel()]
            wait(begun)  # they use the file
    for one in begun:
        one.result()
    if sent is not None:
        sent.all_sent()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    with path.open("rb", buffering=0) as file:
        yield file.fileno()


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


def share(sharers: int) -> None:
    """Take no more than an equal part of each device's memory, where several processes share it."""
    import cupy

    for number in range(cupy.cuda.runtime.getDeviceCount() if sharers > 1 else 0):
        with cupy.cuda.Device(number):
            most = (1 - OF_CONTEXTS) * cupy.cuda.runtime.memGetInfo()[1] / sharers
            cupy.get_default_memory_pool().set_limit(size=int(most))


def memory() -> tuple[int, int]:
    """Free and total bytes of the current device, of which this process may take its share."""
    import cupy

    free, total = cupy.cuda.runtime.memGetInfo()
    pool = cupy.get_default_memory_pool()
    limit = int(pool.get_limit())
    return (max(0, min(int(free), limit - int(pool.total_bytes()))), limit) if limit else (int(free), int(total))


def free_pool() -> None:
    """Give the pools' unused blocks back to the driver."""
    import cupy

    Ahead.forget()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    ANSWERS.let_go()


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
