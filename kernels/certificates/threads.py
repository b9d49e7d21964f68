"""Threads that the compiled loops of certificates share."""

import functools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from kernels.crew import Crew
from kernels.problems.metrics import CORES, THREADS

PIECES = 2
"""Pieces for each thread: one that another process keeps from its core leaves the others less to wait for."""


def in_threads(work: Callable[..., None], ends: list[int], given: tuple[Any, ...]) -> None:
    """`work(first, last, *given)` for each two neighbours of `ends`, in this thread and in others.

    A thread takes the next piece when it is done with one.
    """
    pieces = iter(list(pairwise(ends)))

    def some() -> None:
        for first, last in pieces:
            work(first, last, *given)

    together(some, min(THREADS, len(ends) - 1))


def together(some: Callable[[], None], threads: int) -> None:
    """`some` in this thread and in up to `threads` - 1 others; once it is done here, nothing may be left to begin.

    Whoever calls does not wait for a thread that has not begun, so that these may be called from one another.
    """
    _threads().together(some, threads - 1)


def cut(count: int, work: int, at_least: int) -> list[int]:
    """The ends of pieces of `count` things of `work` in all, of `at_least` each."""
    pieces = max(1, min(PIECES * THREADS, work // at_least))
    return [count * k // pieces for k in range(pieces + 1)]


def threads_for(work: int, a_wake: int, at_most: int) -> int:
    """How many threads take the least time for so much work, where to wake one takes as long as `a_wake` of it.

    Threads are woken one after the other: t of them need work / t + t a_wake.
    """
    return max(1, min(at_most, 1 + math.isqrt(work // a_wake)))


@functools.cache
def _threads() -> Crew:
    """As many as anybody asks for at once: a thread is made when there is something to do for it, and then stays."""
    return Crew("proofs", max(2, THREADS, CORES) - 1)
