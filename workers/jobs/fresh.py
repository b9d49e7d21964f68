"""A job that is about to be: its id, its record, what it holds, and what is made of SUBMIT's answer."""

import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from workers.jobs.form import LEAST_LIMIT_S
from workers.jobs.job import (
    IdempotencyConflict,
    InputRef,
    Job,
    QueueFull,
    State,
    Submission,
    UnknownBlob,
    WorkerInfo,
    iso,
)
from workers.jobs.quotas import Quota, refused
from workers.runtime import logs
from workers.runtime.config import Settings
from workers.store.inline import apart
from workers.store.reference import names

DEFAULT_SECONDS = 1.0
"""What a job is charged of which nobody has an estimate."""
WARMING = "warming"
"""How the state of a worker begins that cannot solve yet; behind it, how far it is."""
SILENT_S = 10.0
"""A worker that has not been heard of for so long counts as gone."""
ID_BYTES, AHEAD = 16, 256
"""Of a job's id; ids that are drawn at once, since to ask the system takes longer than all else of one."""
_ids: deque[str] = deque()
os.register_at_fork(after_in_child=_ids.clear)  # or two processes would have the same


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Granted:
    """What an owner may have, and how many bytes of Redis all jobs may take together; 0 is any number."""

    quota: Quota
    room: float

    def most(self, queue: str) -> tuple[float, ...]:
        """Jobs that wait, seconds a day, bytes, bytes in Redis (0 is any amount); the share of a queue."""
        here = self.room * self.quota.share if self.quota.share < 1 else 0
        return self.quota.queued, self.quota.seconds_a_day(queue), self.quota.bytes, here, self.quota.share


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Fresh:
    """What SUBMIT needs: `held` are the names of the blobs that the job holds, and of those that were kept for it, each
    as often as it was; `data` are the arrays that it brings."""

    job_id: str
    submission: Submission
    references: dict[str, InputRef]
    record: dict[str, Any]
    held: tuple[list[str], Sequence[str]]
    data: str
    granted: Granted

    @property
    def most(self) -> tuple[float, ...]:
        """See `Granted.most`."""
        return self.granted.most(self.record["queue"])

    def job(self, outcome: str, told: str, position: int | None, most_queued: int) -> Job | None:
        """The job as SUBMIT has left it; None where another, `told`, was made by this Idempotency-Key before.

        Raises:
            IdempotencyConflict, QueueFull, OverQuota, QuotaFull, UnknownBlob: it was not made.
        """
        if outcome == "seen":
            return None
        if outcome == "conflict":
            raise IdempotencyConflict("this Idempotency-Key came before with another body")
        if outcome == "full":
            raise QueueFull(f"{most_queued} jobs are waiting for a {self.record['queue']} already")
        if outcome == "quota":
            raise refused(told, self.granted.quota, self.record["queue"], self.record["created_at"], most_queued)
        if outcome == "blob":
            raise UnknownBlob(f"there is no blob {told}")
        return self._as_it_is_now(position or None)

    def _as_it_is_now(self, position: int | None) -> Job:
        """What `to_job` would read back: nothing that was just written need be read for it."""
        record = self.record
        return Job(
            id=self.job_id,
            owner=record["owner"],
            solver=record["solver"],
            state=State.QUEUED,
            attempt=0,
            device=record["device"],
            ran_on=None,
            queue_position=position,
            progress=None,
            timings_ms=self.submission.spent_ms,
            termination=None,
            verified=None,
            error=None,
            created_at=iso(record["created_at"]) or "",
            started_at=None,
            ended_at=None,
            expires_at=None,
            inputs=self.references,
            options=self.submission.options,
            time_limit_s=float(record["time_limit_s"]),
            version=1,
        )


def fresh(submission: Submission, settings: Settings, granted: Granted, now: float) -> Fresh:
    """The job of a submission that says its queue, within what its owner is granted."""
    references, data = apart(submission.inputs)
    record = _record(submission, references, settings, granted.quota, now)
    held = names(references, submission.owner), submission.brought
    return Fresh(_new_id(), submission, references, record, held, data, granted)


def _new_id() -> str:
    """An id that nobody has or can guess."""
    try:
        return _ids.pop()
    except IndexError:
        drawn = os.urandom(ID_BYTES * AHEAD).hex()
        _ids.extend(drawn[at : at + 2 * ID_BYTES] for at in range(2 * ID_BYTES, len(drawn), 2 * ID_BYTES))
        return drawn[: 2 * ID_BYTES]


def _record(
    submission: Submission, references: dict[str, InputRef], settings: Settings, quota: Quota, now: float
) -> dict[str, Any]:
    limit, ttl = submission.time_limit_s, submission.result_ttl_s
    limit = settings.default_time_limit_s if limit is None else limit
    limit = quota.time_limit(min(limit, settings.max_time_limit_s))
    seconds = DEFAULT_SECONDS if submission.seconds is None else submission.seconds
    record = {
        "owner": submission.owner,
        "solver": submission.solver,
        "state": State.QUEUED.value,
        "device": submission.device,
        "queue": submission.queue,
        "attempt": 0,
        "inputs": to_json(references).decode(),
        "options": to_json(submission.options).decode() if submission.options else "{}",
        "time_limit_s": limit,
        "result_ttl_s": min(ttl, settings.result_ttl_s) if ttl else settings.result_ttl_s,
        "created_at": now,
        "form": submission.form if limit >= LEAST_LIMIT_S and submission.form else "-",
        "priority": quota.priority(submission.priority),
        "seconds": min(seconds, limit),
        "retries": max(1, settings.attempts - 1),  # RQ runs only those again that have one left
        **logs.carried(),
        "timings_ms": to_json(submission.spent_ms).decode(),
    }
    if submission.idempotency_key:
        record |= {"idempotency_key": submission.idempotency_key, "fingerprint": submission.fingerprint}
    if submission.derived:
        record["derived"] = to_json(submission.derived).decode()
    if submission.reply:
        record["reply"] = submission.reply
    return record


def workers_of(told: Mapping[str, str], now: float, starting: bool = False) -> list[WorkerInfo]:
    """The workers that are alive, of what each has written of itself; those that still warm up if `starting`."""
    found = []
    for name, text in told.items():
        with suppress(KeyError, ValueError, TypeError, AttributeError):  # junk is no worker; the janitor forgets it
            said = json.loads(text)
            age = now - said.pop("heartbeat")
            if age < SILENT_S and (starting or not said["state"].startswith(WARMING)):
                found.append(WorkerInfo.of(name, age, said))
    return sorted(found, key=lambda worker: worker.name)
