"""The record of each job in Redis: who may change it, and to what."""

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis
from pydantic_core import to_json

from workers.jobs.job import State
from workers.jobs.scripts import Scripts
from workers.rq import stamp
from workers.runtime.kept import nothing
from workers.runtime.patience import Awaited

EXPIRE_BATCH = 100
IDLE_S = 2.5
"""For so long a worker that waits is given jobs; it says so again every second."""
OVER = {-1: "bytes", -2: "store"}
"""What the script `keep` answers an owner who has too much."""
Report = tuple[int, str, Mapping[str, Any]]
"""Milliseconds since 1970, "progress" or "incumbent", and what is said."""


@dataclass(frozen=True)
class Limits:
    """What the scripts must know of the settings.

    Attributes:
        most_queued: jobs that may wait in one queue.
        idempotency_s: for which an Idempotency-Key is remembered.
        keep_failed_s: for which RQ lists a failed job.
        lost_after_s: silence after which an execution counts as lost.
        most_workers: that the jobs of one owner hold at once, where nothing else is set for them; 0 is any number.
    """

    most_queued: int
    idempotency_s: int
    keep_failed_s: int
    lost_after_s: int
    most_workers: int = 0

    @classmethod
    def of(cls, settings: Any) -> "Limits":
        """From the settings of a service."""
        kept = max(1, int(settings.result_ttl_s))
        return cls(settings.max_queued, kept, kept + 1, max(2, int(settings.lost_after_s)), settings.quota_workers)


@dataclass(frozen=True)
class Order:
    """A job that a worker has taken, and all that its child needs: `data` are those of its small inputs."""

    job_id: str
    execution: str
    runs_left: int
    record: Mapping[str, str]
    data: str = ""

    @property
    def is_straight(self) -> bool:
        """Whether the submission itself started it, on a worker that waited (shared.lua)."""
        return self.execution == f"straight-{self.job_id}"


@dataclass(frozen=True)
class Ending:
    """How one execution of a job ended: `result` is its document as JSON, `names` are the blobs of its arrays."""

    job_id: str
    execution: str
    state: State
    fields: Mapping[str, str]
    result: str = ""
    names: Sequence[str] = field(default_factory=tuple)


class Records:
    """Runs the scripts. `client` is one of Redis that decodes text."""

    def __init__(self, client: Any) -> None:
        self._redis = client
        self._run = Scripts(client).run

    def now(self) -> float:
        """Redis's time, in seconds since 1970: the only one that stands in Redis."""
        return float(self._redis.now())

    def submit(
        self,
        job_id: str,
        record: Mapping[str, Any],
        names: tuple[list[str], Sequence[str]],
        data: str,
        limits: Limits,
        most: Sequence[float] = (0, 0, 0, 0, 1),
    ) -> tuple[str, str, int]:
        """Record a new job, hold its blobs and put it in line, unless its key was seen or there is no room.

        Args:
            job_id: a new one.
            record: the fields of its record.
            names: of the blobs that it holds; of those that were kept for it, each as often as it was.
            data: of its small inputs, "" when it brings none along.
            limits: see there.
            most: of the owner: jobs that wait, seconds a day, bytes, bytes in Redis (0 is any amount); share of
                the queue.

        Returns:
            ("created", job id, its position), ("seen" | "conflict", job id, 0), ("full", "", 0), ("quota", which limit
            of the owner, 0), or ("blob", the digest that is not there, 0).
        """
        answer = self._run("submit", *submitting(job_id, record, names, data, limits, most))
        return answer[0], answer[1], answer[2] if len(answer) > 2 else 0

    def count(self, what: str, solver: str) -> None:
        """Add one to a total that /metrics shows."""
        self._redis.hincrby("allot:counts", f"{what}:{solver}", 1)

    def take(
        self, queue: str, worker: str, device: str, token: str, limits: Limits, *, most: int = 1, idle_s: float = 0.0
    ) -> list[Order]:
        """Take the job whose turn it is and up to `most` - 1 that go with it; each is running when this returns.

        Args:
            queue, worker, device: who takes: for RQ's books and for the record.
            token: makes the executions' ids unique. Who asks again with the same one, as an answer was lost, is given
                the jobs that were taken then.
            limits: see there.
            most: jobs in all; with 0 only one that this worker was handed and has not heard of.
            idle_s: for which the worker will wait for a job when there is none.
        """
        now = self.now()
        told = (queue, worker, most, now, stamp(), limits.lost_after_s, token, device, limits.keep_failed_s)
        return [order_of(one) for one in self._run("take", *told, now + idle_s, limits.most_workers)]

    def report(self, job_id: str, execution: str, reports: Sequence[Report]) -> bool:
        """Publish progress; False when another execution has the job by now."""
        ahead_ms = int(1000 * (time.time() - self.now()))  # of this host's clock, by which they are dated
        told = ((at - ahead_ms, kind, json.dumps(data)) for at, kind, data in reports)
        return bool(self._run("progress", job_id, execution, *itertools.chain(*told)))

    def expect(self, job_id: str, execution: str, needs: Mapping[str, float]) -> bool:
        """Note what the job needs at least, for `awaited`; False when another execution has it by now."""
        return bool(self._run("expect", job_id, execution, json.dumps(dict(needs))))

    def awaited(self, job_id: str) -> Awaited:
        """What tells a worker whether its child is late."""
        names = ("time_limit_s", "needs", "cancel", "discard", "progress")
        limit, needs, cancel, discard, progress = self._redis.hmget(f"allot:job:{job_id}", *names)
        told = json.loads(progress or "{}")
        return Awaited(
            time_limit_s=float(limit or 0),
            cancelled_at=None if cancel is None else float(cancel),
            discarded=discard is not None,
            phase=told.get("phase", "solve"),
            fraction=told.get("fraction"),
            **json.loads(needs or "{}"),
        )

    def finish(self, endings: Sequence[Ending], queue: str, worker: str = "") -> list[bool]:
        """As `finish_all`, of a worker that says by itself when it waits."""
        return self.finish_all(endings, queue, worker, last=False)[0]

    def finish_all(self, endings: Sequence[Ending], queue: str, worker: str, last: bool) -> tuple[list[bool], bool]:
        """End jobs, in our records and in RQ's books.

        Args:
            endings: nothing changes of a job whose execution is not the one that has it.
            queue, worker: who took them.
            last: the worker has no others. If no job waits either, it is listed as waiting, for IDLE_S.

        Returns:
            of each job, False where another execution has it by now; whether the worker waits.
        """
        told = (
            (one.job_id, one.execution, one.state.value, _flat(one.fields), one.result, json.dumps(list(one.names)))
            for one in endings
        )
        now = self.now()
        idle_until = now + IDLE_S if last else ""
        *answers, waits = self._run("finish", now, worker, queue, idle_until, *itertools.chain(*told))
        return [bool(answer) for answer in answers], bool(waits)

    def lose(self, job_id: str, execution: str, fate: str, error: Mapping[str, Any]) -> str:
        """Its worker or its child is gone.

        Args:
            job_id: of the job.
            execution: which had it; "" for whichever has it and is not alive.
            fate: "again": it runs again. "return": it runs again, as nobody had begun with it. "fail": it fails with
                `error`, unless it ran among others, any of which may be to blame. "stop": it fails with `error`.
            error: why.

        Returns:
            "queued"; "spared" for one that ran among others, which is queued to run alone and keeps its attempts;
            "failed", "cancelled"; or why nothing changed: "ended", "fenced".
        """
        return str(self._run("lose", job_id, execution, self.now(), fate, json.dumps(dict(error))))

    def rejoin(self, job_id: str, limits: Limits) -> bool:
        """Put a queued job that is in no line back into its own."""
        return bool(self._run("rejoin", job_id, self.now(), stamp(), limits.keep_failed_s, limits.most_workers))

    def position(self, queue: str, job_id: str) -> int | None:
        """1 for the job that is taken next, None for one that does not wait."""
        found = self._run("position", queue, job_id)
        return None if found is None else int(found)

    def waiting(self, queue: str) -> int:
        """How many jobs wait for this kind of worker."""
        return int(self._run("waiting", queue))

    def in_line(self, queue: str) -> set[str]:
        """Ids of all jobs that wait and that RQ has not been given yet."""
        return set(self._run("lined", queue))

    def cancel(self, job_id: str) -> None:
        """Queued: cancelled. Running: flagged."""
        self._run("cancel", job_id, self.now())

    def discard(self, job_id: str) -> None:
        """Forget the job; a running one is flagged and forgotten once it stops."""
        self._run("discard", job_id, self.now())

    def expire(self, tombstone_ttl_s: float) -> int:
        """Replace jobs whose time has come by tombstones; returns how many."""
        return int(self._run("expire", self.now(), max(1, int(tombstone_ttl_s)), EXPIRE_BATCH))

    def shorten(self, job_id: str, keep_s: float) -> None:
        """Keep an ended job for so much longer at most."""
        self._run("shorten", job_id, self.now() + keep_s)

    def condemn(self, *digests: str) -> list[str]:
        """Forget blobs that nobody holds; answers those whose bytes may be deleted (say `buried` afterwards)."""
        return list(self._run("condemn", self.now(), *digests))

    def buried(self, *digests: str) -> None:
        """The bytes of condemned blobs are gone: they may be uploaded anew."""
        self._redis.delete(*(f"allot:condemned:{digest}" for digest in digests))

    def keep(
        self, sizes: Sequence[tuple[str, int]], owner: str, until: float, most: tuple[int, float, int] = (0, 1.0, 0),
        brought: bool = False, meanwhile: Callable[[], object] = nothing,
    ) -> str:  # fmt: skip
        """`owner` keeps blobs until then; those that jobs have `brought` are told once for each that will hold them.
        "bytes" or "store" if they would have more than `most`: so many bytes, this share of a store with so many free.
        What is to be done `meanwhile` may be left undone. Waits while old bytes of one are being deleted.
        """
        told = (owner, until, *most, "1" if brought else "", *itertools.chain(*sizes))
        while not (kept := int(self._run("keep", *told, meanwhile=meanwhile))):
            time.sleep(0.01)
        return OVER.get(kept, "")

    def read(self, job_id: str) -> dict[str, str]:
        """The raw record, empty when there is none. What stands in its place and is none is set aside."""
        try:
            return dict(self._redis.hgetall(f"allot:job:{job_id}"))
        except redis.ResponseError as wrong:
            if not str(wrong).startswith("WRONGTYPE"):
                raise
            self.set_aside(job_id)
            return {}

    def set_aside(self, job_id: str) -> None:
        """Have all forget a job whose record cannot be read; `told_aside` tells of it."""
        self._run("aside", job_id)

    def told_aside(self) -> list[str]:
        """What was set aside since this was asked last, once: "record ID", "blob NAME"."""
        return list(self._redis.lpop("allot:damaged", 100) or ())

    def drop_blob(self, name: str) -> None:
        """Forget a blob whose name no file can have."""
        with self._redis.pipeline() as pipe:
            pipe.zrem("allot:blobs", name).hdel("allot:sizes", name).hdel("allot:brought", name)
            pipe.delete(f"allot:blob:{name}", f"allot:refs:{name}", f"allot:condemned:{name}")
            pipe.hincrby("allot:counts", "damaged:blob", 1).rpush("allot:damaged", f"blob {name[:200]}").execute()

    def stop_requested(self, job_id: str, execution: str) -> bool:
        """True once the job is cancelled or belongs to another execution."""
        cancelled, owner = self._redis.hmget(f"allot:job:{job_id}", "cancel", "execution")
        return cancelled is not None or owner != execution


def submitting(
    job_id: str, record: Mapping[str, Any], names: tuple[list[str], Sequence[str]], data: str, limits: Limits,
    most: Sequence[float], until: float | str = "",
) -> tuple[str | int | float, ...]:  # fmt: skip
    """What the script `submit` is told; after `until` it makes nothing."""
    key = record.get("idempotency_key") or ""
    return (
        job_id,
        record["created_at"],
        _flat(record),
        json.dumps(names[0]) if names[0] else "[]",
        record["queue"],
        limits.most_queued,
        f"allot:idem:{len(record['owner'].encode())}:{record['owner']}:{key}" if key else "",
        record.get("fingerprint", ""),
        limits.idempotency_s,
        data,
        stamp(),
        limits.keep_failed_s,
        *most,
        limits.lost_after_s,
        until,
        json.dumps(names[1]) if names[1] else "[]",
        limits.most_workers,
    )


def order_of(told: Sequence[Any]) -> Order:
    """An order as the scripts tell it."""
    job_id, execution, left, flat, data = told
    return Order(job_id, execution, left, _pairs(flat), data)


def _flat(fields: Mapping[str, Any]) -> str:
    flat: list[str] = []
    for name, value in fields.items():
        flat += name, value if type(value) is str else str(value)
    return to_json(flat).decode()


def _pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
