"""A first answer: what a search left unpaired, paired greedily, and where that gets stuck along alternating paths.

Costs matter to the greedy step alone. The paths look only at which entries are permitted (Berge 1957; Kuhn 1955), so a
full pairing is found wherever there is one, however little time the search had; where there is none, the rows that the
last path could reach are a Hall violator.
"""

from typing import Any

import numpy as np

from kernels.problems import UNASSIGNED, Array
from kernels.problems.arrays import Costs, Indices, Integers, Mask, permitted


def complete(weights: Costs, maximize: bool, assignment: Indices) -> dict[str, Array] | None:
    """Pair the free lines of the shorter side, changing `assignment` (n_rows,) in place.

    Args:
        weights: (n_rows, n_cols), on the host.
        assignment: a valid pairing of some rows, -1 elsewhere.
    Returns:
        None once min(n_rows, n_cols) pairs are formed; else `hall_rows`, `hall_cols`, as the solvers return them.
    """
    turned = weights.shape[0] > weights.shape[1]
    lines = weights.T if turned else weights
    partner_of, line_of = _both_ways(assignment, weights.shape, turned)
    _pair_greedily(lines, -1 if maximize else 1, partner_of, line_of)
    for line in np.flatnonzero(partner_of == UNASSIGNED).tolist():
        seen = _augment(lines, line, partner_of, line_of)
        if seen is not None:
            cols = np.flatnonzero(seen)
            rows = np.sort(np.append(line_of[cols], line))
            if turned:  # the lines are columns: what they leave over are rows with too few columns
                rows, cols = np.setdiff1d(np.arange(len(line_of)), cols), np.setdiff1d(np.arange(len(lines)), rows)
            return {"hall_rows": rows, "hall_cols": cols}
    assignment[:] = line_of if turned else partner_of
    return None


def _both_ways(assignment: Indices, shape: tuple[int, ...], turned: bool) -> tuple[Integers, Integers]:
    """(partner of each line, line of each partner), where the lines are the shorter side."""
    of_row, of_col = assignment.astype(np.int64), np.full(shape[1], UNASSIGNED, np.int64)
    rows = np.flatnonzero(of_row != UNASSIGNED)
    of_col[of_row[rows]] = rows
    return (of_col, of_row) if turned else (of_row, of_col)


def _pair_greedily(lines: Costs, sign: int, partner_of: Indices, line_of: Indices) -> None:
    """Each free line takes its cheapest free partner, in order."""
    free = line_of == UNASSIGNED
    dtype: Any = lines.dtype
    worst = np.array(np.inf if lines.dtype.kind == "f" else np.iinfo(dtype).max, dtype)
    for i in np.flatnonzero(partner_of == UNASSIGNED).tolist():
        entries = lines[i]
        open_to = permitted(entries) & free
        j = int(np.where(open_to, entries * sign, worst).argmin())
        if open_to[j]:
            partner_of[i], line_of[j], free[j] = j, i, False


def _augment(lines: Costs, source: int, partner_of: Indices, line_of: Indices) -> Mask | None:
    """Lead line `source` to a free partner, breadth first; where none can be reached, the partners that were."""
    seen = np.zeros(lines.shape[1], bool)
    parent = np.full(lines.shape[1], UNASSIGNED, np.int64)
    queue = [source]
    for i in queue:  # grows while it is read
        fresh = np.flatnonzero(permitted(lines[i]) & ~seen)
        seen[fresh], parent[fresh] = True, i
        ends = fresh[line_of[fresh] == UNASSIGNED]
        if len(ends):
            _flip(int(ends[0]), source, parent, partner_of, line_of)
            return None
        queue.extend(line_of[fresh].tolist())
    return seen


def _flip(end: int, source: int, parent: Indices, partner_of: Indices, line_of: Indices) -> None:
    j, i = end, UNASSIGNED
    while i != source:
        i = int(parent[j])
        line_of[j] = i
        partner_of[i], j = j, int(partner_of[i])
