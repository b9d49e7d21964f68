"""A matrix whose rows somebody prices, solved on lists of few columns: what a GPU does beyond the forest's 65,536 rows.

    minima        prices to begin with: the least cost of each column (0 where columns may stay free), and who has it
    list_columns  the COLUMNS least columns of each row at these prices
    hold_pairing  more columns, until the lists hold a pairing of all rows (`held.py`); or nothing can be paired
    settle        the rounds of `level.py`

The matrix is read once for the minima, once for the lists, and at most once a round.
"""

from typing import Any, Protocol

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.columns.dense import DenseSearch, Minima
from kernels.lap.columns.held import DenseCosts, Violator, hold_pairing
from kernels.lap.columns.level import Answer, Generation, Level, costs_of_pairs, distinct, keys_of, unlimited
from kernels.lap.columns.wide import WideLevel
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Costs
from kernels.solution import Solution, Termination

COLUMNS, MORE = 12, 16
"""Columns that a row lists at first, and in a later round: a GPU's sweep costs the same for 16 as for 8."""
MOST_INTEGER = 2**40
"""Integers up to this size leave room for the prices of 2^18 rows in int64 (`auction/cpu/square.py`)."""


class Matrix(DenseCosts, Protocol):
    """A search that also knows the least cost of each column."""

    def minima(self) -> Minima:
        """The least cost of each column."""


def solve(search: Matrix, maximize: bool, deadline: Deadline, round_limit: int | None = None) -> Solution:
    """Pair all rows of a matrix at least cost, by columns that are generated.

    Problem: min sum_i c[i, p(i)] over one-to-one p of all m rows, m <= n (max with `maximize`).
    Args:
        search: prices rows (m, n) in float64, or in int64 for integers, of at most MOST_INTEGER in size.
        deadline: looked at between blocks of rows, bids and paths.
        round_limit: rounds of pricing at most.
    Returns:
        `assignment` (m,), `u` (m,), `v` (n,), in the sense of the problem; infeasible: `hall_rows`, `hall_cols`.
        Stopped before the first round, no row is assigned and the duals are 0.
    Guarantee: exact, to rounding in floats; deterministic.
    Complexity: two sweeps of the matrix and one a round; some 13 edges a row in lists, and 16 more for each round in
        which a row lacks a column. Costs whose prices lie far from the columns' minima take dozens of rounds.
    Errors: none.
    Source: own design, after the pricing of columns by G. B. Dantzig and P. Wolfe, "Decomposition principle for linear
        programs", Operations Research 8 (1960).
    """
    sign = -1 if maximize else 1
    rounds = Generation(deadline, _Told(sign, deadline), MORE, round_limit)
    nothing = Answer(np.full(search.shape[0], UNASSIGNED), *(np.zeros(extent, search.dtype) for extent in search.shape))
    level = _begin(search, rounds.silent)
    if isinstance(level, Violator):
        return Solution(Termination.INFEASIBLE, "columns", {"hall_rows": level.rows, "hall_cols": level.cols})
    answer = nothing if level is None else rounds.settle(level, nothing, top=True)
    ended = None if rounds.complete else deadline.expired() or Termination.ITERATION_LIMIT
    arrays = {"assignment": answer.columns.astype(np.int64), "u": sign * answer.u, "v": sign * answer.v}
    facts: dict[str, Any] = {name: count for name, count in rounds.counts.items() if name != "levels"}
    return Solution(ended or Termination.OPTIMAL, "columns", dict(arrays), rounds.counts["rounds"], facts=facts)


def solve_on_host(cost: Costs, maximize: bool, deadline: Deadline) -> Solution:
    """The same of a matrix (m, n), m <= n, on the host: the specification of the GPU's."""
    return solve(DenseSearch(cost, maximize), maximize, deadline)


def _begin(search: Matrix, deadline: Deadline) -> Level | Violator | None:
    """Lists at the first prices; None once time is up."""
    m, n = search.shape
    keys, base = np.empty(0, np.int64), np.zeros(n, search.dtype)
    if m == n:
        least = search.minima()
        known = np.flatnonzero(least.values < unlimited(1, search.dtype))
        base[known], keys = least.values[known], np.sort(least.rows[known] * n + known)
    every = np.arange(m)
    found = search.cheapest(base, np.zeros_like(base), every, unlimited(m, search.dtype), min(COLUMNS, n), deadline)
    if found is None:
        return None
    held = hold_pairing(search, distinct(keys, keys_of(every, found, n)), deadline)
    if held is None or isinstance(held, Violator):
        return held
    return Level(search, base, held) if m == n else WideLevel(search, base, held, m)


class _Told:
    """Reports of the rounds, in the sense of the problem."""

    def __init__(self, sign: int, deadline: Deadline) -> None:
        self._sign, self._deadline = sign, deadline

    def __call__(self, search: Matrix, answer: Answer, rounds: int) -> None:
        """Tell the cost of the pairs and what the duals are worth, less what rounding of any order of sums takes."""
        if not self._deadline.heard:
            return
        zeros = np.zeros(search.shape[1], search.dtype)
        objective = float(costs_of_pairs(search, answer.columns, zeros).sum())
        duals = np.concatenate([answer.u, answer.v]).astype(np.float64)
        bound = float(duals.sum() - 2.0**-51 * len(duals) * np.abs(duals).sum())
        self._deadline.report(rounds, self._sign * objective, self._sign * bound)
