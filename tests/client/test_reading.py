"""Long answers are read once, into one piece of memory, and a break in the middle is a break."""

import resource
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from mmap import PAGESIZE

import httpx
import numpy as np
import pytest
from allot_client import Client, errors, flows, memory
from allot_client.memory import AT_ONCE

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n"
KIND = flows.SAFETENSORS.encode()
LONG = np.random.default_rng(0).bytes((8 << 20) + 12_345)
Answering = Callable[[socket.socket], None]


@pytest.fixture
def asked() -> Iterator[Callable[[Answering], Client]]:
    """A client of a server that answers each connection in that way."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(answering: Answering) -> Client:
        def run() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line:
                    line.recv(65536)
                    answering(line)

        threading.Thread(target=run, daemon=True).start()
        return Client(f"http://127.0.0.1:{listener.getsockname()[1]}", retry=flows.Retry(attempts=1))

    yield serve
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def get(client: Client, timeout_s: float = 10.0) -> flows.Answer:
    return client._carry_out(flows.Call("GET", "/v1/jobs/x/result", timeout_s=timeout_s))


@pytest.mark.parametrize("ahead", [0, 1, 100_000])
def test_the_bytes_are_those_that_were_sent_wherever_the_headers_end(
    asked: Callable[[Answering], Client], ahead: int
) -> None:
    def answering(line: socket.socket) -> None:
        line.sendall(HEAD % (KIND, len(LONG), b"") + LONG[:ahead])
        time.sleep(0.05)
        line.sendall(LONG[ahead:])

    with asked(answering) as client:
        for _ in range(2):  # on a new connection
            answer = get(client)
            assert answer.content == LONG
            assert isinstance(answer.content, memoryview)
            assert answer.content.readonly


def test_an_answer_of_a_mebibyte_is_long(asked: Callable[[Answering], Client]) -> None:
    whole = LONG[: 1 << 20]
    with asked(lambda line: line.sendall(HEAD % (KIND, len(whole), b"") + whole)) as client:
        content = get(client).content
        assert isinstance(content, memoryview)
        assert content == whole


def test_a_long_answer_is_in_memory_once(asked: Callable[[Answering], Client]) -> None:
    def answering(line: socket.socket) -> None:
        line.sendall(HEAD % (KIND, len(LONG), b""))
        line.sendall(LONG)

    with asked(answering) as client:
        tracemalloc.start()
        try:
            assert len(get(client).content) == len(LONG)
            assert tracemalloc.get_traced_memory()[1] < 1.5 * len(LONG)
        finally:
            tracemalloc.stop()


def test_an_answer_that_breaks_off_is_no_answer(asked: Callable[[Answering], Client]) -> None:
    def answering(line: socket.socket) -> None:
        line.sendall(HEAD % (KIND, len(LONG), b"") + LONG[: AT_ONCE + 1])

    with asked(answering) as client, pytest.raises(errors.Unreachable, match="before the end of the answer"):
        client._run(flows.send(flows.Call("GET", "/v1/jobs/x/result"), client.retry))


def test_an_answer_that_stops_coming_is_waited_for_no_longer_than_said(asked: Callable[[Answering], Client]) -> None:
    done = threading.Event()

    def answering(line: socket.socket) -> None:
        line.sendall(HEAD % (KIND, len(LONG), b"") + LONG[:AT_ONCE])
        done.wait(10)

    with asked(answering) as client:
        assert "ReadTimeout" in str(get(client, 0.2).broken)
        done.set()


@pytest.mark.parametrize("how", ["short", "packed", "another kind"])
def test_what_is_not_long_or_not_plain_is_read_as_ever(asked: Callable[[Answering], Client], how: str) -> None:
    import gzip

    body, said, kind = LONG, b"", KIND
    if how == "short":
        body = LONG[:1000]
    elif how == "packed":
        body, said = gzip.compress(LONG, 1), b"Content-Encoding: gzip\r\n"
    else:
        kind = b"application/octet-stream"
    with asked(lambda line: line.sendall(HEAD % (kind, len(body), said) + body)) as client:
        answer = get(client)
        assert isinstance(answer.content, bytes)
        assert answer.content == (LONG[:1000] if how == "short" else LONG)


def test_an_answer_that_came_by_no_connection_is_read_too() -> None:
    headers = {"Content-Type": flows.SAFETENSORS}
    line = httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, content=LONG))
    client = Client("http://test")
    client._http = httpx.Client(base_url="http://test", transport=line)
    assert get(client).content == LONG


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_of_a_long_answer_are_found_ahead_of_its_bytes_and_not_further(
    asked: Callable[[Answering], Client], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(memory, "WORTH_BYTES", 1 << 20)
    monkeypatch.setattr(memory, "STEP", 1 << 16)
    found: list[tuple[int, int]] = []
    most = (memory.AHEAD + 1) * memory.STEP
    early = threading.Event()
    monkeypatch.setattr(memory, "_found", lambda address, count: found.append((address, count)))

    def answering(line: socket.socket) -> None:
        line.sendall(HEAD % (KIND, len(LONG), b"") + LONG[:1000])
        time.sleep(0.2)
        early.set() if sum(count for _, count in found) <= most else None
        line.sendall(LONG[1000:])

    with asked(answering) as client:
        call = flows.Call(method, "/v1/jobs", timeout_s=10.0)
        assert client._carry_out(call).content == LONG
    assert early.is_set()
    begins = [at - min(found)[0] for at, _ in sorted(found)]  # of what came before a thread did it is left out
    assert begins[: memory.AHEAD] == [k * memory.STEP for k in range(memory.AHEAD)]
    assert all(at % memory.STEP == 0 and at < len(LONG) for at in begins)
    assert sum(count for _, count in found) <= len(LONG)
    assert not [one for one in threading.enumerate() if one.name.startswith("allot-pages")]


def test_a_page_that_was_found_ahead_is_not_found_again() -> None:
    count = 32 << 20
    whole = np.empty(count, np.uint8)
    address = whole.ctypes.data
    if memory._madvise() is None or memory._madvise()(address - address % PAGESIZE, PAGESIZE, memory.FOUND) != 0:
        pytest.skip("this system finds pages as they are written to")
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    memory._found(address, count)
    there = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    whole[:: PAGESIZE // 2] = 1
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - there < 64, there - before
