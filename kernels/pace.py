"""How fast this machine is, beside the one on which the constants of the estimates were fitted.

One factor for everything that runs on a CPU. It is coarse on purpose: the estimates are to be right within a factor of
three, and machines differ by less in each of the parts below once their mean is taken.
"""

import functools
import math
import os
import time
from collections.abc import Callable

import numpy as np

REPEATS = 8
LEAST, MOST = 0.25, 4.0
"""A machine that seems to be further off was busy with something else."""
THERE_S = (2.5e-4, 2.1e-4, 2.5e-4)
"""Seconds of the three parts there: AMD EPYC, one core."""


MOST_CORES = 8
"""Of one solve: more are shared among several workers."""


def cores() -> int:
    """How many cores a solve on this machine has, about."""
    return min(MOST_CORES, len(os.sched_getaffinity(0)))


@functools.cache
def pace() -> float:
    """Seconds of a piece of work here over its seconds there; takes some 10 ms, once in a process."""
    ratios = [_best_s(part) / there_s for part, there_s in zip(_parts(), THERE_S, strict=True)]
    return min(MOST, max(LEAST, math.prod(ratios) ** (1 / len(ratios))))


def _parts() -> tuple[Callable[[], object], ...]:
    """A sweep through memory, arithmetic in cache, and a loop in which each step waits for the last."""
    matrix = np.ones((512, 1024))
    row = np.linspace(-1.0, 0.0, 1 << 18)
    following = np.random.default_rng(0).permutation(1 << 14).tolist()

    def chase() -> int:
        at = 0
        for _ in range(len(following)):
            at = following[at]
        return at

    return (lambda: (matrix - row[:1024]).min(axis=1), lambda: np.exp(row).sum(), chase)


def _best_s(call: Callable[[], object]) -> float:
    """Of several calls: other work on this machine can only add to it."""
    best = math.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
