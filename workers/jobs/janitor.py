"""Puts right what a death at the wrong moment leaves behind. Every worker runs one; a lock lets one work at a time.

Each round, jobs whose worker fell silent run again; jobs between a queue and a worker that died go back; jobs
whose time has come expire; blobs that nobody holds are deleted. Now
and then every job that has not ended is looked for, and one that is nowhere runs again: whatever bug or accident lost
it, its owner gets an answer.
"""

import json
import logging
import math
import time
import uuid
from collections.abc import Callable

import redis

from workers.jobs.failure import SILENT
from workers.jobs.job import Damaged, JobError
from workers.jobs.queue import QUEUES, Jobs
from workers.jobs.records import EXPIRE_BATCH, Limits, Records
from workers.jobs.shown import to_job
from workers.rq import Lost
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.store.store import SWEEP_BATCH

LOCK_MS = 3000
"""A janitor that dies with the lock in hand delays the next one by so much."""
SLOW_S = 2.0
"""A Redis that takes so long for one write was frozen, or as good as that."""
LEAST_S = 0.1
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
        self._limits = Limits.of(settings)
        raw = connect(settings.redis_url, text=False)
        self._lost = [Lost(name, raw) for name in QUEUES]
        self._token = uuid.uuid4().hex
        self._release = self._redis.register_script(RELEASE)
        self._scrubbed = self._searched = time.monotonic()
        self._missing: set[str] = set()
        self._refused = -math.inf
        """When Redis was last found to refuse; infinity until a round has worked since.

        Workers could not renew then either: they get the time to do so first.
        """

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
        """One round; False when another janitor is at work. What makes room comes first, and needs none itself."""
        try:
            return self._round()
        except (redis.RedisError, JobError, OSError):
            self._refused = math.inf
            raise

    def _round(self) -> bool:
        self._redis.ping()  # a frozen Redis is found out here, before one that thaws makes it look well
        self._make_room()
        self._tell_damaged()
        asked = time.monotonic()
        if not self._redis.set("allot:janitor", self._token, nx=True, px=LOCK_MS):
            return False
        answered = time.monotonic()
        if answered - asked > SLOW_S or self._refused == math.inf:
            self._refused = answered
        try:
            if time.monotonic() - self._refused > self._settings.lost_after_s:
                for lost in self._lost:
                    lost.revoke(self._record)
            if time.monotonic() - self._searched > SEARCH_S:
                self._searched = time.monotonic()
                self.search()
            self._forget_workers()
        finally:
            self._release(keys=["allot:janitor"], args=[self._token])
        if time.monotonic() - self._scrubbed > SCRUB_S:
            self._scrubbed = time.monotonic()
            self._jobs.store.scrub()
            for lost in self._lost:
                lost.scrub()
        return True

    def _make_room(self) -> None:
        """Drop jobs whose time has come, and bytes that nobody holds: all of them, or as many as half a round allows.

        Janitors do this side by side: each job and each blob falls to one of them.
        """
        until = time.monotonic() + max(LEAST_S, 0.5 * self._settings.janitor_s)
        steps: list[tuple[Callable[[], int], int]] = [
            (lambda: self._records.expire(self._settings.tombstone_ttl_s), EXPIRE_BATCH),
            (self._jobs.store.sweep, SWEEP_BATCH),
        ]
        for step, batch in steps:
            while step() >= 0.5 * batch and time.monotonic() < until:
                pass
        try:
            self._jobs.store.settle_left()
        except (JobError, OSError) as error:  # a full disk must not keep jobs from being found
            log.warning("what was left on its way to the disk is still there: %s", error)

    def _record(self, job_id: str, again: bool) -> bool:
        """A worker fell silent: our record first, RQ's books after it; True when that costs no attempt."""
        fate = self._records.lose(job_id, "", "again" if again else "fail", SILENT)
        if fate in ("queued", "spared", "failed"):
            log.warning("job %s lost its worker and is %s", job_id, "failed" if fate == "failed" else "queued")
        return fate == "spared"

    def search(self) -> None:
        """Run again what is in no queue and in no worker's hands, and was not at the last search either."""
        active = set(self._redis.zrange("allot:active", 0, -1))  # before the places: a job moves on, never back
        missing = active - self._places()
        for job_id in missing & self._missing:
            record = self._records.read(job_id)
            try:
                again = bool(record) and to_job(job_id, record, None).attempt < self._settings.attempts
            except Damaged:
                self._records.set_aside(job_id)
                continue
            if self._records.lose(job_id, "", "again" if again else "fail", SILENT) in ("queued", "spared"):
                log.warning("job %s was lost and is queued", job_id)
                self._records.rejoin(job_id, self._limits)
        self._missing = missing

    def _places(self) -> set[str]:
        """Ids of all jobs that somebody has."""
        lined = (self._records.in_line(name) for name in QUEUES)
        return set().union(*lined, *(lost.places() for lost in self._lost))

    def _forget_workers(self) -> None:
        for name, text in self._redis.hgetall("allot:workers").items():
            if self._redis.now() - _heartbeat(text) > FORGET_WORKER_S:
                self._redis.hdel("allot:workers", name)
                for queue in QUEUES:
                    self._redis.hdel(f"allot:listeners:{queue}", name)

    def _tell_damaged(self) -> None:
        for what in self._records.told_aside():
            log.error("%s could not be read and is set aside", what)


def _heartbeat(text: str) -> float:
    """When a worker was last heard of; never, where junk says so."""
    try:
        return float(json.loads(text)["heartbeat"])
    except (KeyError, ValueError, TypeError):
        return 0.0
