"""The certificate of an auction of floats: the dual value of the prices without error, rounded up once.

For prices p >= 0 and u_i = max(reject_i, max_j b_ij - p_j), every assignment is worth at most sum u + sum p. Rounding
is monotone, so the largest b_ij - p_j of a row is among those whose rounded differences are largest: only these are
looked at again. TwoSum splits each into a float64 and its error, exactly, so u_i is known exactly, as the sum of two
numbers; math.fsum adds all terms exactly, and the bound is rounded once, upwards. Integers beside floats are split into
two float64 as well. Where a benefit is itself known only within an error (distances, `auction_points.py`), that error
is added on the weak side.

"Optimal" allows what rounding costs a correct answer: every price and every profit is a rounded number, so a row may
be off by a few times 2^-53 of them. The allowance is 2^-50 sum (|b| + |u| + |p|) over the chosen pairs, and at the same
time 1e-9 max(|objective|, S), where S adds up the smallest non-zero size of each row's entries (its reject price is one
of them): S comes from the data alone, so no price can loosen it.

Sources: D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2, theorem B (TwoSum is exact); J. R. Shewchuk,
"Adaptive precision floating-point arithmetic", Discrete & Computational Geometry 18 (1997) (exact sums, math.fsum).
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from kernels.certificates.auction_rows import Block, Proof, block_of, ends_of, over, run_maxima, values_at
from kernels.certificates.rounded import add_up, mul_down, sub_up, sum_down, sum_up, two_sum
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.solution import unheard

ROUNDING = 2.0**-50
RELATIVE = 1e-9
MOST_PRICE = 2.0**1010
"""Larger prices are cut: no benefit reaches 1e300, so they say nothing, and differences stay finite."""


class Exact(NamedTuple):
    """Numbers high + low, known within `error` (0 where nothing was rounded)."""

    high: Array
    low: Array
    error: Array


class Benefits(Protocol):
    """Where benefits come from."""

    shape: tuple[int, int]
    error: float
    tiny: float
    """What `block` gives is within `error` times its size, plus `tiny`, of the benefit; 0 where it is the benefit."""

    def ends(self) -> list[int]:
        """0 and the ends of the blocks of rows."""

    def block(self, first: int, last: int) -> Block:
        """The rows from `first` to before `last` in float64; -inf forbids. Several threads ask."""

    def sizes(self, first: int, last: int) -> Block:
        """At most the sizes of these benefits in `block`, but for `error`; 0 of those alone that are 0."""

    def exact(self, rows: Array, columns: Array, values: Array) -> Exact:
        """The benefits of permitted pairs whose entries in `block` are `values`."""

    def chosen(self, rows: Array, columns: Array) -> Exact | None:
        """The benefits of pairs; None when one is forbidden."""


class Matrix:
    """Benefits that were given as numbers."""

    tiny = 0.0

    def __init__(self, weights: Array | Csr) -> None:
        self.weights = weights
        self.shape = (int(weights.shape[0]), int(weights.shape[1]))
        self._dtype = (weights.values if isinstance(weights, Csr) else weights).dtype
        self.error = 2.0**-52 if self._dtype == np.int64 else 0.0

    def ends(self) -> list[int]:
        """See `Benefits`."""
        return ends_of(self.weights)

    def block(self, first: int, last: int) -> Block:
        """See `Benefits`. float32 stays what it is: it widens without error."""
        return block_of(self.weights, first, last, self._dtype if self._dtype.kind == "f" else np.float64)

    def sizes(self, first: int, last: int) -> Block:
        """See `Benefits`."""
        block = self.block(first, last)
        return block._replace(values=np.abs(block.values.astype(np.float64)))

    def exact(self, rows: Array, columns: Array, values: Array) -> Exact:
        """See `Benefits`."""
        if self.error:
            return split(values_at(self.weights, rows, columns)[0])
        return split(values)

    def chosen(self, rows: Array, columns: Array) -> Exact | None:
        """See `Benefits`."""
        values, permitted = values_at(self.weights, rows, columns)
        return split(values) if permitted else None


def split(values: Array) -> Exact:
    """Integers of at most 2^62, or floats, as the sum of two float64."""
    high = values.astype(np.float64)
    low = np.zeros(high.shape)
    if values.dtype == np.int64:
        low = (values - high.astype(np.int64)).astype(np.float64)
    return Exact(high, low, np.zeros(high.shape))


def prove(
    benefits: Benefits, reject: Array | None, arrays: dict[str, Array], progress: Callable[[float], None]
) -> Proof | str:
    """Prove what `assignment` and `prices` give; a sentence when a pair is forbidden."""
    assignment, prices = arrays["assignment"].astype(np.int64), usable(arrays["prices"])
    rows = np.flatnonzero(assignment != UNASSIGNED)
    found = benefits.chosen(rows, assignment[rows])
    if found is None:
        return "not an assignment: a pair is forbidden"
    rejected = split(np.zeros(0) if reject is None else reject)
    out = np.flatnonzero(assignment == UNASSIGNED) if reject is not None else np.zeros(0, np.int64)
    terms = [found.high, found.low, rejected.high[out], rejected.low[out]]
    objective, worst = math.fsum(np.concatenate(terms).tolist()), sum_down(np.concatenate([*terms, -found.error]))
    high, low = _best_nets(benefits, prices, progress)
    if reject is not None:
        high, low = _larger(high, low, rejected)
    short, off = _difference(high, low, arrays["profits"])
    bound = sum_up(np.concatenate([high, low, prices])) if np.isfinite(high).all() else math.inf
    if not math.isfinite(bound):
        return Proof(objective, None, None, short, off, 0.0, 0.0, False)
    gap = float(sub_up(bound, worst))
    finite = all(bool(np.isfinite(arrays[name]).all()) for name in ("prices", "profits"))
    profits = np.minimum(np.abs(high), np.abs(arrays["profits"]))
    sizes = [found.high, rejected.high[out], profits, prices[assignment[rows]]]
    rounding = _part(ROUNDING, sum_down(np.abs(np.concatenate(sizes)))) if finite else 0.0
    slack = _capped(rounding, gap, objective, benefits, rejected)
    return Proof(objective, bound, gap, short, off, slack, rounding, finite)


def usable(prices: Array) -> Array:
    """Prices as float64 in [0, MOST_PRICE]; 0 for those that are no numbers. Any of these give a bound."""
    floats = prices.astype(np.float64)
    return np.clip(np.where(np.isfinite(floats), floats, 0), 0, MOST_PRICE)


def _best_nets(benefits: Benefits, prices: Array, progress: Callable[[float], None]) -> tuple[Array, Array]:
    """max_j b_ij - p_j of every row as the sum of two float64 (or an upper bound); -inf for a row without entries.

    A benefit within `error` of its size moves a net benefit by at most error (|net| + p): what lies 4 times that below
    the largest cannot be the largest.
    """
    n_rows = benefits.shape[0]
    high, low = np.full(n_rows, -np.inf), np.zeros(n_rows)
    top, error = float(prices.max(initial=0)), benefits.error + 2.0**-52 if benefits.error else 0.0

    def look(first: int, last: int) -> None:
        block = benefits.block(first, last)
        nets = block.nets(prices)
        best = block.maxima(nets, -np.inf)
        floor = best - 4 * (error * (np.abs(best) + top) + benefits.tiny) if error else best
        floor = np.where(best > -np.inf, floor, np.inf)
        rows, columns, values = block.where(nets >= block.spread(floor))
        if rows.size:
            found = benefits.exact(first + rows, columns, values)
            net, rest = two_sum(found.high, -prices[columns])
            if error:
                net, rest = two_sum(net, add_up(add_up(rest, found.low), found.error))
            here, sizes = slice(first, last), np.bincount(rows, minlength=block.n_rows)
            high[here] = run_maxima(net, sizes, -np.inf)
            equal = net == np.repeat(high[here], sizes)
            low[here] = run_maxima(np.where(equal, rest, -np.inf), sizes, 0.0)

    over(benefits.ends(), look, progress)
    return high, low


def _larger(high: Array, low: Array, rejected: Exact) -> tuple[Array, Array]:
    """Row by row the larger of high + low and the reject price: both are rounded sums and their errors."""
    reject = (rejected.high > high) | ((rejected.high == high) & (rejected.low > low))
    return np.where(reject, rejected.high, high), np.where(reject, rejected.low, low)


def _difference(high: Array, low: Array, profits: Array) -> tuple[float, float]:
    """How far profits fall short of high + low at most, and how far they are from it at most."""
    known = np.isfinite(high)
    if not known.any():
        return 0.0, 0.0
    given = np.nan_to_num(profits[known].astype(np.float64), nan=-np.finfo(np.float64).max)
    with np.errstate(over="ignore"):
        gone = np.nan_to_num(add_up(sub_up(high[known], given), low[known]))
    return max(0.0, float(gone.max())), float(np.abs(gone).max())


def _capped(slack: float, gap: float, objective: float, benefits: Benefits, rejected: Exact) -> float:
    """`slack`, but at most RELATIVE max(|objective|, S); S is worked out only where it decides."""
    allowed = _part(RELATIVE, abs(objective))
    if gap <= min(slack, allowed) or slack <= allowed:
        return min(slack, allowed)
    return min(slack, _part(RELATIVE, max(abs(objective), smallest_sizes(benefits, rejected.high))))


def _part(share: float, size: float) -> float:
    """`share` of a size, rounded down, but not below 0: no gap is within any."""
    return max(0.0, float(mul_down(share, size)))


def smallest_sizes(benefits: Benefits, reject: Array) -> float:
    """S: the smallest non-zero size among each row's permitted entries and its reject price, summed over the rows."""
    smallest = np.full(benefits.shape[0], np.inf)

    def look(first: int, last: int) -> None:
        block = benefits.sizes(first, last)
        block.values[block.values == 0] = np.inf
        smallest[first:last] = -block.maxima(-block.values, -np.inf)

    over(benefits.ends(), look, unheard)
    if reject.size:
        smallest = np.minimum(smallest, np.where(reject == 0, np.inf, np.abs(reject)))
    return sum_down(smallest[np.isfinite(smallest)]) * (1 - 4 * benefits.error)
