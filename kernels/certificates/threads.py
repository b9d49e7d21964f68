"""Threads that the compiled loops of certificates share."""

import contextlib
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from kernels.problems.metrics import THREADS

PIECES = 2
"""Pieces for each thread: one that another process keeps from its core leaves the others less to wait for."""


def in_threads(work: Callable[..., None], ends: list[int], given: tuple[Any, ...]) -> None:
    """`work(first, last, *given)` for each two neighbours of `ends`, in this thread and in others.

    A thread takes the next piece when it is done with one. Whoever calls does not wait for a thread that has not begun,
    so that these may be called from one another.
    """
    pieces = iter(list(pairwise(ends)))

    def some() -> None:
        for first, last in pieces:
            work(first, last, *given)

    beside: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # no more threads: then there are fewer
        for _ in range(min(THREADS, len(ends) - 1) - 1):
            beside.append(_threads().submit(some))
    some()
    for one in beside:
        if not one.cancel():
            one.result()


def cut(count: int, work: int, at_least: int) -> list[int]:
    """The ends of pieces of `count` things of `work` in all, of `at_least` each."""
    pieces = max(1, min(PIECES * THREADS, work // at_least))
    return [count * k // pieces for k in range(pieces + 1)]


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, THREADS - 1), "proofs")
