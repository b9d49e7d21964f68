"""GET /v1/jobs/{id}/picture: an array of an answer, made small enough to draw; a part of it on request."""

from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_response
from app.http.auth import owner as owner_of
from app.http.jobs import JobId
from app.http.refusal import Invalid, Refusal, fault
from app.web.heat import heat_of

Owner = Annotated[str, Depends(owner_of)]
MOST_BLOCKS = 128
At = Annotated[int | None, Query(ge=0)]


async def picture(
    request: Request,
    owner: Owner,
    job_id: JobId,
    array: Annotated[str, Query(max_length=60)],
    most: Annotated[int, Query(ge=2, le=MOST_BLOCKS)] = 96,
    top: At = None,
    bottom: At = None,
    left: At = None,
    right: At = None,
) -> Response:
    """Draw a matrix of an answer small: means over blocks and the sums at its edges, of all or of a part of it."""
    state = request.app.state

    def work() -> dict[str, Any]:
        entry = state.jobs.result(job_id, owner)["arrays"].get(array)
        if entry is None:
            raise Refusal(404, f"This answer has no array {array!r}.")
        matrix = state.store.open_array(entry, owner)
        if matrix.ndim != 2:
            raise Invalid(fault("array", f"has {matrix.ndim} dimensions; expected a matrix", array))
        part = matrix[slice(top, bottom), slice(left, right)]
        if not part.size:
            raise Invalid(fault("top", "leaves nothing of the matrix"))
        return {"shape": list(matrix.shape), **heat_of(part, most)}

    return json_response(await run_in_threadpool(work))
