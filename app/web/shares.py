"""Links to one finished job: made, listed and revoked by its owner, and read without a key by whoever has one.

The secret of a link stands behind the # of its address, which browsers send to nobody. The page sends it as a header.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from fastapi import Body, Depends, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from app.answers.answer import document_of, json_response
from app.http.auth import owner as owner_of
from app.http.jobs import JobId
from app.http.refusal import Refusal
from workers.jobs.job import Job, JobError
from workers.jobs.shares import Share, TooMany
from workers.store.reference import names

Owner = Annotated[str, Depends(owner_of)]
DAY_S = 86_400.0
MOST_INPUT = 250_000
"""Numbers of one input that a link shows."""
SHOWN = ("id", "solver", "state", "termination", "verified", "options", "time_limit_s", "timings_ms",
         "created_at", "started_at", "ended_at", "expires_at")  # fmt: skip
"""What a stranger sees of a job's record: nothing that leads to its owner's other work."""


class Asked(BaseModel):
    """How long a link is good, and whether it shows what was given beside what came out."""

    model_config = ConfigDict(extra="forbid")
    expires_in_s: float = Field(7 * DAY_S, ge=60, allow_inf_nan=False, description="at most as the operator allows")
    inputs: bool = Field(False, description="show the inputs too, as far as they are small")


async def share(request: Request, owner: Owner, job_id: JobId, asked: Annotated[Asked, Body()]) -> Response:
    """Make a link that shows this job's answer, without a key, to whoever has it. Its secret is told only now."""
    most_s = request.app.state.http.share_days * DAY_S
    if most_s <= 0:
        raise Refusal(403, "The operator of this service allows no links.")
    shares = request.app.state.shares
    try:
        lifetime_s = min(asked.expires_in_s, most_s)
        secret, made = await run_in_threadpool(shares.create, job_id, owner, lifetime_s, asked.inputs)
    except TooMany as many:
        raise Refusal(409, f"{str(many)[:1].upper()}{str(many)[1:]}.") from None
    return json_response({**_told(made), "secret": secret, "page": f"/shared#{secret}"}, 201)


async def share_list(request: Request, owner: Owner, job_id: JobId) -> Response:
    """List the links of a job, without their secrets."""
    found = await run_in_threadpool(request.app.state.shares.list, job_id, owner)
    return json_response({"shares": [_told(one) for one in found]})


async def unshare(request: Request, owner: Owner, job_id: JobId, share_id: str) -> Response:
    """Revoke a link."""
    await run_in_threadpool(request.app.state.shares.revoke, job_id, owner, share_id)
    return Response(status_code=204)


async def shared(
    request: Request, allot_share: Annotated[str, Header(max_length=100, description="the secret of a link")]
) -> Response:
    """Show the one job that a link is for: its answer, its names, and its inputs where its owner said so."""
    if request.app.state.http.share_days <= 0:
        raise Refusal(403, "The operator of this service allows no links.")
    told = await run_in_threadpool(_shown, request.app.state, allot_share)
    return json_response(told, headers={"Cache-Control": "no-store"})


def _shown(state: Any, secret: str) -> dict[str, Any]:
    made, job = state.shares.open(secret)
    document = document_of(state.jobs, state.store, job, state.http.inline_elements)
    for name in ("links", "input_digests", "versions", "device_name"):
        document.pop(name, None)
    job_shown = {name: getattr(job, name) for name in SHOWN}
    told = {"job": job_shown, "result": document, "note": _note(state, job), "expires_at": _iso(made.expires_at)}
    return {**told, "inputs": _inputs(state, job) if made.inputs else None}


def _note(state: Any, job: Job) -> Any:
    try:
        return from_json(state.notes.get(job.id, job.owner))
    except JobError:
        return None


def _inputs(state: Any, job: Job) -> dict[str, Any]:
    """Each input that is dense and small, as lists."""
    found: dict[str, Any] = {}
    for name, reference in job.inputs.items():
        if not names({name: reference}, job.owner) and "data" not in reference:
            continue
        value = state.store.resolve(reference, job.owner)
        if isinstance(value, np.ndarray) and value.size <= MOST_INPUT:
            found[name] = value.tolist()
    return found


def _told(share: Share) -> dict[str, Any]:
    times = {"created_at": _iso(share.created_at), "expires_at": _iso(share.expires_at)}
    return {"id": share.id, "job_id": share.job_id, "inputs": share.inputs, **times}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
