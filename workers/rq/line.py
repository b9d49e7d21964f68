"""A queue as those see it who put jobs into it."""

from typing import Any

from rq import Queue, Retry
from rq.serializers import JSONSerializer

from workers.rq.allowed import JOB_FUNCTION, AllowedJob


class Line:
    """One queue.

    Args:
        name: its worker's device.
        raw: a client of Redis that does not decode.
    """

    def __init__(self, name: str, raw: Any) -> None:
        self._queue = Queue(name, connection=raw, serializer=JSONSerializer, job_class=AllowedJob)

    def send(self, job_id: str, pipeline: Any, *, attempts: int, keep_failed_s: int) -> None:
        """Put a job at the end, once `pipeline` is executed.

        Args:
            job_id: of a job that has a record.
            pipeline: of a client that does not decode.
            attempts: how often it may be taken. RQ runs only those again that have a retry left: two at least.
            keep_failed_s: how long RQ lists it as failed.
        """
        self._queue.enqueue_call(
            JOB_FUNCTION,
            args=(job_id,),
            job_id=job_id,
            timeout=-1,  # none of RQ's: who holds the job looks at the clock
            result_ttl=0,
            failure_ttl=keep_failed_s,
            retry=Retry(max=max(1, attempts - 1), enqueue_at_front=True),
            description="",
            pipeline=pipeline,
        )

    def waiting(self) -> int:
        """How many jobs wait."""
        return int(self._queue.count)

    def running(self) -> int:
        """How many jobs are in the hands of workers. RQ would clean up first, in the caller, if it were let."""
        return int(self._queue.started_job_registry.get_job_count(cleanup=False))

    def position(self, job_id: str) -> int | None:
        """1 for the job that is taken next, None for one that does not wait."""
        rank = self._queue.connection.lpos(self._queue.key, job_id)
        return None if rank is None else int(rank) + 1
