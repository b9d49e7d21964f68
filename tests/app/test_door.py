"""Connections that cost nothing to open: half-open ones, headers and bodies that do not come, answers not read."""

import asyncio
import contextlib
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from app.http import door
from app.http.config import HttpSettings
from app.http.door import Sparse
from app.http.main import create_app
from tests.app.listening import Listening
from tests.workers.service import allowed, eventually, quickest
from workers.runtime.config import Settings

QUICK = HttpSettings(
    header_timeout_s=1.0, body_timeout_s=1.0, idle_s=1.0, max_idle_per_address=50, max_connections=400,
    max_connections_per_address=300, requests_per_connection=3, unread_timeout_s=1.0
)  # fmt: skip


class Guarded(Listening):
    """Without Redis behind it: /livez and refusals are all that is asked."""

    def __init__(self, folder: Path, http: HttpSettings) -> None:
        settings = Settings(redis_url="unix:///nowhere/redis.sock", data_dir=folder)
        super().__init__(create_app(settings, http), http)

    def told(self, request: bytes) -> bytes:
        """All that the server says to these bytes until it closes."""
        with self.connect() as held:
            held.sendall(request)
            return rest_of(held)

    def alive(self) -> float:
        """Seconds until /livez answers."""
        begun = time.monotonic()
        assert httpx.get(f"http://127.0.0.1:{self.port}/livez", timeout=10).status_code == 200
        return time.monotonic() - begun


def rest_of(held: socket.socket) -> bytes:
    told = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := held.recv(65536):
            told += piece
    return told


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    made = Guarded(tmp_path, QUICK)
    try:
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize("sent", [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nHost: a\r\nX: "])
def test_half_open_requests_leave_the_service_reachable(guarded: Guarded, sent: bytes) -> None:
    held = []
    for _ in range(350):
        held.append(guarded.connect())
        held[-1].sendall(sent)
    assert guarded.alive() < allowed(3)
    assert len(guarded.server.door.all) <= QUICK.max_idle_per_address + 1
    until = time.monotonic() + allowed(8)
    while guarded.server.door.all:
        assert time.monotonic() < until, "headers that never come are waited for"
        time.sleep(0.1)
    assert not guarded.server.door.of_address
    assert not guarded.server.door.idle_of_address
    for one in held:
        one.close()


def test_late_headers_are_told_so(guarded: Guarded) -> None:
    told = guarded.told(b"GET /livez HTTP/1.1\r\nHost: a\r\n")
    assert told.startswith(b"HTTP/1.1 408 ")
    assert b"nosniff" in told


def test_headers_that_drip_are_late_too(guarded: Guarded) -> None:
    with guarded.connect() as held:
        held.sendall(b"GET /livez HTTP/1.1\r\n")
        begun = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - begun < allowed(8):
                held.sendall(b"X: y\r\n")
                time.sleep(0.2)
        assert time.monotonic() - begun < allowed(6)


def test_a_body_that_does_not_come_ends(guarded: Guarded) -> None:
    head = (
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    begun = time.monotonic()
    assert guarded.told(head).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - begun < allowed(6)


def test_a_refused_request_without_its_body_ends(guarded: Guarded) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nContent-Length: 100\r\n\r\n"
    begun = time.monotonic()
    assert guarded.told(head).startswith((b"HTTP/1.1 415 ", b"HTTP/1.1 408 "))
    assert time.monotonic() - begun < allowed(6)


def test_a_refusal_does_not_wait_for_a_body_that_never_comes(tmp_path: Path) -> None:
    made = Guarded(tmp_path, HttpSettings())
    try:
        with made.connect() as held:
            begun = time.monotonic()
            held.sendall(b"POST /v1/blobs?digest=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
            assert held.recv(4096).startswith(b"HTTP/1.1 422 ")
            assert time.monotonic() - begun < allowed(5)
    finally:
        made.stop()


def test_endless_headers(guarded: Guarded) -> None:
    with guarded.connect() as held, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        held.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n")
        for _ in range(64):
            held.sendall(b"X: " + b"y" * 4000 + b"\r\n")
        assert rest_of(held).startswith(b"HTTP/1.1 431 ")


AMBIGUOUS = {
    "both lengths": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths, turned": b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "a signed length": b"Content-Length: +3\r\n\r\nabc",
    "bare LF in a header": b"X: y\n\r\n",
    "bare LF at the end": b"X: y\r\n\n",
    "bare CR": b"X: y\rZ: 1\r\n\r\n",
    "bare LF in a chunk": b"Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
    "another coding": b"Transfer-Encoding: gzip\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "a folded header": b"X: a\r\n b\r\n\r\n",
    "a space before the colon": b"X : a\r\n\r\n",
}


@pytest.mark.parametrize("headers", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguous_requests_are_refused(guarded: Guarded, headers: bytes) -> None:
    told = guarded.told(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + headers)
    assert told.startswith(b"HTTP/1.1 400 ")
    assert b"x-content-type-options: nosniff" in told
    assert told.count(b"HTTP/1.1") == 1  # nothing behind it is taken for another request
    assert b"connection: close" in told.lower()


def test_a_piece_of_a_body_is_handed_on_without_a_copy() -> None:
    """As long as the last one was fetched; those that were not go together in their order."""
    pieces: list[bytes] = []
    came: list[Any] = []

    class Watched(door.Guarded):
        door = door.Door(HttpSettings())

        def on_body(self, body: bytes) -> None:
            pieces.append(body)
            super().on_body(body)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while not came or came[-1]["more_body"]:
            came.append(await receive())

    async def run() -> None:
        config = uvicorn.Config(app, lifespan="off")
        config.load()
        connection = Watched(config, ServerState(), {})
        connection.connection_made(Mock(**{"is_closing.return_value": False, "get_extra_info.return_value": None}))
        connection.data_received(b"POST / HTTP/1.1\r\nContent-Length: 700000\r\n\r\n")
        for number in range(7):
            connection.data_received(bytes([number]) * 100_000)
            if number != 3:
                await asyncio.sleep(0.01)
        connection.connection_lost(None)

    asyncio.run(run())
    assert b"".join(message["body"] for message in came) == b"".join(bytes([n]) * 100_000 for n in range(7))
    assert [any(message["body"] is piece for message in came) for piece in pieces] == [
        True, True, True, False, False, True, True,
    ]  # fmt: skip


def test_a_connection_is_closed_after_so_many_requests(guarded: Guarded) -> None:
    request = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    with guarded.connect() as held:
        told = b""
        for count in range(1, 4):
            held.sendall(request)
            while told.count(b'"alive"') < count:
                piece = held.recv(4096)
                assert piece, told
                told += piece
        assert told.count(b"connection: close") == 1
        assert rest_of(held) == b""


def test_an_address_has_so_many_connections(tmp_path: Path) -> None:
    few = HttpSettings(max_connections_per_address=5, max_idle_per_address=100)
    made = Guarded(tmp_path, few)
    try:
        held = [made.connect() for _ in range(5)]
        while len(made.server.door.all) < 5:
            time.sleep(0.01)
        told = made.told(b"")
        assert told.startswith(b"HTTP/1.1 429 ")
        held.pop().close()
        eventually(lambda: len(made.server.door.all) == 4)
        assert made.alive() < allowed(3)
    finally:
        made.stop()


def test_the_oldest_idle_connection_makes_room(tmp_path: Path) -> None:
    made = Guarded(tmp_path, HttpSettings(max_connections=5))
    try:
        held = [made.connect() for _ in range(5)]
        while len(made.server.door.all) < 5:
            time.sleep(0.01)
        assert made.alive() < allowed(3)
        assert rest_of(held[0]) == b""  # closed
        held[4].sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in rest_of(held[4])
    finally:
        made.stop()


def test_room_is_made_by_whoever_holds_many(tmp_path: Path) -> None:
    made = Guarded(tmp_path, HttpSettings(max_connections=6))
    try:
        with socket.create_connection(("127.0.0.1", made.port), 30, ("127.0.0.2", 0)) as first:
            eventually(lambda: len(made.server.door.all) == 1)
            held = [made.connect() for _ in range(5)]
            eventually(lambda: len(made.server.door.all) == 6)
            for _ in range(3):
                assert made.alive() < allowed(3)
            assert rest_of(held[0]) == b""  # closed
            first.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in rest_of(first)
    finally:
        made.stop()


def test_a_thousand_may_be_opened_before_one_asks(tmp_path: Path) -> None:
    made = Guarded(tmp_path, HttpSettings())
    try:
        with contextlib.ExitStack() as kept:
            held = [kept.enter_context(made.connect()) for _ in range(1000)]
            for one in held:
                one.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert all(b"200 OK" in rest_of(one) for one in held)
    finally:
        made.stop()


def test_the_log_is_not_flooded(caplog: pytest.LogCaptureFixture) -> None:
    sparse, log = Sparse(per_s=3), logging.getLogger("allot.test.sparse")
    record = log.makeRecord(log.name, logging.WARNING, "f", 1, "%s turned away", ("x",), None)
    record.created = 100.0
    assert [sparse.filter(record) for _ in range(5)] == [True] * 3 + [False] * 2
    other = log.makeRecord(log.name, logging.WARNING, "f", 1, "something else", (), None)
    other.created = 100.5
    assert sparse.filter(other)
    later = log.makeRecord(log.name, logging.WARNING, "f", 1, "%s turned away", ("y",), None)
    later.created = 101.0
    assert sparse.filter(later)
    assert later.getMessage() == "y turned away (2 more lines were left out)"
    served = log.makeRecord("allot.audit", logging.INFO, "f", 1, "%s", ("job.submit",), None)
    assert all(sparse.filter(served) for _ in range(100))  # what was done is written down, however much it is


def test_a_pipelined_second_request_is_answered(guarded: Guarded) -> None:
    request = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    told = guarded.told(request + request + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert told.count(b"HTTP/1.1 200") == 3


def test_a_thread_that_computes_keeps_the_loop_from_little(guarded: Guarded) -> None:
    """Each answer that is written lets other threads in. With Python's own interval that costs 5 ms an answer."""
    ended, usual, long = threading.Event(), sys.getswitchinterval(), 0.2

    def compute() -> None:
        while not ended.is_set():
            sum(range(1000))

    def took() -> float:
        begun = time.monotonic()
        for _ in range(2):
            assert guarded.told(3 * b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").count(b"HTTP/1.1 200") == 3
        return time.monotonic() - begun

    assert guarded.alive() < allowed(3)
    assert sys.getswitchinterval() <= 0.001
    thread = threading.Thread(target=compute)
    thread.start()
    try:
        here = min(took() for _ in range(3))
        sys.setswitchinterval(long)  # beside this one, a loaded machine does not matter, which is slow with either
        # While the machine runs nothing of the thread that computes, even the long interval costs nothing: ask on.
        assert here < next((cost for cost in (took() for _ in range(1000)) if cost >= long), 0.0) / 2
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(usual)


def test_answers_name_no_address(guarded: Guarded) -> None:
    def asked(path: str) -> float:
        begun = time.monotonic()
        answer = httpx.get(f"http://127.0.0.1:{guarded.port}{path}", timeout=20)
        assert (answer.status_code, "nowhere" in answer.text) == (503, False)
        assert answer.headers["x-content-type-options"] == "nosniff"
        return time.monotonic() - begun

    assert quickest(lambda: asked("/readyz"), 2) < allowed(2)
    asked("/v1/devices")


def test_ready_or_not_is_told_soon_though_redis_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        app = create_app(Settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", data_dir=tmp_path))

        async def run() -> None:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                took = []
                for _ in range(4):
                    begun = time.monotonic()
                    assert (await client.get("/readyz")).status_code == 503
                    took.append(time.monotonic() - begun)
                assert sorted(took)[-2] < allowed(1.5), took  # the machine may have paused in one of them
            await app.state.waiting.stop()

        asyncio.run(run())


def test_a_fault_of_ours_is_not_sniffed_either(guarded: Guarded) -> None:
    async def fault() -> None:
        raise RuntimeError("a secret")

    guarded.app.add_api_route("/fault", fault)
    answer = httpx.get(f"http://127.0.0.1:{guarded.port}/fault", timeout=10)
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
