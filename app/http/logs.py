"""Each request's id and trace, its line in the access log, and the audit of whatever it changed."""

import logging
import time
from collections.abc import MutableMapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

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


class Logs:
    """Goes around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and write down what came of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given, caller = _named(scope)
        request_id = given if logs.REQUEST_ID.fullmatch(given) else logs.new_request_id()
        answer = _Answer(request_id)

        async def watch(message: MutableMapping[str, Any]) -> None:
            answer.see(message)
            await send(message)

        parent = logs.new_traceparent(caller)
        begun = time.perf_counter()
        span = traces.begin(f"{scope['method']} request", parent, kind="server")
        with logs.about(request_id=request_id, traceparent=span.traceparent):
            try:
                await self._app(scope, receive, watch)
            finally:
                _write(scope, answer, time.perf_counter() - begun, span)
                span.end()


def _named(scope: Scope) -> tuple[str, str]:
    """The request's id and trace, as its caller names them; "" where they do not."""
    given, trace = "", ""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
        elif name == b"traceparent":
            trace = value.decode("latin-1")
    return given, trace


class _Answer:
    """What was answered."""

    def __init__(self, request_id: str) -> None:
        self.request_id, self.status, self.size, self.location = request_id, 500, 0, ""

    def see(self, message: MutableMapping[str, Any]) -> None:
        """Note a message of ASGI, and put the request's id on its headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            message["headers"] = [*headers, (b"x-request-id", self.request_id.encode())]
            for name, value in headers:
                if name == b"location":
                    self.location = value.decode("latin-1")
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))


def _write(scope: Scope, answer: _Answer, seconds: float, span: "traces.Span") -> None:
    route = getattr(scope.get("route"), "path", "none")
    owner = scope.get("state", {}).get("owner")
    parameters = scope.get("path_params", {})
    job_id = parameters.get("job_id") or (answer.location.split("/")[3] if "/v1/jobs/" in answer.location else None)
    if span.recorded:
        span.name(f"{scope['method']} {route}")
        span.set(**{"http.request.method": scope["method"], "http.route": route})
        span.set(**{"http.response.status_code": answer.status, "allot.owner": owner, "allot.job_id": job_id})
    belongs = {**logs.told(), **{name: said for name, said in (("owner", owner), ("job_id", job_id)) if said}}
    if not (route in QUIET and answer.status < 400):
        fields = {"method": scope["method"], "route": route, "status": answer.status, "ms": round(1e3 * seconds, 1)}
        fields |= {"bytes": answer.size, "client": (scope.get("client") or ("", 0))[0]}
        path = scope["path"][:200].replace("\n", " ")
        logs.record(ACCESS, f"{scope['method']} {path} {answer.status}", fields, belongs)
    action = AUDITED.get((scope["method"], route))
    if action and answer.status < 400:
        digest = {"digest": parameters["digest"]} if "digest" in parameters else {}
        logs.record(logs.AUDIT, action, {"action": action, **digest}, belongs)
