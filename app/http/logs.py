"""Each request's id and trace, its line in the access log, and the audit of whatever it changed."""

import logging
from typing import Protocol

from starlette.types import Scope

from workers.runtime import logs, traces

ACCESS = logging.getLogger("allot.access")
QUIET = {"/livez", "/readyz", "/metrics"}
"""Asked every few seconds by machines; their lines are written when the answer is no."""
AUDITED = {
    ("POST", "/v1/jobs"): "job.submit",
    ("DELETE", "/v1/jobs/{job_id}"): "job.delete",
    ("POST", "/v1/jobs/{job_id}/cancel"): "job.cancel",
    ("POST", "/v1/blobs"): "blob.upload",
    ("DELETE", "/v1/blobs/{digest}"): "blob.delete",
}


class Answer(Protocol):
    """What there is to say of an answer: see `around.Exchange`."""

    status: int
    size: int
    location: bytes


def write(scope: Scope, route: str, answer: Answer, seconds: float, span: "traces.Span") -> None:
    """Write down a request that was answered, under the route that it matched; and what it changed."""
    owner = scope.get("state", {}).get("owner")
    parameters = scope.get("path_params", {})
    job_id = parameters.get("job_id") or _job_in(answer.location)
    if span.recorded:
        span.name(f"{scope['method']} {route}")
        span.set(**{"http.request.method": scope["method"], "http.route": route})
        span.set(**{"http.response.status_code": answer.status, "allot.owner": owner, "allot.job_id": job_id})
    belongs = dict(logs.told())
    if owner:
        belongs["owner"] = owner
    if job_id:
        belongs["job_id"] = job_id
    method, status = scope["method"], answer.status
    if not (route in QUIET and status < 400):
        fields = {
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1e3 * seconds, 1),
            "bytes": answer.size,
            "client": (scope.get("client") or ("", 0))[0],
        }
        path = scope["path"][:200].replace("\n", " ")
        logs.record(ACCESS, f"{method} {path} {status}", fields, belongs)
    action = AUDITED.get((method, route))
    if action and status < 400:
        digest = {"digest": parameters["digest"]} if "digest" in parameters else {}
        logs.record(logs.AUDIT, action, {"action": action, **digest}, belongs)


def _job_in(location: bytes) -> str | None:
    """The id of the job whose page that is."""
    return location.decode("latin-1").split("/")[3] if b"/v1/jobs/" in location else None
