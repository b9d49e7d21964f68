"""How many bytes an upload may have, and the memory that there is for them."""

from dataclasses import dataclass

from workers.store.arena import Arena
from workers.store.in_hand import InHand
from workers.store.layouts import npy_size
from workers.store.pool import pool
from workers.store.slab import Slab


@dataclass(frozen=True)
class Expected:
    """How many bytes are to come, as far as somebody said so, and where there may be memory for them.

    Attributes:
        most: at most so many; 0 where nobody knows.
        exact: exactly as many as that, of an array that stays as it is until they are flushed. Else the header of an
            .npy file tells.
        held: so many bytes stay in memory until somebody wants a file with them. Somebody has counted them.
    """

    most: int = 0
    exact: bool = False
    arena: Arena | InHand | None = None
    held: int = 0

    def take(self, start: bytes, least: int, most: int) -> Slab | None:
        """A slab for an upload that starts so, of more than `least` bytes and not more than `most`."""
        size = self.most if self.exact else npy_size(start)
        fits = least < size <= min(self.most, most)
        slab = self.arena.take(size, pool().threads) if self.arena is not None and fits else None
        if slab is not None:
            try:
                slab.ready(0)
            except OSError:
                slab.close()
                return None
        return slab

    def again(self, size: int) -> None:
        """One came that was so long: the next may be, too."""
        if isinstance(self.arena, InHand):
            pool().threads.submit(self.arena.prepare, size, pool().threads)


UNKNOWN = Expected()
