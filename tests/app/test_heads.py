"""The head of an answer is what uvicorn would write, byte for byte, and does to its cycle what uvicorn's would."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.http.heads import Heads

Header = tuple[bytes, bytes]
JSON, LENGTH = (b"content-type", b"application/json"), (b"content-length", b"3")


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written, self.closed = b"", False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def cycle_of(transport: Transport, **changed: Any) -> RequestResponseCycle:
    told: dict[str, Any] = {
        "scope": {"method": "POST", "http_version": "1.1", "client": None, "path": "/", "query_string": b""},
        "transport": transport,
        "flow": FlowControl(cast("asyncio.Transport", transport)),
        "logger": logging.getLogger("test"),
        "access_logger": logging.getLogger("test"),
        "access_log": False,
        "default_headers": [(b"date", b"Mon, 30 Nov 2026 21:06:03 GMT")],
        "message_event": asyncio.Event(),
        "expect_100_continue": False,
        "keep_alive": True,
        "on_response": lambda: None,
    }
    return RequestResponseCycle(**(told | changed))


async def answered(ours: bool, status: int, headers: Sequence[Header], body: bytes, changed: dict[str, Any]) -> Any:
    """What was written, whether the connection was closed, what the cycle is left with, and what was raised."""
    transport = Transport()
    cycle = cycle_of(transport, **changed)
    if ours:
        cycle.__class__ = Heads
    send: Any = cycle.send
    raised = ""
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except RuntimeError as wrong:
        raised = str(wrong)
    left = {name: value for name, value in vars(cycle).items() if isinstance(value, bool | int | None)}
    return transport.written, transport.closed, left, raised


@pytest.mark.parametrize(
    "headers",
    [
        [LENGTH, JSON],
        [(b"Location", b"/v1/jobs/1"), (b"X-100%b", b"100%b %d"), JSON, LENGTH],
        [JSON],
        [],
        [LENGTH, (b"Connection", b"close")],
        [LENGTH, (b"connection", b"keep-alive")],
        [(b"transfer-encoding", b"chunked")],
        [LENGTH, (b"content-length", b"4")],
        [(b"content-length", b"4")],
        [LENGTH, (b"x-a", b"a\r\nx-b: b")],
        [LENGTH, (b"x-a", b"a\tb")],
        [LENGTH, (b"x a", b"b")],
        [LENGTH, (b"", b"b")],
    ],
)
@pytest.mark.parametrize("status", [200, 422, 204])
@pytest.mark.parametrize("changed", [{}, {"keep_alive": False}, {"expect_100_continue": True}])
def test_it_is_what_uvicorn_writes(status: int, headers: list[Header], changed: dict[str, Any]) -> None:
    for _ in range(2):  # the second time its form is known
        ours, theirs = (asyncio.run(answered(one, status, headers, b"abc", changed)) for one in (True, False))
        assert ours == theirs


def test_a_second_head_and_a_client_that_left_are_uvicorns() -> None:
    async def both(ours: bool) -> tuple[bytes, str]:
        transport = Transport()
        cycle = cycle_of(transport)
        if ours:
            cycle.__class__ = Heads
        send: Any = cycle.send
        raised = ""
        try:
            for _ in range(2):
                await send({"type": "http.response.start", "status": 200, "headers": [LENGTH]})
        except RuntimeError as wrong:
            raised = str(wrong)
        cycle.disconnected = True
        await send({"type": "http.response.body", "body": b"abc"})
        return transport.written, raised

    assert asyncio.run(both(True)) == asyncio.run(both(False))
