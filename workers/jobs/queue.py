"""Submitting jobs and asking after them; all that app/ needs of Redis."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, get_args

from kernels import SOLVERS, OptionsOf, Problem, Solver
from workers.jobs.events import follows, of_record
from workers.jobs.form import Placed, placed
from workers.jobs.fresh import Granted, fresh, workers_of
from workers.jobs.job import (
    AskedDevice,
    Damaged,
    Device,
    Event,
    Expired,
    Job,
    JobFailed,
    NotEnded,
    State,
    Submission,
    UnknownJob,
    WorkerInfo,
)
from workers.jobs.quotas import Quotas
from workers.jobs.records import Limits, Records
from workers.jobs.room import Room
from workers.jobs.scripts import Scripts
from workers.jobs.seconds import KEY, NUMBERS, Seconds, histograms
from workers.jobs.shown import to_job
from workers.rq import Line
from workers.runtime.config import Settings
from workers.runtime.connection import connect, guarded
from workers.store.store import Store, open_store

QUEUES: tuple[Device, ...] = ("cpu", "gpu")
LONGEST_WAIT_S = 20.0
"""Of one blocking read; below the socket's timeout."""
PROBE_S = 0.5
"""Of the look at whether Redis is well; whoever asks for it wants to know within a second."""
EVENTS_AT_ONCE = 500
BATCH = 100
MOST_LOOKED_AT = 5000
"""Jobs that one page's filter may pass over; the page then ends short, with a cursor."""

Shown = list[Job]
Page = tuple[Shown, str | None]
Events = list[Event]
Workers = list[WorkerInfo]
Histograms = list[Seconds]


class Jobs:
    """Every verb that a caller has over his jobs. An owner never learns of another's."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self.settings = settings
        self._redis = connect(settings.redis_url, most=settings.max_redis_connections)
        self.store = store if store is not None else open_store(settings, self._redis)
        self._records = Records(self._redis)
        self._room, self.quotas = Room(self._redis), Quotas(self._redis, settings)
        self._probe = connect(settings.redis_url, limit_s=PROBE_S)
        self._limits = Limits.of(settings)
        raw = connect(settings.redis_url, text=False, most=settings.max_redis_connections)
        self._lines = {name: Line(name, raw) for name in QUEUES}

    @guarded
    def place(
        self, card: Solver[Problem, OptionsOf], problem: Problem, options: OptionsOf, asked: AskedDevice
    ) -> Device:
        """The queue for a checked problem. Raises NoSuchDevice, DoesNotFit."""
        return self.assess(card, problem, options, asked).queue

    @guarded
    def assess(
        self, card: Solver[Problem, OptionsOf], problem: Problem, options: OptionsOf, asked: AskedDevice
    ) -> Placed:
        """The queue for a checked problem, and what its submission says of it. Raises NoSuchDevice, DoesNotFit."""
        return placed(card, problem, options, asked, self.workers())

    @guarded
    def submit(self, submission: Submission) -> tuple[Job, bool]:
        """Record a job and queue it; False when its Idempotency-Key had made one already, which is returned.

        Raises:
            InvalidProblem, InvalidUpload: the inputs are not a problem (only looked at when `queue` is not set).
            IdempotencyConflict, QueueFull, OverQuota, QuotaFull, UnknownBlob, NoSuchDevice, DoesNotFit, Unavailable.
        """
        room, quota = self._room.check(), self.quotas.of(submission.owner)
        if submission.queue is None:
            card = SOLVERS[submission.solver]
            options = card.options(**submission.options)
            inputs = {name: self.store.resolve(given, submission.owner) for name, given in submission.inputs.items()}
            place = self.assess(card, card.build(inputs, options), options, submission.device)
            submission = replace(submission, queue=place.queue, form=place.form, seconds=place.seconds)
        one = fresh(submission, self.settings, Granted(quota, room), self._redis.now())
        told = self._records.submit(one.job_id, one.record, one.held, one.data, self._limits, one.most)
        job = one.job(*told, self.settings.max_queued)
        return (self.get(told[1], submission.owner), told[1] == one.job_id) if job is None else (job, True)

    @guarded
    def get(self, job_id: str, owner: str) -> Job:
        """One job. Raises UnknownJob, Expired."""
        return self._show(job_id, self._owned(job_id, owner))

    def _owned(self, job_id: str, owner: str) -> dict[str, str]:
        """The record of a job of the owner's. Raises UnknownJob, Expired."""
        record = self._records.read(job_id)
        if not record and self._redis.get(f"allot:tomb:{job_id}") == owner:
            raise Expired(f"job {job_id[:40]} ended and its result has been dropped")
        if not record or record.get("owner") != owner or "discard" in record:
            raise UnknownJob(f"there is no job {job_id[:40]}")
        return record

    @guarded
    def list(
        self,
        owner: str,
        cursor: str | None = None,
        limit: int = 20,
        state: State | None = None,
        solver: str | None = None,
    ) -> Page:
        """A page of the owner's jobs, newest first, and the cursor of the next page. Raises ValueError on a cursor."""
        page: Shown = []
        last, looked_at = None, 0
        for created, job_id, record in self._newest(owner, cursor):
            if len(page) == limit or looked_at == MOST_LOOKED_AT:
                return page, last
            last, looked_at = f"{created!r}:{job_id}", looked_at + 1
            wanted = (not state or record.get("state") == state) and (not solver or record.get("solver") == solver)
            if record and wanted:
                with suppress(Damaged):  # one that cannot be read keeps no other from being seen
                    page.append(self._show(job_id, record))
        return page, None

    @guarded
    def wait(self, job_id: str, owner: str, timeout_s: float, version: int | None = None) -> Job:
        """The job once it has another version than `version` (None: once it has ended), or after `timeout_s`."""
        give_up = time.monotonic() + timeout_s
        with self._told_of(job_id) as told:  # before the look: whatever happens after it is heard of
            job = self.get(job_id, owner)
            while not job.state.ended and version in (None, job.version) and (left := give_up - time.monotonic()) > 0:
                told(left)
                job = self.get(job_id, owner)
        return job

    @guarded
    def cancel(self, job_id: str, owner: str) -> Job:
        """Ask a running job to stop and keep its best, or drop a queued one. An ended job stays as it is."""
        self.get(job_id, owner)
        self._records.cancel(job_id)
        return self.get(job_id, owner)

    @guarded
    def delete(self, job_id: str, owner: str) -> None:
        """Stop the job and forget it and its result. Raises UnknownJob, Expired."""
        self.get(job_id, owner)
        self._records.discard(job_id)

    @guarded
    def result(self, job_id: str, owner: str) -> dict[str, Any]:
        """The result document; its arrays are references under "arrays".

        Raises:
            UnknownJob, Expired, NotEnded.
            JobFailed: the job failed or was cancelled; its `error` is the job's.
        """
        job = self.get(job_id, owner)
        if not job.state.ended:
            raise NotEnded(f"job {job_id} is {job.state.value}; its result comes when it has ended")
        document = self._redis.get(f"allot:result:{job_id}")
        if document is None:
            raise JobFailed.of(job)
        return dict(json.loads(document))

    @guarded
    def fetched(self, job_id: str) -> None:
        """Its answer has been sent to its owner: where `fetched_ttl_s` is set, it is kept for that long at most."""
        if self.settings.fetched_ttl_s > 0:
            self._records.shorten(job_id, self.settings.fetched_ttl_s)

    @guarded
    def events(self, job_id: str, owner: str, after: str | None = None, timeout_s: float = 0.0) -> Events:
        """What happened since the event `after` (None: ever), waiting up to `timeout_s` for the first.

        A short job has no stream of events: its record tells the same of it.

        Raises:
            UnknownJob, Expired.
            ValueError: `after` is no event id.
        """
        since = after or "0-0"
        follows("0-0", since)
        found = self._events(job_id, owner, since)
        if found or timeout_s <= 0:
            return found
        give_up = time.monotonic() + timeout_s
        with self._told_of(job_id) as told:
            while not (found := self._events(job_id, owner, since)) and (left := give_up - time.monotonic()) > 0:
                told(left)
        return found

    def _events(self, job_id: str, owner: str, since: str) -> Events:
        streams = self._redis.xread({f"allot:events:{job_id}": since}, count=EVENTS_AT_ONCE)
        entries = [entry for _, found in _pairs(streams) for entry in found]
        record = self._owned(job_id, owner)
        if entries:
            return [Event(event_id, fields["kind"], json.loads(fields["data"])) for event_id, fields in entries]
        told = [event for event in of_record(record) if follows(event.id, since)]
        return [] if told and self._redis.exists(f"allot:events:{job_id}") else told

    @contextmanager
    def _told_of(self, job_id: str) -> Iterator[Callable[[float], None]]:
        """Listens for changes of one job; what is yielded waits for the next, for so many seconds at most."""
        with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
            channel.subscribe("allot:told")
            channel.get_message(ignore_subscribe_messages=False, timeout=LONGEST_WAIT_S)  # it listens from here on

            def told(left: float) -> None:
                give_up = time.monotonic() + min(left, LONGEST_WAIT_S)
                while (left := give_up - time.monotonic()) > 0:
                    message = channel.get_message(timeout=left)
                    if message is not None and job_id in message["data"]:
                        return

            yield told

    @guarded
    def workers(self, starting: bool = False) -> Workers:
        """The workers that are alive now; with `starting` also those that are not ready yet."""
        return workers_of(self._redis.hgetall("allot:workers"), self._redis.now(), starting)

    @guarded
    def ping(self) -> None:
        """Raise Unavailable when Redis does not answer or cannot write, StoreFull when it has no room. Soon."""
        self._probe.set("allot:probe", 1, px=10_000)
        self._room.check()

    @guarded
    def counts(self) -> dict[str, dict[str, float]]:
        """Numbers for /metrics: totals since ever by solver and outcome, and what is waiting and running now."""
        totals: dict[str, dict[str, float]] = {}
        for name, value in self._redis.hgetall("allot:counts").items():
            what, _, solver = name.partition(":")
            totals.setdefault(what, {})[solver] = float(value)
        for queue, line in self._lines.items():
            totals.setdefault("waiting", {})[queue] = float(self._records.waiting(queue))
            totals.setdefault("running", {})[queue] = float(line.running())
        return totals

    @guarded
    def seconds(self) -> Histograms:
        """How long jobs took, by phase, solver and device."""
        names = list(itertools.product(SOLVERS, get_args(Device)))
        keys = (f"{KEY}:{solver}:{device}" for solver, device in names)
        numbers = Scripts(self._redis).run("seconds", NUMBERS, *keys)
        return histograms(self._redis.hgetall(KEY), dict(zip(names, numbers, strict=True)))

    def _show(self, job_id: str, record: dict[str, str]) -> Job:
        try:
            queued = record.get("state") == State.QUEUED and "queue" in record
            return to_job(job_id, record, self._records.position(record["queue"], job_id) if queued else None)
        except Damaged:
            self._records.set_aside(job_id)
            raise

    def _newest(self, owner: str, cursor: str | None) -> Iterator[tuple[float, str, dict[str, str]]]:
        """Time of creation, id and record of the owner's jobs, newest first, behind the cursor."""
        behind = (float("inf"), "")
        if cursor:
            created, _, job_id = cursor.partition(":")
            behind = (float(created), job_id)
        for offset in itertools.count(step=BATCH):
            rows = self._redis.zrevrangebyscore(
                f"allot:jobs:{owner}", behind[0], "-inf", start=offset, num=BATCH, withscores=True
            )
            with self._redis.pipeline(transaction=False) as pipeline:
                for job_id, _ in rows:
                    pipeline.hgetall(f"allot:job:{job_id}")
                records = pipeline.execute(raise_on_error=False)
            for (job_id, created_at), record in zip(rows, records, strict=True):
                if (created_at, job_id) < behind:
                    yield created_at, job_id, record if isinstance(record, dict) else self._records.read(job_id)
            if len(rows) < BATCH:
                return


def _pairs(streams: Any) -> Any:
    """XREAD answers a list of pairs in RESP2 and a mapping in RESP3."""
    return streams.items() if isinstance(streams, dict) else streams
