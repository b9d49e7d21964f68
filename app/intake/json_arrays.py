"""Nested JSON lists to arrays, fast and without mercy.

The types of each row are looked at once (30 ns an entry), so that a boolean, a string or a ragged row is refused
with its index and never turned into a number in silence.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels import Array, InvalidProblem

INT64 = np.iinfo(np.int64)
DEEPEST = 4
KINDS = {bool: "a boolean", str: "a string", dict: "an object", list: "a list", type(None): "null"}


def array_from_lists(
    field: str, data: Any, forbidden: float | None, max_elements: int, forbidden_integer: int | None = None
) -> Array:
    """Turn nested lists of numbers into an int64 or float64 array.

    Args:
        field: the name to blame.
        data: a list, or lists of lists, at most DEEPEST deep.
        forbidden: what null stands for (+inf or -inf), None where null may not stand.
        max_elements: refuse more entries than this.
        forbidden_integer: what null stands for where all other entries are integers, which then stay exact; that
            number itself is refused. None turns integers beside null into floats.

    Raises:
        InvalidProblem: names the index of the first ragged row or entry that is not a number.
    """
    if not isinstance(data, list):
        raise InvalidProblem(field, f"is {_kind(data)}; expected a list of numbers, nested for a matrix")
    shape = _shape(field, data)
    elements = int(np.prod(shape, dtype=object))
    if elements > max_elements:
        raise InvalidProblem(field, f"holds {elements} entries; at most {max_elements} are taken")
    if elements == 0:
        return np.empty(shape)
    found = {kind for row in _rows(data, len(shape)) for kind in set(map(type, row))}
    if not found <= {int, float, type(None)} or (type(None) in found and forbidden is None):
        blame(field, data, len(shape), forbidden)
    exact = forbidden_integer is not None and found == {int, type(None)}
    given, nulls = data, sum(row.count(None) for row in _rows(data, len(shape))) if type(None) in found else 0
    if nulls:
        data = _replace_null(data, len(shape), forbidden_integer if exact else forbidden)
        found |= set() if exact else {float}
    try:
        array = np.array(data, dtype=np.float64 if float in found else np.int64)
    except OverflowError:
        blame(field, data, len(shape), forbidden)
        raise
    if (
        forbidden_integer is not None
        and array.dtype == np.int64
        and np.count_nonzero(array == forbidden_integer) != nulls
    ):
        blame(field, given, len(shape), forbidden, lowest=int(INT64.min) + 1)
    if int in found and array.dtype == np.float64 and np.abs(array[np.isfinite(array)]).max(initial=0) >= INT64.max:
        blame(field, data, len(shape), forbidden)
    return array


def _shape(field: str, data: list[Any]) -> tuple[int, ...]:
    """The extents along the first entries, after checking every list of the outer levels against them."""
    shape = [len(data)]
    level: list[Any] = data
    while level and isinstance(level[0], list) and len(shape) < DEEPEST + 1:
        extent = len(level[0])
        if set(map(type, level)) != {list} or set(map(len, level)) != {extent}:
            _blame_ragged(field, level, extent, shape)
        shape.append(extent)
        level = [entry for row in level for entry in row] if extent and isinstance(level[0][0], list) else []
    if len(shape) > DEEPEST:
        raise InvalidProblem(field, f"is nested {len(shape)} deep or more; expected at most {DEEPEST}")
    return tuple(shape)


def _blame_ragged(field: str, level: list[Any], extent: int, shape: list[int]) -> None:
    """Raise for the first of `level` that is no list of `extent` entries."""
    for i, row in enumerate(level):
        if not isinstance(row, list) or len(row) != extent:
            index = ", ".join(str(int(k)) for k in np.unravel_index(i, shape))
            what = f"{len(row)} entries" if isinstance(row, list) else _kind(row)
            raise InvalidProblem(field, f"is ragged: row [{index}] holds {what}; expected {extent} like the first")


def _rows(data: list[Any], depth: int) -> Sequence[list[Any]]:
    """The innermost lists."""
    if depth == 1:
        return [data]
    for _ in range(depth - 2):
        data = [row for matrix in data for row in matrix]
    return data


def _replace_null(data: Any, depth: int, forbidden: int | float | None) -> Any:
    if depth == 1:
        return [forbidden if entry is None else entry for entry in data]
    return [_replace_null(row, depth - 1, forbidden) for row in data]


def blame(
    field: str,
    data: Any,
    depth: int,
    forbidden: float | None,
    index: tuple[int, ...] = (),
    lowest: int = int(INT64.min),
) -> None:
    """Raise for the first entry that is not a number that int64 (from `lowest` on) or float64 can hold."""
    for i, entry in enumerate(data):
        here = (*index, i)
        if depth > 1:
            blame(field, entry, depth - 1, forbidden, here, lowest)
            continue
        place = "[" + ", ".join(map(str, here)) + "]"
        if entry is None and forbidden is None:
            raise InvalidProblem(field, f"holds null at {place}; null is for forbidden entries of a matrix only")
        if entry is not None and type(entry) not in (int, float):
            raise InvalidProblem(field, f"holds {_kind(entry)} at {place}; expected a number")
        if type(entry) is int and not lowest <= entry <= INT64.max:
            raise InvalidProblem(field, f"holds {str(entry)[:40]} at {place}, which does not fit int64")


def _kind(value: Any) -> str:
    return KINDS.get(type(value), f"the number {value!r}")
