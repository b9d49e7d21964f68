"""What goes along with a request through all stations: whose it is, what they work with, and where the time went."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store.store import Store


@dataclass(frozen=True)
class Desk:
    """What the stations of one process work with.

    Attributes:
        max_json_bytes: of a JSON body, and of the `job` part of a multipart one.
    """

    store: Store
    jobs: Jobs
    settings: Settings
    max_json_bytes: int


@dataclass(frozen=True)
class Visit:
    """One request.

    Attributes:
        owner: whose it is.
        key: its Idempotency-Key.
        spent_ms: by station.
    """

    desk: Desk
    owner: str
    key: str | None = None
    spent_ms: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, station: str) -> Iterator[None]:
        """Count the time of a block as that station's."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.spent_ms[station] = self.spent_ms.get(station, 0.0) + 1e3 * (time.perf_counter() - begun)
