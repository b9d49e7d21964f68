"""Answer only once the request has come: a connection that closes on unread bytes is reset, and its client never
sees why it was refused."""

import time
from collections.abc import MutableMapping
from typing import Any

from anyio import move_on_after
from starlette.types import ASGIApp, Receive, Scope, Send

DRAIN_S = 2.0


class Drain:
    """Middleware that reads on for a moment when an answer (401, 413, 415, 422, ...) is ready before its request is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, watching how much of its body has been read."""
        headers = dict(scope.get("headers", ()))
        if scope["type"] != "http" or not ({b"content-length", b"transfer-encoding"} & headers.keys()):
            await self.app(scope, receive, send)
            return
        waits = headers.get(b"expect", b"").lower() == b"100-continue"  # for our word, and has sent nothing
        whole = False

        async def read() -> MutableMapping[str, Any]:
            nonlocal whole, waits
            waits = False
            message = await receive()
            whole = whole or message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def answer(message: MutableMapping[str, Any]) -> None:
            until = time.monotonic() + DRAIN_S
            while message["type"] == "http.response.start" and not (whole or waits) and time.monotonic() < until:
                with move_on_after(until - time.monotonic()):  # a body that never comes is not waited for
                    await read()
            await send(message)

        await self.app(scope, read, answer)
