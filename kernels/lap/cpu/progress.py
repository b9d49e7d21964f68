"""What a search on the CPU can say of its answer while it runs: an objective that can be had, and a bound."""

from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.cpu.shortlist import State, jit
from kernels.lap.pace import Pace
from kernels.problems.arrays import Floats, Indices, Integers
from kernels.solution import Number

SHARE = 1.25
"""The next look at the answer comes when the solve has taken so many times as long: it costs little beside it."""


@jit
def least_listed(s: State, i: int) -> Any:
    """A lower bound on row i's reduced entries; it stays one, as prices only fall."""
    low = s.list_bound[i]
    for t in range(s.list_count[i]):
        low = min(low, s.list_weights[i, t] - s.v[s.list_cols[i, t]])
    return low


class Watch:
    """Reports of one search: `n_free` rows are to be paired by augmenting paths."""

    def __init__(self, state: Any, least: dict[int, Any], n_free: int, turned: bool, deadline: Deadline) -> None:
        """`state` has cost, sign, inf, v, row_of, col_of; `least` bounds the reduced entries of each free row.

        `turned` says that its rows are the problem's columns.
        """
        self._state, self._turned, self._deadline = state, turned, deadline
        self._pace = Pace(n_free, deadline.elapsed_s)
        self._next_s = 0.0
        self._objective: Number | None = None
        self._least = least

    def report(self, n_left: int, paths: int, risen: Number = 0) -> None:
        """Tell how far the search is; at times with the objective of its pairs, completed greedily, and the bound.

        `risen`: no price has risen by more since the watch began.
        """
        elapsed, state, bound = self._deadline.elapsed_s, self._state, None
        if not self._deadline.heard:
            return
        if elapsed >= self._next_s:
            found, col_of = self._completed()
            if found is not None and (self._objective is None or state.sign * (found - self._objective) < 0):
                self._objective = found
                self._deadline.show(self._assignment(col_of))
            self._next_s = SHARE * self._deadline.elapsed_s
        bound = self._bound(risen)
        fraction = self._pace.fraction(n_left, elapsed)
        self._deadline.report(paths, self._objective, bound, fraction)

    def _bound(self, risen: Number) -> Number | None:
        """What the present prices are worth, in the sense of the problem."""
        state = self._state
        rows = np.flatnonzero(state.col_of >= 0)
        cols = state.col_of[rows]
        free = [self._least.get(i, state.inf) for i in np.flatnonzero(state.col_of < 0).tolist()]
        if any(least >= state.inf for least in free):
            return None
        free = [least - risen for least in free]
        own = state.cost[rows, cols] * state.sign
        spare = (len(state.v) - len(state.col_of)) * state.v.max()  # what all columns that stay free are above 0
        terms = np.concatenate([own, -state.v[cols], state.v, np.array([*free, -spare], state.v.dtype)])
        total = _sum(terms)
        if terms.dtype.kind == "f":  # more than what the rounding of any order of summation adds up to
            total -= 2.0**-51 * len(terms) * _sum(np.abs(terms))
        return int(state.sign) * total

    def _completed(self) -> tuple[Number | None, Integers]:
        """The objective once every free row has taken its cheapest free column, and the columns of all rows.

        None where one could not.
        """
        state = self._state
        open_cols, col_of = state.row_of < 0, state.col_of.copy()
        rows = np.flatnonzero(col_of >= 0)
        total = _sum(state.cost[rows, col_of[rows]])
        for i in np.flatnonzero(col_of < 0).tolist():
            cols = np.flatnonzero(open_cols)
            values = state.cost[i, cols] * state.sign
            at = int(values.argmin())
            if values[at] >= state.inf:
                return None, col_of
            total += state.cost[i, cols[at]].item()
            col_of[i], open_cols[cols[at]] = cols[at], False
        return total, col_of

    def _assignment(self, col_of: Indices) -> list[int]:
        """The column of each row of the problem, -1 for none."""
        if self._turned:
            row_of = np.full(len(self._state.row_of), -1, np.int64)
            row_of[col_of] = np.arange(len(col_of))
            col_of = row_of
        found: list[int] = col_of.tolist()
        return found


def _sum(values: Floats) -> Number:
    total: Number = values.sum().item()
    return total
