"""From exception to answer: one table, RFC 9457 problem documents, and the handlers that use them.

Every error of the service is `application/problem+json` with `type`, `title`, `status`, `detail`, and, where input
is at fault, `errors`: a list of {"field", "message"} and, for small values, "found".
"""

import json
import logging
import math
import reprlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from kernels import InvalidProblem
from workers.jobs import job
from workers.store import codec

LOG = logging.getLogger("allot.http")
MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 20
"""In one answer: nobody reads more, and a request can hold 200,000."""
LONGEST_FIELD, LONGEST_MESSAGE = 200, 2000
"""Characters of one error."""


class Refusal(Exception):
    """A request that HTTP itself refuses: status, one sentence, and what else belongs in the document."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.extra = status, detail, headers, extra


class Invalid(Refusal):
    """422: the request was understood, but `errors` says which fields cannot be taken."""

    def __init__(self, *errors: dict[str, Any], more: int = 0) -> None:
        """`more` errors were found beside these."""
        super().__init__(422, sentence(errors, more), errors=list(errors))


def sentence(errors: Sequence[Mapping[str, Any]], more: int = 0) -> str:
    """The first errors in words, and how many more there are."""
    told = [f"{error['field']}: {error['message']}" for error in errors[:MOST_ERRORS]]
    more += max(0, len(errors) - MOST_ERRORS)
    return "; ".join([*told, f"and {more} more"] if more else told)


def fault(field: str, message: str, found: Any = None) -> dict[str, Any]:
    """One entry of `errors`; `found` is shown when it is small."""
    entry: dict[str, Any] = {"field": field[:LONGEST_FIELD], "message": message[:LONGEST_MESSAGE]}
    if found is not None:
        small = isinstance(found, bool | int | str) and len(str(found)) <= 80
        entry["found"] = found if small else reprlib.repr(found)
    return entry


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


class NotAcceptable(Refusal):
    """406: the media types that the client accepts are not among those that there are."""

    def __init__(self, wanted: str, offered: tuple[str, ...]) -> None:
        super().__init__(406, f"Accept: {wanted!r} asks for none of {', '.join(offered)}.", offered=list(offered))


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


def over(policy: str, why: str, most: int, wait_s: float, window_s: int | None = None) -> Refusal:
    """429 with Retry-After, and RateLimit headers as draft-ietf-httpapi-ratelimit-headers has them."""
    retry_s = max(1, math.ceil(wait_s))
    headers = {
        "Retry-After": str(retry_s),
        "RateLimit-Policy": f'"{policy}";q={most}' + (f";w={window_s}" if window_s else ""),
        "RateLimit": f'"{policy}";r=0;t={retry_s}',
    }
    return Refusal(429, f"Too much at once: {why}. Come back in {retry_s} s.", headers=headers)


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
