"""Memory for long answers, whose pages the system finds ahead of the bytes.

A page of fresh memory takes the system about as long to find as the bytes take to copy. Threads find those that come
next, while the bytes before them come.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from mmap import PAGESIZE
from typing import Any

import numpy as np

AT_ONCE = 4 << 20
WORTH_BYTES = 64 << 20
"""Shorter answers are read before threads have begun."""
STEP, AHEAD = 16 << 20, 16
"""Bytes that a thread finds in one go, and how many such steps ahead: what is announced and never comes costs no
more."""
FINDERS = 4
FOUND = 23
"""MADV_POPULATE_WRITE of Linux: find the pages now. Before 5.14 it says that it knows no such thing, and does none."""


def filled(count: int, begun: bytes, receive: Callable[[memoryview], int]) -> memoryview:
    """Memory with so many bytes of an answer.

    Args:
        begun: the first of them.
        receive: puts the next ones at the front of what it is given, and says how many.

    Raises:
        ConnectionResetError: none come any more.
        ValueError, MemoryError: no memory holds so many.
    """
    whole: Any = np.empty(count, np.uint8).data
    whole[: len(begun)] = begun
    at = len(begun)
    with _Ahead(whole) as ahead:
        while at < count:
            ahead.of(at)
            came = receive(whole[at : at + AT_ONCE])
            if came == 0:
                raise ConnectionResetError(f"the connection was closed {count - at} bytes before the end of the answer")
            at += came
    return memoryview(whole).toreadonly()


class _Ahead:
    """Threads that find the pages of fresh memory, as far ahead of whoever fills it as AHEAD says."""

    def __init__(self, memory: memoryview) -> None:
        self._count, self._asked = len(memory), 0
        self._threads = ThreadPoolExecutor(FINDERS, "allot-pages") if self._count >= WORTH_BYTES else None
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if self._threads else 0

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)  # nobody else may have this memory before they are done

    def of(self, at: int) -> None:
        """Bytes from `at` on come next."""
        if self._threads is None:
            return
        while self._asked < min(self._count, at + AHEAD * STEP):
            self._threads.submit(_found, self._address + self._asked, min(STEP, self._count - self._asked))
            self._asked += STEP


def _found(address: int, count: int) -> None:
    """Have the pages of some bytes found. What the system does not do so it does as they are written to."""
    if (call := _madvise()) is not None:
        first = address - address % PAGESIZE
        call(first, address + count - first, FOUND)


@functools.cache
def _madvise() -> Any:
    if sys.platform != "linux":
        return None
    try:
        call = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return call
