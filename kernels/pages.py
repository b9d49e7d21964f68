"""Hints to the system about pages of memory, in any thread: Python's own call holds all others up."""

import ctypes
import functools
from typing import Any

LARGE, READ, FOUND = 14, 22, 23
"""MADV_HUGEPAGE: large pages will do. MADV_POPULATE_READ and _WRITE: find the pages now, and not as each is used."""


def advise(address: int, count: int, what: int) -> int:
    """Say what will be done with some bytes. What the system answers: 0, or the number of an error."""
    call = _madvise()
    return 0 if call is None or call(address, count, what) == 0 else ctypes.get_errno()


@functools.cache
def _madvise() -> Any:
    try:
        call = ctypes.CDLL(None, use_errno=True).madvise
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return call
