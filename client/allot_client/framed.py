"""Frames of points or boxes as the service takes them: points one after the other, whose costs it works out itself.

1,000 frames of 10 to 60 boxes are 2.2 MB, and their costs 10 MB that take the client 20 ms. The service rounds each
cost as `cost_matrix` does, so that the answer is the same to the last bit. Whatever is not of that form goes as costs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from allot_client import boxes, points
from allot_client.arrays import LONGEST_FLOAT, Array, shapes_of

OF_A_MATRIX = ("cardinality", "objective", "k_best")
"""Options that the service has for costs alone."""
FEW_BYTES = 1 << 19
"""So many are sent as points even where costs are fewer, as they are of two points in many dimensions."""


def worth_it(x: Array, y: Array, costs: int) -> bool:
    """Whether points (m, d) and (n, d) are to be sent in place of so many costs."""
    return bool(costs) and x.nbytes + y.nbytes <= max(FEW_BYTES, costs * np.dtype(np.float64).itemsize)


def goes_alone(x: Any, y: Any, options: Mapping[str, Any]) -> bool:
    """Whether one pair of clouds beside a limit or prices is sent as it is; else its costs are, or an error is told."""
    if not (_is_taken(options) and isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return False
    if not (_are_points(x) and _are_points(y)) or x.shape[1] != y.shape[1]:
        return False
    if options.get("metric") == "iou" and (x.shape[1] != boxes.SIDES or boxes.turned(x).any() or boxes.turned(y).any()):
        return False
    return worth_it(x, y, len(x) * len(y))


def _are_points(one: Array) -> bool:
    """Whether an array has the form and the type of points."""
    return one.ndim == 2 and _is_taken_type(one.dtype)


def _is_taken_type(kind: np.dtype[Any]) -> bool:
    """Whether the service takes points of this type."""
    return kind.kind in "iuf" and kind.itemsize <= LONGEST_FLOAT


def _is_taken(options: Mapping[str, Any]) -> bool:
    """Whether the service takes points with these options."""
    of_a_matrix = any(options.get(name) is not None for name in OF_A_MATRIX)
    return options.get("metric", "sqeuclidean") in points.ROUNDED and not of_a_matrix


Kinds = frozenset[np.dtype[Any]]


def kinds_of(left: Any, right: Any) -> Kinds | None:
    """The types of frames that are lists of NumPy's own matrices of numbers, as many on either side; None of others.

    Most frames are such, and nothing more is to be asked of each: 2,000 arrays lie in cold memory.
    """
    if not (isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and 0 < len(left) == len(right)):
        return None
    arrays = [*left, *right]
    if set(map(type, arrays)) != {np.ndarray} or {one.ndim for one in arrays} != {2}:
        return None
    kinds = frozenset([one.dtype for one in arrays])
    return kinds if all(kind.kind in "iuf" for kind in kinds) else None


def joined(
    left: Sequence[Array], right: Sequence[Array], options: Mapping[str, Any], kinds: Kinds | None = None
) -> dict[str, Array] | None:
    """The inputs of frames `left` (m, d) and `right` (n, d): x, y and sizes; None where their costs are to be sent.

    What lies in one piece is sent as one: in x, the points of all columns behind those of all rows. Each input takes a
    service some time, however few its bytes. `kinds` are those of `kinds_of`, where they are known.

    Raises:
        ValueError: boxes of which a corner is beyond its opposite.
    """
    metric = options.get("metric", "sqeuclidean")
    if not _is_taken(options):
        return None
    arrays = [*left, *right]
    if kinds is None:
        kinds = frozenset([one.dtype for one in arrays])
        if {one.ndim for one in arrays} != {2}:
            return None
    if not all(map(_is_taken_type, kinds)):
        return None
    lengths, widths = shapes_of(arrays).T
    sizes = lengths.reshape(2, -1).T.copy()
    costs = int((sizes[:, 0] * sizes[:, 1]).sum())
    known = widths[lengths > 0] if metric == "iou" else widths
    if not costs or known.min() != known.max():
        return None
    rows = int(sizes[:, 0].sum())
    x, y, both = _laid(left, right, kinds, rows, int(known[0]))
    if not worth_it(x, y, costs):
        return None
    if metric == "iou":
        if x.shape[1] != boxes.SIDES:
            return None
        if both is None or boxes.turned(both).any():
            for name, side, frames in (("x", x, left), ("y", y, right)):
                boxes.refuse_turned(name, side, frames)
    return {"x": x, "y": y, "sizes": sizes} if both is None else {"x": both, "sizes": sizes}


def _laid(
    left: Sequence[Array], right: Sequence[Array], kinds: Kinds, rows: int, width: int
) -> tuple[Array, Array, Array | None]:
    """The points of all frames of either side, one after the other; and of both, where these lie in one piece.

    Arrays of one type that lie in C order are joined as bytes are, which takes NumPy four times as long.
    """
    if len(kinds) == 1 and (kind := next(iter(kinds))).isnative:
        with contextlib.suppress(TypeError):  # of an array in another order
            lying: list[Any] = [*left, *right]
            both = np.frombuffer(b"".join(lying), kind).reshape(-1, width)
            return both[:rows], both[rows:], both
    x, y = (np.concatenate([one for one in side if len(one)] or [side[0]]) for side in (left, right))
    return x, y, None
