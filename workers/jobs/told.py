"""Who waits for jobs in this process, and how they hear of them: one subscription for all, one connection to read on.

Every change of a job is published on `allot:told` as "id state version", by the script that makes the change; a
script that changes several jobs says it of each on a line. A
publish is heard by who listens just then and by nobody else, so what is waited for is also read again after each
(re)connection and every two seconds, all of it in one go. What a change was is read from the job's record and events.

A job that was submitted with `reply=<name of this process>` has its result published on `allot:reply:<name>` when
it ends, as {"id": ..., "job": the record's fields, "result": the result document}. Then nothing needs to be read.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import socket
import time
from typing import Any

from workers.jobs.events import follows, of_record
from workers.jobs.job import Damaged, Event, Expired, State, Unavailable, UnknownJob
from workers.jobs.shown import Seen, to_job
from workers.jobs.wire import Command, Wire

TOLD = "allot:told"
TOLD_BYTES = TOLD.encode()
REPLY = "allot:reply:"
TICK_S = 2.0
SILENT_S = 5.0
"""A subscription over which not even an answer to PING came for so long is opened anew."""
LONGEST_PAUSE_S = 1.0
AT_ONCE = 500
MOST_REPLIES = 2000
REPLY_KEPT_S = 5.0
"""An answer may come before its submitter has begun to wait for it."""
ENDED = frozenset(state.value for state in State if state.ended)
GONE = "gone"
"""Published in place of a state when a job was deleted or has expired."""
LOG = logging.getLogger("allot.told")


class Follower:
    """One who waits for one job; `until_ended`: its end alone wakes them. `version` is what they know of the job."""

    __slots__ = ("_future", "_woken", "until_ended", "version")

    def __init__(self, until_ended: bool) -> None:
        self.until_ended, self.version, self._woken = until_ended, -1, False
        self._future: asyncio.Future[None] | None = None

    def tell(self, state: str, version: int) -> None:
        """The job has reached this version; what is old news wakes nobody."""
        if state == GONE:
            self.wake()
        elif version > self.version:
            self.version = version
            if state in ENDED or not self.until_ended:
                self.wake()

    def wake(self) -> None:
        """There is news."""
        self._woken = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def news(self, timeout_s: float) -> bool:
        """Wait for news since the last call; False when there was none for `timeout_s`."""
        if not self._woken:
            loop = asyncio.get_running_loop()
            self._future = future = loop.create_future()
            timer = loop.call_later(timeout_s, _give_up, future)
            try:
                await future
            finally:
                timer.cancel()
                self._future = None
        woken, self._woken = self._woken, False
        return woken


def _give_up(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Following:
    """A block in which somebody is woken by what happens to a job."""

    __slots__ = ("_all", "_follower", "_job_id")

    def __init__(self, everybody: dict[str, set[Follower]], job_id: str, until_ended: bool) -> None:
        self._all, self._job_id, self._follower = everybody, job_id, Follower(until_ended)

    def __enter__(self) -> Follower:
        self._all.setdefault(self._job_id, set()).add(self._follower)
        return self._follower

    def __exit__(self, *_: object) -> None:
        followers = self._all[self._job_id]
        followers.discard(self._follower)
        if not followers:
            del self._all[self._job_id]


class Told:
    """What this process is told of jobs. Lives in one event loop, between `start` and `stop`."""

    def __init__(self, redis_url: str) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._url = redis_url
        self._followers: dict[str, set[Follower]] = {}
        self._replies: dict[str, tuple[float, Seen]] = {}
        self._wire = Wire(redis_url)
        self._task: asyncio.Task[None] | None = None
        self._heard_at = 0.0

    def start(self) -> None:
        """Listen from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen(), name="told")

    async def stop(self) -> None:
        """Stop listening and hang up."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self._wire.close()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(map(len, self._followers.values()))

    def wake_all(self) -> None:
        """Let everybody look again."""
        for followers in self._followers.values():
            for follower in followers:
                follower.wake()

    def follow(self, job_id: str, until_ended: bool = False) -> "Following":
        """Be woken by what happens to a job from here on; whoever looks at the job after that misses nothing."""
        return Following(self._followers, job_id, until_ended)

    def _tell(self, job_id: str, state: str, version: int) -> None:
        for follower in self._followers.get(job_id, ()):
            follower.tell(state, version)

    def has(self, job_id: str) -> bool:
        """Whether `reply` has an answer."""
        return job_id in self._replies

    def reply(self, job_id: str, owner: str) -> Seen | None:
        """The ended job that was published to this process, once."""
        _, seen = self._replies.pop(job_id, (0.0, None))
        return seen if seen is not None and seen.owner == owner else None

    async def look(self, job_id: str, owner: str, with_result: bool = False) -> Seen:
        """The job as it is now; without its place in the queue. Raises UnknownJob, Expired, Unavailable."""
        commands: list[Command] = [("HGETALL", f"allot:job:{job_id}")]
        if with_result:
            commands.append(("GET", f"allot:result:{job_id}"))
        pairs, *results = await self._wire.ask(*commands)
        record = _record(pairs)
        if not record:
            (tomb,) = await self._wire.ask(("GET", f"allot:tomb:{job_id}"))
            if tomb == owner.encode():
                raise Expired(f"job {job_id[:40]} ended and its result has been dropped")
        if not record or record.get("owner") != owner or "discard" in record:
            raise UnknownJob(f"there is no job {job_id[:40]}")
        seen = Seen(job_id, record, results[0] or None if results else None)
        _ = seen.job  # or it is damaged
        return seen

    async def events(self, job_id: str, owner: str, after: str, follower: Follower) -> tuple[list[Event], bool]:
        """What happened behind the event `after` ("0-0": ever), and whether that is all that ever will.

        Of a job without a stream of events its record tells the states. Raises UnknownJob, Unavailable.
        """
        stream = f"allot:events:{job_id}"
        pairs, found, kept = await self._wire.ask(
            ("HGETALL", f"allot:job:{job_id}"),
            ("XRANGE", stream, f"({after}", "+", "COUNT", AT_ONCE),
            ("EXISTS", stream),
        )
        record = _record(pairs)
        if not record or record.get("owner") != owner or "discard" in record:
            raise UnknownJob(f"there is no job {job_id[:40]}")
        to_job(job_id, record, None)  # or it is damaged
        follower.version = max(follower.version, int(record["version"]))
        if kept:
            events = [_event(*entry) for entry in found]
        else:
            events = [event for event in of_record(record) if follows(event.id, after)]
        return events, record["state"] in ENDED and len(events) < AT_ONCE

    async def ping(self) -> None:
        """Raise Unavailable when Redis does not answer within a second."""
        await self._wire.ask(("PING",))

    async def _listen(self) -> None:
        """Hold the subscription, and open it anew whenever it breaks."""
        pause_s = 0.0
        while True:
            wire, begun = Wire(self._url, on_message=self._hear), time.monotonic()
            try:
                await self._while_it_holds(wire)
            except Unavailable as wrong:
                LOG.log(logging.DEBUG if pause_s else logging.WARNING, "not told of jobs now: %s", wrong)
            except Exception:
                LOG.exception("the subscription failed and is opened anew")
            finally:
                wire.close()
            self.wake_all()  # streams end, polls wait on
            pause_s = 0.0 if time.monotonic() - begun > SILENT_S else min(LONGEST_PAUSE_S, 2 * pause_s + 0.05)
            await asyncio.sleep(pause_s)

    async def _while_it_holds(self, wire: Wire) -> None:
        await wire.open()
        wire.send("SUBSCRIBE", TOLD, REPLY + self.name)
        self._heard_at = time.monotonic()
        while not wire.closed.is_set() and time.monotonic() - self._heard_at < SILENT_S:
            await self._read_again()
            self._forget_replies()
            wire.send("PING")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wire.closed.wait(), TICK_S)
        raise Unavailable("the subscription broke")

    async def _read_again(self) -> None:
        """Look at every job that is waited for."""
        ids = list(self._followers)
        for begin in range(0, len(ids), AT_ONCE):
            some = ids[begin : begin + AT_ONCE]
            found = await self._wire.ask(*(("HMGET", f"allot:job:{one}", "state", "version") for one in some))
            for job_id, (state, version) in zip(some, found, strict=True):
                self._tell(job_id, GONE if state is None else state.decode(), int(version or 0))

    def _hear(self, message: list[Any]) -> None:
        """Called with all that comes over the subscription."""
        self._heard_at = time.monotonic()
        if message[0] != b"message":
            return
        try:
            if message[1] == TOLD_BYTES:
                for line in message[2].decode().split("\n"):
                    job_id, state, version = line.split(" ")
                    if job_id in self._followers:
                        self._tell(job_id, state, int(version))
            else:
                self._hear_reply(Seen.of_reply(message[2]))
        except (ValueError, KeyError, TypeError, AttributeError, Damaged) as wrong:
            LOG.warning("a message on %s cannot be read: %r", message[1], wrong)

    def _hear_reply(self, seen: Seen) -> None:
        """Keep an answer for the one who waits for it, and wake them."""
        while len(self._replies) >= MOST_REPLIES:
            del self._replies[next(iter(self._replies))]
        self._replies[seen.job_id] = time.monotonic(), seen
        for follower in self._followers.get(seen.job_id, ()):
            follower.wake()

    def _forget_replies(self) -> None:
        limit = time.monotonic() - REPLY_KEPT_S
        for job_id in [one for one, (at, _) in self._replies.items() if at < limit]:
            del self._replies[job_id]


def _record(pairs: list[bytes]) -> dict[str, str]:
    texts = [part.decode(errors="replace") for part in pairs]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _event(event_id: bytes, pairs: list[bytes]) -> Event:
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return Event(event_id.decode(), fields[b"kind"].decode(), json.loads(fields[b"data"]))
