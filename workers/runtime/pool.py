"""Pools of connections to Redis in which a caller waits for one that is free, where redis-py would refuse them."""

import threading
import time
from typing import Any

import redis
from redis.exceptions import MaxConnectionsError
from redis.sentinel import SentinelConnectionPool

WAIT_S = 1.0
"""A connection is held for a command, which takes less than that unless Redis is frozen."""
LOOK_AGAIN_S = 0.05
"""One may be freed between the refusal and the wait, and nobody is told of it then."""


class Pool(redis.ConnectionPool):
    """Connections to one server."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._freed = threading.Condition()

    def get_connection(self, *args: Any, **options: Any) -> Any:
        """A connection, once there is one. Raises MaxConnectionsError after `WAIT_S`."""
        give_up = time.monotonic() + WAIT_S
        while True:
            try:
                return super().get_connection()
            except MaxConnectionsError:
                left_s = give_up - time.monotonic()
                if left_s <= 0:
                    raise
            with self._freed:
                self._freed.wait(min(left_s, LOOK_AGAIN_S))

    def release(self, connection: Any) -> None:
        """Give one back."""
        super().release(connection)
        with self._freed:
            self._freed.notify()


class PrimaryPool(Pool, SentinelConnectionPool):
    """Connections to whichever server is the primary."""
