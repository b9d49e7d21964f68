"""Last station: the inputs are kept, and the job stands in the line of its device."""

import hashlib
import json
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from app.intake.built import Built
from workers.jobs.job import Expired, Job, Submission, UnknownJob


@dataclass(frozen=True)
class Placed:
    """The job; `made` is False when this Idempotency-Key has made it before."""

    job: Job
    made: bool


async def place(built: Built) -> Placed:
    """Keep the inputs and enqueue the job.

    Raises:
        Expired: the Idempotency-Key made a job that is gone.
        what Jobs.submit raises.
    """
    return await run_in_threadpool(_place, built)


def _place(built: Built) -> Placed:
    jobs, request = built.visit.desk.jobs, built.request
    with built.visit.timed("keep"):
        inputs = {name: source.keep() for name, source in built.sources.items()}
    options = built.options.model_dump(mode="json", exclude_unset=True)
    around = request.model_dump(mode="json", exclude={"inputs", "options"})
    fingerprint = hashlib.sha256(json.dumps([around, options, inputs], sort_keys=True).encode()).hexdigest()
    submission = Submission(
        owner=built.visit.owner,
        solver=built.card.name,
        inputs=inputs,
        options=options,
        device=request.device,
        time_limit_s=request.time_limit_s,
        idempotency_key=built.visit.key,
        fingerprint=fingerprint,
        result_ttl_s=request.result_ttl_s,
        queue=built.device,
        spent_ms={station: round(spent, 3) for station, spent in built.visit.spent_ms.items()},
    )
    try:
        return Placed(*jobs.submit(submission))
    except UnknownJob:  # only the job of an earlier request can be unknown
        gone = "the job that this Idempotency-Key made has been deleted; another job takes another key"
        raise Expired(gone) from None
