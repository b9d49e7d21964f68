"""The certificate of an auction between points whose benefits are minus a metric's costs."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from kernels.certificates import auction as plain
from kernels.certificates.auction_floats import Exact
from kernels.certificates.auction_rows import Block
from kernels.certificates.metrics.coarsely import Costs
from kernels.problems import Array
from kernels.problems.points import PointAuction
from kernels.solution import Certificate, Solution, unheard

TINY = 2.0**-1000


class Benefits:
    """What `auction_floats.py` reads of benefits. Sizes in a `block` are cut by their error: none is too large."""

    error = 2.0**-50
    neighbours = None

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.shape = costs.shape

    @cached_property
    def tiny(self) -> float:
        """Twice the largest error of a cost."""
        return max(2 * float(block.error.max()) for block in self._costs.blocks()) + 2 * TINY

    def ends(self) -> list[int]:
        """See `auction_floats.Benefits`."""
        return [*self._costs.starts(), self.shape[0]]

    def block(self, first: int, last: int) -> Block:
        """See `auction_floats.Benefits`: the rows from `first` on are one block of `ends`."""
        _, values, error = self._costs.block(first)
        assert len(values) == last - first
        cut = np.maximum(np.abs(values) - error, TINY * (error > 0))
        return Block(-np.copysign(cut, values))

    def sizes(self, first: int, last: int) -> Block:
        """See `auction_floats.Benefits`."""
        block = self.block(first, last)
        return block._replace(values=np.abs(block.values))

    def exact(self, rows: Array, columns: Array, values: Array) -> Exact:
        """See `auction_floats.Benefits`."""
        known = self._costs.exact(rows, columns)
        return Exact(-known.high, -known.low, known.error)

    def chosen(self, rows: Array, columns: Array) -> Exact | None:
        """See `auction_floats.Benefits`."""
        return self.exact(rows, columns, rows)


def certify_auction(
    problem: PointAuction, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """As `certificates.auction.auction`, for every metric and without neighbours."""
    points = problem.points
    benefits = Benefits(Costs(points.x, points.y, points.metric))
    return plain._certify(problem, benefits, solution, progress)  # type: ignore[arg-type]  # of `Distances` it reads these
