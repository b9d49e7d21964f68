"""Robust tabu search over exchanges in numba, for pairs of pairs that each have a cost of their own.

Facility u sits at place p[u]; an exchange (u, v) swaps their places.
    partial[u, l] = singles[u, l] + the sum over v of pairs[(u, l), (v, p[v])]: what u would cost at l, all others where
                    they are. The term of who sits at l is 0, since two facilities at one place have no cost.
    beside[u, v]  = pairs[(u, p[u]), (v, p[v])] + pairs[(u, p[v]), (v, p[u])].
    until[u, l]   = iteration until which u must not return to l.
Then the change of cost by exchange (u, v), with a = p[u] and b = p[v], is
    partial[u, b] + partial[v, a] - partial[u, a] - partial[v, b] + beside[u, v]:
in the first two sums the other facility has cost nothing, and the last two have both counted what the pair cost before.
After exchange (r, s), partial changes by four rows of `pairs`, and beside in the rows and columns of r and s alone. So
an iteration takes O(n^2) operations for all its n(n-1)/2 exchanges, and reads 4 n^2 costs in sequence.

All of it is exact: integers below 2^50 in size.
"""

from typing import Any

import numpy as np

from kernels.compiling import njit
from kernels.problems.arrays import Bytes, Indices, Integers, Words
from kernels.qap.cpu.tabu import draw

JIT = {"cache": True, "nogil": True, "boundscheck": False}
FAR = np.int64(2**62)
POLL = 64
"""Iterations between two looks at the flag that ends a search."""


@njit(**JIT)
def cost_of(pairs: Integers, singles: Integers, p: Indices) -> Any:
    """The cost of a permutation."""
    n = p.size
    total = np.int64(0)
    for u in range(n):
        total += singles[u, p[u]]
        for v in range(u):
            total += pairs[u * n + p[u], v * n + p[v]]
    return total


@njit(**JIT)
def _partial(pairs: Integers, singles: Integers, p: Indices) -> Integers:
    n = p.size
    partial = singles.copy()
    flat = partial.reshape(n * n)
    for v in range(n):
        row = pairs[v * n + p[v]]
        for at in range(n * n):
            flat[at] += row[at]
    return partial


@njit(**JIT)
def _pair_up(pairs: Integers, p: Indices, beside: Integers, u: int) -> None:
    """Work out the row and the column of u in `beside`."""
    n = p.size
    for v in range(n):
        found = np.int64(0)
        if v != u:
            found = pairs[u * n + p[u], v * n + p[v]] + pairs[u * n + p[v], v * n + p[u]]
        beside[u, v] = found
        beside[v, u] = found


@njit(**JIT)
def _choose(
    partial: Integers, beside: Integers, until: Integers, p: Indices, at: int, room: np.int64
) -> tuple[int, int, np.int64]:
    """The best exchange that is not tabu, or that gains more than `room`; the best of all where each is tabu."""
    n = p.size
    first, second, least = -1, -1, FAR
    any_first, any_second, any_least = 0, 1, FAR
    for u in range(n - 1):
        a, own = p[u], partial[u, p[u]]
        for v in range(u + 1, n):
            b = p[v]
            delta = partial[u, b] + partial[v, a] - own - partial[v, b] + beside[u, v]
            if delta < least and (until[u, b] < at or until[v, a] < at or delta < room):
                first, second, least = u, v, delta
            if delta < any_least:
                any_first, any_second, any_least = u, v, delta
    if first < 0:
        return any_first, any_second, any_least
    return first, second, least


@njit(**JIT)
def search(
    pairs: Integers, singles: Integers, p: Indices, best: Indices, state: Words, iterations: int,
    tenure: tuple[int, int], stop: Bytes,
) -> tuple[int, np.int64]:  # fmt: skip
    """Search from p, which is changed; `best` becomes the best permutation met. (iterations made, its cost).

    Args:
        pairs: (n^2, n^2) symmetric, singles (n, n); n >= 2.
        tenure: least and most of a random number of iterations; (0, 0) is a descent that ends in a local optimum.
        stop: ends the search once not 0.
    """
    n = p.size
    cost = cost_of(pairs, singles, p)
    record = cost
    best[:] = p
    partial, beside = _partial(pairs, singles, p), np.zeros((n, n), np.int64)
    until = np.zeros((n, n), np.int64)
    flat = partial.reshape(n * n)
    for u in range(n):
        _pair_up(pairs, p, beside, u)
    for at in range(1, iterations + 1):
        if at % POLL == 0 and stop[0]:
            return at - 1, record
        r, s, delta = _choose(partial, beside, until, p, at, record - cost)
        if tenure[1] == 0 and delta >= 0:
            return at - 1, record
        a, b = p[r], p[s]
        old_r, old_s, new_r, new_s = pairs[r * n + a], pairs[s * n + b], pairs[r * n + b], pairs[s * n + a]
        for place in range(n * n):
            flat[place] += new_r[place] + new_s[place] - old_r[place] - old_s[place]
        p[r], p[s] = b, a
        _pair_up(pairs, p, beside, r)
        _pair_up(pairs, p, beside, s)
        spread = tenure[1] - tenure[0] + 1
        until[r, a] = at + tenure[0] + draw(state) % spread
        until[s, b] = at + tenure[0] + draw(state) % spread
        cost += delta
        if cost < record:
            record = cost
            best[:] = p
    return iterations, record
