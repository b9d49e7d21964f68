"""Jobs that a worker took and never brought back. A janitor looks for them."""

import time
from collections.abc import Callable
from typing import Any

from rq import Queue
from rq.exceptions import NoSuchJobError
from rq.job import Job
from rq.registry import FailedJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker_registration import clean_worker_registry

from workers.rq.allowed import AllowedJob
from workers.rq.names import BELL

BETWEEN_S = 3.0
"""A worker of a former release takes a job from the list between the queue and itself within milliseconds."""


class Lost:
    """Of one queue. `raw` is a client of Redis that does not decode."""

    def __init__(self, name: str, raw: Any) -> None:
        self._queue = Queue(name, connection=raw, serializer=JSONSerializer, job_class=AllowedJob)
        self._between: dict[str, float] = {}

    def revoke(self, lost: Callable[[str, bool], bool]) -> None:
        """Put back what silent workers had: at the front of the queue, or with the failed once no attempt is left.

        Args:
            lost: called first with each job's id and whether it runs again; True when this run shall not count.
        """

        def tell(job: Job, *error: Any) -> None:
            if lost(job.id, bool(job.should_retry)):
                job.retries_left = (job.retries_left or 0) + 1

        started = StartedJobRegistry(queue=self._queue, job_class=AllowedJob)
        started.cleanup(timestamp=self._queue.connection.now(), exception_handlers=[tell])
        self._between = self._return_strays()
        if self._queue.count:
            self._queue.connection.publish(BELL + self._queue.name, "")

    def _return_strays(self) -> dict[str, float]:
        """Jobs that a worker took from the queue and died before it had entered them; when each was first seen."""
        queue, seen = self._queue, {}
        between = queue.intermediate_queue
        for job_id in between.get_job_ids():
            try:
                AllowedJob.fetch(job_id, connection=queue.connection, serializer=queue.serializer)
            except NoSuchJobError:
                between.remove(job_id)
                continue
            first = seen[job_id] = self._between.get(job_id, time.monotonic())
            if time.monotonic() - first < BETWEEN_S or job_id in queue.started_job_registry:
                continue
            with queue.connection.pipeline() as pipeline:
                queue.push_job_id(job_id, pipeline=pipeline, at_front=True)
                pipeline.lrem(between.key, 1, job_id)
                pipeline.execute()
        return seen

    def places(self) -> set[str]:
        """Ids of all jobs that are in the queue, in a worker's hands, or in between."""
        queue = self._queue
        found = {*queue.get_job_ids(), *queue.intermediate_queue.get_job_ids()}
        return found | set(queue.started_job_registry.get_job_ids(cleanup=False))

    def scrub(self) -> None:
        """Forget workers and failed jobs whose time is over."""
        FailedJobRegistry(queue=self._queue, job_class=AllowedJob).cleanup()
        clean_worker_registry(self._queue)
