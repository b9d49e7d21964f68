"""What a worker that waits is told: a job that is handed to it, whole, or that there is something to take.

A message is heard by who listens just then. One that was lost costs a second: the worker then asks (TAKE), and is
told again what it was handed. The connection is held on to, as redis-py's own subscription takes as long to hear a
message as the rest of the worker takes for a small job.
"""

import time
from collections.abc import Sequence
from typing import Any

import redis
from pydantic_core import from_json

from workers.jobs.records import Order, order_of
from workers.rq import BELL


class Post:
    """Of one worker. `client` is one of Redis that decodes text; `pool` has its connections for blocking reads."""

    def __init__(self, client: Any, pool: Any, queue: str, worker: str) -> None:
        self._redis, self._pool, self._worker = client, pool, worker
        self._listeners, self._own, self._bell = f"allot:listeners:{queue}", f"allot:handed:{worker}", BELL + queue
        self._connection: Any = None
        self._device = ""
        self._asked = False
        self._told: list[str] = []  # jobs of which the worker was told as it asked, and whose messages may still come

    def open(self, device: str) -> None:
        """Listen from now on. Jobs that are handed over will run on this device."""
        self._device = device
        self._listen()

    def _listen(self) -> Any:
        if self._connection is None:
            self._connection = self._pool.get_connection()
            self._connection._parser.set_pubsub_push_handler(lambda news: news)  # redis-py's own words each for a log
            self._connection.send_command("SUBSCRIBE", self._own, self._bell)
            self._asked = False
            if self._device:  # told anew to a Redis that has lost its memory
                self._redis.hset(self._listeners, self._worker, self._device)
        return self._connection

    @property
    def descriptor(self) -> int | None:
        """What can be read once there is something to hear; None where nobody can tell by that."""
        held = None if self._connection is None else self._connection._sock
        if held is None or self._connection._parser._reader.has_data() or hasattr(held, "pending"):
            return None  # what came with the last message, or within one of TLS, lies here already
        number: int = held.fileno()
        return number

    def told(self, jobs: Sequence[str]) -> None:
        """The worker knows of these jobs: messages about them are no news."""
        self._told += jobs

    def wait(self, seconds: float) -> Order | bool:
        """An order; True where there is something to take; False where nothing was heard for so long.

        Raises:
            redis.ConnectionError, redis.TimeoutError: it will listen anew.
        """
        try:
            return self._heard(self._listen(), time.monotonic() + seconds)
        except (redis.ConnectionError, redis.TimeoutError):
            self.close()
            raise

    def _heard(self, connection: Any, until: float) -> Order | bool:
        while (left := until - time.monotonic()) > 0:
            try:  # to ask first whether there is something to read takes three calls of the system more
                kind, *rest = connection.read_response(push_request=True, timeout=left, disconnect_on_error=False)
            except redis.TimeoutError:
                break
            self._asked = False
            if kind == "message":
                channel, data = rest
                news = self._news(data) if channel == self._own else True
                if news is not None:
                    return news
        if self._asked:  # silent since it was asked whether it is there
            raise redis.ConnectionError("the subscription is silent")
        connection.send_command("PING", check_health=False)
        self._asked = True
        return False

    def _news(self, data: str) -> Order | bool | None:
        """The order in a message; None for one of which the worker knows, True where TAKE has to say what was meant."""
        try:
            told, line, arrays = data.partition("\n")
            order = order_of([*from_json(told), arrays] if line else from_json(told))
        except (ValueError, TypeError):
            return True
        known = order.job_id in self._told  # messages come in their order: of jobs before this one there is none left
        self._told = self._told[self._told.index(order.job_id) + 1 :] if known else []
        return None if known else order

    def leave(self) -> None:
        """Be handed nothing more. What was handed by now may still have to be taken."""
        self._device = ""
        self._redis.hdel(self._listeners, self._worker)

    def close(self) -> None:
        """Listen no more."""
        connection, self._connection, self._told = self._connection, None, []
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)
