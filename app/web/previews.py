"""POST /v1/previews: read a file and say what it was taken for, before anything is solved.

The arrays that were found are kept as blobs, so that a job can name them and the file is sent only once. A clerk reads
the file and writes the answer, with a mark in the place of each array; here the marks become references.
"""

import json
import math
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_response
from app.http.auth import owner as owner_of
from app.http.media import JSON
from app.intake.body import slices
from app.intake.visit import Desk
from app.web.samples import sample_sheets
from app.web.shown import table
from workers.store.codec import InvalidUpload
from workers.store.handles import single
from workers.store.store import Store

Owner = Annotated[str, Depends(owner_of)]
MISSING = {"zero": 0.0, "inf": math.inf, "-inf": -math.inf}
Missing = Annotated[str, Query(pattern="^(zero|inf|-inf)$", description="what an empty cell stands for")]
Doubtful = Annotated[Literal["", "names", "numbers"], Query(description="what lines are that may be names or numbers")]


async def post(
    request: Request,
    owner: Owner,
    filename: Annotated[str, Query(max_length=255)] = "table.csv",
    missing: Missing = "zero",
    doubtful: Doubtful = "",
) -> Response:
    """Read a table or a file of arrays, and say what it holds: shape, range, names, faults, and a small picture."""
    state = request.app.state
    desk: Desk = state.desk
    limits = state.store.limits
    with desk.visit(owner) as visit:
        path = visit.aside()
        with path.open("wb") as file:
            async for piece in slices(request, state.settings.max_upload_bytes, visit.held.take):
                await run_in_threadpool(file.write, piece)
        size = path.stat().st_size
        if size == 0:
            raise InvalidUpload("file", "is empty")
        mark = uuid.uuid4().hex  # nobody can have written it into the file
        errand: dict[str, Any] = {"do": "preview", "path": str(path), "filename": filename, "missing": missing}
        errand["doubtful"] = doubtful
        errand |= {"mark": mark, "max_bytes": limits.max_bytes, "max_elements": limits.max_elements}
        told = await visit.errand(errand, size)
        body = await run_in_threadpool(_with_references, state.store, owner, told, mark)
    return Response(body, media_type=JSON)


def _with_references(store: Store, owner: str, told: dict[str, Any], mark: str) -> bytes:
    """What a clerk wrote, each array kept, and its reference where its mark was."""
    body = Path(told["shown"]).read_bytes()
    for number, handle in enumerate(told["arrays"]):
        reference = json.dumps(store.put(single(handle), owner)).encode()
        body = body.replace(f'"{mark}:{number}"'.encode(), reference)
    return body


async def sample(request: Request, owner: Owner, name: str, missing: Missing = "zero") -> Response:
    """Give a sample as if its file had been sent."""
    sheets = sample_sheets(name)
    store: Store = request.app.state.store

    def work() -> dict[str, Any]:
        shown = [table(lambda array: store.put(array, owner), sheet, MISSING[missing]) for sheet in sheets]
        return {"filename": name, "sheets": shown}

    return json_response(await run_in_threadpool(work))
