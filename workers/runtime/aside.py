"""What a running solve tells Redis and asks it, on a thread of its own: a Redis that is slow never holds up a solve."""

import queue
import threading
from collections.abc import Callable
from typing import Any

import redis

WITHIN_S = 0.05
"""How long a solve waits for Redis at most, once: a healthy one answers in a hundredth of that."""
MOST_KEPT = 100
"""Reports that are kept while Redis does not answer; more are dropped."""


class Late(redis.TimeoutError):
    """There is no answer yet; the solve goes on without it."""


class Aside:
    """Stands in for `records` where a `Watch` asks and tells.

    A call waits for its answer for WITHIN_S, unless an earlier one is still under way: then it does not wait at all.
    A question whose answer comes late is asked again by and by; a report is made in any case, later.
    """

    def __init__(self, records: Any) -> None:
        self._records = records
        self._calls: queue.Queue[_Call] = queue.Queue(MOST_KEPT)
        self._thread: threading.Thread | None = None
        self._behind: _Call | None = None

    def stop_requested(self, *arguments: Any) -> bool:
        """As `Records.stop_requested`. Raises Late, redis.RedisError."""
        return bool(self._ask(self._records.stop_requested, arguments, kept=False))

    def report(self, *arguments: Any) -> bool:
        """As `Records.report`. Raises Late, redis.RedisError."""
        return bool(self._ask(self._records.report, arguments, kept=True))

    def _ask(self, verb: Callable[..., Any], arguments: tuple[Any, ...], kept: bool) -> Any:
        behind = self._behind is not None and not self._behind.done.is_set()
        if behind and not kept:
            raise Late("Redis has not answered yet")
        call = _Call(verb, arguments)
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            raise Late("Redis has not answered for long; a report is dropped") from None
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="aside", daemon=True)
            self._thread.start()
        if behind or not call.done.wait(WITHIN_S):
            self._behind = call
            raise Late("Redis has not answered yet")
        if call.error is not None:
            raise call.error
        return call.answer

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            try:
                call.answer = call.verb(*call.arguments)
            except Exception as error:
                call.error = error
            call.done.set()


class _Call:
    def __init__(self, verb: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.verb, self.arguments = verb, arguments
        self.done = threading.Event()
        self.answer: Any = None
        self.error: Exception | None = None
