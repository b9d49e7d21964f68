"""Costs between boxes of many frames: 1 - intersection over union, frame after frame in one piece of memory.

A frame has a thousand pairs, and a call of NumPy takes about as long to begin as to do one step for them all. So the
pairs of all frames stand in one line, and each call takes as many of them as stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from allot_client.arrays import Array, pairs

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
SIDES = 4
"""Numbers of a box: x1, y1, x2, y2."""
PIECE = 1 << 14
"""Pairs worked out together."""
LEAST = 5e-324
"""The least number above 0: what a union of nothing is divided by. No other union is below."""


def distances(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    """The costs (m, n) of the boxes (m, 4), (n, 4) of each frame in float64; 1 where two share no area.

    They are views of one array, in which they follow one another. Raises: ValueError.
    """
    sizes = pairs([(len(one), len(other)) for one, other in zip(left, right, strict=True)], len(left))
    x, y = _corners("x", left), _corners("y", right)
    wide = np.repeat(sizes[:, 1], sizes[:, 0])  # pairs of each row
    first = np.concatenate([[0], np.cumsum(wide)])  # and where they begin
    frame_columns = np.cumsum(sizes[:, 1]) - sizes[:, 1]
    ahead = first[:-1] - np.repeat(frame_columns, sizes[:, 0])  # a pair's number less its column's, in each row
    found = np.empty(int(first[-1]))
    cuts = np.searchsorted(first, np.arange(0, len(found), PIECE))
    bounds = np.unique(np.append(cuts, len(wide))).tolist()
    for start, stop in pairwise(bounds):
        rows = np.repeat(np.arange(start, stop), wide[start:stop])
        columns = np.arange(first[start], first[stop]) - ahead[rows]
        np.subtract(1.0, _shares(x, y, rows, columns), out=found[first[start] : first[stop]])
    ends = np.cumsum(sizes.prod(axis=1)).tolist()
    shapes = map(tuple, sizes.tolist())
    return [found[end - m * n : end].reshape(m, n) for end, (m, n) in zip(ends, shapes, strict=True)]


def _shares(x: Floats, y: Floats, rows: Indices, columns: Indices) -> Floats:
    """Intersection over union of boxes x1, y1, x2, y2 and their areas: x (5, ...) at `rows`, y (5, ...) at `columns`.

    No number is out of bounds, and with `clip` NumPy does not look for one.
    """

    def pair(line: int, meet: np.ufunc) -> Floats:
        taken = x[line].take(rows, mode="clip")
        return np.asarray(meet(taken, y[line].take(columns, mode="clip"), out=taken))

    common: Floats | None = None
    for low, high in ((0, 2), (1, 3)):
        side = pair(high, np.minimum)
        side -= pair(low, np.maximum)
        np.maximum(side, 0.0, out=side)
        common = side if common is None else np.multiply(common, side, out=common)
    assert common is not None
    union = pair(4, np.add)
    union -= common
    np.maximum(union, LEAST, out=union)
    common /= union
    return common


def turned(boxes: Array) -> npt.NDArray[np.bool_]:
    """Of which boxes (number, 4) a corner is beyond its opposite."""
    return np.asarray((boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1]))


def refuse_turned(name: str, boxes: Array, frames: Sequence[Array]) -> None:
    """Refuse boxes (number, 4) of which a corner is beyond its opposite; `frames` are what they come from.

    Raises: ValueError.
    """
    found = turned(boxes)
    if found.any():
        k = int(np.searchsorted(np.cumsum([len(frame) for frame in frames]), int(found.argmax()), side="right"))
        expected = "expected rows x1, y1, x2, y2 with x1 <= x2 and y1 <= y2"
        raise ValueError(f"{name} holds no boxes in problem {k}; {expected}")


def _corners(name: str, frames: Sequence[Array]) -> Floats:
    """The corners of all frames' boxes and their areas, (5, number). Raises: ValueError."""
    for k, frame in enumerate(frames):
        if frame.ndim != 2 or (len(frame) and frame.shape[1] != SIDES):
            raise ValueError(f"{name} has shape {frame.shape} in problem {k}; expected (boxes, 4)")
    full = [frame for frame in frames if len(frame)]
    boxes = np.concatenate(full) if full else np.zeros((0, SIDES))
    lines = np.empty((SIDES + 1, len(boxes)))
    lines[:-1] = boxes.T
    refuse_turned(name, boxes, frames)
    np.multiply(lines[2] - lines[0], lines[3] - lines[1], out=lines[4])
    return lines
