"""What one owner may have: limits of the service, and those that `allot key limit` sets for an owner in their place.

They are in Redis (allot:quota:{owner}, a weight in allot:weights) and are asked for at most every FRESH_S, so that a
change is in force within a second and costs no request a trip.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from workers.jobs.job import LOCAL, OverQuota, QuotaFull
from workers.runtime.config import Settings
from workers.runtime.connection import guarded

FRESH_S = 0.5
MOST_REMEMBERED = 4096
DAY_S = 86400
BUSY_RETRY_S = 5.0
BOOKED_RETRY_S = 30.0


@dataclass(frozen=True)
class Quota:
    """Limits of one owner; 0 is any amount, and None what the process has of its own settings.

    Attributes:
        queued: jobs that wait.
        workers: that their jobs hold at once; a job beyond waits, and others go before it.
        longest_s: time limit of a job; a longer one is cut to it.
        bytes: that are kept for them, in the store and in Redis.
        share: of the store, of Redis and of the places of a queue that they may fill; 1 is all. Without keys there is
            one owner, who may.
        gpu_s, cpu_s: seconds of workers a day, from midnight UTC.
        requests_per_s, streams, waiters: at each API process.
        lowest, highest: priorities that their jobs may have; others are cut to these.
        weight: of their turn among owners.
    """

    queued: int = 0
    workers: int = 0
    longest_s: float = 0.0
    bytes: int = 0
    share: float = 1.0
    gpu_s: float = 0.0
    cpu_s: float = 0.0
    requests_per_s: float | None = None
    streams: int | None = None
    waiters: int | None = None
    lowest: int = -9
    highest: int = 9
    weight: float = 1.0

    @classmethod
    def of_settings(cls, settings: Settings) -> "Quota":
        """What the service grants everybody."""
        names = ("queued", "workers", "longest_s", "bytes", "share", "gpu_s", "cpu_s")
        return cls(**{name: getattr(settings, f"quota_{name}") for name in names})

    def with_said(self, said: Mapping[str, str]) -> "Quota":
        """These limits with those in `said` in their place; what is no number there changes nothing."""
        found: dict[str, Any] = {
            name: value for name, text in said.items() if (value := _number(name, text)) is not None
        }
        return replace(self, **found)

    def seconds_a_day(self, queue: str) -> float:
        """Of workers of this kind."""
        return self.gpu_s if queue == "gpu" else self.cpu_s

    def share_of(self, free: Callable[[], int | None], spare: int) -> tuple[float, int]:
        """The share of a store that they may fill, and what is `free` there beyond `spare` bytes.

        Nobody looks how much is free for who may fill all, or where a store has no size.
        """
        there = free() if self.share < 1 else None
        return (1.0, 0) if there is None else (self.share, max(0, there - spare))

    def priority(self, asked: int) -> int:
        """`asked`, or the nearest that they may have."""
        return max(self.lowest, min(self.highest, asked))

    def time_limit(self, asked: float) -> float:
        """`asked`, or the longest that they may have."""
        return min(asked, self.longest_s) if self.longest_s > 0 else asked


NAMES = tuple(spec.name for spec in fields(Quota))
WHOLE = frozenset({"queued", "workers", "bytes", "streams", "waiters", "lowest", "highest"})


def _number(name: str, text: str) -> float | int | None:
    """A limit from text; None where it cannot be one."""
    try:
        value = int(text) if name in WHOLE else float(text)
    except ValueError:
        return None
    if name not in NAMES or not math.isfinite(value):
        return None
    if name in ("lowest", "highest"):
        return value if -9 <= value <= 9 else None
    if name in ("weight", "share") and not 0 < value <= (1 if name == "share" else 1e6):
        return None
    return value if value >= 0 else None


def checked(given: Mapping[str, str]) -> dict[str, str]:
    """`given`, limits by name as text; "" takes one back. Raises ValueError for what is no limit."""
    for name, text in given.items():
        if name not in NAMES:
            raise ValueError(f"{name!r} is no limit; expected some of {', '.join(NAMES)}")
        if text and _number(name, text) is None:
            raise ValueError(f"{name} is {text!r}; {_expected(name)}")
    return dict(given)


def _expected(name: str) -> str:
    if name in ("lowest", "highest"):
        return "expected a whole number from -9 to 9"
    if name == "share":
        return "expected a number above 0, and 1 at most"
    return "expected a whole number, 0 for any" if name in WHOLE else "expected a number of 0 or more"


class Quotas:
    """The limits of every owner. `redis` is a client that decodes text."""

    def __init__(self, redis: Any, settings: Settings) -> None:
        self._redis, self.default = redis, Quota.of_settings(settings)
        self._known: dict[str, tuple[float, Quota]] = {}
        self._lock = threading.Lock()

    def fresh(self, owner: str) -> Quota | None:
        """The owner's limits if they were asked for just now."""
        until, quota = self._known.get(owner, (0.0, self.default))
        return quota if time.monotonic() < until else None

    def last(self, owner: str) -> Quota:
        """The owner's limits as they were when they were last asked for."""
        return self._known.get(owner, (0.0, self.default))[1]

    @guarded
    def of(self, owner: str) -> Quota:
        """The owner's limits. Raises Unavailable."""
        quota = self.fresh(owner)
        if quota is None:
            default = replace(self.default, share=1.0) if owner == LOCAL else self.default
            with self._redis.pipeline(transaction=False) as pipeline:
                said, weight = pipeline.hgetall(f"allot:quota:{owner}").hget("allot:weights", owner).execute()
            quota = default.with_said({**said, "weight": weight or "1"})
            with self._lock:
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[owner] = (time.monotonic() + FRESH_S, quota)
        return quota

    @guarded
    def set(self, owner: str, given: Mapping[str, str]) -> None:
        """Put limits in the place of the service's; "" takes one back. Raises ValueError, Unavailable."""
        limits = checked(given)
        with self._redis.pipeline() as pipeline:
            for name, text in limits.items():
                key, field = ("allot:weights", owner) if name == "weight" else (f"allot:quota:{owner}", name)
                if text:
                    pipeline.hset(key, field, text)
                else:
                    pipeline.hdel(key, field)
            pipeline.execute()
        self._known.pop(owner, None)

    @guarded
    def used(self, owner: str) -> dict[str, float]:
        """What the owner has now: bytes in the store and in Redis, workers, seconds of today."""
        today = int(self._redis.now() // DAY_S)
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.hmget(f"allot:kept:{owner}", "store", "redis").scard(f"allot:held:{owner}")
            for queue in ("cpu", "gpu"):
                pipeline.hget(f"allot:spent:{queue}:{today}", owner).hget(f"allot:backlog:{queue}", f"n:{owner}")
            (store, here), held, cpu_s, cpu_n, gpu_s, gpu_n = pipeline.execute()
        found = {"bytes_store": store, "bytes_redis": here, "workers": held, "cpu_s": cpu_s, "gpu_s": gpu_s}
        return {name: float(value or 0) for name, value in found.items()} | {
            "queued": float(cpu_n or 0) + float(gpu_n or 0)
        }


def refused(which: str, quota: Quota, queue: str, now: float, places: int) -> Exception:
    """Why submit.lua refused a job. `places`: of a queue."""
    if which == "queued":
        return OverQuota(f"{quota.queued} of your jobs wait already", "queued", quota.queued, BUSY_RETRY_S)
    if which == "line":
        why = f"one owner may fill {100 * quota.share:g} % of the places of a queue that others leave"
        return OverQuota(why, "queued", int(quota.share * places), BUSY_RETRY_S)
    if which in ("spent", "booked"):
        most = quota.seconds_a_day(queue)
        turn_s = DAY_S - now % DAY_S
        had = "are used up" if which == "spent" else "are used up, or wanted by your jobs that wait"
        why = f"the {most:g} seconds of a {queue} that you have a day {had}; the day turns at midnight UTC"
        wait_s = turn_s if which == "spent" else min(BOOKED_RETRY_S, turn_s)
        return OverQuota(why, f"{queue}-seconds", int(most), wait_s, DAY_S)
    return too_much_kept(which, quota)


def too_much_kept(which: str, quota: Quota) -> QuotaFull:
    """`which`: "bytes", "share" of Redis, or "store"."""
    free = "DELETE jobs and blobs that you need no longer, or wait until they expire"
    if which == "bytes":
        return QuotaFull(f"at most {quota.bytes} bytes are kept for you, and this would be more: {free}")
    where = "the store" if which == "store" else "Redis"
    return QuotaFull(f"one owner may fill {100 * quota.share:g} % of {where}, and this would be more: {free}")
