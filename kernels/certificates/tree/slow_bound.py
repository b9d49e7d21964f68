"""Bounds on what is left of a quadratic assignment, for the slow re-check of a tree: NumPy, and one assignment a pair.

`value` is true for any prices. `raised` looks for prices, and nothing rests on how good they are.

Facility i at location j and facility k at q together pay c = F_ik D_jq + F_ki D_qj. Row r_ijk and column s_ijq are what
the pair (i, j) takes from what it pays with k, and with whoever is at q. Then a permutation pays at least the sum over
i < k of the least scale c - r_ijk - s_ijq - r_kqi - s_kqj, and the cheapest assignment under what pairs pay alone and
have taken.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np
from scipy.optimize import linear_sum_assignment

from kernels.certificates.exact.quadratic import Problem
from kernels.problems.arrays import Array

BITS, PRICES, TOP = 50, 2**48, 2**61
"""Costs stay below 2^50 in sum, also times the scale, and prices below 2^48: with n <= 36 no sum reaches 2^61."""


@dataclass(eq=False)
class Cut:
    """Integers near the problem's: an objective of theirs is within `error` of the true one divided by 2^`bits`."""

    flow: Array
    distance: Array
    linear: Array
    forbidden: Array
    bits: int
    error: Fraction
    scale: int


def cut(problem: Problem) -> Cut:
    """The problem in int64, exactly where its numbers are short enough."""
    linear = [[x or 0 for x in row] for row in problem.linear]
    both = problem.flow, problem.distance
    if not all(any(map(any, m)) for m in both):  # then no product counts, and the other may be of any size
        both = ([[0] * problem.n] * problem.n,) * 2
    sums, tops = ([f(abs(x) for row in m for x in row) for m in both] for f in (sum, max))
    size = min(sums[0] * tops[1], sums[1] * tops[0]) + sum(max(map(abs, row)) for row in linear)
    bits = max(0, size.bit_length() - BITS)
    of_flow = min(max(0, (bits + tops[0].bit_length() - tops[1].bit_length()) // 2), bits)
    flow, distance, single = (
        np.array([[(x + (1 << by >> 1)) >> by for x in row] for row in m], np.int64)
        for m, by in ((both[0], of_flow), (both[1], bits - of_flow), (linear, bits))
    )
    error = Fraction(0)
    if bits:  # each entry is off by 1/2 at most, so a product f d by (|f| + |d|) / 2 + 1/4
        error = Fraction(int(np.abs(flow).sum()) + int(np.abs(distance).sum()) + problem.n, 2)
        error += Fraction(problem.n**2, 4)
    forbidden = np.array([[x is None for x in row] for row in problem.linear])
    scale = 1 << min(10, max(0, BITS - size.bit_length()))
    return Cut(flow, distance, single, forbidden, bits, error, scale)


def step(problem: Problem) -> int:
    """What all objectives are multiples of: of all costs of pairs, and of single facilities."""
    n, flow, distance, found = problem.n, problem.flow, problem.distance, 0
    for i in range(n):
        for j in range(n):
            found = gcd(found, flow[i][i] * distance[j][j] + (problem.linear[i][j] or 0))
            for k in range(i):
                for q in range(n):
                    if j != q:
                        found = gcd(found, flow[i][k] * distance[j][q] + flow[k][i] * distance[q][j])
    return max(1, found)


@dataclass(eq=False)
class Part:
    """What is left below a node, the prices found so far, and the pairs that nothing better uses."""

    facilities: list[int]
    locations: list[int]
    placed: dict[int, int]
    rows: Array
    columns: Array
    closed: Array

    def below(self, i: int, j: int) -> "Part":
        """With its facility i at its location j."""
        m = len(self.facilities)
        a, b = [x for x in range(m) if x != i], [x for x in range(m) if x != j]
        return Part(
            [self.facilities[x] for x in a],
            [self.locations[x] for x in b],
            {**self.placed, self.facilities[i]: self.locations[j]},
            self.rows[np.ix_(a, b, a)],
            self.columns[np.ix_(a, b, b)],
            self.closed[np.ix_(a, b)],
        )


class Left:
    """The costs of what is left below a node, times the scale."""

    def __init__(self, data: Cut, part: Part) -> None:
        f, d = part.facilities, part.locations
        self.flow, self.distance, self.scale = data.flow[np.ix_(f, f)], data.distance[np.ix_(d, d)], data.scale
        self.m = len(f)
        self.apart = ~np.eye(self.m, dtype=bool)
        single = data.linear[np.ix_(f, d)] + np.outer(self.flow.diagonal(), self.distance.diagonal())
        self.placed = 0
        for i, j in part.placed.items():
            single = single + np.outer(data.flow[f, i], data.distance[d, j])
            single = single + np.outer(data.flow[i, f], data.distance[j, d])
            self.placed += int(data.linear[i, j])
            self.placed += sum(int(data.flow[i, k] * data.distance[j, q]) for k, q in part.placed.items())
        self.placed *= self.scale
        self.single = single * self.scale

    def pays(self, rows: Array, columns: Array) -> Array:
        """[i, k, j, q]: what pairs (i, j) and (k, q) still pay together."""
        both = self.flow[:, :, None, None] * self.distance[None, None, :, :]
        both = both + self.flow.T[:, :, None, None] * self.distance.T[None, None, :, :]
        taken = rows.transpose(0, 2, 1)[:, :, :, None] + columns[:, None, :, :]
        return np.asarray(both * self.scale - taken - taken.transpose(1, 0, 3, 2))

    def value(self, part: Part) -> tuple[int, Array]:
        """At most what a permutation of what is left pays that uses no closed pair; and beyond that with each pair."""
        part.rows, part.columns = (np.clip(x, -PRICES, PRICES) for x in (part.rows, part.columns))
        barred = part.closed[:, None, :, None] | part.closed[None, :, None, :] | ~self.apart[None, None]
        least = np.where(barred, TOP, self.pays(part.rows, part.columns)).min(axis=(2, 3))
        pairs = [int(least[i, k]) for i in range(self.m) for k in range(i)]
        given = np.where(self.apart[:, None, :], part.rows, 0).sum(axis=2)
        given = given + np.where(self.apart[None], part.columns, 0).sum(axis=2)
        leaders = self.single + given
        if part.closed.all(axis=1).any() or TOP in pairs:
            return TOP, leaders
        _, v = _prices(leaders, part.closed)
        v = np.clip(v, -(2**54), 2**54)
        u = np.where(part.closed, TOP, leaders - v).min(axis=1)
        return sum(pairs) + sum(u.tolist()) + sum(v.tolist()) + self.placed, leaders - u[:, None] - v


def raised(data: Cut, part: Part, above: int, sweeps: int, enough: int) -> bool:
    """Whether sweeps of better prices raise the bound beyond `above`; pairs are closed on the way."""
    left, goal = Left(data, part), above * data.scale + 1
    total, beyond = left.value(part)
    for turn in range(sweeps):
        if total >= goal:
            return True
        part.closed = part.closed | (total + beyond >= goal)
        _sweep(left, part, beyond, goal - total, np.random.default_rng(turn).permutation(left.m))
        before = total
        total, beyond = left.value(part)
        if total < goal and (total - before) * enough < goal - total:
            break
    if total < goal:
        part.closed = part.closed | (total + beyond >= goal)
    return total >= goal


def _sweep(left: Left, part: Part, beyond: Array, room: int, order: Array) -> None:
    """Open pairs give away what they have; then each takes what an assignment of the others lets it take."""
    m, index = left.m, np.arange(left.m)
    share = np.where(part.closed, 0, np.maximum(beyond, 0) // (m - 1))
    part.rows = part.rows - np.where(left.apart[:, None, :], share[:, :, None], 0)
    pays, turn = left.pays(part.rows, part.columns), np.argsort(order)
    for i in order:
        others = index[index != i]
        for j in np.flatnonzero(~part.closed[i]):
            places = index[index != j]
            cost = pays[i][np.ix_(others, [j], places)][:, 0, :]
            cost = np.where((turn[others] > turn[i])[:, None], (cost + 1) >> 1, cost)
            shut = part.closed[np.ix_(others, places)]
            u, v = _prices(np.minimum(cost, room + 1), shut, room + 1)
            part.rows[i, j, others] += u
            part.columns[i, j, places] += v
            pays[i, others[:, None], j, places] -= u[:, None] + v
            pays[others[:, None], i, places, j] -= u[:, None] + v


def _prices(cost: Array, closed: Array, bar: int = 2**56) -> tuple[Array, Array]:
    """Prices of rows and columns under which no open entry is overpaid, as good as an assignment makes them."""
    full = np.where(closed, bar, cost)
    rows, columns = linear_sum_assignment(full)
    v = np.zeros(len(full), np.int64)
    for _ in range(len(full)):  # shortest paths among the assigned columns
        lower = np.minimum(v, (full - full[rows, columns][:, None] + v[columns][:, None]).min(axis=0))
        if (lower == v).all():
            break
        v = lower
    return (full - v).min(axis=1), v
