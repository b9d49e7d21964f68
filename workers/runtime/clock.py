"""One time for all hosts: that of Redis. Every score, lease and date in Redis is in it.

A host asks for it now and then, and in between counts on by its own monotonic clock, which nobody sets. So a clock
that is wrong by an hour, or is put right in the middle of a job, loses no lease and expires no result.

An answer is some time on its way, so what it tells is off by up to half of that, and in each process by something else.
A host's own clock that agrees with it is taken at that moment: Redis may well be on that host, and then times that two
of its processes tell differ by no more than microseconds.
"""

import logging
import math
import threading
import time
from collections.abc import Callable

import redis

ASK_S = 10.0
"""Monotonic clocks of two hosts drift apart by less than a millisecond in this time."""
DRIFT = 1e-4
"""Of a second in a second, at most."""
SURE_S, TRIES = 5e-4, 4
"""An answer that took twice as long may be off by this: it is asked for again, so often at most. The first one waits
for a connection, too."""
MICROSECOND_S = 1e-6
"""Redis tells whole ones."""
AGAIN_S = 1.0
"""Between two attempts while Redis does not tell."""
WARN_S = 5.0
"""Of skew: more than this, and a person who compares logs of two hosts is misled."""
WARN_EVERY_S = 3600.0
log = logging.getLogger(__name__)


class Clock:
    """The time of one Redis. `ask` answers as redis-py's `time` does: seconds and microseconds."""

    def __init__(self, ask: Callable[[], tuple[int, int]]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._ahead_s: float | None = None  # Redis's time less this process's monotonic one
        self._off_s = math.inf  # by which that may be wrong at most
        self._learned = 0.0
        self._due = self._warned = -math.inf

    def now(self) -> float:
        """Seconds since 1970. Raises redis.RedisError where Redis has never told, and does not now."""
        if time.monotonic() >= self._due:
            self._measure()
        assert self._ahead_s is not None
        return time.monotonic() + self._ahead_s

    @property
    def due(self) -> bool:
        """Whether `now` would ask Redis."""
        return time.monotonic() >= self._due

    def learn(self, told: tuple[int, int], start: float, end: float) -> None:
        """Take Redis's answer, which was asked for at `start` and came at `end`, by this process's monotonic clock.

        An answer that was long on its way tells less than one before it that was not: where they agree, that one stays.
        """
        off_s, here_s = 0.5 * (end - start), _here_s()
        ahead_s = told[0] + 1e-6 * told[1] - end + off_s
        skew_s = here_s - ahead_s
        if abs(skew_s) <= off_s + MICROSECOND_S:
            ahead_s = here_s
        before = self._ahead_s if off_s > self._off_s + DRIFT * (end - self._learned) else None
        if before is None or abs(before - ahead_s) > off_s:
            self._ahead_s, self._off_s, self._learned = ahead_s, off_s, end
        self._due = end + ASK_S
        if abs(skew_s) > WARN_S and end - self._warned >= WARN_EVERY_S:
            self._warned = end
            side = "ahead of" if skew_s > 0 else "behind"
            log.warning("this host's clock is %.0f s %s Redis's; all times of jobs are Redis's", abs(skew_s), side)

    def skew_s(self) -> float:
        """How far this host's clock is ahead of Redis's. Raises redis.RedisError."""
        return time.time() - self.now()

    def _measure(self) -> None:
        with self._lock:
            if time.monotonic() < self._due:
                return
            for _ in range(TRIES):
                start = time.monotonic()
                try:
                    told = self._ask()
                except redis.RedisError:
                    self._due = start + AGAIN_S
                    if self._ahead_s is None:
                        self._due = start
                        raise
                    return
                end = time.monotonic()
                self.learn(told, start, end)
                if end - start <= 2 * SURE_S:
                    return


def _here_s() -> float:
    """This host's clock less this process's monotonic one."""
    first, told, last = time.monotonic(), time.time(), time.monotonic()
    return told - 0.5 * (first + last)
