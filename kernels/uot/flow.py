"""Balanced marginals made exact where entries are forbidden: a flow of the missing mass on the permitted ones.

Along a spanning tree of the permitted entries, the largest of the plan first (Prim 1957), the missing masses have one
flow only, from the leaves inwards. It changes m + n - 1 large entries by a little, so its price goes with the square of
what is missing. Where it would make an entry negative, rows and columns are scaled down to what they may carry, and the
rest is sent along shortest augmenting paths (Edmonds and Karp 1972): permitted entries forwards, entries with mass
backwards. Rows from which no path leaves break Hall's condition: with what they have no plan can exist.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.problems.arrays import Floats, Indices, Mask, Reals
from kernels.problems.transport import SAME_MASS
from kernels.uot.repair import MET

FREE = 1 << 28  # entries that paths may look at before the time matters: a first answer is owed in any case
KEPT = 2.0**-20  # of an entry that the tree must leave, so that potentials still describe it


@dataclass(frozen=True)
class Settled:
    """The missing mass that is left, and rows that have more mass than all columns that they may use.

    Sums of masses that differ by less than SAME_MASS count as the same: then there are no such rows.
    """

    left: float
    hall_rows: Indices | None = None


def settle(plan: Reals, permitted: Mask, a: Floats, b: Floats, late: Callable[[], object]) -> Settled:
    """Make the sums of `plan` (m, n), zero where not `permitted`, those of a and b, in its place."""
    mass = float(a.sum())
    if _missing(plan, a, b) <= MET * (a.size + b.size) * mass:
        return Settled(0.0)
    if _along_tree(plan, permitted, a, b):
        return Settled(_missing(plan, a, b))
    for masses, axis in ((a, 1), (b, 0)):
        sums = plan.sum(axis=axis)
        factor = np.minimum(np.divide(masses, sums, out=np.zeros_like(sums), where=sums > 0), 1.0)
        plan *= factor[:, None] if axis == 1 else factor
    return _along_paths(plan, permitted, a, b, late)


def _missing(plan: Reals, a: Floats, b: Floats) -> float:
    return float(abs(a - plan.sum(axis=1)).sum() + abs(b - plan.sum(axis=0)).sum())


def _along_tree(plan: Reals, permitted: Mask, a: Floats, b: Floats) -> bool:
    """Send what is missing along the tree; False, and nothing done, where it does not fit."""
    m = a.size
    order, parent = _spanning_tree(plan, permitted)
    missing = np.concatenate([a - plan.sum(axis=1), b - plan.sum(axis=0)])
    moved = np.zeros(missing.size)
    for vertex in reversed(order):
        if parent[vertex] >= 0:
            moved[vertex] = missing[vertex]
            missing[parent[vertex]] -= missing[vertex]
    inner = np.nonzero((parent >= 0) & (moved != 0))[0]
    i, j = np.minimum(inner, parent[inner]), np.maximum(inner, parent[inner]) - m
    changed = plan[i, j] + moved[inner]
    if (changed < KEPT * plan[i, j]).any() or abs(missing[parent < 0]).sum() > SAME_MASS * float(a.sum()):
        return False
    plan[i, j] = changed
    return True


def _spanning_tree(plan: Reals, permitted: Mask) -> tuple[list[int], Indices]:
    """Vertices (rows, then columns from m on) as they joined the tree, and each one's parent, -1 for a root."""
    m, n = plan.shape
    turned = np.ascontiguousarray(plan.T), np.ascontiguousarray(permitted.T)
    keys, parent = np.full(m + n, -1.0), np.full(m + n, -1)
    outside, order = np.ones(m + n, bool), []
    for _ in range(m + n):
        vertex = int(np.where(outside, keys, -2.0).argmax())
        order.append(vertex)
        outside[vertex] = False
        line, usable = (plan[vertex], permitted[vertex]) if vertex < m else (t[vertex - m] for t in turned)
        there = slice(m, m + n) if vertex < m else slice(0, m)
        better = usable & outside[there] & (line > keys[there])
        keys[there][better] = line[better]
        parent[there][better] = vertex
    return order, parent


def _along_paths(plan: Reals, permitted: Mask, a: Floats, b: Floats, late: Callable[[], object]) -> Settled:
    """Send the rest of a and b along augmenting paths until nothing is missing, no path is left, or it is late."""
    rest_a, rest_b = a - plan.sum(axis=1), b - plan.sum(axis=0)
    small = MET * float(a.sum()) / 2
    _fill(plan, permitted, rest_a, rest_b, small)
    for number in range(8 * (a.size + b.size)):
        if not (rest_a > small).any() or (number * plan.size > FREE and late()):
            break
        path, reached = _path(plan > small, permitted, rest_a > small, rest_b > small)
        if not path:
            left = _missing(plan, a, b)
            return Settled(left, np.nonzero(reached)[0] if left > SAME_MASS * float(a.sum()) else None)
        _augment(plan, path, rest_a, rest_b)
    return Settled(_missing(plan, a, b))


def _fill(plan: Reals, permitted: Mask, rest_a: Floats, rest_b: Floats, small: float) -> None:
    """Row by row, what is missing goes to permitted columns that miss some."""
    for i in np.nonzero(rest_a > small)[0]:
        columns = np.nonzero(permitted[i] & (rest_b > 0))[0]
        filled = np.minimum(np.cumsum(rest_b[columns]), rest_a[i])
        step = np.diff(filled, prepend=0.0)
        plan[i, columns] += step
        rest_b[columns] -= step
        rest_a[i] -= step.sum()


def _path(held: Mask, permitted: Mask, sources: Mask, sinks: Mask) -> tuple[list[int], Mask]:
    """Rows and columns in turn from a source row to a sink column, [] for none; and the rows that were reached.

    `held` marks the entries with mass to take back.
    """
    m, n = held.shape
    of_rows, of_columns = np.full(m, -1), np.full(n, -1)
    reached, seen = sources.copy(), np.zeros(n, bool)
    front = np.nonzero(sources)[0]
    while front.size:
        fresh = permitted[front].any(axis=0) & ~seen
        columns = np.nonzero(fresh)[0]
        of_columns[columns] = front[permitted[np.ix_(front, columns)].argmax(axis=0)]
        seen |= fresh
        ends = columns[sinks[columns]]
        if ends.size:
            return _walk(int(ends[0]), of_rows, of_columns), reached
        back = held[:, columns]
        rows = np.nonzero(back.any(axis=1) & ~reached)[0]
        if rows.size:
            of_rows[rows] = columns[back[rows].argmax(axis=1)]
            reached[rows] = True
        front = rows
    return [], reached


def _walk(column: int, of_rows: Indices, of_columns: Indices) -> list[int]:
    path = [column]
    while True:
        row = int(of_columns[path[-1]])
        path.append(row)
        if of_rows[row] < 0:
            return path[::-1]
        path.append(int(of_rows[row]))


def _augment(plan: Reals, path: list[int], rest_a: Floats, rest_b: Floats) -> None:
    """Send as much along row, column, row, ..., column as its ends miss and its backward entries hold."""
    rows, columns = np.array(path[0::2]), np.array(path[1::2])
    held = plan[rows[1:], columns[:-1]]
    amount = min(float(rest_a[rows[0]]), float(rest_b[columns[-1]]), float(held.min(initial=np.inf)))
    plan[rows, columns] += amount
    plan[rows[1:], columns[:-1]] = held - amount
    rest_a[rows[0]] -= amount
    rest_b[columns[-1]] -= amount
