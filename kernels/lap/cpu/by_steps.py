"""The steps of a search by whole rows, or over lists, one by one and with looks at the clock between them."""

from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.cpu import (
    near,
    near_back,
    near_both,
    near_path,
    near_rows,
    near_search,
    near_seats,
    near_wide,
    spare,
    whole,
)
from kernels.lap.cpu import whole_path as steps
from kernels.lap.cpu.progress import Watch
from kernels.lap.cpu.seats import match_ties, seat_rows
from kernels.problems.arrays import AnyIntegers, untouched
from kernels.solution import Termination

CHUNK = 1 << 23
"""Entries read between two looks at the clock (1 to 3 ms)."""


def listed_wide(
    made: tuple[whole.Whole, near.Near | None], deadline: Deadline
) -> tuple[whole.Whole, near.Near | None, int | Termination]:
    """A search over lists in their seats, with all free columns at the highest price, for `one_by_one` to go on with.

    NO_PATH where old prices do not help; `made` has no lists where nobody made them.
    """
    s, lists = made
    if lists is None:
        if (lists := near.new_near(s)) is None:
            return s, lists, steps.NO_PATH
        if ended := near_rows.list_in_pieces(s, lists, deadline.expired):
            return s, lists, ended
    near_wide.seat_low(s, lists)
    near_seats.seat_listed(s, lists)
    few = steps.list_free(s) * steps.FEW <= s.col_of.size and lists.seen[near.CROWDS] * near_path.SHARE <= s.col_of.size
    if not few:
        return s, lists, steps.NO_PATH
    kept = s.v.copy(), s.row_of.copy(), s.col_of.copy()
    left = near_wide.level_free(s, lists, near_back.new_both(s, lists))
    if left == 0:
        return s, lists, near_search.LEFT
    if left < 0:
        s.v[:], s.row_of[:], s.col_of[:] = kept
    return s, None, _with_spare(s, deadline)


def _with_spare(s: whole.Whole, deadline: Deadline) -> int | Termination:
    """All paths of a wide problem as of a square one, for `one_by_one` to go on with; NO_PATH where they are many."""
    top = np.empty(1, s.v.dtype)
    n_spare = spare.seat_spare(s, top)
    at, last = 0, n_spare + steps.list_free(s)
    ended: Termination | None = None
    if last * steps.FEW > s.col_of.size:
        at = steps.NO_PATH
    while 0 <= at < last and not (ended := deadline.expired()):
        at = spare.augment_spare(s, top, n_spare, at, last, CHUNK)
    spare.leave_spare(s)
    return ended or (at if at < 0 else near_search.SEATED)


def one_by_one(
    s: whole.Whole, lists: near.Near | None, start: int, own: AnyIntegers, path_limit: int, deadline: Deadline,
    view: Any,
) -> Termination:  # fmt: skip
    """The steps that come after the lists, if there are any, each in a call of its own.

    `start` as in `whole_path.solve_whole`; 2 where rows are in their seats.
    """
    n_rows, n_cols = s.cost.shape
    rows_per_chunk = max(1, CHUNK // n_cols)
    s = _wide(s, lists)
    for first in range(0, n_rows if start >= 0 and lists is None and start < 2 else 0, rows_per_chunk):
        if ended := deadline.expired():
            s.v[s.v >= s.inf] = 0
            return ended
        last = min(n_rows, first + rows_per_chunk)
        if start == 0:
            steps.start_prices(s, first, last)
        else:
            seat_rows(s, first, last, own)
    if lists is not None and lists.seen[near.CROWDS] * near_path.SHARE > n_rows:
        lists = None
        s = _wide(s, lists)
        match_ties(s)
    few = start >= 1 and steps.list_free(s) * steps.FEW <= n_rows
    lists = lists if few else None  # reductions would part pairs whose costs the lists hold
    s = _wide(s, lists)
    for _ in range(0 if few else 2):
        n_free, at, kept, done = steps.list_free(s), 0, 0, 0
        while at < n_free and done < steps.REDUCTIONS_PER_ROW * n_rows:
            if ended := deadline.expired():
                return ended
            budget = min(rows_per_chunk, steps.REDUCTIONS_PER_ROW * n_rows - done)
            at, kept = steps.reduce_rows(s, at, kept, n_free, budget)
            done += budget
    return _augment(s, lists, path_limit, deadline, view)


def _augment(s: whole.Whole, lists: near.Near | None, path_limit: int, deadline: Deadline, view: Any) -> Termination:
    """Paths for the rows that are left: from both ends over lists, from the row, by whole rows."""
    n_free, at = steps.list_free(s), 0
    last = min(n_free, path_limit)
    watch = Watch(view, steps.least_of_free(s, n_free), n_free, view.turned, deadline) if deadline.heard else None
    gave_up = lists is not None and bool(lists.seen[near.GAVE_UP])
    both = near_back.new_both(s, lists) if lists is not None and at < last and not gave_up else None
    from_both = both
    if lists is not None:
        lists.seen[near.GAVE_UP] = 0
    while at < last:
        if ended := deadline.expired():
            return ended
        if lists is None:
            at = steps.augment(s, at, last, CHUNK)
        elif from_both is not None:
            at = near_both.augment_both(s, lists, from_both, at, last, CHUNK)
            from_both = None if lists.seen[near.GAVE_UP] else both
            lists.seen[near.GAVE_UP] = 0
        else:
            at = near_path.augment_near(s, lists, at, last, CHUNK)
            if lists.seen[near.GAVE_UP]:
                lists = None
                s = _wide(s, lists)
        if at < 0:
            return Termination.INFEASIBLE
        if watch is not None:
            risen = 0 if both is None else both.most[near_back.RISEN].item()
            watch.report(n_free - at, int(s.counts[steps.PATHS]), risen)
    return Termination.OPTIMAL if last == n_free else Termination.ITERATION_LIMIT


def _wide(s: whole.Whole, lists: near.Near | None) -> whole.Whole:
    """The same search, for whole rows in the type of its prices; lists can do with float32."""
    if lists is not None or s.cost.dtype == s.v.dtype:
        return s
    return s._replace(cost=untouched(s.cost.astype(s.v.dtype)))
