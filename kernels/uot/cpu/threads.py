"""Rows dealt out to threads that sleep between calls."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from kernels.problems.arrays import Floats, Reals

CHUNKS = 32  # of rows: the same for any number of threads, and so are the sums
SMALLEST = 1 << 18  # entries of a chunk
ALONE = 1 << 20  # entries up to which waking another thread costs more than it saves: 0.1 ms on a virtual machine

_threads = int(numba.config.NUMBA_NUM_THREADS)
_pool = ThreadPoolExecutor(max(1, _threads - 1), thread_name_prefix="uot")


def chunks(rows: int, columns: int) -> list[tuple[int, int]]:
    """At most CHUNKS runs, each of at least SMALLEST entries and 64 rows; one for a small matrix."""
    if rows * columns <= ALONE:
        return [(0, rows)]
    step = max(64, -(-rows // CHUNKS), SMALLEST // columns)
    return [(first, min(rows, first + step)) for first in range(0, rows, step)]


def in_threads(rows: int, columns: int, work: Callable[[int, int, int], None]) -> None:
    """Call work(number, first, last) for every chunk, each thread taking the next; `work` must release the GIL."""
    runs = chunks(rows, columns)
    todo = itertools.count()  # next() on it is one step under the GIL

    def take() -> None:
        while (number := next(todo)) < len(runs):
            work(number, *runs[number])

    others = [_pool.submit(take) for _ in range(min(_threads, len(runs)) - 1)]
    take()
    for other in others:
        other.result()


def summed(rows: int, columns: int, sweep: Callable[[int, int, Floats, Floats], None]) -> tuple[Floats, Floats]:
    """Run sweep(first, last, best, total) over all rows; return best (rows,) and the sum of the totals (columns,)."""
    runs = chunks(rows, columns)
    best, totals = np.empty(rows), np.empty((len(runs), columns))
    in_threads(rows, columns, lambda number, first, last: sweep(first, last, best, totals[number]))
    return best, totals.sum(axis=0) if len(runs) > 1 else totals[0]


def read_only(array: Reals) -> Reals:
    """A view that cannot be written: numba compiles anew for such arrays, which is how a mapped upload comes."""
    view = array.view()
    view.flags.writeable = False
    return view
