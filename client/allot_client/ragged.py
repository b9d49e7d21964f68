"""Lists of matrices or clouds, as people have them: arrays, or lists of lists of numbers, some of them empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from allot_client.arrays import all_plain

EMPTY, MATRIX = "empty", "matrix"
PRICES = ("reject_rows", "reject_cols")
"""Inputs that are the prices of lines."""
PRICED = ("sizes", *PRICES)
"""Inputs beside which the service takes a matrix without an entry."""


def several(value: Any) -> list[Any] | None:
    """The matrices of a list of such, each an array; None where `value` is one array, also one of three dimensions.

    An empty list, or an array of shape (0,), is a matrix without rows; it is as wide as the others if these agree.

    Raises:
        ValueError: something among matrices that is none.
    """
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if all_plain(value) and {one.ndim for one in value} == {2}:
        return list(value)
    kinds = [_kind(one) for one in value]
    if MATRIX not in kinds:
        return None
    if None in kinds:
        k = kinds.index(None)
        raise ValueError(
            f"problem {k} of the list {_form(value[k])}; expected a matrix like problem {kinds.index(MATRIX)}"
        )
    arrays = [_array(one) if kind == MATRIX else None for one, kind in zip(value, kinds, strict=True)]
    shapes = {array.shape for array in arrays if array is not None}
    if not any(hasattr(one, "shape") for one in value) and len(shapes) == 1 and EMPTY not in kinds:
        return None  # nested lists that are one array, of a batch
    widths = {shape[1] for shape in shapes}
    width = widths.pop() if len(widths) == 1 else 0
    kinds = [one.dtype for one in arrays if isinstance(one, np.ndarray) and one.dtype.kind in "iuf"]
    none = np.zeros((0, width), kinds[0] if kinds else float)  # whole numbers stay whole beside it
    return [none if array is None else array for array in arrays]


def clouds(value: Any) -> list[Any] | None:
    """The clouds of a list of such, also of nested lists of one shape; None where `value` is one cloud.

    Raises:
        ValueError: an array of three dimensions, which may be clouds or a picture.
    """
    shape = getattr(value, "shape", None)
    if shape is not None and len(shape) == 3:
        expected = "expected (n_points, dimension); of several clouds list(...), of a picture its pixels as rows"
        raise ValueError(f"points have shape {tuple(shape)}; {expected}")
    found = several(value)
    if found is None and isinstance(value, (list, tuple)) and value and all(_kind(one) == MATRIX for one in value):
        return [_array(one) for one in value]
    return found


def without_rows(value: Any, width: int = 0) -> Any:
    """An empty list, or an array of shape (0,), as a matrix or a cloud without rows; anything else as it is."""
    if _kind(value) != EMPTY:
        return value
    return value.reshape((0, width)) if hasattr(value, "reshape") else np.zeros((0, width))


def beside(x: Any, y: Any, width: int) -> tuple[Any, Any]:
    """One pair of clouds: one without points, an empty list, has the dimension of the other, else `width`."""
    if EMPTY not in (_kind(x), _kind(y)):
        return x, y
    shapes = (value.shape if hasattr(value, "shape") else np.shape(value) for value in (y, x))
    widths = [shape[1] if len(shape) == 2 else width for shape in shapes]
    return without_rows(x, widths[0]), without_rows(y, widths[1])


def without_points(value: Any, others: list[Any] | None) -> list[Any] | None:
    """As many clouds without points as a list has empty ones, and nothing else; None for what is no such list."""
    if others is None or not isinstance(value, (list, tuple)) or not value or {*map(_kind, value)} != {EMPTY}:
        return None
    return [without_rows(one, others[0].shape[1]) for one in value]


def with_prices(inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inputs of an assignment as the service takes them where they are one matrix, or a batch, without an entry.

    It takes such a one beside prices of lines alone. A price of 0 for each row says the same: nothing can be paired.
    """
    cost = inputs.get("cost")
    if not isinstance(cost, np.ndarray) or cost.ndim < 2 or cost.size or "cost_limit" in options:
        return inputs
    if not inputs.keys().isdisjoint(PRICED):
        return inputs
    kept = {name: value for name, value in inputs.items() if name not in ("u0", "v0")}  # there is nothing to start from
    return {**kept, "reject_rows": np.zeros(cost.shape[:-1], np.int64)}


def _kind(one: Any) -> str | None:
    """Whether something is a matrix, or nothing; None for numbers and rows."""
    shape = getattr(one, "shape", None)
    if shape is not None:
        return MATRIX if len(shape) == 2 else EMPTY if tuple(shape) == (0,) else None
    if not isinstance(one, (list, tuple)):
        return None
    if not one:
        return EMPTY
    rows = all(isinstance(row, (list, tuple)) or len(getattr(row, "shape", ())) == 1 for row in one)
    numbers = rows and not any(isinstance(entry, (list, tuple)) for row in one for entry in row)
    return MATRIX if numbers else None


def _form(one: Any) -> str:
    shape = getattr(one, "shape", None)
    return f"is of type {type(one).__name__}" if shape is None else f"has shape {tuple(shape)}"


def _array(one: Any) -> Any:
    """An array as it is; lists as one, with None where they have it."""
    return one if hasattr(one, "shape") else np.array(one)
