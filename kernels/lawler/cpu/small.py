"""Up to LARGEST_N free facilities: every permutation, in the order of a walk through their tree."""

import numpy as np

from kernels.compiling import njit
from kernels.problems.arrays import Indices, Integers

LARGEST_N = 8


@njit(cache=True, nogil=True)
def cheapest(pairs: Integers, singles: Integers) -> Indices:
    """A permutation of least cost; (k^2, k^2) pairs, (k, k) singles."""
    k = singles.shape[0]
    best = np.arange(k)
    if k == 0:
        return best
    p = np.full(k, -1)
    used = np.zeros(k, np.bool_)
    paid = np.zeros(k + 1, np.int64)
    record, level = np.int64(2**62), 0
    while level >= 0:
        if p[level] >= 0:
            used[p[level]] = False
        p[level] += 1
        while p[level] < k and used[p[level]]:
            p[level] += 1
        if p[level] == k:
            p[level] = -1
            level -= 1
            continue
        place = p[level]
        cost = paid[level] + singles[level, place]
        for v in range(level):
            cost += pairs[level * k + place, v * k + p[v]]
        if level == k - 1:
            if cost < record:
                record = cost
                best[:] = p
            continue
        used[place] = True
        level += 1
        paid[level] = cost
    return best
