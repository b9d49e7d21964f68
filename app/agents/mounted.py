"""The same tools at /mcp of the API, over streamable HTTP, where the operator says so (ALLOT_MCP=1).

A tool's request is made to the application itself, with the headers of the agent's: whoever may not do something at the
API's own doors may not do it here. Paths of files are not taken.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar

import httpx
from fastapi import FastAPI, Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from app.agents.doors import MOST_NUMBERS, Doors
from app.http.auth import caller
from app.http.errors import problem
from app.http.limits import counted
from app.http.refusal import Refusal

PASSED_ON = ("authorization", "host", "origin", "sec-fetch-site")
"""What the API's doors look at to know who asks, and from which page."""
MOST_BYTES, MOST_VALUES = 1 << 20, 2 * MOST_NUMBERS
_asked: ContextVar[Mapping[str, str]] = ContextVar("headers of the agent's request")


class Agents:
    """The door at /mcp. Raises ImportError without the package mcp."""

    def __init__(self, app: FastAPI) -> None:
        from mcp.server.transport_security import TransportSecuritySettings

        from app.agents.server import make_server

        inside = httpx.ASGITransport(app, raise_app_exceptions=False)
        http = httpx.AsyncClient(transport=inside, base_url="http://localhost")
        self._server = make_server(Doors(http, None, lambda: _asked.get()), app.version)
        ours = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # `caller` sees to that below
        self._inner = self._server.streamable_http_app(json_response=True, stateless_http=True, transport_security=ours)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, once it is known who asks."""
        request = Request(scope, receive)
        try:
            await counted(request, await caller(request))
            body = await _body(request)
        except Refusal as refused:
            await problem(refused.status, refused.detail, refused.headers)(scope, receive, send)
            return
        carried = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        token = _asked.set(carried)
        try:
            await self._inner(scope, _again(body, receive), send)
        finally:
            _asked.reset(token)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """As long as the application runs."""
        async with self._server.session_manager.run():
            yield


async def _body(request: Request) -> bytes:
    """All of the body, which the package mcp would read without a limit and take apart in the event loop."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise Refusal(
                413, f"A message of an agent is at most {MOST_BYTES} bytes. Upload arrays with POST /v1/blobs."
            )
    if sum(map(body.count, b",[{")) > MOST_VALUES:
        raise Refusal(
            413, f"A message of an agent holds at most {MOST_VALUES} values. Upload arrays with POST /v1/blobs."
        )
    return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """What gives `body`, which was read already, and then whatever comes behind it."""
    given = False

    async def read() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


def install(app: FastAPI) -> None:
    """Open the door, where the settings say so. Raises RuntimeError where the package mcp is missing."""
    try:
        app.state.agents = Agents(app) if app.state.http.mcp else None
    except ImportError:
        raise RuntimeError("ALLOT_MCP=1 needs the package mcp: pip install 'allot[mcp]'") from None
    if app.state.agents is not None:
        app.router.routes.append(Route("/mcp", app.state.agents, methods=None, include_in_schema=False))
