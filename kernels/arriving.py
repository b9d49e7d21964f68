"""Looking at an array while its bytes arrive, piece by piece and in any order: its range and its words' total."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernels.certificates.gpu.checksum import InputChanged, Pending
from kernels.problems.arrays import FORBIDDEN, Array, Bytes, Costs
from kernels.problems.seen import Seen, seen_of

TYPES = ("<f4", "<f8", "<i4", "<i8")
"""The types of problems, as they arrive: others are widened first, and then looked at."""
WORD = 8
BLOCK = 1 << 17
"""Entries looked at in one go: they stay in a core's cache between the two passes."""


@dataclass(frozen=True)
class Glance:
    """What one piece shows; `whole` is False where it holds NaN."""

    whole: bool
    seen: Seen


def glance(raw: Bytes, dtype: str, sums: bool) -> Glance:
    """Look at the bytes of whole entries.

    Args:
        raw: uint8, contiguous; they begin at a multiple of 8 bytes in the array.
        dtype: one of TYPES.
        sums: take their share in the total, too.
    """
    step = BLOCK * np.dtype(dtype).itemsize
    found = [_seen_in(raw[start : start + step], dtype, sums) for start in range(0, raw.size, step)]
    return found[0] if len(found) == 1 else _together(found)


def _seen_in(raw: Bytes, dtype: str, sums: bool) -> Glance:
    entries = raw.view(dtype)
    low, high = entries.min().item(), entries.max().item()
    total = _total(raw) if sums else None
    if entries.dtype.kind == "i":
        if entries.dtype.itemsize == WORD and low == FORBIDDEN:
            known = entries[entries != FORBIDDEN]
            return Glance(True, Seen(*_ends(known), masked=True, total=total))
        return Glance(True, Seen(low, high, total=total))
    if math.isfinite(low) and math.isfinite(high):
        return Glance(True, Seen(low, high, total=total))
    if np.isnan(entries).any():
        return Glance(False, Seen(None, None))
    known = entries[np.isfinite(entries)]
    return Glance(True, Seen(*_ends(known), plus=high == np.inf, minus=low == -np.inf, total=total))


def _total(raw: Bytes) -> int:
    whole = raw.size - raw.size % WORD
    total = int(np.add.reduce(raw[:whole].view("<u8")))
    return total + int.from_bytes(raw[whole:].tobytes(), "little")


def together(glances: Iterable[Glance]) -> Seen | None:
    """What all pieces show; None where one holds NaN: whoever reads the array will say where."""
    found = _together(list(glances))
    return found.seen if found.whole else None


def _together(glances: list[Glance]) -> Glance:
    lows = [one.seen.low for one in glances if one.seen.low is not None]
    highs = [one.seen.high for one in glances if one.seen.high is not None]
    totals = [one.seen.total for one in glances if one.seen.total is not None]
    seen = Seen(
        low=min(lows) if lows else None,
        high=max(highs) if highs else None,
        plus=any(one.seen.plus for one in glances),
        minus=any(one.seen.minus for one in glances),
        masked=any(one.seen.masked for one in glances),
        total=sum(totals) % 2**64 if glances and len(totals) == len(glances) else None,
    )
    return Glance(all(one.whole for one in glances), seen)


def _ends(known: Costs) -> tuple[int | float | None, int | float | None]:
    return (known.min().item(), known.max().item()) if known.size else (None, None)


class Arrived(Pending):
    """Checksums of what arrived, taken in threads from now on; those that were taken before are believed."""

    def __init__(self, arrays: list[Array]) -> None:
        from kernels.summing import Sum  # compiled, and who receives compiles nothing

        assert all(array.flags.c_contiguous for array in arrays)
        super().__init__([])
        self._sums = [
            (array, Sum(array.reshape(-1).view(np.uint8))) for array in arrays if _told(array).checksum is None
        ]

    def of(self, array: Array) -> int:
        """The checksum of one of the arrays, or of another.

        Raises:
            InputChanged: its bytes here are not those that came.
        """
        seen, found = _told(array), next((found for one, found in self._sums if one is array), None)
        if seen.checksum is not None:
            return seen.checksum
        if found is None:
            return super().of(array)
        if seen.total not in (None, found.total):
            raise InputChanged("the input in memory is not the one that arrived: the totals of their words differ")
        return found.value


def _told(array: Array) -> Seen:
    return seen_of(array) or Seen(None, None)
