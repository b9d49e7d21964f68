"""Column generation for two clouds of as many points: coarser clouds give the prices to begin with.

    match         coarser clouds first, for prices and pairs; then a level of its own
    list_columns  the columns of least reduced cost of every row, the rows of least of every column, the coarse pairs
    settle        the rounds of `lap/columns/level.py`

Rows and columns of a level are in the order of their trees.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.columns.level import Answer, Cheapest, Generation, ListLevel, distinct
from kernels.lap.spatial.pricing import Pricing
from kernels.lap.spatial.tree import Tree, tree_of
from kernels.problems.arrays import Floats, Indices

GROUP = 4
"""Points that are one point of the next coarser level."""
DENSE = 1024
"""Points of the coarsest level at most, whose matrix is written out."""
COLUMNS, OF_COLUMN = 12, 4
"""Columns that a row lists at first, and rows that list a column."""


@dataclass
class Match:
    """One solve: what all its levels share, and what is told of it."""

    kind: int
    dense: Callable[[Floats, Floats, Deadline], Answer]
    deadline: Deadline
    told: Callable[[Pricing, Answer, int], None]
    rounds: Generation = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = Generation(self.deadline, self.told)

    @property
    def complete(self) -> bool:
        """Whether the finest level was solved to its optimum."""
        return self.rounds.complete

    @property
    def counts(self) -> dict[str, int]:
        """Facts of the solve."""
        return self.rounds.counts

    def match(self, x: Floats, y: Floats, rows: Tree | None = None) -> Answer:
        """Optimal for the points, or what there is once time is up; `rows` is a tree of x, of a coarser level."""
        if len(x) <= DENSE:
            return self.dense(x, y, self.rounds.silent)
        top = rows is None
        rows, columns = rows or tree_of(x), tree_of(y)
        level, pairs = self._begin(rows._replace(order=np.arange(len(x))), Pricing(rows.points, columns, self.kind))
        answer = self.rounds.settle(level, Answer(pairs, np.empty(0), level.base), top)
        if not len(answer.u) and top:
            answer = answer._replace(u=self._closed(level, answer.v))
        found = Answer(np.empty_like(answer.columns), np.zeros(len(x)), np.empty_like(answer.v))
        found.columns[rows.order] = columns.order[answer.columns]
        found.u[rows.order] = answer.u if len(answer.u) else 0.0
        found.v[columns.order] = answer.v
        return found

    def _begin(self, rows: Tree, search: Pricing) -> tuple[ListLevel, Indices]:
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
        level = ListLevel(search, np.zeros(n), np.arange(n) * n + pairs)
        prices = self._all(Pricing(tree.points, coarse_tree, self.kind), coarse.u[coarse_tree.order], 1)
        if prices is not None:
            level.base = np.ascontiguousarray(prices.values[:, 0])
            self._list_columns(level, search, rows)
        return level, pairs

    def _list_columns(self, level: ListLevel, search: Pricing, rows: Tree) -> None:
        n = level.n
        listed = self._all(search, level.base, COLUMNS)
        if listed is None:
            return
        of_columns = Pricing(search.tree.points, rows, self.kind)
        chosen = self._all(of_columns, np.ascontiguousarray(listed.values[:, 0]), OF_COLUMN)
        if chosen is None:
            return
        mine = np.arange(n)[:, None] * n + listed.columns
        theirs = chosen.columns.astype(np.int64) * n + np.arange(n)[:, None]
        level.keys = distinct(level.keys, mine.reshape(-1), theirs.reshape(-1))

    def _all(self, search: Pricing, base: Floats, most: int) -> Cheapest | None:
        """The `most` least columns of every row."""
        n = len(search.x)
        every = np.arange(n)
        return search.cheapest(base, np.zeros(len(base)), every, np.full(n, np.inf), most, self.rounds.silent)

    def _closed(self, level: ListLevel, v: Floats) -> Floats:
        """The largest u for prices v, whatever the clock says: without it they prove nothing."""
        n = level.n
        whole = level.search.cheapest(v, np.zeros(n), np.arange(n), np.full(n, np.inf), 1, Deadline())
        assert whole is not None
        return np.ascontiguousarray(whole.values[:, 0])
