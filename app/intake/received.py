"""First station: the body has come, whole. JSON is in memory, file parts are on disk until the request ends."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Request

from app.http.errors import Invalid, Refusal, fault
from app.http.media import prefer_wait_s
from app.intake.body import content_type, read_json
from app.intake.multipart import Memory, Part, Reader, read_multipart
from app.intake.visit import Desk, Visit

LONGEST_KEY = 255
AS_JSON = ("application/json", "", "application/x-www-form-urlencoded")  # the last is what `curl -d` says
TAKEN = {"Accept-Post": "application/json, multipart/form-data"}


@dataclass(frozen=True)
class Received:
    """The text of a job document, and the file parts beside it."""

    visit: Visit
    text: bytes
    parts: Mapping[str, Part]


@asynccontextmanager
async def receive(request: Request, owner: str) -> AsyncIterator[Received]:
    """Read a JSON or multipart body; temporary files go with the block.

    Raises:
        Refusal: what HTTP cannot take.
        Invalid: a multipart body without its `job`.
    """
    desk: Desk = request.app.state.desk
    kind = content_type(request)
    if kind not in (*AS_JSON, "multipart/form-data"):
        detail = f"{kind:.80} is not taken here; send application/json or multipart/form-data."
        raise Refusal(415, detail, headers=TAKEN)
    waits = prefer_wait_s(request, 0.0) is not None
    reply = request.app.state.waiting.name if waits else None
    with desk.visit(owner, idempotency_key(request), reply) as visit:
        if kind in AS_JSON:
            with visit.timed("receive"):
                text = await read_json(request, desk.max_json_bytes, visit.held.take)
            yield Received(visit, text, {})
            return
        readers: list[Reader] = []
        try:
            with visit.timed("receive"):
                parts = await _read_parts(request, visit, readers)
            job = parts.pop("job", None)
            if job is None:
                raise Invalid(fault("job", 'is missing; a multipart body needs a part "job" with the JSON of the job'))
            yield Received(visit, bytes(job.sink.data), parts)
        finally:
            for part in (part for reader in readers for part in reader.parts.values() if part.name != "job"):
                part.sink.__exit__(None, None, None)


async def _read_parts(request: Request, visit: Visit, readers: list[Reader]) -> dict[str, Part]:
    desk = visit.desk
    return await read_multipart(
        request,
        desk.settings.max_upload_bytes,
        visit.held.take,
        lambda name: Memory(desk.max_json_bytes) if name == "job" else desk.store.writer(),
        readers.append,
    )


def idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key header; 400 when it cannot be one."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable() and key.isascii()):
        raise Refusal(400, f"Idempotency-Key takes 1 to {LONGEST_KEY} printable ASCII characters.")
    return key
