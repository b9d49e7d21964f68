"""RQ's list of one kind of worker, as those see it who take nothing from it."""

from typing import Any

from rq import Queue
from rq.serializers import JSONSerializer

from workers.rq.allowed import AllowedJob


class Line:
    """One queue.

    Args:
        name: its worker's device.
        raw: a client of Redis that does not decode.
    """

    def __init__(self, name: str, raw: Any) -> None:
        self._queue = Queue(name, connection=raw, serializer=JSONSerializer, job_class=AllowedJob)

    def running(self) -> int:
        """How many jobs are in the hands of workers. RQ would clean up first, in the caller, if it were let."""
        return int(self._queue.started_job_registry.get_job_count(cleanup=False))
