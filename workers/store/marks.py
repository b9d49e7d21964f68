"""Looking for a mark in bytes by the C library: Python's own search holds all other threads up."""

import ctypes
import functools
from typing import Any


def find(view: memoryview, mark: bytes) -> int:
    """Where the first `mark` begins in writable memory; -1 where there is none."""
    search = _memmem()
    if search is None or not view:
        return bytes(view).find(mark)
    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    return (search(start, len(view), mark, len(mark)) or start - 1) - start


def before(view: memoryview, mark: bytes) -> int:
    """How many bytes come before the first `mark`, or before what may be the beginning of one at the end."""
    found = find(view, mark)
    if found >= 0:
        return found
    tail = bytes(view[max(0, len(view) - len(mark) + 1) :])
    ends = next((k for k in range(len(tail), 0, -1) if mark.startswith(tail[len(tail) - k :])), 0)
    return len(view) - ends


@functools.cache
def _memmem() -> Any:
    try:
        call = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    call.restype = ctypes.c_void_p
    return call
