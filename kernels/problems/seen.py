"""What was seen of an array's numbers before it became part of a problem, so that nobody need look again.

Whoever reads all bytes of a large array anyway, as they arrive, sees the range of its numbers at once. It is noted
here for the array, and the checks of problems ask for it before they read the array themselves. A note belongs to
memory: to where it begins, its length and its type. It ends with the array for which it was made.
"""

import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MOST_NOTES = 4096
"""More than this and those whose arrays are gone are thrown away."""


@dataclass(frozen=True)
class Seen:
    """Of an array without NaN, in one of the four types of problems.

    Attributes:
        low, high: the range of the entries that are finite and do not forbid; None where there are none.
        plus, minus: whether it holds +inf, -inf.
        masked: whether it holds `FORBIDDEN` (int64).
        total: of its bytes as 64-bit words, little-endian, modulo 2^64, the last filled up with zeros; None where
            nobody asked. It is one pass, and says whether what a solver maps is what came.
        checksum: as kernels/certificates/gpu/checksum.py takes it; in notes of earlier releases, which had no total.
    """

    low: int | float | None
    high: int | float | None
    plus: bool = False
    minus: bool = False
    masked: bool = False
    checksum: int | None = None
    total: int | None = None

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def heard(cls, told: Mapping[str, Any]) -> "Seen":
        """The other way round. Raises TypeError where it is none."""
        return cls(**told)

    @property
    def largest(self) -> int | float:
        """The largest magnitude in the range."""
        return 0 if self.low is None or self.high is None else max(0, -self.low, self.high)

    def allows(self, infinity: float | None) -> bool:
        """Whether it holds no infinity but this."""
        return not (self.plus and infinity != np.inf) and not (self.minus and infinity != -np.inf)


_notes: dict[tuple[int, int, str], tuple["weakref.ref[Array]", Seen]] = {}


def note(array: Array, seen: Seen | None) -> None:
    """Remember what was seen of an array; with None, forget what was seen of an earlier one in its place."""
    if seen is None:
        _notes.pop(_place(array), None)
        return
    if len(_notes) >= MOST_NOTES:
        for place in [place for place, (whose, _) in list(_notes.items()) if whose() is None]:
            _notes.pop(place, None)
    _notes[_place(array)] = (weakref.ref(array), seen)


def seen_of(array: Any) -> Seen | None:
    """What was seen of this array or of one with the same memory, if that is still there."""
    if not _notes or not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        return None
    whose, seen = _notes.get(_place(array), (None, None))
    return None if whose is None or whose() is None else seen


def _place(array: Array) -> tuple[int, int, str]:
    return array.__array_interface__["data"][0], array.nbytes, array.dtype.str
