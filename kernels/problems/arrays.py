"""The arrays that problems are made of, and the checks that every problem shares.

A check either returns its array (never a copy unless the dtype must change) or raises `InvalidProblem` with one
sentence: what is wrong, where, and what was expected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.ma  # NumPy would load it where it is first asked for, as `np.unique` does: in somebody's request
import numpy.typing as npt

from kernels.problems.seen import seen_of

Array = npt.NDArray[Any]
"""Of any type, and the code does not depend on it. What does says so with one of the names below."""
Mask = npt.NDArray[np.bool_]
"""What picks entries: with another type the same brackets would look numbers up."""
Indices = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int64]
"""Numbers that are added up without rounding."""
Indices32 = npt.NDArray[np.int32]
Integers32 = npt.NDArray[np.int32]
"""Where a loop or a kernel is made for 32 bits."""
AnyIndices = npt.NDArray[np.int32 | np.int64]
AnyIntegers = npt.NDArray[np.int32 | np.int64]
"""Of either width: NumPy's are of 64 bits, those of a sparse matrix or of a GPU mostly of 32."""
Same = TypeVar("Same", bound=Array)
"""What goes through a check comes out of it."""
Floats = npt.NDArray[np.float64]
"""Where float32 would lose what follows: logarithms, exponentials, sums that a proof rests on."""
Floats32 = npt.NDArray[np.float32]
"""Whole numbers below 2^24, where twice as many go into a vector."""
AnyFloats = npt.NDArray[np.floating[Any]]
"""Of that or of more digits, as `np.longdouble` has where the machine has them."""
Reals = npt.NDArray[np.float32 | np.float64]
"""Of a precision that the caller chose; a loop is compiled for each of the two."""
Amounts = npt.NDArray[np.int64 | np.float64]
"""What costs are counted in: int64, exactly, where they are integers, else float64. A loop is compiled for each."""
Amount = float | np.int64
"""One of them. Compiled loops know which; what follows is of the same type."""
Costs = npt.NDArray[np.int32 | np.int64 | np.float32 | np.float64]
"""Of one of the four types that `numeric` returns."""
Cost = float | np.int32 | np.int64 | np.float32
"""One of them."""
Words = npt.NDArray[np.uint64]
"""64 bits each: states of random numbers, sets, bit patterns of floats."""
Wholes = npt.NDArray[np.object_]
"""Python's integers, where 64 bits might not do."""
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.int8]
"""Small marks that compiled loops read faster than a `Mask`, or of more than two kinds."""
Records = npt.NDArray[np.void]
"""Of a structured type, whose fields the code names."""
FORBIDDEN = int(np.iinfo(np.int64).min)
"""The value of a forbidden entry of an int64 matrix of costs or benefits, whether these are minimised or maximised.

It is beyond what the range checks take as a cost, its negation is itself, and an array that holds it needs no second
one beside it. Matrices of int32 and of the other integers have no forbidden entries.
"""

PIECE = 1 << 17
"""Entries that a check looks at in one go: what it makes of them stays near the processor, however many there are."""

TOLD = {"told": True}
"""Marks a field of a problem (`metadata`) that its answer and its proof tell of, and that no solver looks at."""


class InvalidProblem(ValueError):
    """The input is wrong. `field` names the input or option; the message says what was expected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, eq=False)
class Csr:
    """A sparse matrix by rows; absent entries are forbidden, not zero.

    `indptr` int64 (n_rows + 1,), `indices` int32 or int64 (nnz,), `values` (nnz,), `shape` (n_rows, n_cols).
    """

    indptr: Indices
    indices: AnyIndices
    values: Costs
    shape: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.values.nbytes)


Inputs = Mapping[str, Array | Csr]


def numeric(field: str, array: Array, *, ndim: tuple[int, ...]) -> Costs:
    """Return `array` in one of float32, float64, int32, int64, after checking its rank and that it is not empty.

    Smaller integers widen to int32, float16 to float32, bool is refused; uint32 widens to int64; uint64 is
    taken when every value fits int64. Masked entries of integers (`numpy.ma`) become `FORBIDDEN` in int64.

    Raises:
        InvalidProblem: wrong rank, a zero extent, or values that are not real numbers.
    """
    if array.ndim not in ndim:
        wanted = " or ".join(f"{n}-dimensional" for n in ndim)
        raise InvalidProblem(field, f"has shape {array.shape}; expected a {wanted} array")
    if array.size == 0:
        raise InvalidProblem(field, f"has shape {array.shape}, which is empty; expected at least one entry")
    if isinstance(array, np.ma.MaskedArray):
        array = _filled(field, array)
    kind, width = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and width <= 8:
        return np.ascontiguousarray(array, dtype=np.float32 if width <= 4 else np.float64)
    if kind == "i" or (kind == "u" and width < 8):
        fits_int32 = width <= 4 if kind == "i" else width <= 2
        return np.ascontiguousarray(array, dtype=np.int32 if fits_int32 else np.int64)
    if kind == "u" and int(array.max()) <= np.iinfo(np.int64).max:
        return np.ascontiguousarray(array, dtype=np.int64)
    raise InvalidProblem(field, f"has dtype {array.dtype}; expected float32, float64, int32 or int64")


def _filled(field: str, array: Any) -> Array:
    """A masked array without its mask. Raises: InvalidProblem where it holds other than integers."""
    if not np.ma.is_masked(array):
        return np.asarray(array.data)
    if array.dtype.kind not in "iu":
        raise InvalidProblem(field, f"is a masked array of {array.dtype}; expected integers, or an infinity in floats")
    if array.dtype == np.uint64 and int(array.filled(0).max()) > np.iinfo(np.int64).max:
        raise InvalidProblem(field, "is a masked array with an entry that does not fit int64")
    return np.asarray(array.astype(np.int64).filled(FORBIDDEN))


def permitted(weights: Costs) -> Mask:
    """Which entries may be taken: those that are finite, and in int64 not `FORBIDDEN`. Boolean, of the same shape."""
    if weights.dtype == np.int64:
        return np.asarray(weights != FORBIDDEN)
    return np.ones(weights.shape, bool) if weights.dtype.kind in "iu" else np.isfinite(weights)


def is_masked(weights: Costs) -> bool:
    """Whether integers hold a forbidden entry."""
    if (seen := seen_of(weights)) is not None:
        return seen.masked
    return weights.dtype == np.int64 and weights.size > 0 and int(weights.min()) == FORBIDDEN


def finite(field: str, array: Same, *, allow: float | None = None) -> Same:
    """Return `array` after checking that it holds no NaN and no infinity but `allow` (+inf, -inf or none).

    Raises:
        InvalidProblem: names the first offending index and its value.
    """
    seen = seen_of(array)
    if array.dtype.kind != "f" or (seen is not None and seen.allows(allow)):
        return array
    flat: Array = array.reshape(-1)
    for first in range(0, flat.size, PIECE):
        piece = flat[first : first + PIECE]
        bad = ~np.isfinite(piece)
        if allow is not None:
            bad &= piece != allow
        if bad.any():
            at = first + int(bad.argmax())
            expected = "finite numbers" if allow is None else f"finite numbers, or {allow:+} for a forbidden entry"
            index = ", ".join(str(int(i)) for i in np.unravel_index(at, array.shape))
            raise InvalidProblem(field, f"holds {flat[at]} at [{index}]; expected {expected}")
    return array


STRIP = 64
"""Rows that are transposed together: their columns fill a line of the cache, and more of them leave the first cache."""


def transposed(array: Same) -> Same:
    """A copy (n_cols, n_rows) of (n_rows, n_cols), in C order. NumPy reads a long row for each line that it writes."""
    found = np.empty(array.shape[::-1], array.dtype)
    for first in range(0, len(array), STRIP):
        found[:, first : first + STRIP] = array[first : first + STRIP].T
    return found  # type: ignore[return-value]


def untouched(array: Same) -> Same:
    """The same numbers, not to be written to: one type for what is mapped and for what is in memory of our own.

    Compiled loops are compiled for each type that they meet, and each takes seconds.
    """
    view = array.view()
    view.flags.writeable = False
    return view
