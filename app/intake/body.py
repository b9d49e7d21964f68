"""Reading request bodies: JSON whole under a limit, everything else in slices of a mebibyte for a thread to write.

No header is trusted for a size: an announced length over the limit is refused at once, and bytes are counted anyway.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from app.http.fetching import SCOPE, Holder, Into, Line
from app.http.refusal import Refusal
from app.http.short import said
from app.intake.visit import Visit
from workers.store.disk import room
from workers.store.inline import MOST_AWAITED_BYTES

SLICE = 1 << 20
GONE = "The client went away before its body had come."
IN_PLACE_BYTES = 1 << 16
"""Text of at most so many bytes is parsed where it is: in less time than another process takes to answer."""
SHORT_BYTES = MOST_AWAITED_BYTES + IN_PLACE_BYTES
"""Of a multipart body that stays in memory: arrays that can travel in the record of their job, and what is around."""


class Text:
    """Text that comes in pieces: in memory while it is short, then in a file.

    Args:
        limit: most bytes; 413 above.
        aside: names the file, which is made only then.
        told: what to say of too many bytes.
    """

    def __init__(self, limit: int, aside: Callable[[], Path], told: str = "The body") -> None:
        self.limit, self._aside, self._told = limit, aside, told
        self.size = 0
        self._path: Path | None = None
        self._data = bytearray()
        self._file: IO[bytes] | None = None

    @property
    def short(self) -> bool:
        """Whether it is in memory."""
        return self._file is None

    def fits(self, data: bytes | memoryview) -> bool:
        """Whether it will be in memory with these bytes, too."""
        return self.short and self.size + len(data) <= IN_PLACE_BYTES

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes. Raises StoreFull."""
        if self.size + len(data) > self.limit:
            raise Refusal(413, f"{self._told} is larger than {self.limit} bytes; send its arrays as file parts.")
        if self._file is None and not self.fits(data):
            self._path = self._aside()
            with room():
                self._file = self._path.open("wb")
                self._file.write(self._data)
        self.size += len(data)
        if self._file is None:
            self._data += data
        else:
            with room():
                self._file.write(data)

    def content(self) -> bytes | Path:
        """All of it, or where it is. Raises StoreFull."""
        if self._file is None or self._path is None:
            return bytes(self._data)
        with room():
            self._file.flush()
        return self._path

    def close(self) -> None:
        """Let go of the file, which stays."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what is left in its buffer may not fit any more, and is not wanted
                self._file.close()


def content_type(request: Request) -> str:
    """The media type of the body in lower case, without parameters; "" when none is named."""
    return said(request, _content_type)


def _content_type(headers: Headers) -> str:
    return headers.get("content-type", "").split(";")[0].strip().lower()


def announced(request: Request) -> int:
    """How many bytes the body says that it has; 0 where it does not."""
    told = request.headers.get("content-length", "")
    return int(told) if told.isdigit() and told.isascii() else 0


def is_short(request: Request) -> bool:
    """Whether the body says that it is short enough to stay in memory."""
    return 0 < announced(request) <= SHORT_BYTES


def require_length(request: Request) -> None:
    """Raise 411 when nothing says that a body follows."""
    if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
        raise Refusal(411, "No body came: send Content-Length, or Transfer-Encoding: chunked.")


async def slices(request: Request, limit: int, take: Callable[[int], object]) -> AsyncIterator[bytes]:
    """The body in slices of about one mebibyte. Takes and raises as `portions`."""
    async for portion in portions(request, limit, take):
        yield b"".join(portion)


async def portions(request: Request, limit: int, take: Callable[[int], object]) -> AsyncIterator[list[bytes]]:
    """The body as it comes, in portions of about one mebibyte; `take` is asked for the bytes of each before it is held.

    What came first of a long one is a portion of its own: what follows may be fetched.

    Raises:
        Refusal: 411, 413 as soon as more than `limit` bytes are announced or come, 400 when the client goes away.
    """
    require_length(request)
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    held: list[bytes] = []
    size, count = 0, 0
    try:
        async for chunk in request.stream():
            size, count = size + len(chunk), count + len(chunk)
            if count > limit:
                raise _too_large(limit)
            if not chunk:  # the end
                continue
            take(len(chunk))
            held.append(chunk)
            if size >= SLICE or (count == size and SCOPE in request.scope):  # what may be fetched after it
                yield held
                held, size = [], 0
    except ClientDisconnect:
        raise Refusal(400, GONE) from None
    if held:
        yield held


async def read_short(request: Request, write: Callable[[bytes], object], take: Callable[[int], object]) -> None:
    """Give `write` a body that is announced as a short one, as it comes; the server takes no more than was announced.

    Raises what these raise, and Refusal.
    """
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, GONE)
        if piece := message.get("body"):
            take(len(piece))
            write(piece)
        more = message.get("more_body", False)


@dataclass(frozen=True)
class Fetch:
    """The other way for a long body: from its socket into memory, as `fetching.Line.fetch` takes its arguments."""

    request: Request
    into: Into
    held: Holder

    @property
    def line(self) -> Line | None:
        """The request's own, while the rest of its body can be fetched."""
        found = self.request.scope.get(SCOPE)
        return found if isinstance(found, Line) and found.is_free else None


async def feed(
    portions: AsyncIterator[list[bytes]], take: Callable[[list[bytes]], object], other: Fetch | None = None
) -> None:
    """Give every portion to `take`, in their order and in a thread, each while the next one comes.

    What can be fetched after the first portion is fetched, and no portion of it comes.

    Raises what either raises; `take` is then not under way any more.
    """
    behind: asyncio.Task[object] | None = None
    try:
        async for portion in portions:
            if behind is not None:
                await behind
                behind = None
            if other is not None and (line := other.line) is not None:  # in one change of threads, not three
                await line.fetch(other.into, other.held, partial(take, portion))
            else:
                behind = asyncio.create_task(run_in_threadpool(take, portion))
        if behind is not None:
            await behind
    except ClientDisconnect:
        raise Refusal(400, GONE) from None
    finally:
        if behind is not None and not behind.done():
            await asyncio.wait([behind])  # it writes to what the caller closes next
            behind.exception()  # the first error counts


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"The body is larger than {limit} bytes, the most that is taken here.", limit_bytes=limit)


async def read_json(request: Request, limit: int, visit: Visit) -> bytes | Path:
    """The body of a JSON request, or the file that holds a long one. Raises Refusal, StoreFull."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "A JSON body cannot be compressed here; upload compressed arrays with POST /v1/blobs.")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) <= min(IN_PLACE_BYTES, limit):
        pieces: list[bytes] = []
        await read_short(request, pieces.append, visit.held.take)
        whole = b"".join(pieces)
        if len(whole) <= min(IN_PLACE_BYTES, limit):  # as it is, unless the server lets more come than was announced
            return whole
        raise _too_large(limit)
    text = Text(limit, visit.aside)
    visit.closing.append(text.close)
    async for piece in slices(request, text.limit, visit.held.take):
        if text.fits(piece):
            text.write(piece)
        else:
            await run_in_threadpool(text.write, piece)
    return text.content()
