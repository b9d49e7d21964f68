"""Costs of pairs of points, compiled: a pair at a time, each from its two points.

The rows of all problems are counted through. Row i has the entries from `begins[i]` on, and the columns from `ahead[i]`
on, where x (rows, d) and y (columns, d) hold the points; of boxes y is turned, (4, columns). Nothing here is allowed to
reorder or to fuse: the flags that permit LLVM that are left out.
"""

import math
from typing import Any

import numpy as np

from kernels.certificates.rejecting.loops import inlined, jit, prove
from kernels.problems.arrays import Array

BOXES, SQUARES, ROOTS, SIZES = range(4)
"""What says by which of these functions costs are worked out."""
AT_A_TIME = 1 << 13
"""Costs, at least, that are worked out before they are looked at: they stay in the core's cache, and are so few bytes
that no pages are mapped and found for each call."""


@inlined
def least(a: float, b: float) -> float:
    """Of two numbers."""
    return a if a < b else b


@jit
def boxes(first: int, last: int, begins: Array, ahead: Array, x: Array, y: Array, found: Array) -> None:
    """1 - intersection over union of the rows from `first` to before `last` with their columns."""
    for i in range(first, last):
        x1, y1, x2, y2 = x[i, 0], x[i, 1], x[i, 2], x[i, 3]
        across, down = x2 - x1, y2 - y1
        own = found[begins[i] : begins[i + 1]]
        left, low = y[0][ahead[i] : ahead[i] + own.size], y[1][ahead[i] : ahead[i] + own.size]
        right, top = y[2][ahead[i] : ahead[i] + own.size], y[3][ahead[i] : ahead[i] + own.size]
        for j in range(own.size):
            wide, tall = right[j] - left[j], top[j] - low[j]
            shared = least(least(across, wide), least(x2 - left[j], right[j] - x1))
            high = least(least(down, tall), least(y2 - low[j], top[j] - y1))
            both = (shared if shared > 0.0 else 0.0) * (high if high > 0.0 else 0.0)
            either = (across * down + wide * tall) - both
            own[j] = 1.0 - both / (either if both > 0.0 else 1.0)


@jit
def squares(first: int, last: int, begins: Array, ahead: Array, x: Array, y: Array, found: Array) -> None:
    """Sums of squared differences, coordinate by coordinate."""
    for i in range(first, last):
        own = found[begins[i] : begins[i + 1]]
        others = y[ahead[i] : ahead[i] + own.size]
        for j in range(own.size):
            total = 0.0
            for k in range(x.shape[1]):
                apart = others[j, k] - x[i, k]
                total = total + apart * apart
            own[j] = total


@jit
def roots(first: int, last: int, begins: Array, ahead: Array, x: Array, y: Array, found: Array) -> None:
    """Their roots."""
    squares(first, last, begins, ahead, x, y, found)
    own = found[begins[first] : begins[last]]
    for at in range(own.size):
        own[at] = math.sqrt(own[at])


@jit
def sizes(first: int, last: int, begins: Array, ahead: Array, x: Array, y: Array, found: Array) -> None:
    """Sums of the sizes of differences, coordinate by coordinate."""
    for i in range(first, last):
        own = found[begins[i] : begins[i + 1]]
        others = y[ahead[i] : ahead[i] + own.size]
        for j in range(own.size):
            total = 0.0
            for k in range(x.shape[1]):
                total = total + np.abs(others[j, k] - x[i, k])
            own[j] = total


@jit
def write(
    metric: int, first: int, last: int, begins: Array, ahead: Array, x: Array, y: Array, found: Array
) -> None:  # fmt: skip
    """The costs of the rows from `first` to before `last`."""
    if metric == BOXES:
        boxes(first, last, begins, ahead, x, y, found)
    elif metric == SQUARES:
        squares(first, last, begins, ahead, x, y, found)
    elif metric == ROOTS:
        roots(first, last, begins, ahead, x, y, found)
    else:
        sizes(first, last, begins, ahead, x, y, found)


@jit
def prove_pairs(
    first: int, last: int, metric: int, begins: Array, ahead: Array, x: Array, y: Array, starts: Array, maximize: bool,
    barred: Any, worst: Any, most: Any, leaving: tuple[Array, Array], duals: tuple[Array, Array], assignment: Array,
    sums: Array, terms: Array, counts: Array,
) -> None:  # fmt: skip
    """`loops.prove` of the problems from `first` to before `last`, whose costs are worked out a few problems at a time.

    `terms` is its `sizes`; all else is as there and above.
    """
    longest = 0
    for k in range(first, last):
        longest = max(longest, starts[k + 1, 0] - starts[k, 0])
    made = np.empty(AT_A_TIME + longest)
    while first < last:
        stop = first + 1
        while stop < last and starts[stop, 0] - starts[first, 0] < AT_A_TIME:
            stop += 1
        at, rows = starts[first, 0], slice(starts[first, 1], starts[stop, 1])
        own = starts[first : stop + 1].copy()
        own[:, 0] -= at
        lines = begins[starts[first, 1] : starts[stop, 1] + 1] - at
        write(metric, 0, rows.stop - rows.start, lines, ahead[rows], x[rows], y, made)
        prove(
            0, stop - first, own, maximize, barred, worst, most, made, leaving, duals, assignment,
            sums[first:stop], terms[first:stop], counts[first:stop],
        )  # fmt: skip
        first = stop
