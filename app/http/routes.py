"""Every URL on one screen. What each does is one noun away: jobs, blobs, service."""

from typing import Any

from fastapi import Depends, FastAPI

from app.http import blobs, jobs, service, uploads
from app.http.auth import may
from app.http.limits import counted, taking
from app.http.media import wants_answer, wants_json
from app.http.schemas import BlobView, JobPage, JobView, Problem, ResultView, UploadView
from app.http.short import Short

EVENTS = "text/event-stream"
PROBLEM: dict[str, Any] = {"model": Problem, "content": {"application/problem+json": {}}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of answers with these statuses, each a problem document."""
    return {status: {"description": DESCRIPTIONS[status], **PROBLEM} for status in statuses}


DESCRIPTIONS = {
    400: "The body cannot be read.",
    401: "An API key is needed.",
    403: "The key lacks the scope, or a page of another site asks.",
    404: "Not there, or not yours.",
    406: "Nothing that you accept is offered.",
    409: "Not in this state.",
    410: "It was here and has expired.",
    411: "No body came.",
    413: "The body is too large.",
    415: "Not a media type that is taken.",
    416: "The Range lies beyond the end of the bytes.",
    422: "A field cannot be taken; `errors` says which and why.",
    429: "Too many jobs wait, or you ask for too much at once.",
    503: "Redis, the store or the device is not there now.",
    507: "It fits no device, or there is no room.",
}
IN = problems(400, 401, 403, 406, 411, 413, 415, 422, 429, 503, 507)
OUT = problems(401, 403, 404, 406, 410, 422, 429, 503)
SAME: dict[int | str, dict[str, Any]] = {304: {"description": "What `If-None-Match` names is still so."}}


def _bytes(description: str, media: str) -> dict[int | str, dict[str, Any]]:
    """An answer that is not JSON."""
    return {200: {"description": description, "content": {media: {"schema": {"type": "string", "format": "binary"}}}}}


STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "Server-sent events.", "content": {EVENTS: {}}}}
FILE = _bytes("The bytes.", "application/octet-stream")
TEXT = _bytes("Prometheus text.", "text/plain")


def install(app: FastAPI) -> None:
    """Give every URL its handler."""
    each = [Depends(counted)]
    mine: list[Any] = [*each, Depends(may("read"))]
    json: list[Any] = [*mine, Depends(wants_json)]
    change: list[Any] = [*each, Depends(may("submit"))]
    submit: list[Any] = [*change, Depends(wants_json)]
    begin: list[Any] = [Depends(taking), *submit]
    place: list[Any] = [Depends(taking), *change, Depends(wants_answer)]
    watch: list[Any] = [*each, Depends(may("metrics"))]
    view: Any = JobView

    def route(verb: str, path: str, handler: Any, guards: list[Any], status: int = 200, **docs: Any) -> None:
        noun = handler.__module__.rpartition(".")[2]
        docs |= {"summary": (handler.__doc__ or "").split("\n")[0].rstrip("."), "tags": [noun]}
        docs["operation_id"] = f"{noun}_{handler.__name__}"
        app.router.add_api_route(path, handler, methods=[verb], dependencies=guards, status_code=status,
                                 response_model=None, **docs)  # fmt: skip

    submitted = {200: {"model": ResultView, "description": "With `Prefer: wait=N`: the answer."}, 202: {"model": view}}
    route("POST", "/v1/jobs", jobs.post, place, 202, responses={**submitted, **IN, **problems(409, 410)},
          route_class_override=Short)  # fmt: skip
    route("GET", "/v1/jobs", jobs.page, json, responses={200: {"model": JobPage}, **OUT})
    route("GET", "/v1/jobs/{job_id}", jobs.get, json, responses={200: {"model": view}, **SAME, **OUT})
    route(
        "GET",
        "/v1/jobs/{job_id}/result",
        jobs.result,
        mine,
        responses={200: {"model": ResultView}, **OUT, **problems(409)},
    )
    route("GET", "/v1/jobs/{job_id}/events", jobs.events, mine, responses={**STREAM, **problems(400), **OUT})
    route("POST", "/v1/jobs/{job_id}/cancel", jobs.cancel, submit, responses={200: {"model": view}, **OUT})
    route("DELETE", "/v1/jobs/{job_id}", jobs.delete, change, 204, responses=OUT)

    route("POST", "/v1/blobs", blobs.post, begin, 201, responses={201: {"model": BlobView}, **IN})
    route("GET", "/v1/blobs/{digest}", blobs.get, mine, responses={**FILE, **SAME, **OUT, **problems(416)})
    route("HEAD", "/v1/blobs/{digest}", blobs.head, mine, responses=OUT)
    route("DELETE", "/v1/blobs/{digest}", blobs.delete, change, 204, responses=OUT)

    ranged = {201: {"model": BlobView, "description": "All of it is there."}, 202: {"model": UploadView}}
    route("PUT", "/v1/uploads/{name}", uploads.put, begin, 202, responses={**ranged, **IN, **problems(409)})
    route("GET", "/v1/uploads/{name}", uploads.get, json, responses={200: {"model": UploadView}, **OUT})
    route("DELETE", "/v1/uploads/{name}", uploads.delete, change, 204, responses=OUT)

    told = problems(401, 403, 406, 429, 503)
    route("GET", "/v1/solvers", service.solvers, json, responses=told)
    route("GET", "/v1/devices", service.devices, json, responses=told)
    route("POST", "/v1/estimates", service.estimate, begin, responses=IN)
    route("GET", "/livez", service.livez, [])
    route("GET", "/readyz", service.readyz, [], responses=problems(503))
    route("GET", "/metrics", service.metrics, watch, responses={**TEXT, **problems(401, 403, 429, 503)})
