"""Requests that wait for a job: long polls, `Prefer: wait` and event streams.

Each waits in a thread of its own pool, so that they never take the threads that short requests need, in slices
of a few seconds, so that one whose client has gone, or whose server stops, ends soon.
"""

import time
from collections.abc import AsyncIterator
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from fastapi import Request

from workers.jobs.job import Event, Job
from workers.jobs.queue import Jobs

SLICE_S = 2.0
T = TypeVar("T")


class Waiting:
    """The pool of waiting requests."""

    def __init__(self, most: int) -> None:
        self._limiter = anyio.CapacityLimiter(most)
        self._ended = False

    def end(self) -> None:
        """Let every waiter answer with what there is."""
        self._ended = True

    async def for_job(self, request: Request, jobs: Jobs, job: Job, timeout_s: float, version: int | None) -> Job:
        """The job once it has ended, once its version is not `version` any more, or after `timeout_s`."""
        until = time.monotonic() + timeout_s
        while not job.state.ended and (version is None or job.version == version):
            left_s = until - time.monotonic()
            if left_s <= 0 or self._ended or await request.is_disconnected():
                break
            if self._limiter.available_tokens <= 0:
                break  # too many wait already: answer with what there is
            slice_s = min(left_s, SLICE_S)
            job = await run_sync(jobs.wait, job.id, job.owner, slice_s, version, limiter=self._limiter)
        return job

    async def events(
        self, request: Request, jobs: Jobs, job: Job, after: str | None, keep_alive_s: float
    ) -> AsyncIterator[bytes]:
        """The server-sent events of a job from `after` on, until it has ended."""
        silent_since = time.monotonic()
        yield b"retry: 1000\n\n"
        while not self._ended and not await request.is_disconnected():
            found = await run_sync(jobs.events, job.id, job.owner, after, SLICE_S, limiter=self._limiter)
            for event in found:
                yield encode_event(event)
                after = event.id
                if event.kind == "state" and event.data.get("state") in ("succeeded", "failed", "cancelled"):
                    return
            if found:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since >= keep_alive_s:
                silent_since = time.monotonic()
                yield b": still here\n\n"


def encode_event(event: Event) -> bytes:
    """One event as text/event-stream has it."""
    from app.answers.answer import json_bytes

    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.kind.encode(), json_bytes(event.data))
