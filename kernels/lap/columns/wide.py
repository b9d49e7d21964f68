"""Lists of a problem with more columns than rows: prices of columns that stay free are 0, so the base stays 0."""

from dataclasses import dataclass, field

import numpy as np

from kernels.auction import AuctionOptions
from kernels.auction.cpu import solver as auction
from kernels.deadline import Deadline
from kernels.lap.columns.level import Listed, ListLevel, unlimited
from kernels.problems import Csr
from kernels.problems.arrays import Floats, Indices
from kernels.problems.sparse import Auction
from kernels.solution import Solution


@dataclass
class WideLevel(ListLevel):
    """As `ListLevel`; each round's sparse problem goes to `auction`, from the prices and pairs of the round before."""

    rows: int = 0
    found: Solution = field(init=False)
    graph: Listed = field(init=False)

    @property
    def m(self) -> int:
        """Rows."""
        return self.rows

    def settle_anew(self, deadline: Deadline) -> None:
        """From prices of 0."""
        self.cleared = -unlimited(self.m, self.base.dtype)
        self._settle(None, None, deadline)

    def settle_on(self, deadline: Deadline) -> None:
        """From the prices and pairs that are there."""
        # Prices may fall, so no row stays cleared.
        self.cleared = -unlimited(self.m, self.base.dtype)
        self._settle(self.rise, self.pairs, deadline)

    def _settle(self, prices: Floats | None, pairs: Indices | None, deadline: Deadline) -> None:
        self.graph = self.listed()
        weights = Csr(*self.graph, (self.m, self.n))
        problem = Auction(weights, maximize=True, prices0=prices, assignment0=pairs)
        self.found = auction.solve(problem, AuctionOptions.model_validate({}), deadline)

    @property
    def pairs(self) -> Indices:
        """A column for every row."""
        return self.found.arrays["assignment"].copy()

    @property
    def rise(self) -> Floats:
        """The prices, which are at least 0."""
        return np.asarray(self.found.arrays["prices"], self.base.dtype)

    def least(self) -> Floats:
        """The least reduced cost that every row has listed."""
        reduced = self.rise[self.graph.indices] - self.graph.values
        return np.asarray(np.minimum.reduceat(reduced, self.graph.indptr[:-1]))

    def rebase(self) -> None:
        """The base stays 0."""
