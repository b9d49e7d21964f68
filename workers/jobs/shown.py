"""A job as its owner sees it, of the record in Redis."""

from collections.abc import Mapping

from pydantic_core import from_json

from workers.jobs.job import Damaged, Job, State, iso

VERIFIED = {"true": True, "false": False, "null": None}


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
