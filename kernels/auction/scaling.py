"""The arithmetic of an auction: by what integers are scaled, and which epsilons a solve runs through.

No step compares a float with a constant of its own: benefits, epsilon, reject and old prices times a power of two give
the same bids. Benefits so large or small that an intermediate result could leave float64 are first scaled by such a
power (`proportion.py`).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kernels.problems import Csr
from kernels.problems.arrays import Costs, Integers
from kernels.problems.points import Points

THETA = 4
"""Epsilon falls by this factor from phase to phase; 4, 7 and 10 differ by less than the instances do."""
START = 2000
"""The first epsilon is a span over this, or over n_cols / 4: larger ones outrun the short lists and gain no rounds."""
ENOUGH = 250
"""Rounds at a given epsilon after which the few rows left are assigned by paths, which keep its promise.

docs/notes/auction.md has the time for 100 to 4000 rounds.
"""
FOREVER = 2**62
"""Rounds where no limit is set."""
WAR = (100_000, 500)
"""Bids after which rounds are taken for a price war and paths assign who is left: so many, and so many a row.

Where more rows than columns are of one mind, each bid raises a price by little more than epsilon. The number of bids
then grows with the span of benefits over epsilon. docs/notes/auction.md has the counts, with and without a price war.
"""
MOST_EPSILON = 2.0**500
"""An epsilon of floats is cut to this times the largest benefit, so that sums of it stay finite."""
FEW_LOOSE = 2
"""An earlier answer is kept while no more rows than this want another column: paths are long where few are free."""
NEAR = 400
"""Floats of up to 2^400 or from 2^-400 on in size are solved as they are, others are brought near (`proportion.py`)."""
MOST_SCALED = 2**61
"""No scaled price may pass this, so that a net benefit and a raise still fit int64."""


@dataclass(frozen=True)
class Arithmetic:
    """`scale`: integers are multiplied by it (1 for floats). `span`: largest minus smallest scaled benefit.

    `largest`: the largest size of a float. `fixed`: floats as multiples of 1 / scale, a power of two that follows them.
    """

    scale: int | float = 1
    span: float = 0
    exact: bool = True
    largest: float = 0
    fixed: bool = False


def arithmetic_of(weights: Costs | Csr, epsilon: float | None) -> Arithmetic:
    """Scale integers by n_cols + 1, so that 1 is an epsilon that proves optimality; not at all for a whole epsilon.

    A price stays below (n_cols + 1) spans, so the scale is lowered where that would leave int64.
    """
    values = weights.values if isinstance(weights, Csr) else weights
    n_cols = weights.shape[-1]
    if values.dtype.kind == "f":
        low, high = extremes(values)
        return Arithmetic(1, high - low, exact=False, largest=max(-low, high))
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    largest = max(high - low, abs(low), abs(high), 1)
    scale = 1 if epsilon is not None and Fraction(epsilon).denominator == 1 else n_cols + 1
    scale = max(1, min(scale, MOST_SCALED // (largest * (n_cols + 2))))
    return Arithmetic(scale, (high - low) * scale)


def fixed_point(weights: Costs | Csr | Points, complete: bool) -> Arithmetic:
    """Floats as int64 multiples of a power of two, as fine as leaves room for prices.

    Where every pair is an edge, no price and no distance in `paths.cu` passes a few spans: 8 of them must fit beside a
    row in a label. Else a chain of rows may pass a price on: n_cols spans, and 64 in a label.
    """
    if isinstance(weights, Points):
        largest, extents = _diameter(weights), (weights.x.shape[0], weights.y.shape[0])
    else:
        values = weights.values if isinstance(weights, Csr) else weights
        largest, extents = max(map(abs, extremes(values))), weights.shape
    room = 2.0 ** (63 - extents[0].bit_length() - 3) if complete else 2.0**-6 * MOST_SCALED / (sum(extents) + 2)
    room = min(2.0**1000, min(room, 2.0**57) / (2 * (largest or 1.0)))
    scale = math.ldexp(1.0, math.frexp(room)[1] - 1)  # exact, where a logarithm would be rounded up at some rooms
    return Arithmetic(scale, math.ceil(2 * largest * scale), fixed=True)


def extremes(values: Costs) -> tuple[float, float]:
    """Smallest and largest of the floats but -inf; zeros when there are none."""
    if values.size and values.min() > -np.inf:  # the common case, without a copy
        return float(values.min()), float(values.max())
    found = values[np.isfinite(values)]
    return (float(found.min()), float(found.max())) if found.size else (0.0, 0.0)


def proves(unit: Arithmetic, epsilon: float, n_cols: int) -> bool:
    """Whether rounds alone keep the promise of `epsilon`: not when it lies below a unit that proves nothing itself."""
    return not unit.exact or (unit.scale > n_cols and not unit.fixed) or epsilon * unit.scale >= 1


def _diameter(points: Points) -> float:
    """No pair is further apart: the distance across the box around all points."""
    low = np.minimum(points.x.min(0), points.y.min(0)).astype(np.float64)
    across = np.maximum(points.x.max(0), points.y.max(0)) - low
    if points.metric == "cityblock":
        return float(across.sum())
    square = float((across**2).sum())
    return square if points.metric == "sqeuclidean" else math.sqrt(square)


def whole_prices(prices: Integers, scale: int) -> Integers:
    """Integer prices from scaled ones that are within 1 of complementary slackness; then exactly slack.

    With K = scale > n_cols: K (b_ij - b_is) <= P_j - P_s + 1 for a row i that holds s. floor((P + t) / K) keeps that
    without the 1 unless P_s + t is a multiple of K, and of K shifts t one is free of that for all n_cols prices. A
    price of 0 stays 0.
    """
    taken = np.zeros(scale, bool)
    taken[(-prices) % scale] = True
    return (prices + int(taken.argmin())) // scale


def war_bids(n_rows: int) -> int:
    """The bids that rounds may take before paths assign who is left."""
    fixed, a_row = WAR
    return fixed + a_row * n_rows


def epsilons(unit: Arithmetic, epsilon: float | None, n_rows: int, n_cols: int) -> list[float]:
    """The epsilons to run, in scaled units: the one asked for (rounded down to a unit), or a falling schedule.

    A schedule needs n_rows = n_cols: a column that keeps no row must keep its first price, which earlier phases raise.
    Integers: (n_cols + 1) (span + epsilon) bounds every price, so an epsilon that could take one out of int64 is cut.
    Floats that are all the same have no schedule: nothing in them says what a small epsilon is, and none is needed.
    """
    if epsilon is not None:
        if not unit.exact:
            return [min(epsilon, MOST_EPSILON * (unit.largest or 2.0**500))]
        most = max(1, MOST_SCALED // (n_cols + 2))
        return [min(most, max(1, math.floor(Fraction(epsilon) * Fraction(unit.scale))))]
    smallest = 1 if unit.exact else unit.span / (n_cols + 1) * 2.0**-20
    if not smallest > 0:
        return []
    if n_rows < n_cols or unit.span <= 0:
        return [smallest]
    largest, found = unit.span / max(START, n_cols // 4), []
    while largest > smallest:
        found.append(math.ceil(largest) if unit.exact else largest)
        largest /= THETA
    return [*found, smallest]
