"""Watching for an array in the bytes of an upload, so that its range is known as soon as the last byte has come."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import from_json, to_json

from kernels import TYPES, Glance, Seen, glance, note, together
from workers.store import layouts
from workers.store.digests import PIECE

WORD = 8


@dataclass(frozen=True)
class Sight:
    """What was seen of the array that lies from byte `offset` to the end of a file.

    It holds for readings of those bytes in that type alone; what a reference says of them is not in it.
    """

    dtype: str
    offset: int
    size: int
    seen: Seen

    def fits(self, array: Any, offset: int | None = None) -> bool:
        """Whether an array is made of those bytes, read in that type.

        `offset`: where in the file it begins, which a mapped one says itself.
        """
        at = array.offset if isinstance(array, np.memmap) else offset
        same = at == self.offset and array.dtype.str == self.dtype and array.size == self.size
        return bool(same and array.flags.c_contiguous)

    def tell(self, array: Any, offset: int | None = None) -> None:
        """Note it for the checks of a problem, if the array is made of those bytes; for `offset` see `fits`."""
        if self.fits(array, offset):
            note(array, self.seen)

    def text(self) -> bytes:
        """As JSON."""
        return to_json({**vars(self), "seen": self.seen.told()})

    @classmethod
    def read(cls, text: bytes) -> "Sight | None":
        """The other way round; None where the text is none, or was torn by a power cut."""
        try:
            told = from_json(text)
            return cls(**{**told, "seen": Seen.heard(told["seen"])})
        except (ValueError, KeyError, TypeError):
            return None


class Watch:
    """Looks at pieces of an .npy file, each by itself, in any thread."""

    def __init__(self, dtype: str, offset: int, size: int, sums: bool) -> None:
        self._dtype, self._offset, self._size = dtype, offset, size
        self._sums = sums

    @classmethod
    def of(cls, start: bytes, sums: bool) -> "Watch | None":
        """For a file that starts so, None where it is none to look at; `sums`: take the total of its words, too."""
        try:
            dtype, shape, offset, fortran = layouts.npy_place(start)
        except layouts.BadLayout:
            return None
        plain = dtype.str in TYPES and offset % WORD == 0 and not (fortran and sum(n > 1 for n in shape) > 1)
        count = math.prod(shape)
        return cls(dtype.str, offset, count, sums) if plain and count > 0 else None

    def look(self, view: memoryview, at: int) -> Glance | None:
        """At a piece that begins at byte `at` of the file; None where it does not hold whole numbers of it."""
        skipped = max(0, self._offset - at)
        raw = np.frombuffer(view, np.uint8)[skipped:]
        begins = at + skipped - self._offset
        if raw.size == 0 or raw.size % np.dtype(self._dtype).itemsize or begins % WORD:
            return None
        return glance(raw, self._dtype, self._sums)

    def sight(self, glances: list[Glance | None], size: int) -> Sight | None:
        """What all pieces of a file of `size` bytes show."""
        if None in glances or self._offset + self._size * np.dtype(self._dtype).itemsize != size:
            return None
        seen = together(one for one in glances if one is not None)
        return None if seen is None else Sight(self._dtype, self._offset, self._size, seen)


assert PIECE % WORD == 0
