"""Lists of matrices, or of lines, of different lengths: one flat array, and the sizes that tell them apart."""

import re
from collections.abc import Collection
from typing import Any

import numpy as np

from app.intake.json_arrays import array_from_lists, blame
from kernels import Array, Integers, InvalidProblem


def is_ragged(data: Any, of: str) -> bool:
    """Whether nested lists hold matrices (`of` is "matrices"), or lines ("lines"), that are not all of one size."""
    if not of or not isinstance(data, list) or not data or set(map(type, data)) != {list}:
        return False
    if of == "lines":
        return len(set(map(len, data))) > 1
    if list not in {type(one[0]) for one in data if one}:
        return False
    return len({_size(one) for one in data}) > 1


def _size(matrix: list[Any]) -> tuple[int, int]:
    return len(matrix), len(matrix[0]) if matrix and isinstance(matrix[0], list) else 0


def ragged_from_lists(
    field: str, data: list[Any], of: str, forbidden: float | None, max_elements: int, forbidden_integer: int | None
) -> tuple[Array, Integers | None]:
    """The entries one after the other, and (count, 2) sizes where they are matrices; arguments as `array_from_lists`.

    Raises:
        InvalidProblem: names the index of the first row of another length than its matrix's first, or of the first
            entry that is no number.
    """
    entries: list[Any] = []
    for k, one in enumerate(data):
        rows = one if of == "matrices" else [one]
        width = _size(one)[1]
        for i, row in enumerate(rows):
            place = (k, i) if of == "matrices" else (k,)
            if not isinstance(row, list) or (of == "matrices" and len(row) != width):
                index = ", ".join(map(str, place))
                what = f"{len(row)} entries" if isinstance(row, list) else "no list"
                raise InvalidProblem(field, f"is ragged: row [{index}] holds {what}; expected {width} like its first")
            if not set(map(type, row)) <= {int, float, type(None)} or (forbidden is None and None in row):
                blame(field, row, 1, forbidden, place)
            entries += row
    flat = array_from_lists(field, entries, forbidden, max_elements, forbidden_integer)
    return flat, np.array([_size(one) for one in data], np.int64) if of == "matrices" else None


def is_series(names: Collection[str]) -> bool:
    """Whether the members of a file are a series, as arr_0, arr_1, arr_2: one word, and a number each."""
    found = [re.fullmatch(r"(.*?)\d+", name) for name in names]
    return len(found) > 1 and all(found) and len({one[1] for one in found if one}) == 1


def one_after_the_other(field: str, arrays: dict[str, Array]) -> tuple[Array, Integers]:
    """Matrices of a file with several, in its order. Raises InvalidProblem where one is none."""
    for name, array in arrays.items():
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            wrong = f"member {name[:50]} has shape {array.shape} and dtype {array.dtype}"
            raise InvalidProblem(
                f"{field}.member", f"is missing, and {wrong}; expected a matrix in each, or one's name"
            )
    sizes = np.array([array.shape for array in arrays.values()], np.int64)
    return np.concatenate([array.reshape(-1) for array in arrays.values()]), sizes
