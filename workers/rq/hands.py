"""A worker's side of RQ: take a job, renew the claim on it, give it back."""

import contextlib
import os
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

import redis
from rq.exceptions import DequeueTimeout
from rq.executions import Execution
from rq.job import Job
from rq.queue import Queue
from rq.utils import now
from rq.worker.base import WorkerStatus

from workers.rq.books import DEQUEUE_S, Books

Fate = Literal["ended", "dropped", "again", "failed"]


class Held:
    """One job in a worker's hands, and the one execution under which it has it."""

    def __init__(self, books: Books, job: Job, queue: Queue, execution: Execution) -> None:
        self._books, self._job, self._queue, self._execution = books, job, queue, execution

    @property
    def job_id(self) -> str:
        """Of the job."""
        return str(self._job.id)

    @property
    def execution(self) -> str:
        """The fencing token: lives in RQ's registry while it is renewed."""
        return str(self._execution.id)

    @property
    def may_run_again(self) -> bool:
        """True while the job has attempts left after this one."""
        return bool(self._job.should_retry)

    @property
    def stopped(self) -> bool:
        """True when an operator stopped it with RQ's stop command."""
        return self._books.was_stopped(self._job)

    def renew(self) -> None:
        """Keep the job for another `lost_after_s`. Does nothing for an execution that was given up meanwhile."""
        self._books.maintain_heartbeats(self._job, self._execution)

    def done(self, fate: Fate, why: str = "", *, counts: bool = True) -> None:
        """Give the job back, in one step.

        Args:
            fate: "ended": there is an outcome, whichever it is. "dropped": this execution counts for nothing, as
                another has the job or its owner gave it up. "again": to the front of the queue. "failed": for good.
            why: of a job that failed, for RQ's list of those.
            counts: False for a run "again" that costs no attempt.
        """
        if fate in ("again", "failed"):
            self._fail(fate == "again", why, counts)
            self._books.set_state(WorkerStatus.IDLE)
            return
        with self._books.connection.pipeline() as pipeline:
            self._books.cleanup_execution(self._job, pipeline, self._execution)
            self._books.set_state(WorkerStatus.IDLE, pipeline)
            if fate == "ended":  # RQ's handle_job_success without what our jobs lack: dependents, results, repeats
                self._books.increment_successful_job_count(pipeline)
                pipeline.delete(self._job.key, self._job.execution_registry.key)
            pipeline.execute()

    def _fail(self, again: bool, why: str, counts: bool) -> None:
        if not again:
            self._job.retries_left = 0
        elif not counts:
            self._job.retries_left = (self._job.retries_left or 0) + 1
        self._job.ended_at = now()
        self._books.handle_job_failure(self._job, self._queue, exc_string=why, execution=self._execution)


class Hands:
    """What one worker takes from one queue, one job at a time. RQ lists the worker while the block lasts.

    Args:
        queue: its name.
        raw: a client of Redis that does not decode.
        lost_after_s: after so long without `renew` the job that is held counts as lost.
        stop: called, from another thread, when an operator stops the job that is held.
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

    def take(self) -> Held | None:
        """The next job, None when none came within DEQUEUE_S.

        What dies in here leaves the job in RQ's intermediate list, from which `Lost.revoke` takes it back.
        """
        books = self._books
        books.executions.clear()  # one that could not be given back while Redis was away is not in hand any more
        try:
            job, queue = Queue.dequeue_any(
                books.queues,
                DEQUEUE_S,
                connection=books.connection,
                job_class=books.job_class,
                serializer=books.serializer,
                death_penalty_class=books.death_penalty_class,
            )
        except DequeueTimeout:
            return None
        execution = books.prepare_execution(job)
        books.prepare_job_execution(job, remove_from_intermediate_queue=True)
        return Held(books, job, queue, execution)
