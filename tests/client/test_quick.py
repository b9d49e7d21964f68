"""Requests on connections of the client's own: kept, given up, broken, and left to httpx."""

import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from allot_client import AllotError, Client, Retry, Unreachable, UnusableKey, flows, quick, tasks
from allot_client.arrays import Array, Series, laid_flat
from allot_client.body import SLICE, Body
from allot_client.reading import WORTH_BYTES

from tests.client.test_weather import DONE

QUICK = Retry(attempts=3, first_s=0.001, longest_s=0.002)
COST = np.arange(16.0).reshape(4, 4)
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BODY = json.dumps(DONE)
GOOD = f"{HEAD}Content-Length: {len(BODY)}\r\n\r\n{BODY}".encode()
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n".encode()


class Peer:
    """A service that says what it was told to say, answer by answer; None hangs up."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers, self.heard, self.connections = list(answers), list[bytes](), 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._keep_on, args=(line,), daemon=True).start()

    def _keep_on(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as read:
            while self._answer(line, read):
                pass

    def _answer(self, line: socket.socket, read: Any) -> bool:
        head = b"".join(iter(read.readline, b"\r\n")) if read.peek(1) else b""
        if not head:
            return False
        lengths = [one for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")]
        self.heard.append(head + read.read(int(lengths[0].split(b":")[1]) if lengths else 0))
        answer = self.answers.pop(0) if self.answers else GOOD
        if answer is not None:
            line.sendall(answer)
        return answer is not None and b"Connection: close" not in answer

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    made: list[Peer] = []

    def make(*answers: bytes | None) -> Peer:
        made.append(Peer(*answers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_one_connection_for_many_requests_with_all_that_a_request_needs(peer: Callable[..., Peer]) -> None:
    there = peer(GOOD, CHUNKED)
    with Client(there.url + "/prefix/", api_key="secret", retry=QUICK) as client:
        for _ in range(3):
            assert client.lap(COST).objective == 3
        client._run(flows.send(_call("/v1/jobs", wait="1"), client.retry))
    assert there.connections == 1
    first = there.heard[0].decode()
    assert first.startswith("POST /prefix/v1/jobs HTTP/1.1\r\n")
    for line in (f"Host: {there.url[7:]}", "Authorization: Bearer secret", "Prefer: wait=20"):
        assert f"\r\n{line}\r\n" in first
    assert json.loads(first[first.index("{") :])["inputs"]["cost"] == COST.tolist()
    assert there.heard[3].startswith(b"POST /prefix/v1/jobs?wait=1 HTTP/1.1\r\n")


@pytest.mark.parametrize("broken", [None, GOOD[:-5], b"HTTP/1.1 200"], ids=["nothing", "half", "a piece of the head"])
def test_what_breaks_is_asked_again_with_its_key(peer: Callable[..., Peer], broken: bytes | None) -> None:
    there = peer(GOOD, None if broken is None else broken.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"), GOOD)
    if broken == b"HTTP/1.1 200":
        there.answers[1] = b"HTTP/1.1 200 Connection: close"
    with Client(there.url, retry=QUICK) as client:
        client.lap(COST)
        assert client.lap(COST).objective == 3
    assert there.connections == 2
    keys = [one.split(b"Idempotency-Key: ")[1][:32] for one in there.heard]
    assert keys[1] == keys[2] != keys[0]


def test_a_connection_that_the_service_closed_is_not_used_again(peer: Callable[..., Peer]) -> None:
    there = peer(GOOD.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"))
    with Client(there.url, retry=Retry(attempts=1)) as client:
        assert client.lap(COST).objective == 3
        assert client.lap(COST).objective == 3
    assert there.connections == 2


@pytest.mark.parametrize("length", ["1" + "0" * 30, "4" + "0" * 18, "-5"])
@pytest.mark.parametrize("chunked", [False, True])
def test_lengths_that_cannot_be_are_a_broken_answer(peer: Callable[..., Peer], length: str, chunked: bool) -> None:
    says = f"Transfer-Encoding: chunked\r\n\r\n{length}" if chunked else f"Content-Length: {length}\r\n"
    there = peer(f"{HEAD}{says}\r\n{{}}".encode(), GOOD)
    with Client(there.url, retry=QUICK) as client:
        assert client.lap(COST).objective == 3
        assert len(there.heard) == 2
        there.answers = [f"{HEAD}{says}\r\n{{}}".encode()]
        with pytest.raises(Unreachable, match=r"does not say how long it is|says a length that cannot be"):
            client._run(flows.send(_call("/v1/jobs"), Retry(attempts=1)))


def test_silence_ends_and_nobody_there_is_said(peer: Callable[..., Peer]) -> None:
    there = peer(b"")
    waiting = flows.send(replace(_call("/v1/jobs"), timeout_s=0.05), Retry(attempts=1))
    with Client(there.url) as client, pytest.raises(Unreachable, match="TimeoutError at"):
        client._run(waiting)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with Client(nobody, retry=Retry(attempts=1)) as client, pytest.raises(Unreachable, match="nothing answers at"):
        client.lap(COST)


def test_what_is_not_plain_is_left_to_httpx(peer: Callable[..., Peer], monkeypatch: pytest.MonkeyPatch) -> None:
    assert Client("https://127.0.0.1")._quick is None
    assert Client("http://me:secret@127.0.0.1")._quick is None
    there = peer()
    with Client(there.url) as client:
        asked: list[httpx.Request] = []
        client._http.event_hooks = {"request": [asked.append], "response": []}
        client.lap(COST)
        assert len(asked) == 1
        assert not client._quick.takes(_call("/v1/jobs/a b"))  # type: ignore[union-attr]
        assert not client._quick.takes(_call("/v1/jobs/a\r\nb"))  # type: ignore[union-attr]
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert Client("http://127.0.0.1")._quick is None


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (GOOD.replace(b"\r\n", b"\n"), False),
        (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), True),
        (GOOD.replace(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200\r\nConnection: keep-alive\r\n"), False),
    ],
    ids=["bare line ends", "an older service", "one that keeps on"],
)
def test_answers_in_other_words(peer: Callable[..., Peer], answer: bytes, again: bool) -> None:
    there = peer(answer, GOOD)
    with Client(there.url, retry=Retry(attempts=1)) as client:
        for _ in range(2):
            assert client.lap(COST).objective == 3
    assert there.connections == 1 + again


@pytest.mark.parametrize(
    "head",
    [
        b"220 mail.example.com ready\r\n\r\n",
        b"HTTP/1.1 two\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 101 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
    ],
    ids=["another protocol", "no number", "no colon", "many headers", "a long line"],
)
def test_what_is_no_answer_is_said(peer: Callable[..., Peer], head: bytes) -> None:
    there = peer(head)
    with Client(there.url, retry=Retry(attempts=1)) as client, pytest.raises(Unreachable, match=r"\w+ at http://"):
        client.lap(COST)


def test_no_header_takes_a_line_end(peer: Callable[..., Peer]) -> None:
    there = peer(GOOD)
    with Client(there.url) as client, pytest.raises(ValueError, match=r"[Ii]nvalid header"):
        client._quick.ask(replace(_call("/v1/jobs"), headers={"X-Owner": "a\r\nX-Other: b"}))  # type: ignore[union-attr]
    assert not there.heard


def test_cookies_are_left_to_httpx(peer: Callable[..., Peer]) -> None:
    there = peer(GOOD.replace(b"OK\r\n", b"OK\r\nSet-Cookie: a=b\r\n"))
    with Client(there.url, retry=QUICK) as client:
        client.lap(COST)
        assert b"python-httpx" not in there.heard[0]
        client.lap(COST)
        assert b"python-httpx" in there.heard[1]


def test_a_long_body_goes_whole_and_again_whole(peer: Callable[..., Peer]) -> None:
    there = peer(None)
    large = np.random.default_rng(0).random((3 * SLICE // 8, 1))
    with Client(there.url, retry=QUICK) as client:
        client.lap(large)
    first, second = there.heard
    assert b"python-httpx" not in first
    assert large.tobytes() in first
    assert first.endswith(b"--\r\n")
    assert large.tobytes() in second
    assert first.partition(b"\r\n\r\n")[2].count(large.tobytes()) == 1


class Slow(Peer):
    """A service that reads in small portions, and waits between them for longer than a call is willing to."""

    PORTION, PAUSE_S, PAUSES = 1 << 20, 0.3, 4

    def _keep_on(self, line: socket.socket) -> None:
        with line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            whole, pauses = bytearray(), 0
            while not whole.endswith(b"--\r\n"):
                if len(whole) >= pauses * self.PORTION and pauses < self.PAUSES:
                    time.sleep(self.PAUSE_S)
                    pauses += 1
                whole += line.recv(1 << 16)
            self.heard.append(bytes(whole))
            line.sendall(GOOD)


@pytest.mark.parametrize("patient", [True, False], ids=["the system waits", "Python waits"])
@pytest.mark.parametrize("framed", [False, True])
def test_a_service_that_reads_slowly_gets_all_of_it(
    monkeypatch: pytest.MonkeyPatch, framed: bool, patient: bool
) -> None:
    monkeypatch.setattr(quick, "PATIENT", patient and quick.PATIENT)
    rng, there = np.random.default_rng(0), Slow()
    costs: Any = [rng.random((40, 40 + k % 3)) for k in range(900)] if framed else rng.random((1 << 10, 1 << 11))
    try:
        with Client(there.url, retry=Retry(attempts=1)) as client:
            call = tasks.lap(costs, {}, {}).call(0.0)
            assert client._run(flows.send(replace(call, timeout_s=0.5), client.retry)).status == 200
    finally:
        there.close()
    sent = b"".join(one.tobytes() for one in costs)
    assert there.heard[0].count(sent) == 1


@pytest.mark.parametrize("patient", [True, False], ids=["the system waits", "Python waits"])
def test_a_service_that_reads_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, patient: bool) -> None:
    monkeypatch.setattr(quick, "PATIENT", patient and quick.PATIENT)
    begun = time.monotonic()
    call = replace(tasks.lap(np.zeros((1 << 11, 1 << 11)), {}, {}).call(0.0), timeout_s=0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(url) as client, pytest.raises(Unreachable, match="TimeoutError at"):
            client._run(flows.send(call, Retry(attempts=1)))
    assert 0.2 <= time.monotonic() - begun < 30


@pytest.mark.parametrize("way", ["sendmsg", "a system without it", "httpx"])
def test_frames_go_from_where_they_lie_and_arrive_as_one_array(
    peer: Callable[..., Peer], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Some 6 MiB of frames: more than a socket takes at once, so that it ends within frames."""
    random = np.random.default_rng(3)
    frames = [random.random(size) for size in random.integers(10, 61, (600, 2))]
    frames[5:5] = [np.zeros((0, 7)), np.asfortranarray(random.random((9, 11))), random.random((20, 20))[::2, 1::3]]
    if way == "a system without it":
        monkeypatch.setattr(quick, "GATHERS", False)
    there = peer(GOOD)
    with Client(there.url, retry=QUICK) as client:
        if way == "httpx":
            client._quick = None
        task = tasks.lap(frames, {}, {})
        assert isinstance(task.inputs["cost"], Series)
        client._run(flows.send(task.call(1.0), client.retry))
    whole = there.heard[0]
    file = io.BytesIO(whole[whole.index(b"\x93NUMPY") :])
    assert np.load(file).tobytes() == b"".join(one.tobytes() for one in frames)
    assert np.load(io.BytesIO(whole[whole.rindex(b"\x93NUMPY") :])).tolist() == [list(one.shape) for one in frames]


def test_frames_of_two_types_or_few_entries_are_one_array() -> None:
    frames: list[Array] = [np.ones((400, 400)), np.ones((300, 400), np.float32)]
    cost, _ = laid_flat(frames)
    assert isinstance(cost, np.ndarray)
    assert cost.dtype == np.float64
    assert isinstance(laid_flat([np.ones((3, 4))] * 9)[0], np.ndarray)
    there = laid_flat([frames[0]] * 9)[0]
    assert isinstance(there, Series)
    assert all(np.shares_memory(one, frames[0]) for one in there.arrays)


@pytest.mark.parametrize("count", [8, WORTH_BYTES // 8], ids=["short", "long"])
def test_a_file_of_arrays_is_read_whole_and_half_of_one_is_none(peer: Callable[..., Peer], count: int) -> None:
    column = np.arange(count)
    entry = {"dtype": "I64", "shape": [count], "data_offsets": [0, column.nbytes]}
    said = {"document": json.dumps({**DONE, "assignment": None})}
    told = json.dumps({"__metadata__": said, "assignment": entry})
    told += " " * (-len(told) % 8)
    file = len(told).to_bytes(8, "little") + told.encode() + column.tobytes()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-safetensors\r\nContent-Length: {len(file)}\r\n"
    half = f"{head}Connection: close\r\n\r\n".encode() + file[: len(file) // 2]
    there = peer(half, f"{head}\r\n".encode() + file)
    with Client(there.url, retry=QUICK) as client:
        assert (client.lap(np.zeros((SLICE // 8, 1))).assignment == column).all()
    assert len(there.heard) == 2


def test_a_service_that_answers_before_it_has_read_all_is_heard() -> None:
    """As one does that refuses a body for its length."""
    body = json.dumps({"type": "x", "title": "Too Large", "status": 413, "detail": "that is too much"})
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            line, _ = listener.accept()
            line.recv(1 << 10)
            line.sendall(f"HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            line.close()  # on what was not read: the connection is reset

        threading.Thread(target=refuse, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(url, retry=Retry(attempts=1)) as client, pytest.raises(AllotError, match="that is too much"):
            client.lap(np.zeros((64 * SLICE // 8, 1)))


def _call(path: str, **params: str) -> flows.Call:
    return flows.Call("POST", path, params=params, body=Body([b"{}"], "application/json"))


@pytest.mark.parametrize(
    ("key", "place"), [("ключ", 1), ("schlüssel", 5), ("two words", 4), ("a\x00", 2), ("a\r\nX-Owner: b", 2)]
)
def test_a_key_that_no_header_carries_is_told_at_once(key: str, place: int) -> None:
    with pytest.raises(UnusableKey, match=f"character {place} of the API key"):
        Client("http://127.0.0.1:9", api_key=key)


def test_a_key_as_a_file_ends_with_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer(GOOD)
    monkeypatch.setenv("ALLOT_API_KEY", " secret\n")
    with Client(peer.url) as client:
        client.lap(COST)
    assert b"Authorization: Bearer secret\r\n" in b"".join(peer.heard)
