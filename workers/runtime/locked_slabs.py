"""Slabs of the arena that a GPU reads where they lie: mapped and page-locked from job to job.

An upload lies in a slab (store/arena.py), and a slab is used again and again. To copy 8 MiB of one into page-locked
memory takes threads a millisecond. The device's own copy takes 0.2 ms where the slab's pages are locked already.

Invariant: the pages that are locked are the file's, since its size is kept (store/sizes.py). In them is whatever was
written last. So only those bytes are sent that a job has mapped, under the lock of who reads.
"""

import contextlib
import ctypes
import logging
import mmap
import os
import time
from collections import OrderedDict

import numpy as np

from kernels import Ahead, Array, Csr, page_lock
from workers.store.sizes import give_back, keep_size

LOG = logging.getLogger(__name__)
LOOK_S = 0.25
"""How often slabs are looked for that the arena has given up. Their memory is theirs until they are found."""
Inode = tuple[int, int]


class LockedSlabs:
    """What one process holds of them, the least recently used first.

    Args:
        most: bytes of all.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[Inode, _Held] = OrderedDict()
        self._looked = 0.0

    def sent(self, array: Array | Csr) -> bool:
        """Send an array, which was mapped from a slab and lies there in one piece, to the device ahead of its solver.

        False where that cannot be, or is not worth it. The array must stay as it is until the stream has passed.
        """
        inode = getattr(array, "inode", None)
        if inode is None or not isinstance(array, np.memmap) or not Ahead.takes(array) or array.nbytes > self._most:
            return False
        self._forget()
        held = self._held.get(inode) or self._hold(inode, str(array.filename))
        if held is None:
            return False
        self._held.move_to_end(inode)
        sent = Ahead.of(array, held.address + int(array.offset))
        if sent is None:
            return False
        sent.send(0, array.nbytes)
        sent.all_sent()
        return True

    def _hold(self, inode: Inode, path: str) -> "_Held | None":
        try:
            held = self._held[inode] = _Held(inode, path)
        except FileNotFoundError:
            return None
        except Exception as error:  # CUDA's and the system's: what is wrong with the device the next call says again
            LOG.warning("slabs cannot be page-locked where they lie, and are copied: %r", error)
            self._most = 0
            return None
        while len(self._held) > 1 and sum(one.size for one in self._held.values()) > self._most:
            Ahead.come()  # the device may be reading there
            self._held.popitem(last=False)[1].close()
        return held

    def _forget(self) -> None:
        """Let go of slabs without a name: the arena counts their memory no more."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        for inode, held in [*self._held.items()]:
            if held.is_nameless():
                del self._held[inode]
                held.close()


class _Held:
    """One that is mapped and locked. It may be written to as far as the system knows, or CUDA would not lock it.

    Raises:
        FileNotFoundError: the name is gone, or another slab's.
        What the system and CUDA raise.
    """

    def __init__(self, inode: Inode, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            there = os.fstat(self._descriptor)
            if (there.st_dev, there.st_ino) != inode:
                raise FileNotFoundError(f"{path} is another by now")
            keep_size(self._descriptor)  # nobody has cut it: whoever mapped it has it locked
            self.size = there.st_size
            self._memory = mmap.mmap(self._descriptor, self.size)
            self._front: ctypes.c_char | None = ctypes.c_char.from_buffer(self._memory)
            self.address = ctypes.addressof(self._front)
            self._unlock = page_lock(self.address, self.size)
        except BaseException:
            os.close(self._descriptor)
            raise

    def is_nameless(self) -> bool:
        """Whether the arena has given it up."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        """Let go of it, and of its memory where it has no name: nobody else reads that."""
        with contextlib.suppress(Exception):  # of a device that is lost, whose locks are gone
            self._unlock()
        self._front = None
        self._memory.close()
        if self.is_nameless():
            give_back(self._descriptor)
        os.close(self._descriptor)
