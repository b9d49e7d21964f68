"""The least and the largest number of an array in one reading, and the largest size, by compiled loops.

NumPy finds one in each reading. Floats are compared as the integers that their bits are, negative ones turned round: of
those LLVM makes vectors, and a NaN lies beyond both infinities, so that it is an end of the range.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from kernels.compiling import njit
from kernels.problems import ranges
from kernels.problems.arrays import Costs, Indices32, Integers, untouched

F = TypeVar("F", bound=Callable[..., Any])
TURN, TURN_32 = np.int64(np.iinfo(np.int64).max), np.int32(np.iinfo(np.int32).max)
"""What turns the bits of a negative float round, so that they are ordered as the numbers are."""
SIGN, SIGN_32 = np.int64(63), np.int32(31)

INFINITE, INFINITE_32 = np.int64(0x7FF << 52), np.int32(0xFF << 23)
"""The bits of infinity."""


def _compiled(words: Any) -> Callable[[F], F]:
    """For memory that may not be written to, and so for any."""
    given = numba.types.Array(words, 1, "C", readonly=True)
    kept = numba.types.Array(words, 1, "C")
    return njit(numba.void(given, numba.boolean, kept), cache=True, nogil=True)


@_compiled(numba.int64)
def _ends(words: Integers, turned: bool, ends: Integers) -> None:
    """The least and the largest of int64, or of float64 if `turned`, into `ends` (2,)."""
    least, most, turn = words[0], words[0], TURN if turned else np.int64(0)
    least ^= (least >> SIGN) & turn
    most = least
    for k in range(1, words.size):
        word = words[k] ^ ((words[k] >> SIGN) & turn)
        least, most = min(least, word), max(most, word)
    ends[0], ends[1] = least ^ ((least >> SIGN) & turn), most ^ ((most >> SIGN) & turn)


@_compiled(numba.int32)
def _ends_32(words: Indices32, turned: bool, ends: Indices32) -> None:
    """`_ends` of int32 and float32; numba widens what is not cast back, and half as many go into a vector then."""
    turn = TURN_32 if turned else np.int32(0)
    least = np.int32(words[0] ^ np.int32(np.int32(words[0] >> SIGN_32) & turn))
    most = least
    for k in range(1, words.size):
        word = np.int32(words[k] ^ np.int32(np.int32(words[k] >> SIGN_32) & turn))
        least, most = min(least, word), max(most, word)
    ends[0] = np.int32(least ^ np.int32(np.int32(least >> SIGN_32) & turn))
    ends[1] = np.int32(most ^ np.int32(np.int32(most >> SIGN_32) & turn))


@njit(cache=True, nogil=True)
def _largest(words: Integers, found: Integers) -> None:
    """The largest magnitude of float64 below infinity, as bits, into `found` (1,)."""
    largest = np.int64(0)
    for k in range(words.size):
        size = words[k] & TURN
        largest = max(largest, size if size < INFINITE else np.int64(0))
    found[0] = largest


@njit(cache=True, nogil=True)
def _largest_32(words: Indices32, found: Indices32) -> None:
    """The same of float32."""
    largest = np.int32(0)
    for k in range(words.size):
        size = np.int32(words[k] & TURN_32)
        largest = max(largest, size if size < INFINITE_32 else np.int32(0))
    found[0] = largest


def largest_of(array: Costs) -> float:
    """The largest magnitude of contiguous floats without NaN, infinities left out."""
    words, loop = (np.int64, _largest) if array.dtype.itemsize == 8 else (np.int32, _largest_32)
    found = np.empty(1, array.dtype)
    loop(untouched(array.reshape(-1).view(words)), found.view(words))
    return found.item()


def ends_of(array: Costs) -> tuple[int | float, int | float]:
    """The least and the largest entry of a contiguous array of one of the four types of problems.

    A NaN is one of the two, the least if its sign is negative.
    """
    words, loop = (np.int64, _ends) if array.dtype.itemsize == 8 else (np.int32, _ends_32)
    found = np.empty(2, array.dtype)
    loop(untouched(array.reshape(-1).view(words)), array.dtype.kind == "f", found.view(words))
    low, high = found.tolist()
    return low, high


def warm_up() -> None:
    """Let problems be looked at by these loops from now on."""
    ranges.ends_of = ends_of
    ranges.largest_of = largest_of


def warm_up_infinite() -> None:
    """Compile what reads floats beside infinities, which not every process meets."""
    for dtype in (np.float64, np.float32):
        largest_of(np.zeros(1, dtype))
