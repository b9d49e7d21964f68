"""From a request to a job: read the body, gather the inputs, check the whole problem, and only then enqueue."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from app.http.errors import Invalid, Refusal, fault
from app.http.schemas import parse_request
from app.intake.body import content_type, parse_json, read_json
from app.intake.inputs import Gatherer, Source
from app.intake.multipart import Memory, Part, Reader, read_multipart
from kernels import SOLVERS, InvalidProblem, Solver
from workers.jobs.job import Expired, InputRef, Job, JobFailed, Submission, UnknownJob
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store.inline import carried, is_inline
from workers.store.reference import of_array, written
from workers.store.store import Store

LONGEST_KEY = 255


@dataclass(frozen=True)
class Checked:
    """A request whose problem has been built, so that nothing can be wrong with it any more."""

    card: Solver
    request: Any
    problem: Any
    options: Any
    sources: Mapping[str, Source]


@asynccontextmanager
async def received(request: Request) -> AsyncIterator[tuple[bytes, dict[str, Part]]]:
    """(text of the job document, file parts) of a JSON or multipart body; temporary files go with the block."""
    settings: Settings = request.app.state.settings
    limit: int = request.app.state.http.max_json_bytes
    kind = content_type(request)
    if kind in ("application/json", "", "application/x-www-form-urlencoded"):  # the last is what `curl -d` says
        yield await read_json(request, limit), {}
        return
    if kind != "multipart/form-data":
        offered = {"Accept-Post": "application/json, multipart/form-data"}
        raise Refusal(
            415, f"{kind:.80} is not taken here; send application/json or multipart/form-data.", headers=offered
        )
    store: Store = request.app.state.store
    readers: list[Reader] = []
    try:
        parts = await read_multipart(
            request,
            settings.max_upload_bytes,
            lambda name, filename, kind: Memory(limit) if name == "job" else store.writer(),
            readers.append,
        )
        job = parts.pop("job", None)
        if job is None:
            raise Invalid(fault("job", 'is missing; a multipart body needs a part "job" with the JSON of the job'))
        yield bytes(job.sink.data), parts
    finally:
        for reader in readers:
            for part in reader.parts.values():
                if part.name != "job":
                    part.sink.__exit__(None, None, None)


def check(text: bytes, parts: Mapping[str, Part], store: Store, jobs: Jobs, owner: str, settings: Settings) -> Checked:
    """Build the problem that a request describes.

    Raises:
        Refusal, Invalid, InvalidProblem, InvalidUpload: what is wrong with it.
    """
    document = parse_json(text, "Part 'job'" if parts else "The body")
    request = parse_request(document)
    card = SOLVERS[request.solver]
    _check_limits(request, card, settings)
    maximize = bool(getattr(request.options, "maximize", False))
    gatherer = Gatherer(card, store, owner, parts, maximize)
    sources = gatherer.gather(document.get("inputs"))
    if request.warm_start is not None:
        sources = {**_warm(card, request.warm_start, store, jobs, owner), **sources}
    options = request.options
    if gatherer.best_known is not None and "best_known" in card.options.model_fields:
        options = options.model_copy(update={"best_known": gatherer.best_known})
    try:
        problem = card.build({name: source.value for name, source in sources.items()}, options)
    except InvalidProblem as wrong:
        raise InvalidProblem(_full_name(wrong.field, card), wrong.message) from None
    return Checked(card, request, problem, options, sources)


def _check_limits(request: Any, card: Solver, settings: Settings) -> None:
    longest = settings.max_time_limit_s
    if request.time_limit_s is not None and request.time_limit_s > longest:
        raise Invalid(fault("time_limit_s", f"expected at most {longest:g}", request.time_limit_s))
    if request.device != "auto" and request.device not in card.modules:
        raise Invalid(fault("device", f"{card.name} solves on {', '.join(card.modules)} only", request.device))


def _full_name(field: str, card: Solver) -> str:
    """ "inputs.cost" for an input that the card calls "cost", and "options.reg" for an option."""
    first = field.split(".")[0].split("[")[0]
    if first in {spec.name for spec in card.inputs}:
        return f"inputs.{field}"
    return f"options.{field}" if first in card.options.model_fields else field


def _warm(card: Solver, job_id: str, store: Store, jobs: Jobs, owner: str) -> dict[str, Source]:
    """The arrays of an earlier answer that this solver can start from."""
    try:
        arrays = jobs.result(job_id, owner)["arrays"]
    except (UnknownJob, Expired, JobFailed) as wrong:
        raise Invalid(fault("warm_start", f"has no result: {wrong}", job_id)) from None
    found = {}
    for array, name in card.warm_start.items():
        if array in arrays:
            reference = written(arrays[array])
            value = store.open_array(reference, owner)
            keep = partial(carried, of_array(value), value) if is_inline(reference) else partial(InputRef, reference)
            found[name] = Source(value, keep)
    if not found:
        wanted = ", ".join(card.warm_start) or "nothing"
        raise Invalid(
            fault("warm_start", f"that job's answer has none of what {card.name} starts from: {wanted}", job_id)
        )
    return found


def enqueue(checked: Checked, jobs: Jobs, owner: str, idempotency_key: str | None) -> tuple[Job, bool]:
    """Keep the inputs and enqueue; (job, False) when this Idempotency-Key has made it before."""
    request = checked.request
    queue = jobs.place(checked.card, checked.problem, checked.options, request.device)
    inputs = {name: source.keep() for name, source in checked.sources.items()}
    options = checked.options.model_dump(mode="json", exclude_unset=True)
    around = request.model_dump(mode="json", exclude={"inputs", "options"})
    fingerprint = hashlib.sha256(json.dumps([around, options, inputs], sort_keys=True).encode()).hexdigest()
    submission = Submission(
        owner=owner,
        solver=checked.card.name,
        inputs=inputs,
        options=options,
        device=request.device,
        time_limit_s=request.time_limit_s,
        idempotency_key=idempotency_key,
        fingerprint=fingerprint,
        result_ttl_s=request.result_ttl_s,
        queue=queue,
    )
    return jobs.submit(submission)


def idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key header; 400 when it cannot be one."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable() and key.isascii()):
        raise Refusal(400, f"Idempotency-Key takes 1 to {LONGEST_KEY} printable ASCII characters.")
    return key


async def submit(request: Request, owner: str) -> tuple[Job, bool]:
    """Turn the request into a job; (job, newly made)."""
    state = request.app.state
    key = idempotency_key(request)
    async with received(request) as (text, parts):

        def work() -> tuple[Job, bool]:
            checked = check(text, parts, state.store, state.jobs, owner, state.settings)
            return enqueue(checked, state.jobs, owner, key)

        return await run_in_threadpool(work)
