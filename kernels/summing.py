"""Checksums of arrays that are here, by a compiled loop in threads that hold Python's lock for none of it.

NumPy needs six passes, each of which asks for the lock: beside a solver, which needs it for each of its launches, that
costs both of them more than the sum itself. What is summed, and why, says kernels/certificates/gpu/checksum.py.
"""

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numba
import numpy as np

from kernels.certificates.gpu.checksum import KEYS, STRIDE, _keys
from kernels.compiling import njit
from kernels.problems.arrays import Bytes

WORD = 8
SHORT = 1 << 18
"""Bytes that are summed in less time than a thread takes to begin."""
SHARE = 1 << 22
"""Bytes from which a further thread is worth its start."""
THREADS = max(1, min(8, (os.cpu_count() or 1) - 1))
_HALF, _LOW, _STRIDE = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(STRIDE)
_WORDS = numba.types.Array(numba.uint64, 1, "C", readonly=True)
F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """For memory that may not be written to, and so for any."""
    both = numba.types.UniTuple(numba.uint64, 2)
    return njit(both(_WORDS, _WORDS, numba.int64), cache=True, nogil=True)(function)


@_compiled
def _shares(words: Any, keys: Any, first: int) -> Any:
    """The shares of words, in an array in which they begin with word `first`, in its checksum and in its total."""
    checksum, total, k = np.uint64(0), np.uint64(0), 0
    while k < words.size:
        piece, inside = divmod(first + k, KEYS)
        count = min(KEYS - inside, words.size - k)
        shift = np.uint64(piece) * _STRIDE
        for j in range(count):
            word = words[k + j]
            y = word + keys[inside + j] + shift
            checksum += (y & _LOW) * (y >> _HALF)
            total += word
        k += count
    return checksum, total


class Sum:
    """The checksum of an array's bytes, and the total of its words, under way. Each word is read once for both."""

    def __init__(self, raw: Bytes) -> None:
        share = -(-max(SHARE, -(-raw.size // THREADS)) // WORD) * WORD
        self._known, self._parts = (0, 0), list[Future[tuple[int, int]]]()
        if raw.size <= SHORT:
            self._known = _part(raw, 0)
        else:
            starts = range(0, raw.size, share)
            self._parts = [_threads().submit(_part, raw[start : start + share], start // WORD) for start in starts]

    @property
    def value(self) -> int:
        """The checksum, once it is there."""
        return (self._known[0] + sum(part.result()[0] for part in self._parts)) % 2**64

    @property
    def total(self) -> int:
        """The total, once it is there."""
        return (self._known[1] + sum(part.result()[1] for part in self._parts)) % 2**64


def _part(raw: Bytes, first: int) -> tuple[int, int]:
    """The shares of bytes that begin with word `first`. Those behind the last whole word are filled up with zeros."""
    whole = raw.size - raw.size % WORD
    words = raw[:whole].view("<u8")
    checksum, total = _shares(words if words.flags.aligned else words.copy(), _keys(), first)
    if whole == raw.size:
        return int(checksum), int(total)
    last = np.concatenate([raw[whole:], np.zeros(-raw.size % WORD, np.uint8)]).view("<u8")
    more = _shares(last, _keys(), first + whole // WORD)
    return int(checksum) + int(more[0]), int(total) + int(more[1])


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "sums")
