"""The record of each job in Redis: who may change it, and to what. Knows nothing of RQ."""

import json
import time
from collections.abc import Mapping
from typing import Any

from workers.jobs.job import Job, State, iso
from workers.jobs.scripts import Scripts
from workers.runtime.patience import Awaited

EXPIRE_BATCH = 100


class Records:
    """Runs the scripts. `redis` is a client that decodes text."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self._run = Scripts(redis).run

    def create(
        self, job_id: str, record: Mapping[str, Any], digests: list[str], most_queued: int, idempotency_ttl_s: float
    ) -> tuple[str, str]:
        """Record a new job and hold its inputs, unless its Idempotency-Key was seen or there is no room.

        Returns:
            ("created" | "seen" | "conflict", job id), ("full", ""), or ("blob", the digest that is not there).
        """
        key = record.get("idempotency_key") or ""
        answer = self._run(
            "create",
            job_id,
            record["created_at"],
            json.dumps([str(part) for pair in record.items() for part in pair]),
            json.dumps(digests),
            record["queue"],
            most_queued,
            f"allot:idem:{len(record['owner'])}:{record['owner']}:{key}" if key else "",
            record.get("fingerprint", ""),
            max(1, int(idempotency_ttl_s)),
        )
        return answer[0], answer[1]

    def begin(self, job_id: str, execution: str, device: str) -> str:
        """Take the job for `execution`: "begun", or why not: "unknown", "ended", "fenced"."""
        return str(self._run("begin", job_id, execution, time.time(), device))

    def report(self, job_id: str, execution: str, kind: str, data: Mapping[str, Any]) -> bool:
        """Publish progress; False when another execution has the job by now."""
        return bool(self._run("progress", job_id, execution, kind, json.dumps(data)))

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

    def finish(
        self,
        job_id: str,
        execution: str,
        state: State,
        fields: Mapping[str, Any],
        result: Mapping[str, Any] | None = None,
        digests: list[str] | None = None,
    ) -> bool:
        """End the job; False, and nothing is changed, when another execution has it by now."""
        flat = [str(part) for pair in fields.items() for part in pair]
        document = "" if result is None else json.dumps(result, allow_nan=False)
        answer = self._run(
            "finish", job_id, execution, time.time(), state.value, json.dumps(flat), document, json.dumps(digests or [])
        )
        return bool(answer)

    def lose(self, job_id: str, execution: str, again: bool, error: Mapping[str, Any]) -> str:
        """Its worker is gone: back to queued, or failed with `error`. `execution` "" means whichever has it."""
        return str(
            self._run("lose", job_id, execution, time.time(), "again" if again else "fail", json.dumps(dict(error)))
        )

    def cancel(self, job_id: str) -> None:
        """Queued: cancelled. Running: flagged."""
        self._run("cancel", job_id, time.time())

    def discard(self, job_id: str) -> None:
        """Forget the job; a running one is flagged and forgotten once it stops."""
        self._run("discard", job_id, time.time())

    def expire(self, tombstone_ttl_s: float) -> int:
        """Replace jobs whose time has come by tombstones; returns how many."""
        return int(self._run("expire", time.time(), max(1, int(tombstone_ttl_s)), EXPIRE_BATCH))

    def condemn(self, *digests: str) -> list[str]:
        """Forget blobs that nobody holds; answers those whose bytes may be deleted (say `buried` afterwards)."""
        return list(self._run("condemn", time.time(), *digests))

    def buried(self, *digests: str) -> None:
        """The bytes of condemned blobs are gone: they may be uploaded anew."""
        self._redis.delete(*(f"allot:condemned:{digest}" for digest in digests))

    def keep(self, digest: str, owner: str, until: float) -> None:
        """`owner` keeps the blob until then. Waits while its old bytes are being deleted."""
        while not self._run("keep", digest, owner, until):
            time.sleep(0.01)

    def read(self, job_id: str) -> dict[str, str]:
        """The raw record, empty when there is none."""
        return dict(self._redis.hgetall(f"allot:job:{job_id}"))

    def stop_requested(self, job_id: str, execution: str) -> bool:
        """True once the job is cancelled or belongs to another execution."""
        cancelled, owner = self._redis.hmget(f"allot:job:{job_id}", "cancel", "execution")
        return cancelled is not None or owner != execution


def to_job(job_id: str, record: Mapping[str, str], position: int | None) -> Job:
    """The job that its owner sees."""
    return Job(
        id=job_id,
        owner=record["owner"],
        solver=record["solver"],
        state=State(record["state"]),
        attempt=int(record["attempt"]),
        device=record["device"],
        ran_on=record.get("ran_on") or None,
        queue_position=position,
        progress=json.loads(record["progress"]) if record.get("progress") else None,
        timings_ms=json.loads(record.get("timings_ms") or "{}"),
        termination=record.get("termination") or None,
        error=json.loads(record["error"]) if record.get("error") else None,
        created_at=iso(record["created_at"]) or "",
        started_at=iso(record.get("started_at")),
        ended_at=iso(record.get("ended_at")),
        expires_at=iso(record.get("expires_at")),
        inputs=json.loads(record["inputs"]),
        options=json.loads(record["options"]),
        time_limit_s=float(record["time_limit_s"]),
        version=int(record["version"]),
    )
