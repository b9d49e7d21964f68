"""How many bytes the requests of one owner, and of all, may have on their way at once.

What a request sends, and what its files inflate to, is taken before it is written, and given back when it ends.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from app.http.errors import Refusal
from workers.store.store import require_space

RETRY = {"Retry-After": "5"}


class Room:
    """What there is for all.

    Args:
        folder: on the disk that must keep its reserve.
        most: bytes of all owners together.
        each: bytes of one owner.
    """

    def __init__(self, folder: Path, most: int, each: int) -> None:
        self._folder, self._most, self._each = folder, most, each
        self._taken: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def held(self, owner: str) -> Iterator["Held"]:
        """Room for one request; all of it is given back with the block."""
        held = Held(self, owner)
        try:
            yield held
        finally:
            self._change(owner, -held.bytes)

    def take(self, owner: str, count: int) -> None:
        """Take so many bytes more.

        Raises:
            Refusal: 429 when the owner has too many on the way, 503 when all have.
            StoreFull: the disk nearly is.
        """
        require_space(self._folder, count)
        with self._lock:
            if self._taken[owner] + count > self._each:
                detail = (
                    f"Your requests on the way hold {self._taken[owner]} bytes; at most {self._each} are taken at once."
                )
                raise Refusal(429, detail, headers=RETRY)
            if self._taken.total() + count > self._most:
                raise Refusal(503, "Too many bytes are on their way here now.", headers=RETRY)
            self._taken[owner] += count

    def _change(self, owner: str, count: int) -> None:
        with self._lock:
            self._taken[owner] += count
            if not self._taken[owner]:
                del self._taken[owner]


class Held:
    """What one request has taken."""

    def __init__(self, room: Room, owner: str) -> None:
        self._room, self._owner = room, owner
        self.bytes = 0
        self.aside = False
        """Whether files were laid aside for the request."""

    def take(self, count: int) -> None:
        """Take so many bytes more. Raises as `Room.take`."""
        self._room.take(self._owner, count)
        self.bytes += count
