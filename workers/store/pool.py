"""Threads of a process that write, hash and look at uploads, and blocks of memory that all uploads share."""

import functools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from workers.store.digests import PIECE

THREADS = max(1, min(8, os.cpu_count() or 1))
STORING = max(THREADS, min(16, (os.cpu_count() or 1) // 2))
"""Of a process that stores and receives nothing: nobody there waits for the interpreter that more threads ask for."""
MOST_BLOCKS = 3 * THREADS + 2


class _Pool:
    """Blocks that are free, and threads that work on others."""

    size = THREADS

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(self.size, "blocks")
        self._free: deque[bytearray] = deque()
        self._made = 0

    def take(self) -> bytearray | None:
        """A block, None where all are taken."""
        try:
            return self._free.pop()
        except IndexError:
            if self._made >= MOST_BLOCKS:  # two threads may both pass: one block more
                return None
            self._made += 1
            return bytearray(PIECE)

    def give(self, block: bytearray) -> None:
        """Give a block back."""
        self._free.append(block)


@functools.cache
def pool() -> _Pool:
    """Of this process, made when first needed."""
    return _Pool()


def only_store() -> None:
    """This process receives no uploads. Called before anything is stored."""
    _Pool.size = STORING
