"""What a full disk means, whoever writes to it; and how a wait for it is made short."""

import contextlib
import ctypes
import errno
import functools
import os
from collections.abc import Iterator
from typing import Any

from workers.jobs.job import StoreFull


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Work on the store's disk. Raises StoreFull where that is full, whichever call it is that finds out."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"the store's disk is full: {os.strerror(error.errno)}") from error
        raise


SYNC_FILE_RANGE_WRITE = 2


def hasten(descriptor: int, at: int, count: int) -> None:
    """Have the kernel begin to write these bytes of a file to the disk, so that an fsync later has little left to do.

    A hint, which promises nothing: where there is no such call, the fsync does it all.
    """
    call = _sync_file_range()
    if call is not None:
        call(descriptor, at, count, SYNC_FILE_RANGE_WRITE)


@functools.cache
def _sync_file_range() -> Any:
    """Of the C library, which Python does not show."""
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return call
