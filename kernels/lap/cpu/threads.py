"""Threads that stay from one call to the next, for problems that are solved side by side."""

import functools
import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba

from kernels.crew import Crew

T = TypeVar("T")


def in_threads(work: Callable[[T], None], pieces: Iterable[T], threads: int) -> None:
    """`work` of every piece, in this thread and in up to `threads` - 1 others, each taking the next when it is done.

    To take a piece is a call of Python's: where one takes less than some 0.2 ms, let compiled code take them
    (kernels/counter.py) and threads call it `together`.
    """
    todo = iter(list(pieces))

    def some() -> None:
        for piece in todo:
            work(piece)

    together(some, threads)


def threads_for(work: int, a_wake: int) -> int:
    """How many threads are woken for so much work; `a_wake` of it is done in the time that one more costs all others.

    One that is woken takes Python's lock and gives it, at its beginning and at its end, while the others wait for it.
    So t threads take w / t + t s for work of w, which is least at t = sqrt(w / s): another would cost what it saves.
    """
    return min(int(numba.get_num_threads()), 1 + math.isqrt(work // a_wake))


def together(some: Callable[[], None], threads: int) -> None:
    """`some` in this thread and in up to `threads` - 1 others; it returns once nothing is left that nobody took.

    The others sleep between calls. One that has not begun when this thread is done is not waited for.
    """
    _crew().together(some, threads - 1)


@functools.cache
def _crew() -> Crew:
    return Crew("pieces", numba.get_num_threads())


@functools.cache
def threads_here() -> ThreadPoolExecutor:
    """As many as compiled loops may take, each made when it is first needed; none of them waits for another."""
    return ThreadPoolExecutor(numba.get_num_threads(), "assignments")
