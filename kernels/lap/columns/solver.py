"""A matrix whose rows somebody prices, solved on lists of few columns: what a GPU does beyond the forest's 65,536 rows.

    minima        prices to begin with: the least cost of each column (0 where columns may stay free), and who has it
    soften        other such prices: soft minima of columns and rows in turn, ever less soft (Sinkhorn and Knopp 1967)
    list_columns  the COLUMNS least columns of each row, at the prices whose dual value is the larger
    hold_pairing  more columns, until the lists hold a pairing of all rows (`held.py`); or nothing can be paired
    settle        the rounds of `level.py`

The matrix is read once for the minima, twice for each softness, twice for the lists, and at most once a round. Costs of
independent columns have good prices in their minima. Where lines differ in level, or costs have a structure, minima are
the business of a few rows: every row then lists the same columns, and dozens of rounds follow. Soft minima ask all.
"""

from typing import Any, Protocol

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.columns.dense import DenseSearch, Minima, SoftMinima
from kernels.lap.columns.held import DenseCosts, Violator, hold_pairing
from kernels.lap.columns.level import (
    FARTHEST,
    Answer,
    Generation,
    ListLevel,
    costs_of_pairs,
    distinct,
    keys_of,
    unlimited,
    value_of_duals,
)
from kernels.lap.columns.wide import WideLevel
from kernels.problems import UNASSIGNED
from kernels.problems.arrays import Costs, Floats
from kernels.solution import Solution, Termination

COLUMNS, MORE = 12, 16
"""Columns that a row lists at first, and in a later round: a GPU's sweep costs the same for 16 as for 8."""
SAMPLE, FEWEST_SOFT = 64, 256
"""Lines of the sample that says how soft minima begin, and columns from which they are worth a try."""
MOST_INTEGER = 2**40
"""Integers up to this size leave room for the prices of 2^18 rows in int64 (`auction/cpu/square.py`)."""


class Matrix(DenseCosts, Protocol):
    """A search that also knows the least cost of each column."""

    def minima(self) -> Minima:
        """The least cost of each column."""

    def soft_minima_of_rows(self, v: Floats, softness: float) -> SoftMinima:
        """Of c - v, over each row."""

    def soft_minima_of_columns(self, u: Floats, softness: float) -> SoftMinima:
        """Of c - u, over each column."""


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


def _begin(search: Matrix, deadline: Deadline) -> ListLevel | Violator | None:
    """Lists at the first prices; None once time is up."""
    m, n = search.shape
    keys, every = np.empty(0, np.int64), np.arange(m)
    zeros, limits = np.zeros(n, search.dtype), unlimited(m, search.dtype)
    starts = [zeros]
    if m == n:
        least = search.minima()
        known = np.flatnonzero(least.values < unlimited(1, search.dtype))
        starts = [np.where(least.values < unlimited(1, search.dtype), least.values, zeros)]
        keys = np.sort(least.rows[known] * n + known)
        if n >= FEWEST_SOFT and (soft := soften(search, deadline)) is not None:
            starts.append(soft)
    base, found, most = zeros, None, -np.inf
    for v in starts:
        listed = search.cheapest(v, zeros, every, limits, min(COLUMNS, n), deadline)
        if listed is None:
            return None
        some = listed.counts > 0
        value = float(listed.values[some, 0].sum(dtype=np.float64) + v.sum(dtype=np.float64))
        if found is None or value > most:
            base, found, most = v, listed, value
    assert found is not None
    held = hold_pairing(search, distinct(keys, keys_of(every, found, n)), deadline)
    if held is None or isinstance(held, Violator):
        return held
    return ListLevel(search, base, held) if m == n else WideLevel(search, base, held, m)


def soften(search: Matrix, deadline: Deadline) -> Floats | None:
    """Prices by soft minima, in the type of reduced costs; None where a sample of costs is flat, or once time is up."""
    m, n = search.shape
    rows, cols = (np.arange(SAMPLE) * extent // SAMPLE for extent in (m, n))
    indptr = np.zeros(m + 1, np.int64)
    np.add.at(indptr[1:], rows, SAMPLE)
    sample = search.edges(np.cumsum(indptr), np.tile(cols, SAMPLE).astype(np.int32), np.zeros(n, search.dtype))
    softness = _spread(sample.reshape(SAMPLE, SAMPLE).astype(np.float64))
    if not softness > 0:
        return None
    v = np.zeros(n)
    best, most = v, -np.inf
    for _ in range(int(np.ceil(np.log2(4 * n)))):
        if deadline.expired():
            return None
        of_rows = search.soft_minima_of_rows(v, softness)
        value = float(of_rows.least[of_rows.sums > 0].sum() + v.sum())
        if value > most:
            best, most = v, value
        of_columns = search.soft_minima_of_columns(of_rows.values(softness), softness)
        v, softness = of_columns.values(softness), softness / 2
    return best if search.dtype.kind == "f" else np.rint(best).astype(np.int64)


def _spread(sample: Floats) -> float:
    """Standard deviation of a sample, its rows and columns brought to the mean 0; of its permitted entries."""
    some = np.isfinite(sample) & (np.abs(sample) < FARTHEST)
    if not some.any():
        return 0.0
    filled = np.where(some, sample, sample[some].mean())
    centred = filled - filled.mean(axis=0) - filled.mean(axis=1)[:, None] + filled.mean()
    return float(centred.std())


class _Told:
    """Reports of the rounds, in the sense of the problem."""

    def __init__(self, sign: int, deadline: Deadline) -> None:
        self._sign, self._deadline = sign, deadline

    def __call__(self, search: Matrix, answer: Answer, rounds: int) -> None:
        """Tell the cost of the pairs and what the duals are worth."""
        if not self._deadline.heard:
            return
        zeros = np.zeros(search.shape[1], search.dtype)
        objective = float(costs_of_pairs(search, answer.columns, zeros).sum())
        self._deadline.report(rounds, self._sign * objective, self._sign * value_of_duals(answer))
