"""A job as its owner sees it, of the record in Redis, and of what a process is told of an end."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic_core import from_json

from workers.jobs.job import Damaged, Job, State, iso

VERIFIED = {"true": True, "false": False, "null": None}
LIVING = (State.QUEUED, State.RUNNING)
STATES = {state.value: state for state in State}
RESULT = b',"result":'
"""Between the record and the document of a published end. No text of the record holds it: their quotes are escaped."""


@dataclass
class Seen:
    """A job by its record, and its result's document, as JSON, when it has ended with one and it was asked for.

    The document and most of the record are only read when they are asked for: of short jobs a thousand are heard of in
    a second, and their answers go on almost as they came (app/answers/answer.py).
    """

    job_id: str
    record: Mapping[str, str]
    result: bytes | None = None

    @classmethod
    def of_reply(cls, message: bytes) -> "Seen":
        """What was published of an end; earlier releases published its document as a text. Raises Damaged."""
        try:
            head, _, rest = message.partition(RESULT)
            if rest.startswith(b"{"):
                told, result = from_json(head + b"}"), rest[:-1]
            else:
                told = from_json(message)
                result = str(told["result"] or "").encode()
            seen = cls(told["id"], told["job"], result or None)
            if seen.result is None or seen.state in LIVING or not seen.ended_at:
                _ = seen.job  # or it is damaged
            return seen
        except (KeyError, ValueError, TypeError, AttributeError) as wrong:
            raise Damaged("what was published of a job cannot be read") from wrong

    @property
    def owner(self) -> str:
        """Whose job it is."""
        return self.record["owner"]

    @property
    def state(self) -> State:
        """Where the job is in its life."""
        return STATES[self.record["state"]]

    @property
    def ended_at(self) -> float:
        """Seconds since 1970; 0 where it has not."""
        return float(self.record.get("ended_at") or 0)

    @cached_property
    def job(self) -> Job:
        """All of it, without its place in the queue. Raises Damaged."""
        return to_job(self.job_id, self.record, None)

    def document(self) -> dict[str, Any]:
        """The result's. Raises Damaged."""
        try:
            told: dict[str, Any] = {**from_json(self.result or b"")}
        except (ValueError, TypeError) as wrong:
            raise Damaged(f"the result of job {self.job_id[:40]} cannot be read") from wrong
        return told


def to_job(job_id: str, record: Mapping[str, str], position: int | None) -> Job:
    """The job that its owner sees. Raises Damaged."""
    try:
        return _job(job_id, record, position)
    except (KeyError, ValueError, TypeError, OverflowError) as wrong:
        raise Damaged(f"the record of job {job_id[:40]} cannot be read") from wrong


def _job(job_id: str, record: Mapping[str, str], position: int | None) -> Job:
    return Job(
        id=job_id,
        owner=record["owner"],
        solver=record["solver"],
        state=State(record["state"]),
        attempt=int(record["attempt"]),
        device=record["device"],
        ran_on=record.get("ran_on") or None,
        queue_position=position,
        progress=from_json(record["progress"]) if record.get("progress") else None,
        timings_ms=from_json(record.get("timings_ms") or "{}"),
        termination=record.get("termination") or None,
        verified=VERIFIED[record.get("verified") or "null"],
        error=from_json(record["error"]) if record.get("error") else None,
        created_at=iso(record["created_at"]) or "",
        started_at=iso(record.get("started_at")),
        ended_at=iso(record.get("ended_at")),
        expires_at=iso(record.get("expires_at")),
        inputs=from_json(record["inputs"]),
        options=from_json(record["options"]),
        time_limit_s=float(record["time_limit_s"]),
        version=int(record["version"]),
        noted="note" in record,
    )
