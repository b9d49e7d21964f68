"""One connection to Redis that is held on to, for the few commands that make up the life of a small job.

redis-py takes a connection from its pool for each command, looks whether it can be read, and wraps every step for
retries and its own telemetry: more work than the command itself, where a worker sends three of them for a job. What
goes wrong here is left to the ordinary client, with its patience and its retries.
"""

import threading
from collections.abc import Callable
from typing import Any

import redis


def nothing() -> None:
    """What there is to do while Redis answers, mostly."""


class Kept:
    """A connection of `pool`, which must tell the reply's types as the ordinary client does."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._connection: Any = None

    def ask(self, otherwise: Callable[..., Any], *command: Any, meanwhile: Callable[[], object] = nothing) -> Any:
        """The reply to a command; that of `otherwise` where the connection is in use, or does not hold.

        A command whose connection breaks is sent again by `otherwise`, as redis-py itself would do. What is to be done
        `meanwhile` is done once the command is on its way, and left undone where `otherwise` sends it.

        Raises:
            redis.ResponseError, redis.TimeoutError, and what is done meanwhile, once the reply has been read.
        """
        if not self._lock.acquire(blocking=False):
            return otherwise(*command)
        try:
            if self._connection is None:
                self._connection = self._pool.get_connection()
            self._connection.send_command(*command)
            try:
                meanwhile()
            finally:
                reply = self._connection.read_response()
            return reply
        except redis.ResponseError:  # an answer like others
            raise
        except redis.ConnectionError:
            self._drop()
        except BaseException:  # whatever is still to come belongs to this command
            self._drop()
            raise
        finally:
            self._lock.release()
        return otherwise(*command)

    def close(self) -> None:
        """Give the connection back."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)
