"""/v1/jobs/{id}/note: what a person calls the rows and columns of a job, kept with it on the server."""

from typing import Annotated

from fastapi import Depends, Request, Response
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from app.http.auth import owner as owner_of
from app.http.jobs import JobId
from app.http.media import JSON
from app.http.refusal import Invalid, Refusal, fault

Owner = Annotated[str, Depends(owner_of)]
MOST_BYTES = 1 << 20


async def put_note(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Keep names beside a job: a JSON object of at most 1 MiB, which goes when the job goes."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise Refusal(413, f"A note is at most {MOST_BYTES} bytes.")
    document = bytes(body)
    await run_in_threadpool(_check, document)
    await run_in_threadpool(request.app.state.notes.put, job_id, owner, document)
    return Response(status_code=204)


async def get_note(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Give the names that were kept beside a job."""
    document = await run_in_threadpool(request.app.state.notes.get, job_id, owner)
    headers = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
    return Response(document, media_type=JSON, headers=headers)


def _check(document: bytes) -> None:
    try:
        found = from_json(document)
    except ValueError:
        raise Refusal(400, "The note is no JSON.") from None
    if not isinstance(found, dict):
        raise Invalid(fault("note", "is no JSON object"))
