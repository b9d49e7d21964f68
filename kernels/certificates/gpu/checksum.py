"""A checksum of an array's bytes that the host and a device work out alike, in any order and in pieces.

It answers one question: is what the certificate read on the device what arrived here? A solver's stray write must not
be certified. The bytes are taken as 64-bit words, little-endian, the last filled up with zeros. Then

    sum over words k of low(y) * high(y) mod 2^64,   y = word_k + key(k) mod 2^64,

where low and high are the halves of 32 bits, and key(k) is spread over 64 bits from k mod KEYS, plus a multiple of an
odd constant for each further KEYS words. Products of keyed halves are the universal hash NH: for random keys two
different texts meet with a probability of about 2^-32, whatever they differ in (J. Black, S. Halevi, H. Krawczyk,
T. Krovetz, P. Rogaway, "UMAC: fast and secure message authentication", CRYPTO 1999, theorem 4.2). These keys are fixed:
that is enough against faults, and no defence against somebody who wants two texts to meet.
"""

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from kernels.problems import Array

KEYS = 1 << 14
STRIDE = 0x9E3779B97F4A7C15
PIECE = KEYS * 8
"""Bytes worked on at a time: they and two more arrays of their size stay in a core's cache."""
SHARE = 1 << 24
"""Bytes from which a further thread is worth its start."""
THREADS = max(1, min(8, (os.cpu_count() or 1) - 1))


class InputChanged(RuntimeError):
    """The input on the device is not the input that arrived: something wrote over it. The attempt is void."""


def checksum(array: Array) -> int:
    """The checksum of a contiguous array's bytes, by as many threads as it is worth."""
    return _begun(array).value()


class Pending:
    """Checksums of several arrays under way in threads, beside whatever else is done."""

    def __init__(self, arrays: list[Array]) -> None:
        self._begun = [(array, _begun(array)) for array in arrays]

    def of(self, array: Array) -> int:
        """The checksum of one of the arrays (the same object), or of another."""
        for known, found in self._begun:
            if known is array:
                return found.value()
        return checksum(array)


class _Parts:
    """The parts of one checksum."""

    def __init__(self, parts: "list[Future[int]]") -> None:
        self._parts = parts

    def value(self) -> int:
        """Their sum, once they are done."""
        return sum(part.result() for part in self._parts) % 2**64


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "checksum")


def _begun(array: Array) -> _Parts:
    assert array.flags.c_contiguous
    raw = array.reshape(-1).view(np.uint8)
    share = -(-max(SHARE, -(-raw.size // THREADS)) // PIECE) * PIECE
    starts = range(0, max(1, raw.size), share)
    return _Parts([_threads().submit(_part, raw[start : start + share], start // PIECE) for start in starts])


def _part(raw: Array, first: int) -> int:
    """The sum over some bytes, whose first lies `first` times PIECE from the beginning."""
    keys, total = _keys(), 0
    room, low = np.empty(KEYS, np.uint64), np.empty(KEYS, np.uint64)
    for piece, start in enumerate(range(0, raw.size, PIECE), first):
        words = _words(raw[start : start + PIECE])
        y, halves = room[: words.size], low[: words.size]
        np.add(words, keys[: words.size], out=y)
        y += np.uint64(piece * STRIDE % 2**64)
        np.bitwise_and(y, np.uint64(0xFFFFFFFF), out=halves)
        np.right_shift(y, np.uint64(32), out=y)
        y *= halves
        total += int(y.sum())
    return total


def _words(raw: Array) -> Array:
    """Bytes as 64-bit words."""
    if raw.size % 8:
        raw = np.concatenate([raw, np.zeros(-raw.size % 8, np.uint8)])
    return raw.view("<u8")


@functools.cache
def _keys() -> Array:
    """The first KEYS keys."""
    h = np.arange(1, KEYS + 1, dtype=np.uint32) * np.uint32(0x9E3779B1)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA77)
    low = h ^ (h >> np.uint32(13))
    h = (low + np.uint32(0x165667B1)) * np.uint32(0xC2B2AE3D)
    high = h ^ (h >> np.uint32(16))
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
