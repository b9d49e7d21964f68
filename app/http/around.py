"""What is done around each request: its id and trace, its line in the log, its place in the counts, and patience with
a body that is still on its way.

One object sees all that passes between the server and the application. A layer for each of these duties would call the
next one for every message, which took longer than the duties.
"""

import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.logs import write
from app.http.metrics import Metrics
from app.intake.drain import drained
from workers.runtime import logs, traces

NOSNIFF = (b"x-content-type-options", b"nosniff")


class Exchange:
    """One request and its answer, as they pass by.

    Attributes:
        request_id: goes on the answer's headers.
        status: of the answer; 500 while there is none.
        size: bytes of its body so far.
        location: what its header of that name says.
        whole: nothing more of the request's body is to come.
        waits: its client waits for our word, and has sent nothing of the body.
    """

    __slots__ = ("_receive", "_send", "location", "request_id", "size", "status", "waits", "whole")

    def __init__(self, receive: Receive, send: Send, request_id: str, whole: bool, waits: bool) -> None:
        self._receive, self._send = receive, send
        self.request_id, self.whole, self.waits = request_id, whole, waits
        self.status, self.size, self.location = 500, 0, b""

    async def receive(self) -> Message:
        """The next message of the request."""
        self.waits = False
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.whole = True
        return message

    async def send(self, message: Message) -> None:
        """Send a message of the answer. Its first waits until the request has come, and tells its id."""
        kind = message["type"]
        if kind == "http.response.start":
            if not (self.whole or self.waits):
                await drained(self)
            self.status = message["status"]
            headers = message["headers"]
            message["headers"] = [*headers, NOSNIFF, (b"x-request-id", self.request_id.encode())]
            for name, value in headers:
                if name == b"location":
                    self.location = value
        elif kind == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)


class Around:
    """Middleware: all of it, around whatever answers."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and write down what came of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = _text(headers, b"x-request-id")
        request_id = given if given and logs.REQUEST_ID.fullmatch(given) else logs.new_request_id()
        whole = b"content-length" not in headers and b"transfer-encoding" not in headers
        waits = b"expect" in headers and headers[b"expect"].lower() == b"100-continue"
        exchange = Exchange(receive, send, request_id, whole, waits)
        parent = logs.new_traceparent(_text(headers, b"traceparent"))
        begun = time.perf_counter()
        span = traces.begin(f"{scope['method']} request", parent, kind="server")
        with logs.about(request_id=request_id, traceparent=span.traceparent):
            try:
                await self._app(scope, exchange.receive, exchange.send)
            finally:
                seconds = time.perf_counter() - begun
                route: Any = scope.get("route")
                path = getattr(route, "path", "none")
                self._metrics.count(scope["method"], path, exchange.status, seconds)
                write(scope, path, exchange, seconds, span)
                span.end()


def _text(headers: dict[bytes, bytes], name: bytes) -> str:
    """What a header says; "" where it is not there. Of several, the last counts."""
    return headers[name].decode("latin-1") if name in headers else ""
