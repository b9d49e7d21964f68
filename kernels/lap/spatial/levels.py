"""Column generation for two clouds of as many points: exact on lists of few columns, which grow until none is missing.

    match         coarser clouds first, for prices and pairs; then a level of its own
    list_columns  the columns of least reduced cost of every row, the rows of least of every column, the coarse pairs
    settle        the sparse problem, to its optimum (`kernels/auction/cpu/square.py`)
    price         columns whose reduced cost is below all that their row has listed
    extend        those are listed as well; from there on again

Invariants: the lists hold a pairing of all rows, so no sparse problem is infeasible. In one basis of prices `rise`
never falls. So a column that is not listed never gets cheaper, and a row is priced again only if its least reduced cost
has passed what it was `cleared` up to.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from kernels.auction.cpu import square
from kernels.auction.cpu.start import SolveState
from kernels.deadline import Deadline
from kernels.lap.spatial.pricing import Cheapest, Pricing, price_edges
from kernels.lap.spatial.tree import Tree, tree_of
from kernels.problems import Csr
from kernels.problems.arrays import Floats, Indices, Indices32, Integers
from kernels.problems.sparse import Auction

GROUP = 4
"""Points that are one point of the next coarser level."""
DENSE = 1024
"""Points of the coarsest level at most, whose matrix is written out."""
COLUMNS, OF_COLUMN, MORE = 12, 4, 8
"""Columns that a row lists at first, rows that list a column, and columns that a row lists in a later round."""
ANEW = 0.03
"""Share of rows with something to list from which bids begin anew, in the basis of the latest prices."""


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


@dataclass
class CloudLevel:
    """Rows and columns in the order of their trees, and how far they are solved.

    keys: row * n + column of every listed edge, ascending. base - rise are the prices v.
    """

    search: Pricing
    base: Floats
    keys: Integers
    state: SolveState = field(init=False)
    cleared: Floats = field(init=False)

    @property
    def n(self) -> int:
        """Rows, and columns."""
        return len(self.base)

    def listed(self) -> "Listed":
        """The listed edges and their reduced costs at the base prices, negated."""
        n = self.n
        indptr = np.searchsorted(self.keys, np.arange(n + 1) * n)
        columns = (self.keys % n).astype(np.int32)
        values = price_edges(self.search.x, self.search.tree.points, indptr, columns, self.base, self.search.kind)
        return Listed(indptr, columns, np.negative(values, out=values))

    def settle_anew(self, deadline: Deadline) -> None:
        """Bids and paths from prices of 0 above the base; afterwards any row may miss a column."""
        self.state = square.begin(Auction(Csr(*self.listed(), (self.n, self.n)), maximize=True))
        self.cleared = np.full(self.n, -np.inf)
        if square.solve(self.state, deadline) is None:
            square.finish(self.state, deadline)

    def settle_on(self, deadline: Deadline) -> None:
        """Go on from the prices and pairs that are there, with the edges that were added."""
        self.state.graph = self.state.graph._replace(**self.listed()._asdict())
        square.finish(self.state, deadline)

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
class Match:
    """One solve: what all its levels share, and what is told of it."""

    kind: int
    dense: Callable[[Floats, Floats, Deadline], Answer]
    deadline: Deadline
    told: Callable[[Pricing, Answer, int], None]
    complete: bool = False
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("levels", "rounds", "rows_priced", "edges"), 0)
    )
    silent: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.silent = Deadline(cancelled=lambda: self.deadline.expired() is not None)

    def match(self, x: Floats, y: Floats, rows: Tree | None = None) -> Answer:
        """Optimal for the points, or what there is once time is up; `rows` is a tree of x, of a coarser level."""
        if len(x) <= DENSE:
            return self.dense(x, y, self.silent)
        top = rows is None
        rows, columns = rows or tree_of(x), tree_of(y)
        level, pairs = self._begin(rows._replace(order=np.arange(len(x))), Pricing(rows.points, columns, self.kind))
        answer = self._rounds(level, Answer(pairs, np.empty(0), level.base), top)
        if not len(answer.u) and top:
            answer = answer._replace(u=self._closed(level, answer.v))
        found = Answer(np.empty_like(answer.columns), np.zeros(len(x)), np.empty_like(answer.v))
        found.columns[rows.order] = columns.order[answer.columns]
        found.u[rows.order] = answer.u if len(answer.u) else 0.0
        found.v[columns.order] = answer.v
        return found

    def _begin(self, rows: Tree, search: Pricing) -> tuple[CloudLevel, Indices]:
        """A level with lists at the prices of the next coarser one, and the pairs that those lists hold."""
        tree, n = search.tree, len(search.x)
        groups = n // GROUP
        self.counts["levels"] += 1
        coarse_x, coarse_y = (
            cloud[: GROUP * groups].reshape(groups, GROUP, -1).mean(axis=1) for cloud in (search.x, tree.points)
        )
        coarse_tree = tree_of(coarse_x)
        coarse = self.match(coarse_x, coarse_y, coarse_tree)
        pairs = np.arange(n)
        pairs[: GROUP * groups] = (GROUP * coarse.columns[:, None] + np.arange(GROUP)).reshape(-1)
        level = CloudLevel(search, np.zeros(n), np.arange(n) * n + pairs)
        prices = self._all(Pricing(tree.points, coarse_tree, self.kind), coarse.u[coarse_tree.order], 1)
        if prices is not None:
            level.base = np.ascontiguousarray(prices.values[:, 0])
            self._list_columns(level, rows)
        return level, pairs

    def _list_columns(self, level: CloudLevel, rows: Tree) -> None:
        search, n = level.search, level.n
        listed = self._all(search, level.base, COLUMNS)
        if listed is None:
            return
        of_columns = Pricing(search.tree.points, rows, self.kind)
        chosen = self._all(of_columns, np.ascontiguousarray(listed.values[:, 0]), OF_COLUMN)
        if chosen is None:
            return
        mine = np.arange(n)[:, None] * n + listed.columns
        theirs = chosen.columns.astype(np.int64) * n + np.arange(n)[:, None]
        level.keys = _distinct(level.keys, mine.reshape(-1), theirs.reshape(-1))

    def _all(self, search: Pricing, base: Floats, most: int) -> Cheapest | None:
        """The `most` least columns of every row."""
        n = len(search.x)
        every = np.arange(n)
        return search.cheapest(base, np.zeros(len(base)), every, np.full(n, np.inf), most, self.silent)

    def _rounds(self, level: CloudLevel, answer: Answer, top: bool) -> Answer:
        """Settle, price, extend, until no column is missing; the last answer that was priced, once time is up."""
        if self.deadline.expired():
            return answer
        level.settle_anew(self.silent)
        while not self.deadline.expired():
            least = level.least()
            rows = np.flatnonzero(least > level.cleared)
            rise = level.rise
            found = level.search.cheapest(level.base, rise, rows, least[rows], MORE, self.silent)
            if found is None:
                break
            self.counts["rounds"] += 1
            self.counts["rows_priced"] += len(rows)
            u = least.copy()
            u[rows] = np.minimum(u[rows], found.values[:, 0])
            answer = Answer(level.state.matching.column_of.copy(), u, level.base - rise)
            level.cleared[rows] = np.where(found.counts < MORE, least[rows], found.values[:, -1])
            if top:
                self.counts["edges"] = len(level.keys)
                self.told(level.search, answer, self.counts["rounds"])
            if not self._extend(level, rows, found):
                self.complete = top
                return answer
        return answer

    def _extend(self, level: CloudLevel, rows: Indices, found: Cheapest) -> bool:
        """List what was found and settle again; False where nothing is missing."""
        some = np.arange(MORE) < found.counts[:, None]
        missing = (rows[:, None] * level.n + found.columns)[some]
        missing = _distinct(missing)
        at = np.searchsorted(level.keys, missing)
        new = level.keys[np.minimum(at, len(level.keys) - 1)] != missing
        if not new.any():
            return False
        level.keys = np.insert(level.keys, at[new], missing[new])
        if np.count_nonzero(found.counts) > ANEW * level.n:
            level.rebase()
            level.settle_anew(self.silent)
        else:
            level.settle_on(self.silent)
        return True

    def _closed(self, level: CloudLevel, v: Floats) -> Floats:
        """The largest u for prices v, whatever the clock says: without it they prove nothing."""
        n = level.n
        whole = level.search.cheapest(v, np.zeros(n), np.arange(n), np.full(n, np.inf), 1, Deadline())
        assert whole is not None
        return np.ascontiguousarray(whole.values[:, 0])


def _distinct(*keys: Integers) -> Integers:
    """All of them once, ascending. Parts that ascend already are merged."""
    every = np.sort(np.concatenate(keys), kind="stable")
    return np.asarray(every[np.append(True, every[1:] != every[:-1])[: len(every)]])
