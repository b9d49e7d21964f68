"""From exception to answer: one table, RFC 9457 problem documents, and the handlers that use them.

Every error of the service is `application/problem+json` with `type`, `title`, `status`, `detail`, and, where input
is at fault, `errors`: a list of {"field", "message"} and, for small values, "found".
"""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.http.refusal import MOST_ERRORS, Refusal, fault, over, sentence
from kernels import InvalidProblem
from workers.jobs import job
from workers.store import codec

LOG = logging.getLogger("allot.http")
MEDIA_TYPE = "application/problem+json"

TABLE: dict[type[Exception], int] = {
    InvalidProblem: 422,
    codec.InvalidUpload: 422,
    job.UnknownJob: 404,
    job.UnknownBlob: 404,
    job.DigestMismatch: 422,
    job.UploadTooLarge: 413,
    job.NotEnded: 409,
    job.JobFailed: 409,
    job.IdempotencyConflict: 409,
    job.Expired: 410,
    job.NoSuchDevice: 503,
    job.QueueFull: 429,
    job.OverQuota: 429,
    job.Unavailable: 503,
    job.StoreFull: 507,
    job.DoesNotFit: 507,
}
"""Domain exception -> status. `Refusal` brings its own."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None, **extra: Any) -> JSONResponse:
    """An RFC 9457 problem document."""
    phrase = HTTPStatus(status).phrase
    slug = phrase.lower().replace(" ", "-").replace("'", "")
    if "errors" in extra:
        extra["errors"] = extra["errors"][:MOST_ERRORS]
    body = {"type": f"urn:allot:problem:{slug}", "title": phrase, "status": status, "detail": detail, **extra}
    return _Document(body, status, headers=headers, media_type=MEDIA_TYPE)


class _Document(JSONResponse):
    """JSON of any string: half a surrogate pair, which UTF-8 does not have, is escaped as JSON does."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def _refused(request: Request, refusal: Refusal) -> JSONResponse:
    return problem(refusal.status, refusal.detail, refusal.headers, **refusal.extra)


def _domain(request: Request, error: Exception) -> JSONResponse:
    """Answer an exception of TABLE, with the facts that it carries."""
    status = next(status for kind, status in TABLE.items() if isinstance(error, kind))
    extra: dict[str, Any] = {}
    if isinstance(error, InvalidProblem | codec.InvalidUpload):
        extra["errors"] = [fault(error.field, error.message)]
    if isinstance(error, job.DigestMismatch):
        extra["errors"] = [fault("digest", str(error))]
    if isinstance(error, job.NoSuchDevice):
        extra["errors"] = [fault("device", str(error))]
    if isinstance(error, job.JobFailed):
        status = 500 if error.state == job.State.FAILED else status
        extra |= {"state": str(error.state), "error": error.error}
    if isinstance(error, job.DoesNotFit):
        extra |= {"bytes_needed": error.bytes_needed, "bytes_available": error.bytes_available}
    if isinstance(error, job.OverQuota):
        return _refused(request, over(error.policy, str(error), error.most, error.retry_after_s, error.window_s))
    retry_after_s = getattr(error, "retry_after_s", 1.0 if isinstance(error, job.NotEnded) else None)
    headers = {"Retry-After": str(max(1, round(retry_after_s)))} if retry_after_s is not None else None
    return problem(status, str(error), headers, **extra)


def _framework(request: Request, error: HTTPException) -> JSONResponse:
    """404 for a path and 405 for a verb that are not there, and whatever else starlette raises."""
    detail = str(error.detail)
    if error.status_code == 404:
        detail = f"There is nothing at {request.url.path[:200]}; /docs lists what there is."
    elif error.status_code == 405:
        verbs = _verbs(request)
        detail = f"{request.method} is not for {request.url.path[:200]}; it takes {verbs}."
        return problem(405, detail, {"Allow": verbs})
    return problem(error.status_code, detail, error.headers)


def _verbs(request: Request) -> str:
    """Every verb that the path takes: each has a route of its own, and starlette tells only the first's."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({verb for route in routes for verb in route.methods}))


def _parameters(request: Request, error: RequestValidationError) -> JSONResponse:
    """Path and query parameters that do not validate."""
    errors = [
        fault(".".join(str(part) for part in one["loc"][1:]), one["msg"][0].lower() + one["msg"][1:], one.get("input"))
        for one in error.errors()
    ]
    return problem(422, sentence(errors), errors=errors)


def _bug(request: Request, error: Exception) -> JSONResponse:
    """Our fault: the log has the traceback, the client a sentence without any of our data."""
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    nosniff = {"X-Content-Type-Options": "nosniff"}  # this answer passes by the middleware that sets it elsewhere
    return problem(500, "This is a fault of the service; its log says more.", nosniff)


def install(app: FastAPI) -> None:
    """Register every handler."""
    app.add_exception_handler(Refusal, _refused)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _framework)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _parameters)  # type: ignore[arg-type]
    for kind in TABLE:
        app.add_exception_handler(kind, _domain)
    app.add_exception_handler(Exception, _bug)
