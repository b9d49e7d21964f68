"""First station: the body has come, whole. JSON and short file parts are in memory, others on disk until the request
ends."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from app.http.refusal import Invalid, Refusal, fault
from app.intake.body import Text, announced, content_type, is_short, read_json
from app.intake.multipart import Part, Reader, read_multipart
from app.intake.visit import Visit
from workers.store.expected import UNKNOWN, Expected
from workers.store.upload import WORTH_A_SLAB, Writer

LONGEST_KEY = 255
SHORT_PART = 1 << 16
"""Bytes of each part of a long body that stay in memory until a file of them is wanted: it mostly is not, as short
arrays travel with their job."""
AS_JSON = ("application/json", "", "application/x-www-form-urlencoded")  # the last is what `curl -d` says
TAKEN = {"Accept-Post": "application/json, multipart/form-data"}


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Received:
    """The text of a job document, or the file that holds a long one, and the file parts beside it."""

    visit: Visit
    text: bytes | Path
    parts: Mapping[str, Part]


def visit_of(request: Request, owner: str) -> Visit:
    """A request's block. Raises Refusal for an Idempotency-Key that is none."""
    visit: Visit = request.app.state.desk.visit(owner, _idempotency_key(request))
    return visit


async def receive(request: Request, visit: Visit, waits: bool = False) -> Received:
    """Read a JSON or multipart body; temporary files go with the block of the visit.

    Where somebody `waits` for the answer, long parts go to memory first and to the disk beside the solve. Otherwise the
    disk is waited for, and had better begin with the first bytes.

    Raises:
        Refusal: what HTTP cannot take.
        Invalid: a multipart body without its `job`.
    """
    kind = content_type(request)
    if kind not in (*AS_JSON, "multipart/form-data"):
        detail = f"{kind:.80} is not taken here; send application/json or multipart/form-data."
        raise Refusal(415, detail, headers=TAKEN)
    if kind in AS_JSON:
        begun = time.perf_counter()
        text = await read_json(request, visit.desk.max_json_bytes, visit)
        visit.spent("receive", begun)
        return Received(visit, text, {})
    with visit.timed("receive"):
        parts = await _read_parts(request, visit, waits)
    await _looked(visit, parts)
    job = parts.pop("job", None)
    if job is None:
        raise Invalid(fault("job", 'is missing; a multipart body needs a part "job" with the JSON of the job'))
    return Received(visit, job.sink.content(), parts)


async def _read_parts(request: Request, visit: Visit, waits: bool) -> dict[str, Part]:
    desk, most = visit.desk, visit.desk.max_json_bytes
    told = announced(request)
    size = Expected(held=told) if is_short(request) else Expected(told, held=SHORT_PART) if waits else UNKNOWN
    sums = not 0 < told <= WORTH_A_SLAB and await desk.compared()
    return await read_multipart(
        request,
        desk.settings.max_upload_bytes,
        visit.held,
        lambda name: (
            Text(most, visit.aside, "Part 'job'") if name == "job" else desk.store.writer(sums=sums, size=size)
        ),
        lambda reader: visit.closing.append(partial(_close_parts, reader)),
    )


def _close_parts(reader: Reader) -> None:
    with ExitStack() as all_of_them:  # though closing one fails
        for part in reader.parts.values():
            all_of_them.callback(part.sink.close)


async def _looked(visit: Visit, parts: Mapping[str, Part]) -> None:
    """What came is written and looked at: of a long body the last blocks still are, when its last byte comes.

    Hashed it may be while the problem is built. Who keeps it waits for that.

    Raises:
        StoreFull.
    """
    writers = [part.sink for part in parts.values() if isinstance(part.sink, Writer)]
    if long := [sink for sink in writers if sink.is_long and not sink.is_looked]:
        with visit.timed("hash"):
            await run_in_threadpool(lambda: [sink.look() for sink in long])


def _idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key header; 400 when it cannot be one."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable() and key.isascii()):
        raise Refusal(400, f"Idempotency-Key takes 1 to {LONGEST_KEY} printable ASCII characters.")
    return key
