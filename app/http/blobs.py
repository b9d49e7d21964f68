"""Blobs over HTTP: arrays that are uploaded once and used in many jobs.

An upload is answered with a reference: the digest of the bytes, and all of how they were read. Nothing of that is
remembered, and every upload does the same work, whether its bytes are new, the owner's or another's: nobody learns
from an answer, or from its time, what others have.
"""

import re
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_response
from app.http.auth import owner as owner_of
from app.http.media import announced_digest, matches_etag, repr_digest
from app.http.refusal import Invalid, Refusal, fault
from app.intake.body import Fetch, content_type, feed, portions
from app.intake.reading import read_upload
from app.intake.scratch import Whole
from app.intake.visit import Desk
from workers.jobs.job import UnknownBlob
from workers.store.codec import FORMATS, Form, InvalidUpload
from workers.store.digests import DIGEST, WORDS, scheme_of
from workers.store.store import Store
from workers.store.upload import BlobInfo, Upload

ENCODINGS = ("identity", "gzip", "zstd")
RANGE = re.compile(r"\s*bytes\s*=\s*(\d{1,18}-\d{0,18}|-\d{1,18})(\s*,\s*(\d{1,18}-\d{0,18}|-\d{1,18}))*\s*", re.I)
Owner = Annotated[str, Depends(owner_of)]


def valid_digest(digest: str) -> str:
    """Dependency: the digest in the path, which becomes a file name and must be one."""
    if not DIGEST.fullmatch(digest):
        raise UnknownBlob(f"{digest[:80]!r} is not a digest; expected {WORDS}")
    return digest


Digest = Annotated[str, Depends(valid_digest)]


def view(upload: Upload) -> dict[str, Any]:
    """An upload as the API shows it: its reference, and beside it what people like to know."""
    links = {"self": f"/v1/blobs/{upload.digest}"}
    return {**upload.reference, **upload.layout, "digest": upload.digest, "size": upload.size, "links": links}


async def post(
    request: Request,
    owner: Owner,
    filename: Annotated[str, Query(max_length=255, description="its suffix tells the format")] = "",
    format: Annotated[str | None, Query(description="one of " + ", ".join(FORMATS))] = None,
    member: Annotated[str | None, Query(max_length=255, description="which array of an npz or safetensors")] = None,
    dtype: Annotated[str | None, Query(max_length=20, description="of raw bytes, as float32")] = None,
    shape: Annotated[str | None, Query(max_length=100, description="of raw bytes, as 1024,1024")] = None,
    digest: Annotated[str | None, Query(description="sha256:<hex> or sha256u:<hex> that the body must have")] = None,
) -> Response:
    """Upload an array: npy, npz, safetensors, QAPLIB or MatrixMarket text, raw bytes with dtype and shape.

    The answer is a reference, which jobs take as an input as it is. The format is found from the first bytes, else
    from `filename`; `dtype` and `shape` without `format` mean raw bytes. gzip and zstd are unpacked to look inside.
    A `Content-Digest` or `Repr-Digest` header, or `digest`, is checked. `X-Dtype` and `X-Shape` stand for the
    parameters of these names.
    """
    expected = announced_digest(request, digest)
    form = _form(request, filename, format, member, dtype, shape)
    store: Store = request.app.state.store
    desk: Desk = request.app.state.desk
    sums = await desk.compared()
    with desk.visit(owner) as visit, await run_in_threadpool(store.writer, scheme_of(expected), sums) as writer:
        most = request.app.state.settings.max_upload_bytes
        fetch = Fetch(request, Whole(writer), visit.held)
        await feed(portions(request, most, visit.held.take), writer.writelines, fetch)
        if writer.size == 0:
            raise Refusal(400, "The body is empty; expected the bytes of an array.")
        path = await run_in_threadpool(writer.flush)
        writer.expect(expected)
        try:
            reading = await read_upload(visit, path, form, "body")
        except InvalidUpload as wrong:  # parts of the form are parameters of their own
            raise InvalidUpload(wrong.field.removeprefix("body."), wrong.message) from None
        upload = await run_in_threadpool(writer.keep, owner, reading)
    headers = {"Location": f"/v1/blobs/{upload.digest}", **repr_digest(upload.digest)}
    return json_response(view(upload), 201, headers)


def _form(
    request: Request, filename: str, format: str | None, member: str | None, dtype: str | None, shape: str | None
) -> Form:
    """How the client says that the body is to be read."""
    if format is not None and format not in FORMATS:
        raise Invalid(fault("format", f"is unknown; expected one of {', '.join(FORMATS)}", format))
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ENCODINGS:
        raise Refusal(415, f"Content-Encoding {encoding:.40} is not taken; expected {', '.join(ENCODINGS)}.")
    dtype = dtype or request.headers.get("x-dtype")
    shape = shape or request.headers.get("x-shape")
    extents = None
    if shape is not None:
        if not re.fullmatch(r"\d{1,15}(\s*,\s*\d{1,15}){0,7}", shape.strip("() ,")):
            raise Invalid(fault("shape", "expected extents separated by commas, as 1024,1024", shape))
        extents = tuple(int(extent) for extent in shape.strip("() ,").split(","))
    if format is None and dtype is not None and extents is not None:
        format = "raw"
    if not filename:
        named = re.search(r'filename="?([^";]{1,255})', request.headers.get("content-disposition", ""))
        filename = named[1] if named else ""
    return Form(format, member, dtype, extents, filename, content_type(request))


async def get(request: Request, owner: Owner, digest: Digest) -> Response:
    """Download the bytes that were uploaded, or an array of a result as .npy."""
    store: Store = request.app.state.store
    info = await _info(store, digest, owner)
    etag = f'"{digest}"'
    headers = {"ETag": etag, **repr_digest(digest), "Cache-Control": "private, immutable, max-age=86400"}
    if matches_etag(request, etag):
        return Response(status_code=304, headers=headers)
    _settle_range(request, info.size)
    path = await run_in_threadpool(store.find, digest, owner)
    suffix = ".npy" if info.dtype else ""
    return FileResponse(
        path, headers=headers, media_type="application/octet-stream", filename=digest.partition(":")[2][:12] + suffix
    )


def _settle_range(request: Request, size: int) -> None:
    """Drop a `Range` that names no bytes, as RFC 9110 has it; refuse bytes beyond the end in the service's words."""
    said = request.headers.get("range")
    if said is None or "if-range" in request.headers:
        return
    pairs = [tuple(part.strip().split("-")) for part in said.partition("=")[2].split(",")]
    if RANGE.fullmatch(said) is None or any(first and last and int(first) > int(last) for first, last in pairs):
        request.scope["headers"] = [pair for pair in request.scope["headers"] if pair[0] != b"range"]
    elif any(int(first) >= size if first else not size or not int(last) for first, last in pairs):
        detail = f"Range {said:.80} goes beyond the blob; it has {size} bytes."
        raise Refusal(416, detail, headers={"Content-Range": f"bytes */{size}"})


async def head(request: Request, owner: Owner, digest: Digest) -> Response:
    """Ask whether a blob is there; `X-Dtype` and `X-Shape` say what an .npy's header says."""
    info = await _info(request.app.state.store, digest, owner)
    headers = {"Content-Length": str(info.size), "ETag": f'"{digest}"', **repr_digest(digest)}
    if info.dtype and info.shape is not None:
        headers |= {"X-Dtype": info.dtype, "X-Shape": ",".join(map(str, info.shape))}
    return Response(headers=headers, media_type="application/octet-stream")


async def delete(request: Request, owner: Owner, digest: Digest) -> Response:
    """Give a blob up; jobs that hold it keep it until they expire."""
    await run_in_threadpool(request.app.state.store.delete, digest, owner)
    return Response(status_code=204)


async def _info(store: Store, digest: str, owner: str) -> BlobInfo:
    info = await run_in_threadpool(store.stat, digest, owner)
    if info is None:
        raise UnknownBlob(f"there is no blob {digest}")
    return info
