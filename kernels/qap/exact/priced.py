"""A quadratic assignment as prices: what a tree is grown on. Two such forms of a problem may be used side by side.

Of each, for every permutation x:  scale * objective >= total + the leaders of its pairs + the prices of their pairs,
and no leader or price is negative. A node fixes some pairs, and so pays their leaders and prices for certain. That
closes it where it is too much in either form. The forms differ in what they see. The level-1 ascent leaves nothing out,
and is far below the optimum at the root. The semidefinite relaxation is close to it at the root, and then leaves out
x' S x >= 0 for a positive semidefinite S, which deep in a tree is much (docs/notes/qap.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, nextafter

import numpy as np
from numba import njit

from kernels.problems.arrays import AnyIntegers, Integers
from kernels.qap.bounds.lap import assign
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.exact import branch


@dataclass(frozen=True, eq=False)
class Priced:
    """leaders (n, n), prices (n (n - 1) / 2, n, n), a block of rows i < k, entry [j, l]: int64, none below 0."""

    leaders: Integers
    prices: Integers
    total: int
    scale: int


def of_ascent(ascent: DualAscent) -> Priced:
    """What a level-1 ascent has come to."""
    root = branch.root(ascent)
    return Priced(root.leaders, root.prices, ascent.total, ascent.scale)


def of_semidefinite(bound: Bound) -> Priced:
    """The costs L + Z of a semidefinite bound, less the duals of their assignments (relaxed/ascent.py).

    <L, x x'> = <L + Z, x x'> - x' Z x, and the bound has proved that x' Z x is at most what is taken off.
    """
    costs, exponent = bound.evidence["costs"], int(bound.evidence["exponent"])
    n = round(len(costs) ** 0.5)
    leaders, prices = np.empty((n, n), np.int64), np.zeros((n * (n - 1) // 2, n, n), np.int64)
    _reduce(costs, leaders, prices)
    u, v, row_of = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    assign(leaders, u, v, row_of)
    leaders -= u[:, None] + v
    scale = 2**-exponent
    return Priced(leaders, prices, floor(Fraction(nextafter(bound.raw, -inf)) * scale), scale)


@njit(cache=True, nogil=True)
def _reduce(costs: AnyIntegers, leaders: Integers, prices: Integers) -> None:
    """Leaders: what a pair pays alone and with the cheapest assignment beside it. Prices: what is left."""
    n = leaders.shape[0]
    beside, u, v = np.empty((n - 1, n - 1), np.int64), np.empty(n - 1, np.int64), np.empty(n - 1, np.int64)
    row_of = np.empty(n - 1, np.int64)
    for i in range(n):
        for j in range(n):
            pair = i * n + j
            for a in range(n - 1):
                for b in range(n - 1):
                    beside[a, b] = costs[pair, (a + (a >= i)) * n + b + (b >= j)]
            leaders[i, j] = costs[pair, pair] + assign(beside, u, v, row_of)
            for a in range(n - 1):
                k = a + (a >= i)
                at = branch._pair(min(i, k), max(i, k), n)
                for b in range(n - 1):
                    other, left = b + (b >= j), beside[a, b] - u[a] - v[b]
                    if i < k:
                        prices[at, j, other] += left
                    else:
                        prices[at, other, j] += left
