"""Page-locked memory of the host, which a GPU reads and writes by itself, at the full speed of its bus.

CUDA's own call for it finds fresh pages one after the other, at about 1 GiB/s. Threads find them several times as fast,
in large pages where the system has them, and pages that are there are locked at 25 GiB/s (docs/notes/device.md). So
addresses are taken without pages, and pages are found and locked as far as somebody needs them.
"""

import contextlib
import ctypes
import functools
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kernels.host_room import host_bytes
from kernels.pages import FOUND, LARGE, advise
from kernels.problems.arrays import Bytes

CHUNK = 64 << 20
"""Bytes by which locked memory grows."""
STEP = 16 << 20
"""Bytes whose pages one thread finds in one go."""
FINDERS = max(1, min(8, os.cpu_count() or 1))
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
NO_MEMORY = 12
"""ENOMEM. Any other answer means that this system finds pages when they are first written to."""
PORTABLE = 1
"""cudaHostRegisterPortable: for all devices of the process."""
Unlock = Callable[[], object]


def page_lock(address: int, count: int) -> Unlock:
    """Page-lock memory that stays where it is; what is returned lets go of it. Raises CuPy's errors."""
    import cupy

    cupy.cuda.runtime.hostRegister(address, count, PORTABLE)
    return functools.partial(cupy.cuda.runtime.hostUnregister, address)


class Locked:
    """Memory at one address that is page-locked from its front on, as far as it was asked for.

    Args:
        most: bytes that it may ever have; addresses for them are taken at once.

    Raises:
        MemoryError: there are no such addresses.
    """

    def __init__(self, most: int) -> None:
        try:
            self._memory = mmap.mmap(-1, most, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        except OSError as error:
            raise MemoryError(f"no addresses for {most} bytes: {error}") from error
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._most, self.found, self.held = most, 0, 0
        self._unlock: Unlock | None = None
        advise(self._address, most, LARGE)

    def ready(self, count: int) -> None:
        """Have the first `count` bytes page-locked. Nobody may use any of it meanwhile.

        Raises:
            MemoryError: there is no memory for them, they are more than it may have, or they cannot be locked, as on
                systems where CUDA locks only what it allocates itself. Nothing is locked, then.
        """
        if count <= self.held:
            return
        wanted = self.find(count)
        self.let_go()
        try:
            self._unlock = page_lock(self._address, wanted)
        except Exception as error:  # of CUDA; what is wrong with the device the next call says again
            raise MemoryError(f"{wanted} bytes cannot be page-locked: {error}") from error
        self.held = wanted

    def find(self, count: int) -> int:
        """Have the pages of the first `count` bytes and a few more, which are told. Nothing more is locked for it.

        Raises:
            MemoryError: there is no memory for them, or they are more than it may have.
        """
        if count > self._most:
            raise MemoryError(f"{count} bytes of at most {self._most}")
        wanted = min(self._most, -(-count // CHUNK) * CHUNK)
        if wanted > self.found:
            _find(self._address + self.found, wanted - self.found)
            self.found = wanted
        return wanted

    def bytes(self, count: int) -> Bytes:
        """The first `count` bytes; the memory stays as long as they."""
        return np.frombuffer(self._memory, np.uint8, count)

    def let_go(self) -> None:
        """Nothing is page-locked any more. The pages stay."""
        unlock, self._unlock, self.held = self._unlock, None, 0
        if unlock is not None:
            unlock()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # of a device that is lost, or an interpreter that ends
            if self._unlock is not None:
                self._unlock()


class Rooms:
    """Page-locked arrays for answers, in memory that is used again once nobody holds the array.

    Args:
        most: bytes of one array at most.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._free: list[Locked] = []
        self._own = threading.Lock()

    def bytes(self, count: int) -> Bytes:
        """Memory for one array. Raises as `Locked.ready`."""
        room = self._taken()
        try:
            room.ready(count)
        except Exception:
            self._free.append(room)
            raise
        found = room.bytes(count)
        weakref.finalize(found, self._free.append, room).atexit = False
        return found

    def ready(self, count: int) -> None:
        """Have so much ready for the next array. Raises as `Locked.ready`."""
        with self._borrowed() as room:
            room.ready(min(count, self.most))

    def find(self, count: int) -> None:
        """Have the pages of so much. Raises as `Locked.find`."""
        with self._borrowed() as room:
            room.find(min(count, self.most))

    def let_go(self) -> None:
        """Give back what no array is in."""
        with self._own:
            self._free.clear()

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[Locked]:
        room = self._taken()
        try:
            yield room
        finally:
            self._free.append(room)

    def _taken(self) -> Locked:
        """The largest that is free. An array may end at any moment, in any thread, and put its room back meanwhile."""
        with self._own:
            largest = max(self._free, key=lambda room: (room.held, room.found), default=None)
            if largest is None:
                return Locked(self.most)
            self._free.remove(largest)
            return largest


ANSWERS = Rooms(min(4 << 30, host_bytes() // 16))
"""Of plans: fresh memory takes the system longer than the copy. One has at most a sixteenth of the machine's memory."""


def _find(address: int, count: int) -> None:
    """Have the pages of fresh memory found by threads. Raises MemoryError."""
    with ThreadPoolExecutor(FINDERS, "pages") as threads:
        starts = range(0, count, STEP)
        found = list(threads.map(lambda at: advise(address + at, min(STEP, count - at), FOUND), starts))
    if NO_MEMORY in found:
        raise MemoryError(f"no pages for {count} bytes")
