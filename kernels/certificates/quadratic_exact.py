"""Exact arithmetic for quadratic assignments: a float64 is an integer times a power of two, so an objective is one too.

Nothing is rounded here. `Whole` holds a problem as int64 where the integers fit; `Every` prices each permutation of a
small problem in integers of any length; `objective_up` rounds only the sum that it returns.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from kernels.certificates import rounded
from kernels.problems import Array, QuadraticAssignment

ENUMERATED = 8
"""Up to this n the certificate looks at every permutation: 40,320 at most, in 10 to 30 ms."""
LARGEST = 2**61
"""Integers stay below this, so that sums and differences of two of them fit int64."""
LIMB = 56
"""Bits of a limb: an int64 holds the sum of 64 of them, and a permutation of 8 adds up 36."""
SPLITTER = 134217729.0  # 2^27 + 1 halves a float64 for TwoProduct (Dekker 1971)


@dataclass(frozen=True, eq=False)
class Whole:
    """A problem in int64: an objective is an integer below 2^61 in absolute value, times 2^exponent."""

    flow: Array
    distance: Array
    linear: Array
    exponent: int

    @property
    def step(self) -> int:
        """A divisor of every objective: 2 gcd(flow) gcd(distance) where both are symmetric, and so on; at least 1."""
        flow, distance = (m - np.diag(m.diagonal()) for m in (self.flow, self.distance))
        both = 2 if (flow == flow.T).all() and (distance == distance.T).all() else 1
        pairs = both * int(np.gcd.reduce(flow, axis=None)) * int(np.gcd.reduce(distance, axis=None))
        single = np.outer(self.flow.diagonal(), self.distance.diagonal()) + self.linear
        return max(1, gcd(pairs, int(np.gcd.reduce(single, axis=None))))

    def rounded_up(self, value: int) -> int:
        """The least multiple of `step` that is at least `value`."""
        return -(-value // self.step) * self.step

    def number(self, value: int) -> Fraction:
        """`value` in the problem's own units."""
        return Fraction(value) * Fraction(2) ** self.exponent


def whole(problem: QuadraticAssignment) -> Whole | None:
    """The problem in int64; None where some integer would not fit."""
    flow, distance = problem.flow, problem.distance
    linear = np.zeros_like(flow) if problem.linear is None else problem.linear
    if problem.integer:
        exponent = 0
    else:
        if not flow.any() or not distance.any():
            flow, distance = np.zeros_like(flow), np.zeros_like(distance)
        of_flow, of_distance, of_linear = (lowest(m) for m in (flow, distance, linear))
        of_pairs = None if of_flow is None or of_distance is None else of_flow + of_distance
        exponent = min((e for e in (of_pairs, of_linear) if e is not None), default=0)
        more = 0 if of_pairs is None else of_pairs - exponent
        grids = [_grid(flow, (of_flow or 0) - more), _grid(distance, of_distance or 0), _grid(linear, exponent)]
        if any(grid is None for grid in grids):
            return None
        flow, distance, linear = (grid for grid in grids if grid is not None)
    sizes = [np.abs(m.astype(np.float64)) for m in (flow, distance, linear)]
    largest = min(sizes[0].sum() * sizes[1].max(), sizes[0].max() * sizes[1].sum()) + sizes[2].max(axis=1).sum()
    # the float64 sums of at most 2^40 terms are off by less than 2^-13 of themselves
    return Whole(flow, distance, linear, exponent) if largest * (1 + 2.0**-12) <= LARGEST else None


def lowest(matrix: Array) -> int | None:
    """The exponent of the lowest bit that is set in any entry; None for zeros."""
    entries = matrix[matrix != 0]
    if not entries.size:
        return None
    mantissas, exponents = np.frexp(entries)
    bits = np.ldexp(mantissas, 53).astype(np.int64)
    trailing = np.frexp((bits & -bits).astype(np.float64))[1] - 1
    return int((exponents - 53 + trailing).min())


def _grid(matrix: Array, exponent: int) -> Array | None:
    """The entries divided by 2^exponent, as int64; None where they do not fit."""
    if not matrix.any():
        return np.zeros(matrix.shape, np.int64)
    if int(np.frexp(np.abs(matrix).max())[1]) - exponent > 62:
        return None
    return np.asarray(np.ldexp(matrix, -exponent).astype(np.int64))


def integers(matrix: Array, exponent: int) -> list[list[int]]:
    """The entries divided by 2^exponent, as Python integers; `exponent` is that of `lowest`, or below."""
    if matrix.dtype.kind == "i":
        assert exponent <= 0
        return [[x << -exponent for x in row] for row in matrix.tolist()]
    ratios = [[x.as_integer_ratio() for x in row] for row in matrix.tolist()]
    # a denominator is a power of two, and divides 2^-exponent where that is below 1
    shift = max(0, -exponent)
    return [[((p << shift) // q) >> max(0, exponent) for p, q in row] for row in ratios]


class Every:
    """The permutations of a small problem, each priced in exact integers: its objective divided by 2^exponent.

    Costs that depend on the same choices are added up first: facility k at l costs `single[k][l]`, and with facility
    i at a before it `pair[i, k][a * n + l]`. So a permutation of 8 is a sum of 36 integers. All permutations are
    built one facility at a time, their costs cut into limbs of 56 bits whose int64 sums cannot overflow.
    """

    def __init__(self, problem: QuadraticAssignment) -> None:
        n = self.n = problem.n
        linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
        lows = [
            (0 if m.any() else None) if problem.integer else lowest(m)
            for m in (problem.flow, problem.distance, linear)
        ]  # fmt: skip
        flow, distance, costs = (
            integers(m, e or 0) for m, e in zip((problem.flow, problem.distance, linear), lows, strict=True)
        )
        of_pairs = None if lows[0] is None or lows[1] is None else lows[0] + lows[1]
        self.exponent = min((e for e in (of_pairs, lows[2]) if e is not None), default=0)
        up, more = max(0, (of_pairs or 0) - self.exponent), max(0, (lows[2] or 0) - self.exponent)
        places = range(n)
        self.single = [
            [(flow[k][k] * distance[at][at] << up) + (costs[k][at] << more) for at in places] for k in places
        ]
        self.pair = {
            (i, k): [(flow[i][k] * distance[a][b] + flow[k][i] * distance[b][a]) << up for a in places for b in places]
            for k in places for i in range(k) if flow[i][k] or flow[k][i]
        }  # fmt: skip
        self.forbidden = np.zeros((n, n), bool) if problem.forbidden is None else problem.forbidden

    def price(self, permutation: Array) -> int:
        """What that permutation costs."""
        p = [int(x) for x in permutation]
        total = sum(row[at] for row, at in zip(self.single, p, strict=True))
        return total + sum(costs[p[i] * self.n + p[k]] for (i, k), costs in self.pair.items())

    def least(self) -> int | None:
        """The least cost of all permitted permutations; None where there are none."""
        limbs = self._costs()
        if not limbs.shape[1]:
            return None
        for low in range(len(limbs) - 1):  # carries: every limb but the highest becomes one of [0, 2^LIMB)
            limbs[low + 1] += limbs[low] >> LIMB
            limbs[low] &= (1 << LIMB) - 1
        total = 0
        for k in reversed(range(len(limbs))):
            least = int(limbs[k].min())
            limbs = limbs[:, limbs[k] == least]
            total = (total << LIMB) + least
        return total

    def _costs(self) -> Array:
        """(limbs, permutations) int64."""
        n = self.n
        largest = max(abs(x) for costs in (*self.single, *self.pair.values()) for x in costs)
        count = largest.bit_length() // LIMB + 1
        single = [_limbs(costs, count) for costs in self.single]
        pair = {key: _limbs(costs, count) for key, costs in self.pair.items() if any(costs)}
        placed, left = np.empty((1, 0), np.int64), np.arange(n)[None]
        totals = np.zeros((count, 1), np.int64)
        for k in range(n):
            parent = np.repeat(np.arange(len(left)), n - k)
            at = left.ravel()
            rest = left[:, None, :].repeat(n - k, axis=1)[:, ~np.eye(n - k, dtype=bool)]
            rest = rest.reshape(len(at), n - k - 1)
            open_ = ~self.forbidden[k, at]
            parent, at, left = parent[open_], at[open_], rest[open_]
            totals = totals[:, parent] + single[k][:, at]
            placed = placed[parent]
            for i in range(k):
                if (i, k) in pair:
                    totals += pair[i, k][:, placed[:, i] * n + at]
            placed = np.column_stack((placed, at))
        return totals


def _limbs(costs: list[int], count: int) -> Array:
    """(count, entries) int64, lowest limb first; the highest carries the sign."""
    mask = (1 << LIMB) - 1
    rows = [[x >> LIMB * k & mask for x in costs] for k in range(count - 1)]
    return np.array([*rows, [x >> LIMB * (count - 1) for x in costs]], np.int64)


def objective_up(problem: QuadraticAssignment, permutation: Array) -> float:
    """The objective of float data, rounded up once from the exact sum.

    Products are split into themselves and their rounding errors (TwoProduct), which is exact as long as no error
    underflows; where one could, every term is a fraction.
    """
    n = permutation.size
    flow, distance = problem.flow, problem.distance[np.ix_(permutation, permutation)]
    linear = np.zeros(n) if problem.linear is None else problem.linear[np.arange(n), permutation]
    used = (flow != 0) & (distance != 0)
    x, y = flow[used], distance[used]
    low, high = rounded.EXACT_PRODUCT
    with np.errstate(over="ignore", under="ignore"):
        product = x * y
    sizes = np.abs(np.concatenate((x, y, product)))
    if not sizes.size or (sizes.min() >= low and sizes.max() <= high):
        return rounded.sum_up(np.concatenate((product, _error(x, y, product), linear)))
    terms = [Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return rounded.up(sum(map(Fraction, linear.tolist()), sum(terms, Fraction(0))))


def _error(x: Array, y: Array, product: Array) -> Array:
    """x y - product, without error."""
    (a, b), (c, d) = ((h := SPLITTER * z - (SPLITTER * z - z), z - h) for z in (x, y))
    return np.asarray(b * d - (((product - a * c) - b * c) - a * d))
