"""A second lock of a slab, on its size: who reads its pages by their addresses, as a GPU does, finds the same pages.

A slab that is cut loses pages, and what is written behind the cut later lies in others. The lock is one of an open
file (`F_OFD_SETLK`), so the kernel takes it back with the last descriptor and mapping of that, however a process ends.
It is apart from the lock of who writes and who reads (arena.py), and holds neither off.
"""

import fcntl
import os
import struct

FLOCK = struct.Struct("hhqqi4x")
"""struct flock of a 64-bit Linux: type, whence, start, length, process."""
WHOLE = (os.SEEK_SET, 0, 0, 0)


def keep_size(descriptor: int) -> None:
    """Have a file keep its size for as long as this open file lives. Raises OSError, also where no such lock exists."""
    _asked(descriptor, "F_OFD_SETLK", fcntl.F_RDLCK)


def may_resize(descriptor: int) -> bool:
    """Whether nobody else keeps the size of a file."""
    try:
        kind: int = FLOCK.unpack(_asked(descriptor, "F_OFD_GETLK", fcntl.F_WRLCK))[0]
        return kind == fcntl.F_UNLCK
    except OSError:  # a system without such locks: nobody has one
        return True


def give_back(descriptor: int) -> None:
    """Cut a file that has no name any more, unless another keeps its size: mappings without a lock do not hold its
    memory then."""
    if may_resize(descriptor):
        os.ftruncate(descriptor, 0)


def _asked(descriptor: int, command: str, kind: int) -> bytes:
    number = getattr(fcntl, command, None)
    if number is None:
        raise OSError("this system has no locks of open files")
    return fcntl.fcntl(descriptor, number, FLOCK.pack(kind, *WHOLE))
