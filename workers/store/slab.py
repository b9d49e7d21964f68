"""Memory of the arena in the hands of who writes to it. Its pages are found ahead of them, by other threads."""

import contextlib
import ctypes
import fcntl
import os
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernels import FOUND, advise
from workers.store.mappings import Mapping
from workers.store.sizes import may_resize

STEP = 4 << 20
AHEAD = 4
"""Steps that are looked for before anybody writes to them. What is announced and never comes costs no more."""


@dataclass(frozen=True)
class Taken:
    """The file of a slab under an exclusive lock, and how many bytes at its front have their pages."""

    path: Path
    descriptor: int
    whole: int


class Home(Protocol):
    """Where slabs come from.

    Attributes:
        spare: the folder that a slab goes to without a blob's name.
    """

    spare: Path

    def share(self, descriptor: int) -> None:
        """Make the exclusive lock a shared one."""

    def mapped(self, path: Path) -> Mapping:
        """The memory of a slab."""


class Slab:
    """A slab in the hands of who writes to it.

    Args:
        taken: its file.
        threads: they find the other pages.
        home: the arena.

    Attributes:
        view: its memory.

    Raises:
        OSError: it cannot be mapped.
    """

    def __init__(self, taken: Taken, threads: Executor, home: Home) -> None:
        self.path, self._descriptor, self._whole = taken.path, taken.descriptor, taken.whole
        self._threads, self._home, self._is_shared = threads, home, False
        self._asked: dict[int, Future[None]] = {}
        mapping = home.mapped(taken.path)
        self._is_used, self.size = mapping.used, len(mapping.memory)
        self.view = memoryview(mapping.memory)

    def cut(self, size: int) -> bool:
        """Have so many bytes from now on, before anybody writes to it; False where that is more, or it must not be.

        What is mapped behind them is of nobody: a page there can no longer be touched.
        """
        if size > self.size or not may_resize(self._descriptor):
            return False
        try:
            os.ftruncate(self._descriptor, size)
        except OSError:
            return False
        self.view, self.size, self._whole = self.view[:size], size, min(self._whole, size)
        return True

    @property
    def is_whole(self) -> bool:
        """Whether all its pages are there."""
        return self._whole >= self.size

    def ready(self, at: int) -> None:
        """Have the pages of the step that begins at byte `at`; those behind it are looked for meanwhile.

        No fresh step is written to before: a write to a page that the kernel cannot find ends the process. One that was
        used before has all its pages. They are brought into a new mapping, and nobody waits for that.

        Raises:
            OSError: there is no memory for it.
        """
        ahead = [start for start in range(at, min(self.size, at + AHEAD * STEP), STEP) if start not in self._asked]
        there = [start for start in ahead if not self._is_fresh(start)]
        if there and not self._is_used:  # one change of threads for all of them
            self._asked |= dict.fromkeys(there, self._threads.submit(self._bring, there[0], there[-1] + STEP))
        for start in ahead[len(there) :]:
            self._asked[start] = self._threads.submit(self._find, start)
        if self._is_fresh(at):
            self._asked[at].result()

    def _is_fresh(self, at: int) -> bool:
        return min(self.size, at + STEP) > self._whole

    def _find(self, at: int) -> None:
        os.posix_fallocate(self._descriptor, at, min(STEP, self.size - at))
        self._bring(at, at + STEP)

    def _bring(self, begin: int, end: int) -> None:
        _touch(self.view[begin:end])

    def written(self) -> bool:
        """Nothing more is written: others may read it. Raises OSError."""
        if not self._is_shared:
            self._home.share(self._descriptor)
            self._is_shared = True
        return True

    def close(self) -> None:
        """Let go of it. Without a blob's name it is spare then."""
        if self._descriptor >= 0:
            wait([step for step in self._asked.values() if not step.cancel()])
            self.view = memoryview(b"")
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # the mapping may live on for a moment, and is not used
            with contextlib.suppress(OSError):
                self.path.rename(self._home.spare / self.path.name)
            os.close(self._descriptor)
            self._descriptor = -1


def _touch(view: memoryview) -> None:
    """Have the pages of a mapping found ahead of who writes to it, and not one by one as they do. A hint."""
    advise(ctypes.addressof(ctypes.c_char.from_buffer(view)), len(view), FOUND)
