"""Looking at an array while its bytes arrive, piece by piece and in any order: its range, and its checksum."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernels.certificates.gpu.checksum import KEYS, PIECE, STRIDE, Pending, _keys
from kernels.problems.arrays import FORBIDDEN, Array, Bytes, Costs, Words
from kernels.problems.seen import Seen, seen_of

TYPES = ("<f4", "<f8", "<i4", "<i8")
"""The types of problems, as they arrive: others are widened first, and then looked at."""
WORD = 8
BLOCK = 1 << 17
"""Entries looked at in one go: they stay in a core's cache between the two passes."""
AT_ONCE = 8
"""Pieces whose share in a checksum is worked out by one pass of each operation. Between two passes a thread waits for
the interpreter, which others hold."""
_own = threading.local()


@dataclass(frozen=True)
class Glance:
    """What one piece shows; `whole` is False where it holds NaN."""

    whole: bool
    seen: Seen


def glance(raw: Bytes, dtype: str, at: int | None) -> Glance:
    """Look at the bytes of whole entries.

    Args:
        raw: uint8, contiguous.
        dtype: one of TYPES.
        at: where they begin in the array, for the checksum: a multiple of 8. None takes no checksum.
    """
    entries = raw.view(dtype)
    found = _together([_range(entries[start : start + BLOCK]) for start in range(0, entries.size, BLOCK)])
    if at is None or not found.whole:
        return found
    return Glance(True, Seen(**{**found.seen.told(), "checksum": checksum_from(raw, at)}))


def together(glances: Iterable[Glance]) -> Seen | None:
    """What all pieces show; None where one holds NaN: whoever reads the array will say where."""
    found = _together(list(glances))
    return found.seen if found.whole else None


def _together(glances: list[Glance]) -> Glance:
    lows = [one.seen.low for one in glances if one.seen.low is not None]
    highs = [one.seen.high for one in glances if one.seen.high is not None]
    sums = [one.seen.checksum for one in glances if one.seen.checksum is not None]
    seen = Seen(
        low=min(lows) if lows else None,
        high=max(highs) if highs else None,
        plus=any(one.seen.plus for one in glances),
        minus=any(one.seen.minus for one in glances),
        masked=any(one.seen.masked for one in glances),
        checksum=sum(sums) % 2**64 if glances and len(sums) == len(glances) else None,
    )
    return Glance(all(one.whole for one in glances), seen)


def _range(entries: Costs) -> Glance:
    low, high = entries.min().item(), entries.max().item()
    if entries.dtype.kind == "i":
        if entries.dtype.itemsize == WORD and low == FORBIDDEN:
            known = entries[entries != FORBIDDEN]
            return Glance(True, Seen(*_ends(known), masked=True))
        return Glance(True, Seen(low, high))
    if np.isfinite(low) and np.isfinite(high):
        return Glance(True, Seen(low, high))
    if np.isnan(entries).any():
        return Glance(False, Seen(None, None))
    known = entries[np.isfinite(entries)]
    return Glance(True, Seen(*_ends(known), plus=high == np.inf, minus=low == -np.inf))


def _ends(known: Costs) -> tuple[int | float | None, int | float | None]:
    return (known.min().item(), known.max().item()) if known.size else (None, None)


def checksum_from(raw: Bytes, at: int) -> int:
    """The share of some bytes, which begin at byte `at` of an array, in the checksum of that array."""
    total, start = 0, 0
    while start < raw.size:
        piece, inside = divmod(at + start, PIECE)
        whole = 0 if inside else min(AT_ONCE, (raw.size - start) // PIECE)
        part = raw[start : start + (whole * PIECE or PIECE - inside)]
        start += part.size
        if part.size % WORD:
            part = np.concatenate([part, np.zeros(-part.size % WORD, np.uint8)])
        total += _share(part.view("<u8").reshape(max(1, whole), -1), piece, inside // WORD)
    return total % 2**64


def _share(words: Words, piece: int, first: int) -> int:
    """Of words (pieces, KEYS) that begin with word `first` of a piece; of one piece there may be fewer."""
    pieces, count = words.shape
    y, low = (room[: words.size].reshape(words.shape) for room in _rooms())
    np.add(words, _keys()[first : first + count], out=y)
    y += ((piece + np.arange(pieces, dtype=np.uint64)) * np.uint64(STRIDE))[:, None]
    np.bitwise_and(y, np.uint64(0xFFFFFFFF), out=low)
    np.right_shift(y, np.uint64(32), out=y)
    return int(np.dot(y.reshape(-1), low.reshape(-1)))


def _rooms() -> tuple[Words, Words]:
    """Room for the words of AT_ONCE pieces, twice; of this thread."""
    if not hasattr(_own, "rooms"):
        _own.rooms = np.empty((2, AT_ONCE * KEYS), np.uint64)
    y, low = _own.rooms
    return y, low


class Arrived(Pending):
    """Checksums of what arrived: those that were taken then, and the others, which are taken in threads now."""

    def __init__(self, arrays: list[Array]) -> None:
        super().__init__([array for array in arrays if _checksum(array) is None])

    def of(self, array: Array) -> int:
        """The checksum of one of the arrays, or of another."""
        known = _checksum(array)
        return super().of(array) if known is None else known


def _checksum(array: Array) -> int | None:
    seen = seen_of(array)
    return None if seen is None else seen.checksum
