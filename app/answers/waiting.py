"""Requests that wait for a job: long polls, `Prefer: wait` and event streams.

None of them holds a thread or a connection to Redis. Each sleeps until the process is told that its job has changed
(workers/jobs/told.py), looks at the job, and answers or sleeps on; now and then it looks whether its client is gone.
"""

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from workers.jobs.job import Event, Expired, Job, JobError, State, Unavailable, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.shown import Seen
from workers.jobs.told import Told

SLICE_S = 5.0
"""How long a client may have been gone before its request ends."""


class Waiting:
    """Everybody in this process who waits."""

    def __init__(self, redis_url: str) -> None:
        self.told = Told(redis_url)
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        """Of this process, for the `reply` of a submission whose answer it waits for."""
        return self.told.name

    def start(self) -> None:
        """Listen; called in the loop in which the requests run."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self.told.start()

    async def stop(self) -> None:
        """Hang up."""
        await self.told.stop()

    def end(self) -> None:
        """Let every waiter answer with what there is. May be called from any thread, and from a signal handler."""
        self._ended = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.told.wake_all)

    async def look(self, job_id: str, owner: str) -> Seen:
        """The job as it is now, without its place in the queue. Raises UnknownJob, Expired, Unavailable."""
        self.start()
        return await self.told.look(job_id, owner)

    async def ping(self) -> None:
        """Raise Unavailable when Redis does not answer within a second."""
        await self.told.ping()

    async def for_job(self, request: Request, job: Job, timeout_s: float, version: int | None) -> Job:
        """The job once it has ended, once its version is not `version` any more, or after `timeout_s`.

        Raises:
            UnknownJob, Expired: it was deleted meanwhile.
            Unavailable: Redis was away when the time was over.
        """
        return (await self._until(request, job, timeout_s, version, with_result=False)).job

    async def for_result(
        self, request: Request, jobs: Jobs, job: Job, timeout_s: float, made: bool
    ) -> tuple[Job, Seen | None]:
        """A job that was just submitted, as it is then or as it has been seen; `made`: its answer comes here.

        It never raises: the job is there, whatever goes wrong with the waiting.
        """
        try:
            seen = await self._until(request, job, timeout_s, None, with_result=True, made=made)
            if seen.state != State.QUEUED:
                return job, seen
            return await run_in_threadpool(jobs.get, job.id, job.owner), None
        except JobError:
            return job, None

    async def _until(
        self,
        request: Request,
        job: Job,
        timeout_s: float,
        version: int | None,
        with_result: bool,
        made: bool = False,
    ) -> Seen:
        self.start()
        until, told = time.monotonic() + timeout_s, self.told
        with told.follow(job.id, until_ended=version is None) as follower:
            if made and not told.has(job.id):  # what is lost on the way is read with all others that wait
                follower.version = job.version
                await follower.news(min(SLICE_S, timeout_s))
            while True:
                if (replied := told.reply(job.id, job.owner)) is not None:
                    return replied
                over = self._ended or time.monotonic() >= until
                try:
                    seen = await told.look(job.id, job.owner, with_result)
                    if over or seen.state.ended or version not in (None, seen.job.version):
                        return seen
                    follower.version = max(follower.version, seen.job.version)
                except Unavailable:
                    if over:
                        raise
                while not await follower.news(min(SLICE_S, until - time.monotonic())):
                    if time.monotonic() >= until or await request.is_disconnected():
                        until = 0.0  # one last look
                        break

    async def events(self, job: Job, after: str | None, keep_alive_s: float) -> AsyncIterator[bytes]:
        """The server-sent events of a job from `after` on, until it has ended.

        A stream whose job is deleted or whose Redis goes away ends with a comment that says so; the client comes back
        with the last id that it has.
        """
        self.start()
        last = after or "0-0"
        with self.told.follow(job.id) as follower:
            yield b"retry: 1000\n\n"
            while not self._ended:
                try:
                    found, over = await self.told.events(job.id, job.owner, last, follower)
                except (UnknownJob, Expired):
                    yield b": the job was deleted\n\n"
                    return
                except Unavailable:
                    yield b": the events cannot be read now; come back with the last id\n\n"
                    return
                for event in found:
                    yield encode_event(event)
                    last = event.id
                if over:
                    return
                while not await follower.news(keep_alive_s) and not self._ended:
                    yield b": still here\n\n"
            yield b": the service stops; come back with the last id\n\n"


def encode_event(event: Event) -> bytes:
    """One event as text/event-stream has it."""
    from app.answers.answer import json_bytes

    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.kind.encode(), json_bytes(event.data))
