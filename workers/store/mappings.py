"""Memory of slabs as a process has it mapped, kept from one upload to the next.

To map 8 MiB, to bring their pages into the mapping and to unmap them again takes an eighth of the processor time that a
call with such an upload costs the API, and the last of it holds Python's lock (docs/notes/service.md).

Invariant: nobody reads or writes through a mapping but who has the lock of its slab (arena.py). A mapping has no lock
by itself, so others may write to the slab, cut it, or give it up: then it is empty.
"""

import mmap
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES, MOST = 256 << 20, 32
Inode = tuple[int, int]


@dataclass(frozen=True)
class Mapping:
    """All of a slab; `used` where this process has had it before, so that its pages are in the mapping."""

    memory: mmap.mmap
    used: bool = False


class Mappings:
    """What one process keeps, the least recently used first. For any thread.

    Args:
        most_bytes, most: of all. A slab that is longer is mapped for its upload alone.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most: int = MOST) -> None:
        self._most_bytes, self._most = most_bytes, most
        self._kept: OrderedDict[Inode, mmap.mmap] = OrderedDict()
        self._alone = threading.Lock()

    def of(self, path: Path) -> Mapping:
        """That of a slab, of which the caller has the exclusive lock. Raises OSError."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # not the caller's, with which the lock would be kept
        try:
            there = os.fstat(descriptor)
            inode, size = (there.st_dev, there.st_ino), there.st_size
            with self._alone:
                kept = self._kept.pop(inode, None)
                if kept is not None and len(kept) == size:
                    self._kept[inode] = kept
                    return Mapping(kept, used=True)
                found = Mapping(mmap.mmap(descriptor, size))
                if size <= self._most_bytes:
                    self._kept[inode] = found.memory
                    while len(self._kept) > self._most or sum(map(len, self._kept.values())) > self._most_bytes:
                        self._kept.popitem(last=False)  # it is unmapped once nothing refers to its memory
                return found
        finally:
            os.close(descriptor)
