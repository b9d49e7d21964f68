"""What an answer is written in: its headers go with the first piece of its body."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from app.http.joined import COPIED, Joined

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Transport(asyncio.Transport):
    """Remembers what each call wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes] = []

    def write(self, data: Any) -> None:
        self.calls.append(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.calls.append(b"".join(list_of_data))

    def close(self) -> None:
        self.calls.append(b"closed")


@pytest.fixture
def transport() -> Transport:
    return Transport()


def test_headers_wait_for_the_body(transport: Transport) -> None:
    joined = Joined(transport)
    joined.write(HEAD)
    assert transport.calls == []
    joined.write(memoryview(b"abc"))  # type: ignore[arg-type]
    joined.write(b"HTTP/1.1 \r\ncontent-length: 1")  # a piece of a body, whatever it looks like
    assert transport.calls == [HEAD + b"abc", b"HTTP/1.1 \r\ncontent-length: 1"]


def test_a_long_piece_is_not_copied(transport: Transport) -> None:
    joined, piece = Joined(transport), bytes(COPIED + 1)
    joined.write(HEAD)
    joined.write(piece)
    assert transport.calls == [HEAD + piece]


def test_an_empty_body_brings_the_headers_out(transport: Transport) -> None:
    joined = Joined(transport)
    joined.write(HEAD)
    joined.write(b"")
    assert transport.calls == [HEAD]


@pytest.mark.parametrize("first", [STREAM, b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_headers_of_what_may_take_long_go_at_once(transport: Transport, first: bytes) -> None:
    joined = Joined(transport)
    joined.write(first)
    assert transport.calls == [first]
    joined.write(b"more")
    assert transport.calls == [first, b"more"]


def test_what_waits_is_written_before_the_end(transport: Transport) -> None:
    joined = Joined(transport)
    joined.write(HEAD)
    joined.close()
    assert transport.calls == [HEAD, b"closed"]
