"""Proofs that an assignment problem has no answer: rows whose permitted entries lie in too few columns (Hall 1935)."""

from dataclasses import dataclass

import numpy as np

from kernels.problems.arrays import Array, permitted

BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class Violator:
    """`n_hall` rows may take `n_cols` columns only; `n_spare` rows may stay unassigned. `holds`: it was found so."""

    n_hall: int
    n_cols: int
    n_spare: int
    holds: bool

    @property
    def proved(self) -> str:
        """One sentence."""
        claim = f"infeasible: {self.n_hall} rows have permitted entries in {self.n_cols} columns only"
        claim += f", and at most {self.n_spare} rows may stay unassigned" if self.n_spare else ""
        return claim if self.holds else f"not shown: {claim}"


def check(weights: Array, hall_rows: Array, hall_cols: Array) -> Violator:
    """Look at every entry of `hall_rows` outside `hall_cols`: each must be forbidden, and the columns too few."""
    n_rows, n_cols = weights.shape
    spare = n_rows - min(n_rows, n_cols)
    if hall_rows.dtype.kind not in "iu" or hall_cols.dtype.kind not in "iuf":
        return Violator(0, 0, spare, False)
    rows, cols = np.unique(hall_rows), np.unique(hall_cols)
    inside = all(len(side) == 0 or (side[0] >= 0 and side[-1] < n) for side, n in ((rows, n_rows), (cols, n_cols)))
    if not inside:
        return Violator(len(rows), len(cols), spare, False)
    elsewhere = np.setdiff1d(np.arange(n_cols), cols)
    barred, step = True, max(1, BLOCK_BYTES // (8 * n_cols))
    for first in range(0, len(rows), step):
        barred &= not permitted(weights[np.ix_(rows[first : first + step], elsewhere)]).any()
    return Violator(len(rows), len(cols), spare, barred and len(rows) > len(cols) + spare)
