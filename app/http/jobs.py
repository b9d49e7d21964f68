"""Jobs over HTTP: submit, list, look, wait, follow, fetch the result, cancel, delete."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, BinaryIO

from fastapi import Depends, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from app.answers.answer import document_of, json_response, links_of
from app.http.auth import owner as owner_of
from app.http.errors import Invalid, Refusal, fault
from app.http.media import JSON, NPZ, SAFETENSORS, choose, matches_etag, prefer_wait_s
from app.intake.submit import submit
from kernels import SOLVERS
from workers.jobs.job import Job, State, UnknownJob
from workers.store.codec import encode
from workers.store.reference import shown as reference_of

ID = re.compile(r"[0-9a-f]{32}")
EVENT_ID = re.compile(r"\d{1,19}-\d{1,19}")
FORMATS = {NPZ: "npz", SAFETENSORS: "safetensors", "application/vnd.safetensors": "safetensors"}
Owner = Annotated[str, Depends(owner_of)]


def valid_id(job_id: str) -> str:
    """Dependency: the job id in the path, which is used in keys and must be one of ours."""
    if not ID.fullmatch(job_id):
        raise UnknownJob(f"there is no job {job_id[:40]!r}")
    return job_id


JobId = Annotated[str, Depends(valid_id)]
Wait = Annotated[float, Query(ge=0, allow_inf_nan=False, description="seconds to wait for a change")]


def view(job: Job) -> dict[str, Any]:
    """A job as the API shows it."""
    shown = asdict(job)
    del shown["owner"], shown["version"]
    shown["input_digests"] = {name: reference_of(given) for name, given in shown.pop("inputs").items()}
    (shown["progress"] or {}).pop("permutation", None)  # events carry it; a page of jobs is no place for a thousand
    return {**shown, "links": links_of(job)}


async def post(request: Request, owner: Owner) -> Response:
    """Submit a job.

    JSON, or multipart with the same JSON in part `job` and arrays as file parts named after the inputs
    (`qaplib` for a QAPLIB file, `sln` for its best-known solution). The whole problem is checked before this
    answers. With `Prefer: wait=N` the answer is the result when it is there within N seconds. A repeated
    `Idempotency-Key` gives the job that it made the first time.
    """
    state = request.app.state
    job, made = await submit(request, owner)
    headers = {"Location": f"/v1/jobs/{job.id}"}
    if not made:
        headers["Idempotency-Replayed"] = "true"
    wait_s = prefer_wait_s(request, state.http.max_wait_s)
    if wait_s is not None:
        job = await state.waiting.for_job(request, state.jobs, job, wait_s, None)
        headers["Preference-Applied"] = f"wait={wait_s:g}"
        if job.state.ended:
            document = await run_in_threadpool(document_of, state.jobs, state.store, job, state.http.inline_elements)
            return json_response(document, 200, headers)
    return json_response(view(job), 202, {**headers, "Retry-After": "1"})


async def page(
    request: Request,
    owner: Owner,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    state: State | None = None,
    solver: str | None = None,
) -> Response:
    """List your jobs, newest first; `next` is the cursor of the following page, null on the last."""
    if solver is not None and solver not in SOLVERS:
        raise Invalid(fault("solver", f"is unknown; expected one of {', '.join(SOLVERS)}", solver))
    if cursor is not None and not re.fullmatch(r"\d{1,12}(\.\d{1,10})?:[0-9a-f]{32}", cursor):
        raise Invalid(fault("cursor", "is not one that this service gave", cursor))
    found, following = await run_in_threadpool(request.app.state.jobs.list, owner, cursor, limit, state, solver)
    return json_response({"jobs": [view(job) for job in found], "next": following})


async def get(request: Request, owner: Owner, job_id: JobId, wait: Wait = 0.0) -> Response:
    """Look at a job.

    `?wait=N` answers once the job has ended, or after N seconds; with `If-None-Match` it answers at the next change
    of any kind, or 304 when there was none.
    """
    state = request.app.state
    job: Job = await run_in_threadpool(state.jobs.get, job_id, owner)
    etag = f'"{job.version}"'
    known = matches_etag(request, etag)
    if wait > 0:
        wait_s = min(wait, state.http.max_wait_s)
        version = job.version if "if-none-match" in request.headers else None
        if version is None or known:
            job = await state.waiting.for_job(request, state.jobs, job, wait_s, version)
        etag = f'"{job.version}"'
        known = matches_etag(request, etag)
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if not job.state.ended:
        headers["Retry-After"] = "1"
    return Response(status_code=304, headers=headers) if known else json_response(view(job), 200, headers)


async def result(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Fetch the answer of a job that has ended.

    JSON by default, with arrays in line up to a limit and as links above it; `Accept: application/x-npz` or
    `application/x-safetensors` gives every array as bytes.
    """
    state = request.app.state
    media = choose(request.headers.get("accept", ""), (JSON, *FORMATS))
    job: Job = await run_in_threadpool(state.jobs.get, job_id, owner)
    headers = {"Vary": "Accept", "Cache-Control": "private, no-cache"}
    if media == JSON:
        document = await run_in_threadpool(document_of, state.jobs, state.store, job, state.http.inline_elements)
        return json_response(document, 200, headers)
    file = await run_in_threadpool(_packed, state, job, FORMATS[media])
    name = f"{job_id}.{FORMATS[media]}"
    return FileResponse(
        file.name, headers=headers, media_type=media, filename=name, background=BackgroundTask(file.close)
    )


def _packed(state: Any, job: Job, format: str) -> Any:
    """A temporary file with every array of the answer, which goes when it is closed."""
    arrays: Mapping[str, Any] = state.jobs.result(job.id, job.owner)["arrays"]
    opened = {name: state.store.open_array(entry, job.owner) for name, entry in arrays.items()}
    file: Any = tempfile.NamedTemporaryFile(prefix="allot-", suffix=f".{format}")  # noqa: SIM115
    stream: BinaryIO = file.file
    encode(opened, format, stream)
    file.flush()
    return file


async def events(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Follow a job as server-sent events: `state`, `progress` and `incumbent`, until it has ended.

    A stream begins with the first event of the job, or behind the one that `Last-Event-ID` names.
    """
    state = request.app.state
    choose(request.headers.get("accept", ""), ("text/event-stream",))
    after = request.headers.get("last-event-id") or None
    if after is not None and not EVENT_ID.fullmatch(after):
        raise Refusal(400, f"Last-Event-ID {after[:60]!r} is not an id that this service gave.")
    job = await run_in_threadpool(state.jobs.get, job_id, owner)
    stream = state.waiting.events(request, state.jobs, job, after, state.http.keep_alive_s)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def cancel(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Stop a job and keep the best answer found so far; a job that has not begun is cancelled."""
    job = await run_in_threadpool(request.app.state.jobs.cancel, job_id, owner)
    return json_response(view(job))


async def delete(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Stop a job and forget it and its result."""
    await run_in_threadpool(request.app.state.jobs.delete, job_id, owner)
    return Response(status_code=204)
