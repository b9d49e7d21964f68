"""Patience of a running job with Redis and the store: an answer that was found is not thrown away for want of them."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import redis

from kernels import Deadline
from workers.jobs.job import StoreFull, Unavailable

OUTLAST_S = 3600.0
"""An answer that is found while Redis is away is offered again for so long."""
SOON_S, AGAIN_S = 0.0002, 0.2
"""Before it is tried again, at first and at most: the bytes of a job may be named just now."""
TOLD_S = 5.0
"""After so long a line says what is waited for, and then again after twice as long each time."""
FULL_S = 1.0
"""Between two looks whether a full store has room."""
AWAY = (redis.ConnectionError, redis.TimeoutError, Unavailable)
log = logging.getLogger(__name__)
T = TypeVar("T")


def outlast(call: Callable[[], T], deadline: Deadline | None = None) -> T:
    """Repeat `call` while Redis or the store is away, for up to OUTLAST_S; with a deadline also while it is full."""
    begun, tell_s, phase = time.monotonic(), TOLD_S, deadline.phase if deadline else "wait"
    again_s = SOON_S
    while True:
        try:
            answer = call()
            if deadline and deadline.phase != phase:
                deadline.enter(phase)
            return answer
        except StoreFull as error:
            if deadline is None:
                raise
            log.warning("a job waits for room: %s", error)
            deadline.enter("wait")
            time.sleep(FULL_S)
        except AWAY as error:
            waited_s = time.monotonic() - begun
            if waited_s > OUTLAST_S:
                raise
            if waited_s > tell_s:
                log.warning("a job has waited %.0f s for Redis or the store: %s", waited_s, error)
                tell_s = 2 * waited_s
            time.sleep(again_s)
            again_s = min(2 * again_s, AGAIN_S)
