"""Uploads in ranges: one blob over several connections at once, in any order, continued after a break."""

import contextlib
import re
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_response
from app.http import blobs
from app.http.auth import owner as owner_of
from app.http.media import announced_digest, repr_digest
from app.http.refusal import Invalid, Refusal, fault
from app.intake.body import slices
from app.intake.reading import read_upload
from app.intake.visit import Desk, Visit
from workers.store.codec import FORMATS, Form, InvalidUpload
from workers.store.ranges import NoUpload, OtherLength, Progress, Ranges, TooMany, require_share
from workers.store.store import Store
from workers.store.upload import Upload

Owner = Annotated[str, Depends(owner_of)]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{8,64}$", description="chosen by whoever uploads")]
CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")
COPIED = 1 << 20


def view(name: str, progress: Progress) -> dict[str, Any]:
    """What is there: `received` lists first and last byte of each range, as Content-Range has them."""
    spans = [[first, end - 1] for first, end in progress.spans]
    return {"name": name, "size": progress.total, "received": spans, "links": {"self": f"/v1/uploads/{name}"}}


async def put(
    request: Request,
    owner: Owner,
    name: Name,
    filename: Annotated[str, Query(max_length=255, description="its suffix tells the format")] = "",
    format: Annotated[str | None, Query(description="one of " + ", ".join(FORMATS))] = None,
    member: Annotated[str | None, Query(max_length=255, description="which array of an npz or safetensors")] = None,
    dtype: Annotated[str | None, Query(max_length=20, description="of raw bytes, as float32")] = None,
    shape: Annotated[str | None, Query(max_length=100, description="of raw bytes, as 1024,1024")] = None,
    digest: Annotated[str | None, Query(description="sha256:<hex> that the whole must have")] = None,
) -> Response:
    """Send one range of a blob.

    `Content-Range: bytes FIRST-LAST/TOTAL` says which. Ranges come in any order and over any number of connections; one
    that broke off is sent again. 202 lists what is there. Once every byte is, the answer is that of `POST /v1/blobs`;
    the parameters are its parameters.
    """
    expected = announced_digest(request, digest)
    form = blobs._form(request, filename, format, member, dtype, shape)
    store: Store = request.app.state.store
    first, end, total = _range(request, store.limits.max_bytes)
    ranges = Ranges(store.folder.temporary, owner, name)
    desk: Desk = request.app.state.desk
    with desk.visit(owner) as visit:
        try:
            await run_in_threadpool(lambda: require_share(store, owner, ranges.announced() + total))
            await run_in_threadpool(ranges.begin, total)
            await _receive(request, visit, ranges, first, end)
            progress = await run_in_threadpool(ranges.add, (first, end))
        except NoUpload:
            raise Refusal(409, "The upload was finished or deleted meanwhile.") from None
        except OtherLength as wrong:
            raise Refusal(409, f"The upload {wrong}.") from None
        except TooMany as wrong:
            raise Refusal(429, f"The upload {wrong}.") from None
        if not progress.whole:
            return json_response(view(name, progress), 202, {"Location": f"/v1/uploads/{name}"})
        upload = await _finish(visit, ranges, form, expected)
    headers = {"Location": f"/v1/blobs/{upload.digest}", **repr_digest(upload.digest)}
    return json_response(blobs.view(upload), 201, headers)


def _range(request: Request, most: int) -> tuple[int, int, int]:
    """First byte, the one after the last, and the length of all. Raises Refusal."""
    said = request.headers.get("content-range", "")
    found = CONTENT_RANGE.fullmatch(said)
    if found is None:
        raise Invalid(fault("Content-Range", "expected bytes FIRST-LAST/TOTAL", said[:80]))
    first, last, total = map(int, found.groups())
    if not first <= last < total:
        raise Invalid(fault("Content-Range", "expected FIRST <= LAST < TOTAL", said))
    if total > most:
        raise Refusal(413, f"The upload is larger than {most} bytes, the most that is taken here.", limit_bytes=most)
    return first, last + 1, total


async def _receive(request: Request, visit: Visit, ranges: Ranges, first: int, end: int) -> None:
    """The body into its place. Raises Refusal where it has not the length that its range says."""
    with ranges.writing(first) as hole:
        async for piece in slices(request, end - first, visit.held.take):
            await run_in_threadpool(hole.write, piece)
        if hole.written != end - first:
            raise Refusal(400, f"{hole.written} bytes came for a range of {end - first}; send it again.")
        await run_in_threadpool(hole.settle)


async def _finish(visit: Visit, ranges: Ranges, form: Form, expected: str | None) -> Upload:
    """The whole as a blob. Where it is not what was expected the ranges stay, to be sent again or deleted."""
    store = visit.desk.store
    with await run_in_threadpool(store.writer) as writer:

        def copied() -> None:
            with ranges.data.open("rb") as file:
                while piece := file.read(COPIED):
                    writer.write(piece)

        try:
            await run_in_threadpool(copied)
        except FileNotFoundError:
            raise Refusal(409, "The upload was finished or deleted meanwhile.") from None
        writer.expect(expected)
        try:
            reading = await read_upload(visit, writer.flush(), form, "body")
        except InvalidUpload as wrong:  # parts of the form are parameters of their own
            raise InvalidUpload(wrong.field.removeprefix("body."), wrong.message) from None
        upload = await run_in_threadpool(writer.keep, visit.owner, reading)
    await run_in_threadpool(_dropped, ranges)
    return upload


def _dropped(ranges: Ranges) -> None:
    with contextlib.suppress(NoUpload):  # another request finished it as well
        ranges.drop()


async def get(request: Request, owner: Owner, name: Name) -> Response:
    """Ask which ranges of an upload are there."""
    try:
        progress = await run_in_threadpool(_ranges(request, owner, name).progress)
    except NoUpload:
        raise _unknown(name) from None
    return json_response(view(name, progress))


async def delete(request: Request, owner: Owner, name: Name) -> Response:
    """Give up an upload that is not finished."""
    try:
        await run_in_threadpool(_ranges(request, owner, name).drop)
    except NoUpload:
        raise _unknown(name) from None
    return Response(status_code=204)


def _unknown(name: str) -> Refusal:
    return Refusal(404, f"There is no upload {name} under way.")


def _ranges(request: Request, owner: str, name: str) -> Ranges:
    return Ranges(request.app.state.store.folder.temporary, owner, name)
