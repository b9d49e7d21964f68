"""Redis keeps a reserve: new jobs are refused before its memory is full, so that those it has can end."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from workers.jobs.job import StoreFull

FULL = 0.9
"""Of maxmemory. What is above it is for jobs that were accepted: their results, heartbeats and books."""
ROOMY = 0.5
"""Of what jobs may take: below this, arrays may go through Redis that could be files."""
UNLIMITED = 0.125
"""Of the machine's memory: what counts as the limit, for such arrays, of a Redis that has none."""
LOOK_S = 0.5


class Room:
    """What Redis says of its memory, asked at most every LOOK_S. `redis` is a client that decodes text."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self._lock = threading.Lock()
        self._looked = -LOOK_S
        self._taken = self._most = 0.0

    def check(self) -> float:
        """Bytes of Redis that jobs may take, 0 for any number. Raises StoreFull when new jobs have to wait."""
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_S:
                told = self._redis.info("memory")
                self._taken, self._most = share_taken(told), float(told.get("maxmemory") or 0)
                self._looked = time.monotonic()
            taken, most = self._taken, self._most
        require_room(taken)
        return FULL * most


def share_taken(told: Mapping[str, Any]) -> float:
    """How much of its memory Redis has taken, of what INFO tells; 0 where it has no limit."""
    most = float(told.get("maxmemory") or 0)
    return float(told["used_memory"]) / most if most else 0.0


def is_roomy(told: Mapping[str, Any]) -> bool:
    """Whether Redis has room for arrays that could be files, of what INFO tells."""
    most = float(told.get("maxmemory") or 0) or UNLIMITED * float(told.get("total_system_memory") or 0)
    return float(told["used_memory"]) < ROOMY * FULL * most


def require_room(taken: float) -> None:
    """Raise StoreFull when new jobs have to wait: `taken` is a share of all."""
    if taken > FULL:
        used, allowed = f"{100 * taken:.0f} %", f"{100 * FULL:.0f} %"
        raise StoreFull(f"Redis is nearly out of memory: {used} of maxmemory; new jobs are taken below {allowed}")
