"""A slab that is taken before an upload asks for one of its size, and mapped with its pages.

To find one under the lock of all processes and to map it takes a quarter of a millisecond, which comes between the
headers of a request and its first byte. A client that asks again mostly sends as much as before.
"""

from collections import deque
from concurrent.futures import Executor

from workers.store.arena import Arena
from workers.store.slab import Slab

SHARE = 16
"""It has at most such a part of the arena: others may need the room."""


class InHand:
    """One slab of a process, which is another's if the process dies. It takes none whose pages must be found."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._slabs: deque[Slab] = deque()

    def take(self, size: int, threads: Executor) -> Slab | None:
        """As `Arena`."""
        while self._slabs:
            try:
                slab = self._slabs.popleft()
            except IndexError:  # another thread was first
                break
            if slab.size == size:
                return slab
            slab.close()
        return self._arena.take(size, threads)

    def prepare(self, size: int, threads: Executor) -> None:
        """Have one of that size for the next upload, if there is one that was used before. In any thread."""
        if self._slabs or size * SHARE > self._arena.most:
            return
        slab = self._arena.take_used(size, threads)
        if slab is not None:
            slab.ready(0)
            self._slabs.append(slab)

    def close(self) -> None:
        """Give it back."""
        while self._slabs:
            self._slabs.popleft().close()
