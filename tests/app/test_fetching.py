"""Long bodies from their socket straight into memory: every byte in its place, however they come, and nothing behind
them taken for theirs."""

import contextlib
import io
import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.http.config import HttpSettings
from app.http.fetching import Line
from app.http.main import create_app
from app.intake.multipart import Reader
from tests.app.conftest import Service
from tests.app.listening import Listening
from tests.workers.service import eventually
from workers.jobs.job import StoreFull
from workers.store.digests import PIECE, digest_of
from workers.store.expected import Expected
from workers.store.folder import Folder
from workers.store.marks import before
from workers.store.store import Store
from workers.store.upload import Writer

NEXT = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
BOUNDARY = b"a-boundary"


class Fetched(Listening):
    """And how many bytes were fetched past its event loop."""

    def __init__(self, service: Service, patch: pytest.MonkeyPatch) -> None:
        self.count, self.folder = 0, service.settings.data_dir
        whole = Line._filled

        def counted(line: Line, *args: Any) -> int:
            found = whole(line, *args)
            self.count += found
            return found

        patch.setattr(Line, "_filled", counted)
        super().__init__(create_app(service.settings, HttpSettings(inline_elements=1000)), HttpSettings())


@pytest.fixture
def server(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetched]:
    found = Fetched(service, monkeypatch)
    yield found
    found.stop()


def upload(data: bytes, path: str = "/v1/blobs", kind: str = "application/octet-stream", more: str = "") -> bytes:
    more += f"Content-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode() + data


def answers(held: socket.socket) -> list[tuple[int, bytes]]:
    """Status and body of each answer, until the server closes."""
    file, found = held.makefile("rb"), []
    while line := file.readline():
        length = 0
        while (header := file.readline().strip().lower()) != b"":
            length = int(header.split(b":")[1]) if header.startswith(b"content-length") else length
        found.append((int(line.split()[1]), file.read(length)))
    return found


def numbers(count: int, seed: int = 0) -> bytes:
    file = io.BytesIO()
    np.save(file, np.random.default_rng(seed).random(count))
    return file.getvalue()


def multipart(parts: dict[str, bytes]) -> bytes:
    body = b"".join(
        b'--%b\r\nContent-Disposition: form-data; name="%b"; filename="%b.npy"\r\n\r\n%b\r\n'
        % (BOUNDARY, name.encode(), name.encode(), data)
        for name, data in parts.items()
    )
    return body + b"--" + BOUNDARY + b"--\r\n"


@pytest.mark.parametrize("count", [200_000, 600_000, PIECE // 8 - 16, PIECE // 4 - 16, PIECE // 4, 1_300_001])
def test_a_blob_is_fetched_and_what_follows_is_another_request(
    server: Fetched, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.fetching.STALL_S", 30.0)  # this process is client, too, and may be busy
    data = numbers(count, count)
    with server.connect() as held:
        held.sendall(upload(data) + upload(data[:-8]) + NEXT)
        first, second, third = answers(held)
    assert first[0] == 201, first[1]
    assert json.loads(first[1])["digest"] == digest_of(data)
    assert second[0] == 422  # its header promises one number more
    assert third[0] == 200
    assert server.count > len(data) // 2


def test_the_end_of_a_body_is_not_waited_for_by_itself(server: Fetched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last bytes are those of another piece, and come with the piece before."""
    asked, whole = list[tuple[int, int]](), Line._received

    def noted(line: Line, own: socket.socket, room: memoryview, tail: memoryview) -> int:
        asked.append((len(room), len(tail)))
        return whole(line, own, room, tail)

    monkeypatch.setattr(Line, "_received", noted)
    monkeypatch.setattr("app.http.fetching.STALL_S", 30.0)
    data = numbers(PIECE // 4)
    with server.connect() as held:
        held.sendall(upload(data) + NEXT)
        first, second = answers(held)
    assert json.loads(first[1])["digest"] == digest_of(data)
    assert second[0] == 200
    assert {tail for _, tail in asked} == {0, len(data) - 2 * PIECE}
    assert min(room for room, tail in asked if not tail) > len(data) - 2 * PIECE


def test_few_threads_wait_at_sockets(server: Fetched, monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever finds none comes as ever."""
    monkeypatch.setattr("app.http.fetching.MOST_AT_ONCE", 2)
    data, most = numbers(1_000_000), 0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(5)]
        text = upload(data)
        for held in clients:
            held.sendall(text[: 1 << 18])
        for start in range(1 << 18, len(text), 1 << 18):
            most = max(most, len(Line.under_way))
            for held in clients:
                held.sendall(text[start : start + (1 << 18)])
        for held in clients:
            held.sendall(NEXT)
        assert [[status for status, _ in answers(held)] for held in clients] == [[201, 200]] * 5
    assert 0 < most <= 2
    assert not Line.under_way


def test_a_slow_client_is_waited_for_as_ever(server: Fetched) -> None:
    data = numbers(500_000)
    room, most = server.app.state.desk.room, 0
    with server.connect() as held:
        text = upload(data)
        for start in range(0, len(text), 700_001):
            held.sendall(text[start : start + 700_001])
            time.sleep(0.15)
            most = max(most, room._total)
        held.sendall(NEXT)
        first, second = answers(held)
    assert first[0] == 201, first[1]
    assert json.loads(first[1])["digest"] == digest_of(data)
    assert second[0] == 200
    assert server.count < len(data)
    assert 0 < most <= len(data)  # what did not come in time was not counted twice


def test_a_client_that_goes_away_leaves_nothing(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a store of its own: into the service's, workers write the disk's copies of earlier answers at any time."""
    settings = replace(service.settings, data_dir=tmp_path, arena_dir=str(tmp_path / "shared"))
    server = Fetched(replace(service, settings=settings), monkeypatch)
    room, temporary = server.app.state.desk.room, server.app.state.store.folder.temporary
    try:
        with server.connect() as held:
            held.sendall(upload(numbers(1_000_000))[:-5_000_000])
            eventually(lambda: room._total and any(temporary.iterdir()))
        eventually(lambda: not room._total)
        assert not list(temporary.iterdir())
        assert httpx.get(f"http://127.0.0.1:{server.port}/livez", timeout=30).status_code == 200
    finally:
        server.stop()


def test_a_refusal_in_the_middle_leaves_the_connection_in_order(server: Fetched) -> None:
    body = multipart({"job": b"{", "cost": numbers(900_000)})
    with server.connect() as held:
        held.sendall(upload(body, "/v1/jobs", f"multipart/form-data; boundary={BOUNDARY.decode()}") + NEXT)
        first, second = answers(held)
    assert (first[0], second[0]) == (400, 200)


def test_a_disk_that_is_full_in_the_middle_holds_up_no_later_request(server: Fetched, monkeypatch: Any) -> None:
    def full(writer: Writer, count: int) -> None:
        raise StoreFull("there is no room")

    monkeypatch.setattr(Writer, "came", full)
    with server.connect() as held:
        held.sendall(upload(numbers(1_500_000)) + NEXT)
        first, second = answers(held)
    assert (first[0], second[0]) == (507, 200)


@pytest.mark.parametrize("claimed", [-1, 0, 1, 100_000])
def test_a_part_is_as_long_as_its_boundary_says(server: Fetched, claimed: int) -> None:
    """And not as its header claims."""
    cost = np.random.default_rng(5).random((4, 300_000))
    file = io.BytesIO()
    np.save(file, cost)
    data = file.getvalue()
    data = data + bytes(claimed) if claimed > 0 else data[: len(data) + claimed]
    body = multipart({"job": b'{"solver": "lap"}', "cost": data, "zz": b"1"} if claimed < 0 else
                     {"job": b'{"solver": "lap"}', "cost": data})  # fmt: skip
    kind = f"multipart/form-data; boundary={BOUNDARY.decode()}"
    with server.connect() as held:
        held.sendall(upload(body, "/v1/jobs", kind, "Prefer: wait=30\r\n") + NEXT)
        first, second = answers(held)
    assert first[0] == (200 if claimed == 0 else 422), first[1][:300]
    assert second[0] == 200
    if claimed == 0:
        assert json.loads(first[1])["input_digests"]["cost"]["blob"] == digest_of(data)


def put(reader: Reader, left: memoryview, most: Callable[[int], int]) -> None:
    """Into the places that it has, at most so many bytes at once of those that are left."""
    while left:
        place = reader.place()
        count = min(len(left), len(place), most(len(left)))
        place[:count] = left[:count]
        reader.came(place[:count])
        left = left[count:]


def cuts(rng: np.random.Generator, size: int) -> list[int]:
    return sorted({0, size, *rng.integers(0, size, rng.integers(1, 9)).tolist()})


@pytest.mark.parametrize("seed", range(40))
def test_however_a_body_is_cut_its_parts_are_the_same(service: Service, server: Fetched, seed: int) -> None:
    """Parts full of what looks like boundaries, in any mixture of what is fed and what is put into place."""
    rng = np.random.default_rng(seed)
    pieces = [
        b"\r",
        b"\n",
        b"\r\n",
        b"--",
        BOUNDARY,
        b"\r\n--" + BOUNDARY[:5],
        b"\r\n--",
        rng.bytes(9),
        rng.bytes(4000),
    ]
    noise = b"".join(pieces[int(k)] for k in rng.integers(0, len(pieces), rng.integers(1, 60)))
    noise = noise.replace(b"\r\n--" + BOUNDARY, b"")
    sent = {"a": noise, "b": numbers(int(rng.choice([3, 600_000])))[: -int(rng.integers(1, 99))] + noise, "c": b""}
    body = multipart(sent)
    store: Store = server.app.state.store
    assert isinstance(store.folder, Folder)
    size = Expected(len(body), arena=store.folder.arena)
    reader = Reader(BOUNDARY, lambda name: store.writer(size=size))
    try:
        for start, stop in itertools.pairwise(cuts(rng, len(body))):
            left = memoryview(body)[start:stop]
            if rng.random() < 0.4:
                reader.feed([bytes(left)])
                continue
            put(reader, left, lambda rest: int(rng.choice([1, 7, 5000, 1 << 22])) if rest < 9000 else 1 << 22)
        if reader.is_sought:
            reader.feed([b""])
        parts = reader.finish()
        assert all(part.sink.is_looked for part in parts.values() if part.sink.is_long)
        assert {name: part.sink.flush().read_bytes() for name, part in parts.items()} == sent
        assert {name: part.sink.digest for name, part in parts.items()} == {k: digest_of(v) for k, v in sent.items()}
    finally:
        for part in reader.parts.values():
            part.sink.close()


@pytest.mark.parametrize("block", range(4))
def test_a_boundary_that_comes_before_a_header_says_ends_the_part_all_the_same(
    server: Fetched, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads find it in what has come, and all behind it is given to the parser."""
    store: Store = server.app.state.store
    assert isinstance(store.folder, Folder)
    mark, cuts, cut = b"\r\n--" + BOUNDARY, list[int](), Writer.cut

    def noted(writer: Writer, at: int) -> Iterator[bytes]:
        cuts.append(at)
        return cut(writer, at)

    monkeypatch.setattr(Writer, "cut", noted)
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        whole = numbers(160_000, seed)
        missing = int(rng.choice([0, 1, len(mark) - 1, len(mark), 40, 150, 5_000, 400_000]))
        behind = bytes(rng.choice([0, 13], int(rng.choice([0, 3, 7_000])))) if missing == 0 else b""
        sent = {
            "a": b"{}",
            "b": whole[: len(whole) - missing] + behind,
            "c": rng.bytes(int(rng.choice([0, 90, 300_000]))),
        }
        body = multipart(sent)
        size = Expected(len(body) + 500_000, arena=store.folder.arena)
        reader = Reader(BOUNDARY, lambda name, size=size: store.writer(size=size))  # type: ignore[misc]
        near = [body.find(mark, 200) + int(rng.integers(-3, len(mark) + 3)) for _ in range(int(rng.integers(0, 4)))]
        begins = int(rng.integers(400, 9_000))
        borders = sorted({0, begins, *near, *rng.integers(begins, len(body), 3).tolist(), len(body)})
        try:
            for start, stop in itertools.pairwise(borders):
                left = memoryview(body)[start:stop]
                if start == 0 or rng.random() < 0.2:
                    reader.feed([bytes(left)])
                    continue
                put(reader, left, lambda _, rng=rng: int(rng.choice([50, 1 << 19, 1 << 22])))  # type: ignore[misc]
            if reader.is_sought:
                reader.feed([b""])
            parts = reader.finish()
            assert {name: part.sink.flush().read_bytes() for name, part in parts.items()} == sent
            assert {name: part.sink.digest for name, part in parts.items()} == {
                name: digest_of(data) for name, data in sent.items()
            }
        finally:
            for part in reader.parts.values():
                part.sink.close()
    assert len(cuts) > 3


@pytest.mark.parametrize("size", [0, 1, 12, 13, 14, 30])
def test_what_may_be_a_boundary_is_held_back(size: int) -> None:
    mark = b"\r\n--a-bound-x"
    rng = np.random.default_rng(size)
    for _ in range(500):
        text = b"".join(bytes([mark[int(k)]]) for k in rng.integers(0, len(mark), size))
        text = text[: int(rng.integers(0, size + 1))] + mark[: int(rng.integers(0, len(mark) + 1))]
        found = before(memoryview(bytearray(text)), mark)
        wanted = text.find(mark)
        if wanted < 0:
            wanted = next(k for k in range(len(text) + 1) if mark.startswith(text[k:]))
        assert found == wanted, text
