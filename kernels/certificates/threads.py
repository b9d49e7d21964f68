"""Threads that the compiled loops of certificates share."""

import contextlib
import functools
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from kernels.problems.metrics import CORES, THREADS

PIECES = 2
"""Pieces for each thread: one that another process keeps from its core leaves the others less to wait for."""


def in_threads(work: Callable[..., None], ends: list[int], given: tuple[Any, ...], threads: int | None = None) -> None:
    """`work(first, last, *given)` for each two neighbours of `ends`, in THREADS or `threads` threads, this one too.

    A thread takes the next piece when it is done with one. Whoever calls does not wait for a thread that has not begun,
    so that these may be called from one another.
    """
    pieces = iter(list(pairwise(ends)))

    def some() -> None:
        for first, last in pieces:
            work(first, last, *given)

    beside: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # no more threads: then there are fewer
        for _ in range(min(threads or THREADS, len(ends) - 1) - 1):
            beside.append(_threads().submit(some))
    some()
    for one in beside:
        if not one.cancel():
            one.result()


def cut(count: int, work: int, at_least: int, threads: int | None = None) -> list[int]:
    """The ends of pieces of `count` things of `work` in all, of `at_least` each, for THREADS or `threads`."""
    pieces = max(1, min(PIECES * (threads or THREADS), work // at_least))
    return [count * k // pieces for k in range(pieces + 1)]


def threads_for(work: int, a_wake: int, at_most: int) -> int:
    """How many threads take the least time for so much work, where to wake one takes as long as `a_wake` of it.

    Threads are woken one after the other: t of them need work / t + t a_wake.
    """
    return max(1, min(at_most, 1 + math.isqrt(work // a_wake)))


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """As many as anybody asks for at once: a thread is made when there is something to do for it, and then stays."""
    return ThreadPoolExecutor(max(2, THREADS, CORES) - 1, "proofs")
