"""What one owner may have at once of this process: requests a second, and requests that wait.

A process counts for itself: with N of them (`--api-workers N`) an owner may have up to N times as much.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, suppress
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from app.http.auth import Caller, caller
from app.http.config import HttpSettings
from app.http.refusal import Refusal, over
from workers.jobs.job import JobError

FORGET_S = 60.0
STOPPING_RETRY_S = 5


class Bucket:
    """A token bucket: `rate` a second, and as many at once as it takes `burst_s` to earn."""

    __slots__ = ("at", "most", "rate", "tokens")

    def __init__(self, rate: float, burst_s: float = 2.0) -> None:
        self.rate, self.most = rate, max(1.0, rate * burst_s)
        self.tokens, self.at = self.most, time.monotonic()

    def take(self) -> float:
        """0 when there was a token, else the seconds until there is one."""
        now = time.monotonic()
        self.tokens, self.at = min(self.most, self.tokens + (now - self.at) * self.rate), now
        if self.tokens < 1:
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0.0

    def is_full(self, now: float) -> bool:
        """Whether it is as a new one would be."""
        return self.tokens + (now - self.at) * self.rate >= self.most


class Holding:
    """A block that counts under some names."""

    __slots__ = ("_counts", "_names")

    def __init__(self, counts: dict[tuple[str, str], int], names: tuple[tuple[str, str], ...]) -> None:
        self._counts, self._names = counts, names

    def __enter__(self) -> None:
        for name in self._names:
            self._counts[name] = self._counts.get(name, 0) + 1

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]


class Held:
    """A stream that counts from its making until it has ended, or nobody has it any more.

    Between the making of an answer and its first piece others may ask whether there is room.
    """

    def __init__(self, holding: Holding, stream: AsyncIterator[bytes]) -> None:
        self._stream, self._counted = stream, ExitStack()
        self._counted.enter_context(holding)

    def __aiter__(self) -> "Held":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream)
        except BaseException:  # its end, too
            self._counted.close()
            raise

    def __del__(self) -> None:
        self._counted.close()


class Limits:
    """Counts by owner. `quota_of` tells the limits that are set for one, None where they are not known now."""

    def __init__(self, http: HttpSettings, quota_of: Callable[[str], Any] | None = None) -> None:
        self._http, self._quota_of = http, quota_of
        self._buckets: dict[str, Bucket] = {}
        self._held: dict[tuple[str, str], int] = {}
        self._swept = time.monotonic()

    def request(self, owner: str) -> None:
        """Count a request. Raises 429."""
        rate = self._of(owner, "requests_per_s", self._http.requests_per_s)
        if rate <= 0:
            return
        self._forget()
        bucket = self._buckets.get(owner)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[owner] = Bucket(rate)
        wait_s = bucket.take()
        if wait_s > 0:
            raise over("requests", f"more than {rate:g} requests a second", int(bucket.most), wait_s)

    def may_wait(self, what: str, owner: str) -> bool:
        """True while another of the owner's streams or waiters ("streams", "waiters") can be held."""
        return self._held.get((what, owner), 0) < self._most(what, owner) and self.held(what) < self._http.max_waiters

    def held(self, what: str) -> int:
        """How many of all owners' are held."""
        return self._held.get((what, ""), 0)

    def room_for(self, what: str, owner: str) -> None:
        """Raise 429 where `may_wait` is False."""
        if not self.may_wait(what, owner):
            raise over(what, f"{self._held.get((what, owner), 0)} {what} are open", self._most(what, owner), 1.0)

    def hold(self, what: str, owner: str) -> "Holding":
        """Count one that waits for as long as the block lasts."""
        return Holding(self._held, ((what, owner), (what, "")))

    def held_stream(self, owner: str, stream: AsyncIterator[bytes]) -> Held:
        """`stream`, counted for as long as somebody has it."""
        return Held(self.hold("streams", owner), stream)

    def _most(self, what: str, owner: str) -> int:
        streams = what == "streams"
        most = self._http.max_streams_per_owner if streams else self._http.max_waiters_per_owner
        return int(self._of(owner, what, most))

    def _of(self, owner: str, name: str, default: float) -> float:
        quota = None if self._quota_of is None else self._quota_of(owner)
        said = None if quota is None else getattr(quota, name)
        return default if said is None else said

    def _forget(self) -> None:
        """Drop the buckets that are full again."""
        now = time.monotonic()
        if now - self._swept > FORGET_S:
            self._swept = now
            self._buckets = {owner: one for owner, one in self._buckets.items() if not one.is_full(now)}


async def counted(request: Request, found: Annotated[Caller, Depends(caller)]) -> None:
    """Dependency: one request of its owner, which begins when it is their turn."""
    state = request.app.state
    if not state.keys:  # then everybody is the same owner, on the same machine
        return
    if state.jobs.quotas.fresh(found.owner) is None:  # now and then, of each owner, Redis is asked
        with suppress(JobError):
            await run_in_threadpool(state.jobs.quotas.of, found.owner)
    state.limits.request(found.owner)
    await state.turns.take(found.owner)


async def counted_by_address(request: Request) -> None:
    """Dependency of what needs no key: one request of whoever asks from there. All of them take turns as one owner."""
    state = request.app.state
    if not state.keys:
        return
    state.limits.request(f"/{request.client.host if request.client else ''}")  # no owner's name begins so
    await state.turns.take("/")


async def taking(request: Request) -> None:
    """Dependency of all that begins something: 503 once the service is stopping."""
    if request.app.state.lame:
        headers = {"Retry-After": str(STOPPING_RETRY_S), "Connection": "close"}
        raise Refusal(503, "The service is stopping and takes nothing new; jobs that it has go on.", headers=headers)
