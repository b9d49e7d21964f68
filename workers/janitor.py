"""Puts right what a death at the wrong moment leaves behind. Every worker runs one; a lock lets one work at a time.

Each round, jobs whose worker fell silent run again; jobs between a queue and a worker that died go back; jobs that
were recorded and never queued are queued; jobs whose time has come expire; blobs that nobody holds are deleted. Now
and then every job that has not ended is looked for, and one that is nowhere runs again: whatever bug or accident lost
it, its owner gets an answer.
"""

import json
import logging
import time
import uuid
from typing import Any

import redis
from rq import Queue
from rq.exceptions import NoSuchJobError
from rq.job import Job as RqJob
from rq.registry import FailedJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker_registration import clean_worker_registry

from workers.allowed import AllowedJob
from workers.config import Settings
from workers.connection import connect
from workers.failure import SILENT
from workers.job import JobError
from workers.queue import QUEUES, Jobs
from workers.records import Records

LOCK_MS = 3000
"""A janitor that dies with the lock in hand delays the next one by so much."""
BETWEEN_S = 3.0
"""A worker takes a job from the list between the queue and itself within milliseconds."""
UNSENT_S = 5.0
SCRUB_S = 600.0
SEARCH_S = 15.0
FORGET_WORKER_S = 60.0
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
log = logging.getLogger(__name__)


class Janitor:
    """One round is `clean`; `run` repeats it until the process ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._jobs = Jobs(settings)
        self._redis = connect(settings.redis_url)
        self._records = Records(self._redis)
        raw = connect(settings.redis_url, text=False)
        self._queues = [Queue(name, connection=raw, serializer=JSONSerializer, job_class=AllowedJob) for name in QUEUES]
        self._token = uuid.uuid4().hex
        self._release = self._redis.register_script(RELEASE)
        self._scrubbed = self._searched = time.monotonic()
        self._missing: set[str] = set()
        self._between: dict[str, float] = {}

    def run(self) -> None:
        """Clean every `janitor_s`, for ever."""
        while True:
            time.sleep(self._settings.janitor_s)
            try:
                self.clean()
            except (redis.RedisError, JobError, OSError) as error:
                log.warning("the janitor could not finish its round: %s", error)
            except Exception:
                log.exception("the janitor could not finish its round")

    def clean(self) -> bool:
        """One round; False when another janitor is at work."""
        if not self._redis.set("allot:janitor", self._token, nx=True, px=LOCK_MS):
            return False
        try:
            for queue in self._queues:
                self._recover(queue)
            self._between = {k: v for queue in self._queues for k, v in self._return_strays(queue).items()}
            self._send_unsent()
            if time.monotonic() - self._searched > SEARCH_S:
                self._searched = time.monotonic()
                self.search()
            self._forget_workers()
        finally:
            self._release(keys=["allot:janitor"], args=[self._token])
        self._records.expire(self._settings.tombstone_ttl_s)
        self._jobs.store.sweep()
        if time.monotonic() - self._scrubbed > SCRUB_S:
            self._scrubbed = time.monotonic()
            self._jobs.store.scrub()
            for queue in self._queues:
                FailedJobRegistry(queue=queue, job_class=AllowedJob).cleanup()
                clean_worker_registry(queue)
        return True

    def _recover(self, queue: Queue) -> None:
        """Jobs of workers that fell silent: our record first, RQ's books after it."""
        StartedJobRegistry(queue=queue, job_class=AllowedJob).cleanup(exception_handlers=[self._lost])

    def _lost(self, job: RqJob, *error: Any) -> None:
        fate = self._records.lose(job.id, "", bool(job.should_retry), SILENT)
        if fate in ("queued", "failed"):
            log.warning("job %s lost its worker and is %s", job.id, fate)

    def _return_strays(self, queue: Queue) -> dict[str, float]:
        """Jobs that a worker took from the queue and died before it had entered them; when each was first seen."""
        between, seen = queue.intermediate_queue, {}
        for job_id in between.get_job_ids():
            if job_id in queue.started_job_registry:
                continue
            try:
                AllowedJob.fetch(job_id, connection=queue.connection, serializer=queue.serializer)
            except NoSuchJobError:
                between.remove(job_id)
                continue
            first = seen[job_id] = self._between.get(job_id, time.monotonic())
            if time.monotonic() - first < BETWEEN_S:
                continue
            with queue.connection.pipeline() as pipeline:
                queue.push_job_id(job_id, pipeline=pipeline, at_front=True)
                pipeline.lrem(between.key, 1, job_id)
                pipeline.execute()
        return seen

    def _send_unsent(self) -> None:
        for job_id in self._redis.zrangebyscore("allot:unsent", "-inf", time.time() - UNSENT_S):
            record = self._records.read(job_id)
            if record:
                self._send(job_id, record)
            else:
                self._redis.zrem("allot:unsent", job_id)

    def search(self) -> None:
        """Run again what is in no queue and in no worker's hands, and was not at the last search either."""
        active = set(self._redis.zrange("allot:active", 0, -1))  # before the places: a job moves on, never back
        missing = active - self._places()
        for job_id in missing & self._missing:
            record = self._records.read(job_id)
            again = bool(record) and int(record["attempt"]) < self._settings.attempts
            if self._records.lose(job_id, "", again, SILENT) == "queued":
                log.warning("job %s was lost and is queued", job_id)
                self._send(job_id, record)
        self._missing = missing

    def _places(self) -> set[str]:
        """Ids of all jobs that somebody has."""
        found = set(self._redis.zrange("allot:unsent", 0, -1))
        for queue in self._queues:
            found.update(queue.get_job_ids(), queue.intermediate_queue.get_job_ids())
            found.update(queue.started_job_registry.get_job_ids(cleanup=False))
        return found

    def _send(self, job_id: str, record: dict[str, str]) -> None:
        self._jobs.send(job_id, "gpu" if record["queue"] == "gpu" else "cpu")

    def _forget_workers(self) -> None:
        for name, text in self._redis.hgetall("allot:workers").items():
            if time.time() - json.loads(text)["heartbeat"] > FORGET_WORKER_S:
                self._redis.hdel("allot:workers", name)
