"""A slab that is taken before an upload asks for one of its size, and mapped with its pages.

To find one under the lock of all processes and to map it takes a quarter of a millisecond, which comes between the
headers of a request and its first byte. A client that asks again mostly sends as much as before, or nearly: frames of a
camera, drawn anew, differ by a few parts of a hundred. So where there is no slab of that very size, a longer one is
had, and cut when the upload comes. A caller who asks, waits for the answer and asks again needs two: while the next is
prepared, the last is still being solved.
"""

import threading
from collections import deque
from concurrent.futures import Executor

from workers.store.arena import Arena
from workers.store.resized import is_near, roomy
from workers.store.slab import Slab

SHARE = 16
"""It has at most such a part of the arena: others may need the room."""
NEW = 32 << 20
"""The longest that is made: the gain is the same for any, and the pages of a longer one take long to be found."""


class InHand:
    """One slab of a process, which is another's if the process dies. All its pages are found before it is asked for."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._slabs: deque[Slab] = deque()
        self._preparing = threading.Lock()
        self._length, self._closed = 0, False

    def take(self, size: int, threads: Executor) -> Slab | None:
        """As `Arena`."""
        while self._slabs:
            try:
                slab = self._slabs.popleft()
            except IndexError:  # another thread was first
                break
            if slab.size == size or (is_near(slab.size, size) and slab.cut(size)):
                return slab
            slab.close()
        return self._arena.take(size, threads)

    def prepare(self, size: int, threads: Executor) -> None:
        """Have one for an upload of nearly that size. In any thread."""
        if size * SHARE > self._arena.most or not self._preparing.acquire(blocking=False):
            return
        try:  # one thread at a time: two would both find that there is none
            if self._slabs or self._closed:
                return
            self._length = roomy(size, self._length)
            slab = self._arena.take_used(size, threads)
            slab = slab or self._arena.take_near(self._length, threads, new=self._length <= NEW)
            if slab is not None:
                slab.ready(0)
                self._slabs.append(slab)
        finally:
            self._preparing.release()

    def close(self) -> None:
        """Let go of it, and have no other: what this process holds nobody can give back when the service ends."""
        self._closed = True
        with self._preparing:
            while self._slabs:
                self._slabs.popleft().close()
