"""RQ's worker cut down to its bookkeeping: no loop, no work-horse, no maintenance. Only `hands` uses it."""

import signal
from collections.abc import Callable
from typing import Any

from rq import Worker
from rq.executions import Execution
from rq.job import Job
from rq.serializers import JSONSerializer

from workers.rq.allowed import AllowedJob, NoPenalty
from workers.rq.names import RENEW, stamp

DEQUEUE_S = 1
"""How long a worker waits before it asks for a job again."""
LIFE_S = 60
"""Of RQ's entry for a worker, from each heartbeat."""


class Books(Worker):  # type: ignore[misc]
    """One worker, one queue: with one, RQ moves a job through a list that survives this process; with two it pops it.

    Args:
        name: of the worker.
        queue: the one it takes from.
        raw: a client of Redis that does not decode.
        lost_after_s: silence after which its job counts as lost.
        stop: called from RQ's thread when an operator stops the job in hand.
    """

    job_class = AllowedJob
    death_penalty_class = NoPenalty

    def __init__(self, name: str, queue: str, raw: Any, lost_after_s: float, stop: Callable[[], None]) -> None:
        # RQ makes the socket's timeout 5 s less than worker_ttl where it is shorter; ours is to stay.
        super().__init__([queue], name=name, connection=raw, serializer=JSONSerializer, worker_ttl=DEQUEUE_S + 15)
        self._lost_after_s = lost_after_s
        self._renew = raw.register_script(RENEW)
        self._stop = stop

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Stay listed for LIFE_S, whatever RQ asks for."""
        super().heartbeat(LIFE_S, pipeline=pipeline)

    def get_heartbeat_ttl(self, job: Job, working_time: float = 0.0) -> int:
        """How long this worker may be silent before its job counts as lost: RQ would say a minute more."""
        return max(2, int(self._lost_after_s))

    def renew(self, job_id: str, execution: str) -> None:
        """What `maintain_heartbeats` does, by Redis's clock, and also when Redis has no memory left."""
        ttl, raw = max(2, int(self._lost_after_s)), self.connection
        self._renew(args=[self.queues[0].name, job_id, execution, self.name, raw.now(), stamp(), ttl, LIFE_S])

    def set_state(self, state: str, pipeline: Any = None) -> None:
        """Tell RQ's books of a new state, once."""
        if state != self.get_state():
            super().set_state(state, pipeline=pipeline)

    def get_current_executions(self, refresh: bool = False) -> list[Execution]:
        """What is in hand here. RQ asks Redis when that is nothing, and keeps the answer for good."""
        return list(self.executions.values())

    def was_stopped(self, job: Job) -> bool:
        """True when an operator stopped this job with RQ's stop command."""
        return bool(self._stopped_job_id == job.id)

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """RQ's stop command ends here."""
        self._stop()

    def unsubscribe(self) -> None:
        """Leave RQ's command channel. The answer wakes its thread, which then ends; nobody waits for it."""
        if self.pubsub_thread:
            self.pubsub_thread.stop()
            self.pubsub.unsubscribe()
