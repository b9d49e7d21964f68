"""One problem by whole rows (`whole_path.py`): which problems, in which numbers, and the looks at the clock."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from kernels.deadline import Deadline
from kernels.lap import monge
from kernels.lap.complete import complete
from kernels.lap.cpu import (
    by_steps,
    near,
    near_back,
    near_both,
    near_path,
    near_rows,
    near_search,
    near_seats,
    near_wide,
    spare,
    tight,
    whole,
)
from kernels.lap.cpu import whole_path as steps
from kernels.lap.cpu.monge import corner_of
from kernels.lap.masks import INF, infinity
from kernels.problems import UNASSIGNED, Array, Assignment
from kernels.problems.arrays import Amounts, AnyIndices, AnyIntegers, Costs, Indices, Integers, transposed, untouched
from kernels.problems.seen import seen_of
from kernels.solution import Solution, Termination

LONGEST = 1280
"""Columns up to which rows of 64-bit numbers are read whole from a cold start: beyond them shortlists cost less."""
AT_ONCE = 1 << 16
"""Entries of a problem that is solved between two looks at the clock: in 7 ms at most."""
FLOAT_BITS = np.array([0x7FF << 52, np.iinfo(np.int64).max])
"""What infinity is among the bits of float64, and what turns those of negative numbers round."""
NARROW_TOP = np.iinfo(np.int32).max
CONSTANTS: dict[str, tuple[Costs, AnyIntegers]] = {
    "narrow": (np.array([NARROW_TOP, -4 * whole.NARROW], np.int32), np.array([NARROW_TOP, 0], np.int32)),
    "i": (np.array([INF, -INF]), np.array([INF, 0])),
    "f": (np.array([np.inf, -np.inf]), FLOAT_BITS),
}
"""limits and bits of a `PreparedCosts` without forbidden integers."""
NOBODY = {bits.dtype.char: np.zeros(0, bits.dtype) for _, bits in CONSTANTS.values()}
"""In place of earlier pairs, where there were none."""
NARROW = np.dtype(np.int32)
VALUES: dict[str, Any] = {"narrow": NARROW, "i": np.dtype(np.int64), "f": np.dtype(np.float64)}


class PreparedCosts(NamedTuple):
    """The costs of one problem to be minimised, with n_rows <= n_cols, and the constants of their arithmetic.

    `given` are the weights that it was made of; `limits` and `bits` are those of `whole.new_whole`. Prices and all that
    is worked out have the type of `limits`; only a warm start may have costs of float32 beside that.
    """

    given: Costs
    cost: Costs
    limits: Costs
    bits: AnyIntegers


class Old(NamedTuple):
    """Duals to start from: prices of the columns, and of each row what c - v of its earlier pair is, where known.

    `early` are lists that the checks may have made at these prices: a `near_early.Early`.
    """

    prices: Amounts
    rows: Costs | None = None
    early: Any = None


def prepared_costs(
    weights: Costs, masked: bool, maximize: bool, warm: bool, largest: int | float | None = None
) -> PreparedCosts | None:
    """The costs as whole rows read them; None where shortlists are to be read.

    Args:
        weights: (n_rows, n_cols) with 2^62 (-2^62 when maximising) for what is forbidden among integers, and +inf
            (-inf) among floats; `masked` says whether integers have such.
        largest: their largest magnitude, where it is known.
    """
    square = weights.shape[0] == weights.shape[1]
    if weights.dtype.kind == "i" and not masked and (square or not warm) and _is_narrow(weights, largest):
        return PreparedCosts(weights, _turned(weights.astype(np.int32, copy=False), maximize), *CONSTANTS["narrow"])
    if max(weights.shape) > LONGEST and not warm:
        return None
    if weights.dtype.kind == "i":
        inf = infinity(True, masked)
        cost = _turned(weights.astype(np.int64, copy=False), maximize)
        return PreparedCosts(weights, cost, np.array([inf, -inf]), np.array([inf, 0]))
    as_given = warm and square  # lists have their costs in float64
    cost = _turned(weights if as_given else weights.astype(np.float64, copy=False), maximize)
    return PreparedCosts(weights, cost, *CONSTANTS["f"])


def solve_small(problem: Assignment, deadline: Deadline) -> Solution | None:
    """Solve one small matrix from a cold start, with as few calls from Python as there can be.

    They cost more than the search of 64 x 64. The answer is that of `solver.solve_one`; None where that is to be asked:
    of problems that are large, warm-started, have forbidden integers, or have no full assignment.
    """
    weights, looked = problem.weights, problem.looked
    if looked is None or looked.weights is not weights or looked.masked or weights.ndim != 2 or weights.size > AT_ONCE:
        return None
    n_rows, n_cols = weights.shape
    kind: str = weights.dtype.kind
    if problem.u0 is not None or problem.v0 is not None or deadline.expired():
        return None
    if n_rows == n_cols >= monge.SMALLEST and (corner := corner_of(weights)):
        sorted_out = monge.solve(weights, problem.maximize, corner)
        if sorted_out is not None:
            return sorted_out
    if kind == "i" and looked.largest <= whole.NARROW:
        kind = "narrow"
    value = VALUES[kind]
    cost = weights if weights.dtype == value else weights.astype(value)
    if problem.maximize or n_rows > n_cols:
        cost = _turned(cost, problem.maximize)
    prepared = PreparedCosts(weights, cost, *CONSTANTS[kind])
    start, prices = 0 if n_rows == n_cols else -1, np.zeros(cost.shape[1], value)
    return _at_once(prepared, prices, start, NOBODY[prepared.bits.dtype.char], problem.maximize)


def _at_once(prepared: PreparedCosts, v: Costs, start: int, own: AnyIntegers, maximize: bool) -> Solution | None:
    """Solve without a look at the clock, from prices `v`; None where there is no full assignment, or int32 ends."""
    n_rows = prepared.cost.shape[0]
    u, col_of = np.empty(n_rows, v.dtype), np.empty(n_rows, np.int64)
    solved, *counts = steps.solve_at_once(
        untouched(prepared.cost), prepared.limits, prepared.bits, v, u, col_of, start, own
    )
    if not solved:
        return None
    row_of = None
    if prepared.given.shape[0] > n_rows:
        row_of = np.full(v.size, UNASSIGNED)
        row_of[col_of] = np.arange(n_rows)
    return Solution(
        Termination.OPTIMAL, "sap", _arrays(col_of, row_of, u, v, maximize), counts[0] + counts[2], facts=_facts(counts)
    )


def _is_narrow(weights: Costs, largest: int | float | None) -> bool:
    if largest is not None:
        return largest <= whole.NARROW
    seen = seen_of(weights)
    if seen is not None:
        return seen.largest <= whole.NARROW
    return int(weights.max()) <= whole.NARROW and int(weights.min()) >= -whole.NARROW


def _turned(weights: Costs, maximize: bool) -> Costs:
    if weights.shape[0] <= weights.shape[1]:
        return np.ascontiguousarray(-weights if maximize else weights)
    turned = transposed(weights)
    return np.negative(turned, out=turned) if maximize else turned


def solve(
    weights: Costs,
    prepared: PreparedCosts,
    maximize: bool,
    old: Old | None,
    path_limit: int,
    deadline: Deadline,
    at_once: int | None = None,
) -> Solution | None:
    """As `cpu.solve_one`, of prepared costs, from `old` duals where there are some.

    Up to `at_once` entries (AT_ONCE) are solved without a look at the clock. None where int32 does not suffice, or
    where there is no full assignment: the steps on shortlists tell why. Also where old prices of a problem that
    `suits_wide` do not help: it may be solved from nothing.
    """
    value = prepared.limits.dtype
    v = np.zeros(prepared.cost.shape[1], value) if old is None else old.prices.astype(value, copy=False)
    start = _start(prepared, old)
    at_once = AT_ONCE if at_once is None else at_once
    turned = weights.shape[0] > weights.shape[1]
    if prepared.cost.size <= at_once and path_limit >= prepared.cost.shape[0] and not deadline.expired():
        return _at_once(_widened(prepared), v, start, _bits_of(old, prepared), maximize)
    if old is None:
        prepared = _widened(prepared)
    u = np.zeros(prepared.cost.shape[0], v.dtype)
    ended, s = _run(prepared, old, v, u, path_limit, deadline, maximize)
    if ended is Termination.INFEASIBLE:
        return None
    if old is not None and u.size < v.size:
        top = s.v.max()  # of the columns that are free, which have price 0 in an answer
        s.v[:] -= top
        u += top
    arrays = _arrays(s.col_of, s.row_of.astype(np.int64) if turned else None, u, s.v, maximize)
    counts = s.counts.tolist()
    facts, iterations = _facts(counts), counts[steps.REDUCTIONS] + counts[steps.PATHS]
    if ended is not Termination.OPTIMAL and (violator := complete(weights, maximize, arrays["assignment"])):
        return Solution(Termination.INFEASIBLE, "sap", violator, iterations, facts=facts)
    return Solution(ended, "sap", arrays, iterations, facts=facts)


def _widened(prepared: PreparedCosts) -> PreparedCosts:
    """With costs of the type of prices."""
    return prepared._replace(cost=prepared.cost.astype(prepared.limits.dtype, copy=False))


def _start(prepared: PreparedCosts, old: Old | None) -> int:
    """What `whole_path.solve_whole` begins with."""
    if old is not None:
        return 1
    return -1 if prepared.cost.shape[0] < prepared.cost.shape[1] else 0


def _bits_of(old: Old | None, prepared: PreparedCosts) -> AnyIndices:
    """Duals of rows as `whole.order` has them, for costs of floats; integers tell no pair from another by them."""
    rows = None if old is None else old.rows
    if rows is None or prepared.cost.dtype.kind == "i":
        return NOBODY[prepared.bits.dtype.char]
    bits = np.ascontiguousarray(rows, np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ prepared.bits[1], bits)


def _as_watched(s: whole.Whole, given: Costs, maximize: bool) -> Any:
    """What `Watch` looks at: the weights as they were given, and the state's arrays."""
    turned = given.shape[0] > given.shape[1]
    cost, sign = given.T if turned else given, -1 if maximize else 1
    return SimpleNamespace(cost=cost, sign=sign, inf=s.inf, v=s.v, row_of=s.row_of, col_of=s.col_of, turned=turned)


def _arrays(col_of: Indices, row_of: Indices | None, u: Costs, v: Costs, maximize: bool) -> dict[str, Array]:
    """The answer in the terms of the weights as they were given; `row_of` where those were turned."""
    if v.dtype == NARROW:
        u, v = u.astype(np.int64), v.astype(np.int64)
    if maximize:
        u, v = -u, -v
    return {"assignment": col_of, "u": u, "v": v} if row_of is None else {"assignment": row_of, "u": v, "v": u}


def _facts(counts: list[int]) -> dict[str, int]:
    return {"row_reductions": counts[0], "rows_scanned": 0, "paths": counts[2], "rows_read_whole": counts[1]}


def _run(
    prepared: PreparedCosts, old: Old | None, v: Costs, u: Costs, path_limit: int, deadline: Deadline, maximize: bool
) -> tuple[Termination, whole.Whole]:
    """All steps, with looks at the clock between them, and row duals into `u`; INFEASIBLE where they cannot go on."""
    start = _start(prepared, old)
    s, lists, found = _listed(prepared, old, v, u, path_limit, deadline)
    if isinstance(found, Termination):
        ended = found
    elif found == near_search.DONE:
        return Termination.OPTIMAL, s
    elif found < 0:
        return Termination.INFEASIBLE, s
    else:
        view = _as_watched(s, prepared.given, maximize)
        start = 2 if found == near_search.SEATED else start
        ended = by_steps.one_by_one(s, lists, start, _bits_of(old, prepared), path_limit, deadline, view)
    if ended is not Termination.INFEASIBLE:
        steps.close(s, u, ended is not Termination.OPTIMAL)
    return ended, s


def _listed(
    prepared: PreparedCosts, old: Old | None, v: Costs, u: Costs, path_limit: int, deadline: Deadline
) -> tuple[whole.Whole, near.Near | None, int | Termination]:
    """A search, its lists if it is one over lists, and how far it is, as `near_search.py` says, or why it was stopped.

    With lists, rows are in their seats. Where nobody listens, all paths are mostly done as well.
    """
    at_once, given = path_limit >= u.size and not deadline.heard, (untouched(prepared.cost), *prepared[2:], v)
    made, marks = old.early.take(prepared.cost, v) if old is not None and old.early is not None else None, None
    lists: near.Near | None
    if old is not None and u.size < v.size:
        fresh = made[:2] if made else (whole.new_whole(*given, np.empty(u.size, np.int64)), None)
        return by_steps.listed_wide(fresh, deadline)
    if made is not None:
        s, lists, marks = made.s, made.lists if made.tight is None else None, made.tight
    elif _start(prepared, old) == 1 and at_once and prepared.cost.size <= near_rows.PIECE and not deadline.expired():
        found, s, lists = near_search.list_and_search(*given, u, np.empty(u.size, np.int64), by_steps.CHUNK)
        if found != near_search.TIED:
            return s, lists, found
        lists = None
    else:
        s = whole.new_whole(*given, np.empty(u.size, np.int64))
        lists = near.new_near(s) if _start(prepared, old) == 1 else None
        if lists is not None and (ended := near_rows.list_in_pieces(s, lists, deadline.expired)):
            return s, lists, ended
    if lists is None and old is not None and s.flip == 0 and s.v.size >= near.LANES:
        return s, lists, tight.seat_tied(s, old.rows, marks, u, deadline.expired)
    if lists is None:
        return s, lists, near_search.LEFT
    if ended := deadline.expired():
        return s, lists, ended
    if at_once:
        return s, lists, near_search.search(s, lists, u, by_steps.CHUNK)
    near_seats.seat_listed(s, lists)
    return s, lists, near_search.LEFT


def suits_wide(weights: Costs, path_limit: int) -> bool:
    """Whether a wide or tall problem may be worth a start from old prices: all its paths are wanted, and not few."""
    return weights.size > AT_ONCE and min(weights.shape) >= near.LANES and path_limit >= min(weights.shape)


def warm_up(dtype: Any, ties: Integers) -> None:
    """Compile every step for costs of a type, from small integers that leave rows for the paths."""
    weights: Costs = ties.astype(dtype) << 40 if dtype is np.int64 else ties.astype(dtype)  # beyond 32 bits
    prepared = prepared_costs(weights, False, False, True)
    assert prepared is not None
    for old in (None, Old(np.zeros(ties.shape[1], prepared.limits.dtype))):
        for at_once in (0, AT_ONCE):
            solve(weights, prepared, False, old, weights.size, Deadline(), at_once)
    spread = prepared.cost * prepared.cost.dtype.type(3) + np.arange(len(ties)).astype(prepared.cost.dtype)
    v, col_of = np.zeros(len(spread), prepared.limits.dtype), np.empty(len(spread), np.int64)
    s = whole.new_whole(untouched(spread), prepared.limits, prepared.bits, v, col_of)
    lists = near.new_near(s)
    assert lists is not None
    near_rows.list_in_pieces(s, lists, Deadline().expired)
    near_seats.seat_listed(s, lists)
    if spread.dtype == v.dtype and v.itemsize == 8:  # wide problems have no other types
        near_wide.seat_low(s, lists)
        near_wide.level_free(s, lists, near_back.new_both(s, lists))
        spare.warm_up(s)
    steps.list_free(s)
    near_both.augment_both(s, lists, near_back.new_both(s, lists), 0, 0, 1)
    near_search.search(s, lists, np.empty(len(spread), lists.costs.dtype), 1)
    near_path.augment_near(s, lists, 0, 0, 1)
