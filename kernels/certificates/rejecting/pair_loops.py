"""Costs of pairs of points, compiled: a pair at a time, each from its two points.

Of a problem, or of some of its rows, x (rows, d) and y (columns, d) hold the points, and `found` takes the costs row by
row. Nothing here is allowed to reorder or to fuse: the flags that permit LLVM that are left out.
"""

import math
from typing import Any

import numpy as np

from kernels.certificates.compiled import inlined, jit
from kernels.certificates.rejecting.loops import ABREAST, TILE, most_of, prove_one, room_for
from kernels.counter import taken
from kernels.problems.arrays import Array

BOXES, SQUARES, ROOTS, SIZES = range(4)
"""What says by which of these functions costs are worked out."""


@inlined
def least(a: float, b: float) -> float:
    """Of two numbers."""
    return a if a < b else b


@jit
def boxes(x: Array, y: Array, sides: Array, found: Array) -> None:
    """1 - intersection over union; `sides` (4, columns at least) is room for y, turned."""
    count = len(y)
    for j in range(count):
        for k in range(4):
            sides[k, j] = y[j, k]
    left, low, right, top = sides[0, :count], sides[1, :count], sides[2, :count], sides[3, :count]
    for i in range(len(x)):
        x1, y1, x2, y2 = x[i, 0], x[i, 1], x[i, 2], x[i, 3]
        across, down = x2 - x1, y2 - y1
        own = found[i * count : (i + 1) * count]
        for j in range(own.size):
            wide, tall = right[j] - left[j], top[j] - low[j]
            shared = least(least(across, wide), least(x2 - left[j], right[j] - x1))
            high = least(least(down, tall), least(y2 - low[j], top[j] - y1))
            both = (shared if shared > 0.0 else 0.0) * (high if high > 0.0 else 0.0)
            either = (across * down + wide * tall) - both
            own[j] = 1.0 - both / (either if both > 0.0 else 1.0)


@jit
def squares(x: Array, y: Array, found: Array) -> None:
    """Sums of squared differences, coordinate by coordinate."""
    for i in range(len(x)):
        own = found[i * len(y) : (i + 1) * len(y)]
        for j in range(own.size):
            total = 0.0
            for k in range(x.shape[1]):
                apart = y[j, k] - x[i, k]
                total = total + apart * apart
            own[j] = total


@jit
def roots(x: Array, y: Array, found: Array) -> None:
    """Their roots."""
    squares(x, y, found)
    for at in range(len(x) * len(y)):
        found[at] = math.sqrt(found[at])


@jit
def sizes(x: Array, y: Array, found: Array) -> None:
    """Sums of the sizes of differences, coordinate by coordinate."""
    for i in range(len(x)):
        own = found[i * len(y) : (i + 1) * len(y)]
        for j in range(own.size):
            total = 0.0
            for k in range(x.shape[1]):
                total = total + np.abs(y[j, k] - x[i, k])
            own[j] = total


@inlined
def work_out(metric: int, x: Array, y: Array, sides: Array, found: Array) -> None:
    """The costs of some rows of a problem with all its columns."""
    if metric == BOXES:
        boxes(x, y, sides, found)
    elif metric == SQUARES:
        squares(x, y, found)
    elif metric == ROOTS:
        roots(x, y, found)
    else:
        sizes(x, y, found)


@jit
def write(first: int, last: int, metric: int, x: Array, y: Array, starts: Array, found: Array) -> None:
    """The costs of the rows from `first` to before `last`, counted over all problems."""
    sides, k = np.empty((4, most_of(starts, 2))), 0
    while first < last:
        stop, begin, end = min(last, starts[k + 1, 1]), starts[k, 2], starts[k + 1, 2]
        if stop > first:
            at = starts[k, 0] + (first - starts[k, 1]) * (end - begin)
            work_out(metric, x[first:stop], y[begin:end], sides, found[at : at + (stop - first) * (end - begin)])
            first = stop
        k += 1


@jit
def prove_pairs(
    counter: Array, ends: Array, metric: int, x: Array, y: Array, starts: Array, maximize: bool, barred: Any,
    worst: Any, most: Any, leaving: tuple[Array, Array], duals: tuple[Array, Array], assignment: Array, claimed: Array,
    told: Array, counts: Array,
) -> None:  # fmt: skip
    """`loops.prove` of problems whose costs are worked out one problem at a time.

    So these stay in the core's cache, and no pages are mapped and found for them in each call.
    """
    room, used = room_for(starts, told)
    made, sides = np.empty(most_of(starts, 0) + ABREAST), np.empty((4, most_of(starts, 2)))
    tile = np.zeros((TILE, TILE), made.dtype)
    while True:
        piece = taken(counter, 1)
        if piece >= len(ends) - 1:
            return
        for k in range(ends[piece], ends[piece + 1]):
            at, end = starts[k], starts[k + 1]
            work_out(metric, x[at[1] : end[1]], y[at[2] : end[2]], sides, made)
            prove_one(
                k, starts, maximize, barred, worst, most, made, 0, leaving, duals, assignment, claimed, room, used,
                tile, told, counts,
            )  # fmt: skip
