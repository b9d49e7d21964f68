"""Requests that ask for another protocol are answered in this one, with their bodies, and so is what follows them."""

import re
import socket
import time
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from fastapi import FastAPI, Request, Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http.config import HttpSettings
from tests.app.listening import Listening

BODY = b'{"solver": "lap", "inputs": {"cost": [[4, 1], [2, 0]]}}'
JAVA = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
"""As java.net.http sends by itself."""
SOCKETS = b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:9], BODY[9:])) + b"0\r\n\r\n"
FRAMED = [(LENGTH, BODY), (CHUNKED, CHUNKS)]
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def post(headers: bytes, body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n%b" % (headers, body)


@pytest.fixture(scope="module", params=[False, True])
def server(request: pytest.FixtureRequest) -> Iterator[Listening]:
    """Where no library of WebSockets is installed, and where one is."""
    app = FastAPI()
    app.state.waiting = Mock()  # which the server ends

    @app.api_route("/", methods=["GET", "POST"])
    async def echo(request: Request) -> Response:
        return Response(b"<%b>" % await request.body())

    found = Listening(app, HttpSettings(header_timeout_s=2.0, body_timeout_s=2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpToolsProtocol, "_should_upgrade_to_ws", lambda self: request.param)
        yield found
    found.stop()


def told(held: socket.socket) -> bytes:
    """All until the server closes."""
    said = b""
    while piece := held.recv(65536):
        said += piece
    return said


def answers(server: Listening, *sent: bytes) -> list[bytes]:
    """The bodies of the answers to these bytes, in pieces, and to a last request behind them."""
    with server.connect() as held:
        for piece in (*sent, LAST):
            held.sendall(piece)
            time.sleep(0.05 if len(sent) < 9 else 0)
        said = told(held)
    found = re.findall(rb"<(.*?)>", said)
    assert said.count(b"HTTP/1.1 200 OK") == len(found), said
    return found


@pytest.mark.parametrize(("framing", "body"), FRAMED)
@pytest.mark.parametrize("wish", [JAVA, SOCKETS, b""])
def test_a_body_is_read(server: Listening, wish: bytes, framing: bytes, body: bytes) -> None:
    whole = post(wish + framing, body)
    head = len(whole) - len(body)
    assert answers(server, whole) == [BODY, b""]
    assert answers(server, whole[:head], whole[head:]) == [BODY, b""]
    assert answers(server, whole[: head + 5], whole[head + 5 :]) == [BODY, b""]
    assert answers(server, *(bytes([byte]) for byte in whole)) == [BODY, b""]


def test_what_follows_is_read(server: Listening) -> None:
    wishes = [post(JAVA + framing, body) for framing, body in FRAMED]
    plain, nothing = post(*FRAMED[0]), b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % JAVA
    expected = [BODY, b"", BODY, BODY, b"", b""]
    assert answers(server, b"".join([wishes[0], nothing, wishes[1], plain, nothing])) == expected


def test_many_in_one_piece(server: Listening) -> None:
    assert answers(server, 800 * post(JAVA + LENGTH, BODY)) == [*800 * [BODY], b""]


@pytest.mark.parametrize("wish", [JAVA, b""])
def test_a_client_that_waits_for_our_word_gets_it(server: Listening, wish: bytes) -> None:
    with server.connect() as held:
        held.sendall(post(b"Expect: 100-continue\r\n" + wish + LENGTH, b""))
        assert held.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        held.sendall(BODY + LAST)
        said = told(held)
    assert re.findall(rb"<(.*?)>", said) == [BODY, b""]


def test_a_body_that_does_not_come_is_not_waited_for(server: Listening) -> None:
    with server.connect() as held:
        held.sendall(post(JAVA + LENGTH, BODY[:9]))
        assert told(held).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("framing", [LENGTH + CHUNKED, LENGTH + LENGTH.replace(b"5", b"6"), b"Content-Length: +3\r\n"])
def test_what_can_be_read_in_two_ways_is_refused(server: Listening, framing: bytes) -> None:
    with server.connect() as held:
        held.sendall(post(JAVA + framing, CHUNKS))
        assert told(held).startswith(b"HTTP/1.1 400 ")
