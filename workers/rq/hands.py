"""A worker's side of RQ: be listed, renew the claim on a job, give it back."""

import contextlib
import functools
import os
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

import redis
from rq.exceptions import NoSuchJobError
from rq.executions import Execution
from rq.queue import Queue
from rq.utils import now

from workers.rq.books import Books
from workers.rq.names import BELL

Fate = Literal["dropped", "again", "failed"]


class Held:
    """One job in a worker's hands, and the one execution under which it has it."""

    def __init__(self, books: Books, queue: Queue, job_id: str, execution: str) -> None:
        self._books, self._queue, self.job_id = books, queue, job_id
        self._execution = Execution(execution, job_id, books.connection, books.name)
        books.executions[execution] = self._execution

    @functools.cached_property
    def _job(self) -> Any:
        """As RQ knows it; most jobs end without."""
        job = self._books.job_class(self.job_id, connection=self._books.connection, serializer=self._books.serializer)
        job.origin = self._queue.name
        return job

    @property
    def execution(self) -> str:
        """The fencing token: lives in RQ's registry while it is renewed."""
        return str(self._execution.id)

    @property
    def stopped(self) -> bool:
        """True when an operator stopped it with RQ's stop command."""
        return self._books.was_stopped(self._job)

    def renew(self) -> None:
        """Keep the job for another `lost_after_s`. Does nothing for an execution that was given up meanwhile."""
        self._books.renew(self.job_id, self.execution)

    def done(self, fate: Fate, why: str = "", *, counts: bool = True) -> None:
        """Give a job back that has no outcome, in one step; a job with one was given back with its record.

        Args:
            fate: "dropped": this execution counts for nothing, as another has the job, it has ended, or its owner gave
                it up. "again": to the front of the queue. "failed": for good.
            why: of a job that failed, for RQ's list of those.
            counts: False for a run "again" that costs no attempt.
        """
        if fate == "dropped":
            with self._books.connection.pipeline() as pipeline:
                self._books.cleanup_execution(self._job, pipeline, self._execution)
                pipeline.execute()
            return
        try:
            self._job.refresh()
        except NoSuchJobError:  # its hash went meanwhile: whoever took it has the job
            self.done("dropped")
            return
        if fate == "failed":
            self._job.retries_left = 0
        elif not counts:
            self._job.retries_left = (self._job.retries_left or 0) + 1
        self._job.ended_at = now()
        self._books.handle_job_failure(self._job, self._queue, exc_string=why, execution=self._execution)
        if fate == "again":
            self._books.connection.publish(BELL + self._queue.name, "")


class Hands:
    """What one worker takes from one queue. RQ lists the worker while the block lasts.

    Args:
        queue: its name.
        raw: a client of Redis that does not decode.
        lost_after_s: after so long without `renew` a job that is held counts as lost.
        stop: called, from another thread, when an operator stops a job that is held.
    """

    def __init__(self, queue: str, raw: Any, *, lost_after_s: float, stop: Callable[[], None]) -> None:
        self.name = f"{queue}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._books = Books(self.name, queue, raw, lost_after_s, stop)

    def __enter__(self) -> Self:
        self._books.bootstrap(logging_level="WARNING")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(redis.RedisError):
            self._books.teardown()

    def beat(self) -> None:
        """Stay listed as a worker while there is nothing to renew."""
        self._books.heartbeat()

    def hold(self, job_id: str, execution: str) -> Held:
        """A job that a script has started for this worker."""
        return Held(self._books, self._books.queues[0], job_id, execution)

    def let_go(self) -> None:
        """Nothing is in hand any more."""
        self._books.executions.clear()
