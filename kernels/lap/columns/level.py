"""Column generation: exact on lists of few columns, which grow until none is missing.

    settle        the sparse problem of the lists, to its optimum (`kernels/auction/cpu/square.py`)
    price         columns whose reduced cost is below all that their row has listed
    extend        those are listed as well; from there on again

Who prices is a `Pricer`: points in a tree (`lap/spatial`), a matrix on the host (`dense.py`), or one on GPUs
(`gpu_dense.py`). Prices go there, and a few columns of each row come back.

Invariants: the lists hold a pairing of all rows, so no sparse problem is infeasible. In one basis of prices `rise`
never falls. So a column that is not listed never gets cheaper, and a row is priced again only if its least reduced cost
has passed what it was `cleared` up to.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from kernels.auction.cpu import square
from kernels.auction.cpu.start import SolveState
from kernels.deadline import Deadline
from kernels.lap.cpu.threads import in_threads
from kernels.problems import Csr
from kernels.problems.arrays import Costs, Floats, Indices, Indices32, Integers, Integers32
from kernels.problems.sparse import Auction

MORE = 8
"""Columns that a row lists in a later round."""
ANEW = 0.03
"""Share of rows with something to list from which bids begin anew, in the basis of the latest prices."""
FARTHEST = 2**61
"""Beyond all reduced costs in integers."""


class Cheapest(NamedTuple):
    """Of each row asked for, its least columns (k, most), their reduced costs, how many there are."""

    columns: Integers32
    values: Floats
    counts: Integers32


class Pricer(Protocol):
    """Whoever knows the costs. Reduced costs are c_ij - base_j + rise_j, in float64, or in int64."""

    def cheapest(
        self, base: Floats, rise: Floats, rows: Indices, limits: Floats, most: int, deadline: Deadline
    ) -> Cheapest | None:
        """The `most` least columns of each of `rows` below its limit; None once time is up."""

    def edges(self, indptr: Indices, columns: Integers32, base: Floats) -> Floats:
        """c_ij - base_j of every edge of a graph by rows."""


class Answer(NamedTuple):
    """A column for every row, and duals that no cost is below, but for rounding."""

    columns: Indices
    u: Floats
    v: Floats


class Listed(NamedTuple):
    """Edges by rows, as `auction`'s graphs have them."""

    indptr: Indices
    indices: Indices32
    values: Floats


def unlimited(count: int, dtype: Any) -> Floats:
    """Limits of so many rows that no reduced cost reaches."""
    return np.full(count, np.inf if np.dtype(dtype).kind == "f" else FARTHEST, dtype)


@dataclass
class ListLevel:
    """As many rows as columns, and how far they are solved.

    keys: row * n + column of every listed edge, ascending. base - rise are the prices v.
    """

    search: Pricer
    base: Floats
    keys: Integers
    state: SolveState = field(init=False)
    cleared: Floats = field(init=False)

    @property
    def m(self) -> int:
        """Rows."""
        return len(self.base)

    @property
    def n(self) -> int:
        """Columns."""
        return len(self.base)

    def listed(self) -> Listed:
        """The listed edges and their reduced costs at the base prices, negated."""
        indptr = np.searchsorted(self.keys, np.arange(self.m + 1) * self.n)
        columns = (self.keys % self.n).astype(np.int32)
        values = self.search.edges(indptr, columns, self.base)
        return Listed(indptr, columns, np.negative(values, out=values))

    def settle_anew(self, deadline: Deadline) -> None:
        """Bids and paths from prices of 0 above the base; afterwards any row may miss a column."""
        self.state = square.begin(Auction(Csr(*self.listed(), (self.n, self.n)), maximize=True))
        self.cleared = -unlimited(self.m, self.base.dtype)
        if square.solve(self.state, deadline) is None:
            square.finish(self.state, deadline)

    def settle_on(self, deadline: Deadline) -> None:
        """Go on from the prices and pairs that are there, with the edges that were added."""
        self.state.graph = self.state.graph._replace(**self.listed()._asdict())
        square.finish(self.state, deadline)

    @property
    def pairs(self) -> Indices:
        """A column for every row."""
        return self.state.matching.column_of.copy()

    @property
    def rise(self) -> Floats:
        """How far the prices lie below the base."""
        return cast(Floats, self.state.matching.prices)

    def least(self) -> Floats:
        """The least reduced cost that every row has listed."""
        graph, rise = self.state.graph, self.rise
        return np.asarray(np.minimum.reduceat(rise[graph.indices] - graph.values, graph.indptr[:-1]))

    def rebase(self) -> None:
        """Count the prices from where they are."""
        self.base = self.base - self.rise


@dataclass
class Generation:
    """Rounds of one solve, which may have several levels: what they share, and what is told of them."""

    deadline: Deadline
    told: Callable[[Any, Answer, int], None]
    more: int = MORE
    round_limit: int | None = None
    complete: bool = False
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("levels", "rounds", "rows_priced", "edges"), 0)
    )
    silent: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.silent = Deadline(cancelled=lambda: self.deadline.expired() is not None)

    def settle(self, level: ListLevel, answer: Answer, top: bool) -> Answer:
        """Settle, price, extend, until no column is missing; the last answer that was priced, once time is up."""
        if self._is_over():
            return answer
        level.settle_anew(self.silent)
        while not self._is_over():
            least = level.least()
            rows = np.flatnonzero(least > level.cleared)
            rise = level.rise.copy()
            found = level.search.cheapest(level.base, rise, rows, least[rows], self.more, self.silent)
            if found is None:
                break
            self.counts["rounds"] += 1
            self.counts["rows_priced"] += len(rows)
            u = least.copy()
            u[rows] = np.minimum(u[rows], found.values[:, 0])
            answer = Answer(level.pairs, u, level.base - rise)
            level.cleared[rows] = np.where(found.counts < self.more, least[rows], found.values[:, -1])
            if top:
                self.counts["edges"] = len(level.keys)
                self.told(level.search, answer, self.counts["rounds"])
            if not self._extend(level, rows, found):
                self.complete = top
                return answer
        return answer

    def _is_over(self) -> bool:
        return self.deadline.expired() is not None or self.counts["rounds"] == self.round_limit

    def _extend(self, level: ListLevel, rows: Indices, found: Cheapest) -> bool:
        """List what was found and settle again; False where nothing is missing."""
        missing = keys_of(rows, found, level.n)
        at = np.searchsorted(level.keys, missing)
        new = level.keys[np.minimum(at, len(level.keys) - 1)] != missing
        if not new.any():
            return False
        level.keys = np.insert(level.keys, at[new], missing[new])
        if np.count_nonzero(found.counts) > ANEW * level.m:
            level.rebase()
            level.settle_anew(self.silent)
        else:
            level.settle_on(self.silent)
        return True


def in_blocks(
    found: Cheapest, block: int, threads: int, deadline: Deadline, price: Callable[[slice, Cheapest], None]
) -> Cheapest | None:
    """`found`, whose rows threads have priced a block at a time; None once time is up.

    No block depends on another: the result is the same with any number of threads.
    """
    k, late = len(found.counts), list[int]()

    def price_from(first: int) -> None:
        if late or deadline.expired():
            late.append(first)
            return
        part = slice(first, first + block)
        price(part, Cheapest(found.columns[part], found.values[part], found.counts[part]))

    in_threads(price_from, range(0, k, block), min(threads, max(1, -(-k // block))))
    return None if late else found


def keys_of(rows: Indices, found: Cheapest, n: int) -> Integers:
    """The keys of what was found, ascending."""
    some = np.arange(found.columns.shape[1]) < found.counts[:, None]
    return distinct((rows[:, None] * n + found.columns)[some])


def distinct(*keys: Integers) -> Integers:
    """All of them once, ascending. Parts that ascend already are merged."""
    every = np.sort(np.concatenate(keys), kind="stable")
    return np.asarray(every[np.append(True, every[1:] != every[:-1])[: len(every)]])


def value_of_duals(answer: Answer) -> float:
    """What the duals of an answer are worth at least: less what rounding of any order of their sum takes."""
    duals = np.concatenate([answer.u, answer.v]).astype(np.float64)
    return float(duals.sum() - 2.0**-51 * len(duals) * np.abs(duals).sum())


def costs_of_pairs(search: Pricer, columns: Indices, zeros: Floats) -> Costs:
    """The cost of every row's pair."""
    m = len(columns)
    return search.edges(np.arange(m + 1), columns.astype(np.int32), zeros)
