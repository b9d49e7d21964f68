"""How many bytes the requests of one owner, and of all, may have on their way at once.

What a request sends, and what its files inflate to, is taken before it is written, and given back when it ends.
"""

import shutil
import time
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Self

from app.http.refusal import Refusal
from workers.store import disk

RETRY = {"Retry-After": "5"}
FRESH_S, FRESH_BYTES = 0.1, 1 << 20
"""A look at the disk is good for so long, and for so many bytes that are taken after it."""


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
        self._total = 0
        self._looked, self._free, self._since = -FRESH_S, 0, 0
        self._lock = Lock()

    def held(self, owner: str) -> "Held":
        """Room for one request; all of it is given back with the block."""
        return Held(self, owner)

    def give_back(self, owner: str, count: int) -> None:
        """The owner has so many bytes less on their way."""
        with self._lock:
            self._taken[owner] -= count
            self._total -= count
            if not self._taken[owner]:
                del self._taken[owner]

    def take(self, owner: str, count: int) -> None:
        """Take so many bytes more.

        Raises:
            Refusal: 429 when the owner has too many on the way, 503 when all have.
            StoreFull: the disk nearly is.
        """
        now = time.monotonic()
        if self._since + count > FRESH_BYTES or now - self._looked > FRESH_S:
            self._looked, self._free, self._since = now, shutil.disk_usage(self._folder).free, 0
        if self._free - self._since - count < disk.SPARE_BYTES:
            disk.require_space(self._folder, count)
        with self._lock:
            self._since += count
            if self._taken[owner] + count > self._each:
                detail = (
                    f"Your requests on the way hold {self._taken[owner]} bytes; at most {self._each} are taken at once."
                )
                raise Refusal(429, detail, headers=RETRY)
            if self._total + count > self._most:
                raise Refusal(503, "Too many bytes are on their way here now.", headers=RETRY)
            self._taken[owner] += count
            self._total += count


class Held:
    """What one request has taken."""

    def __init__(self, room: Room, owner: str) -> None:
        self._room, self._owner = room, owner
        self.bytes = 0
        self.aside = False
        """Whether files were laid aside for the request."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give all of them back."""
        self._room.give_back(self._owner, self.bytes)

    def take(self, count: int) -> None:
        """Take so many bytes more. Raises as `Room.take`."""
        self._room.take(self._owner, count)
        self.bytes += count

    def give(self, count: int) -> None:
        """Give so many of them back before the end: they did not come."""
        self._room.give_back(self._owner, count)
        self.bytes -= count
