"""Jobs over HTTP: submit, list, look, wait, follow, fetch the result, cancel, delete."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTasks
from starlette.concurrency import run_in_threadpool

from app.answers import facts
from app.answers.answer import (
    Worded,
    document_of,
    is_at_hand,
    json_bytes,
    json_response,
    links_of,
    responded,
    shown,
    worded,
    worded_at_once,
)
from app.answers.packed import packed
from app.http.auth import owner as owner_of
from app.http.media import JSON, NPZ, PACKED, asks_for, choose, matches_etag, media_of_answer, prefer_wait_s
from app.http.refusal import Invalid, Refusal, fault
from app.intake.built import build
from app.intake.gathered import gather
from app.intake.parsed import parse
from app.intake.placed import Placed, place
from app.intake.received import receive, visit_of
from app.intake.settling import Settled
from kernels import SOLVERS, Array
from workers.jobs.job import Job, JobError, JobFailed, State, UnknownJob
from workers.jobs.shown import Seen
from workers.store.reference import shown as reference_of

ID = re.compile(r"[0-9a-f]{32}")
EVENT_ID = re.compile(r"\d{1,19}-\d{1,19}")
Owner = Annotated[str, Depends(owner_of)]


async def valid_id(job_id: str) -> str:
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

    JSON, or multipart with the same JSON in part `job` and arrays as file parts named after the inputs, or after
    what `files` of GET /v1/solvers lists (a QAPLIB file and its best-known solution). The whole problem is checked
    before this answers. With `Prefer: wait=N` the answer is the result when it is there within N seconds: in
    JSON or, by `Accept`, as npz or safetensors. A job that takes longer is answered in JSON. A repeated
    `Idempotency-Key` gives the job that it made the first time.
    """
    state = request.app.state
    wait_s = prefer_wait_s(request, state.http.max_wait_s)
    media = media_of_answer(request)
    placed, settled = await _placed(request, owner, wait_s is not None)
    job = placed.job
    headers = {"Location": f"/v1/jobs/{job.id}"}
    if not placed.made:
        headers["Idempotency-Replayed"] = "true"
    if wait_s is not None and state.limits.may_wait("waiters", owner):
        with state.limits.hold("waiters", owner):
            job, seen = await state.waiting.for_result(request, state.jobs, job, wait_s, placed.made)
        headers["Preference-Applied"] = f"wait={wait_s:g}"
        if seen is not None and seen.result is not None:
            try:
                return await _answered(request, job, seen, media, headers)
            except (JobError, OSError):  # the job is there, whatever keeps its result from being read now
                job = seen.job
        job = job if seen is None else seen.job
        if job.state in (State.FAILED, State.CANCELLED):
            raise JobFailed.of(job)
    try:
        await settled.wait()
    except JobError:  # what cannot be kept must not look as if it was
        if placed.made:
            with suppress(JobError):
                await run_in_threadpool(state.jobs.delete, job.id, owner)
        raise
    return json_response(view(job), 202, {**headers, "Retry-After": "1"})


async def _placed(request: Request, owner: str, waits: bool) -> tuple[Placed, Settled]:
    """Through all stations. What a problem was built from goes with them, and not after the wait for its answer."""
    state = request.app.state
    with visit_of(request, owner) as visit:
        built = await build(await gather(await parse(await receive(request, visit, waits))))
        try:
            placed = await place(built, state.waiting.name if waits else None)
        finally:
            settled: Settled = state.settling.begin(visit.laid.names)
    return placed, settled


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
    job: Job = (await state.waiting.look(job_id, owner)).job
    if wait > 0:
        version = job.version if "if-none-match" in request.headers else None
        if version is None or matches_etag(request, f'"{version}"'):
            state.limits.room_for("waiters", owner)
            with state.limits.hold("waiters", owner):
                job = await state.waiting.for_job(request, job, min(wait, state.http.max_wait_s), version)
    if job.state is State.QUEUED and not matches_etag(request, f'"{job.version}"'):
        job = await run_in_threadpool(state.jobs.get, job_id, owner)  # with its place in the queue
    headers = {"ETag": f'"{job.version}"', "Cache-Control": "no-cache"}
    if not job.state.ended:
        headers["Retry-After"] = "1"
    if matches_etag(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return json_response(view(job), 200, headers)


async def result(
    request: Request,
    owner: Owner,
    job_id: JobId,
    arrays: Annotated[bool, Query(description="false: JSON without any array, which does not count as fetched")] = True,
) -> Response:
    """Fetch the answer of a job that has ended.

    JSON by default, with arrays in line up to a limit and as links above it; `Accept: application/x-npz` or
    `application/x-safetensors` gives every array as bytes.
    """
    state = request.app.state
    media = choose(request.headers.get("accept", ""), (JSON, *PACKED))
    job: Job = (await state.waiting.look(job_id, owner)).job
    headers = {"Vary": "Accept", "Cache-Control": "private, no-cache"}
    if media == JSON:
        inline_elements = state.http.inline_elements if arrays else -1
        document = await run_in_threadpool(document_of, state.jobs, state.store, job, inline_elements)
        answer = json_response(document, 200, headers)
        return _sent(state, job, answer) if arrays else answer  # a list of jobs looks at many that nobody has read
    found, told = await run_in_threadpool(lambda: _opened(request, job, state.jobs.result(job.id, job.owner), media))
    return _sent(state, job, packed(found, media, job_id, headers, json_bytes(told)))


async def _answered(request: Request, job: Job, seen: Seen, media: str, headers: dict[str, str]) -> Response:
    """The result that was waited for. Raises Damaged, and what reading it does."""
    state = request.app.state
    if media in PACKED:
        stored = seen.document()
        of = request, job, stored, media
        arrays, told = _opened(*of) if is_at_hand(state.store, stored) else await run_in_threadpool(_opened, *of)
        headers |= {"Server-Timing": responded(told["timings_ms"], seen), "Vary": "Accept"}
        return _sent(state, job, packed(arrays, media, job.id, headers, json_bytes(told)))
    said = worded_at_once(job, seen)
    if said is None:
        said = await run_in_threadpool(worded, state.store, job, seen, state.http.inline_elements)
    body, headers["Server-Timing"] = said
    return _sent(state, job, Worded(body, headers))


def _sent(state: Any, job: Job, answer: Response) -> Response:
    """`answer`, after which the job's result counts as fetched."""
    if state.settings.fetched_ttl_s > 0:
        tasks = BackgroundTasks([answer.background] if answer.background else [])
        tasks.add_task(_fetched, state, job.id)
        answer.background = tasks
    return answer


def _fetched(state: Any, job_id: str) -> None:
    with suppress(JobError):  # then it is kept for longer
        state.jobs.fetched(job_id)


def _opened(
    request: Request, job: Job, stored: Mapping[str, Any], media: str
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of an answer, mapped, and its document without them: what its file of that type holds."""
    store = request.app.state.store
    arrays = {name: store.open_array(entry, job.owner) for name, entry in stored["arrays"].items()}
    if media != NPZ and asks_for(request.headers.get("accept", ""), media, facts.ASKED):
        stored, more = facts.taken_out(stored)
        arrays |= more
    return arrays, shown(store, job, stored, -1)


async def events(request: Request, owner: Owner, job_id: JobId) -> Response:
    """Follow a job as server-sent events: `state`, `progress` and `incumbent`, until it has ended.

    A stream begins with the first event of the job, or behind the one that `Last-Event-ID` names.
    """
    state = request.app.state
    choose(request.headers.get("accept", ""), ("text/event-stream",))
    after = request.headers.get("last-event-id") or None
    if after is not None and not EVENT_ID.fullmatch(after):
        raise Refusal(400, f"Last-Event-ID {after[:60]!r} is not an id that this service gave.")
    job = (await state.waiting.look(job_id, owner)).job
    state.limits.room_for("streams", owner)
    stream = state.limits.held_stream(owner, state.waiting.events(job, after, state.http.keep_alive_s))
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
