"""A multipart job: part `job` is JSON, every other part is a file that streams into the store."""

import functools
import io
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, MultipartState, parse_options_header
from starlette.concurrency import run_in_threadpool

from app.http.fetching import Holder
from app.http.refusal import Refusal
from app.intake.body import Fetch, announced, feed, is_short, portions, read_short
from app.intake.scratch import SCRATCH
from workers.store.marks import before
from workers.store.upload import Writer

MAX_PARTS = 32
LONGEST_BOUNDARY = 70
"""As RFC 2046 has it."""
LONGEST_HEADERS = 8192
"""Of one part."""
PLAIN_HEAD = 512
"""Bytes of the headers of a part that is cut without the parser; of so many it is remembered what they say."""
BLANK = b"\r\n\r\n"


@dataclass
class Head:
    """What the headers of a part say."""

    name: str
    filename: str | None
    content_type: str


@dataclass
class Part(Head):
    """One part of a multipart body."""

    sink: Any


class Reader:
    """Cuts a multipart body into parts as it comes; of a long one `feed` blocks, so call it in a thread.

    Args:
        boundary: the boundary parameter of the content type.
        open_sink: called with the name of each part; what it returns has `write`.
    """

    def __init__(self, boundary: bytes, open_sink: Callable[[str], Any]) -> None:
        self.parts: dict[str, Part] = {}
        self._open_sink = open_sink
        self._ended = False
        self._sink: Any
        self._own: memoryview | None = None
        self.is_sought = False
        """Whether threads look for the boundary in what came last: `feed` goes on, if only with no bytes."""
        self._scratch = bytearray()
        self._field, self._value = bytearray(), bytearray()
        self._headers: dict[str, str] = {}
        callbacks = {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._of_header(self._field, data[start:end]),
            "on_header_value": lambda data, start, end: self._of_header(self._value, data[start:end]),
            "on_header_end": self._header,
            "on_headers_finished": self._open,
            "on_part_data": lambda data, start, end: self._sink.write(memoryview(data)[start:end]),
            "on_end": self._finish,
        }
        self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def feed(self, portion: Iterable[bytes]) -> None:
        """Take the next bytes of the body."""
        try:
            for data in portion:
                for piece in self._found(data) if self.is_sought else (data,):
                    self._parser.write(piece)
        except MultipartParseError as wrong:
            raise Refusal(400, f"The multipart body cannot be read: {wrong}.") from None

    def place(self) -> memoryview:
        """Memory for the next bytes: where the part under way wants them, if that is surely its. Raises StoreFull."""
        inside = self._parser.state == MultipartState.PART_DATA and self._parser.index == 0
        self._own = self._sink.place() if inside and isinstance(self._sink, Writer) else None
        if self._own is not None:
            return self._own
        self._scratch = self._scratch or bytearray(SCRATCH)
        return memoryview(self._scratch)

    def came(self, view: memoryview) -> None:
        """They are in that memory: what comes before a boundary stays there. Raises as `feed`."""
        if self._own is not None and self._sink.seeks:
            self._sink.came(len(view))
            self.is_sought = True
            return
        sure = 0 if self._own is None or self.is_sought else before(view, self._parser.boundary)
        rest = bytes(view[sure:])
        if sure:
            self._sink.came(sure)
        if rest:
            self.feed([rest])

    def _found(self, data: bytes) -> Iterable[bytes]:
        """What the parser has to see: the next bytes, and before them whatever the part has that comes behind it."""
        self.is_sought = False
        at = self._sink.marked(data[: len(self._parser.boundary) - 1])
        return (data,) if at is None else itertools.chain(self._sink.cut(at), (data,))

    def fill(self, plain: Iterable[tuple[Head, memoryview]]) -> None:
        """Take all parts, which are cut already. Raises what their sinks do."""
        for head, data in plain:
            part = self.parts[head.name] = Part(head.name, head.filename, head.content_type, self._open_sink(head.name))
            if data:
                part.sink.write(data)
        self._finish()

    def finish(self) -> dict[str, Part]:
        """The parts by name, once the body has ended; 400 when it ends early."""
        if not self._ended:
            raise Refusal(400, "The multipart body ends before its closing boundary.")
        self._parser.callbacks = {}  # they hold on to this object, which holds on to its files
        return self.parts

    def _begin(self) -> None:
        self._headers, self._header_bytes = {}, 0
        if len(self.parts) >= MAX_PARTS:
            raise Refusal(413, f"The multipart body has more than {MAX_PARTS} parts.")

    def _of_header(self, held: bytearray, data: bytes) -> None:
        held += data
        self._header_bytes += len(data)
        if self._header_bytes > LONGEST_HEADERS:
            raise Refusal(400, f"The headers of a part take more than {LONGEST_HEADERS} bytes.")

    def _header(self) -> None:
        name = self._field.decode("latin-1").lower()
        self._headers[name] = self._value.decode("latin-1")
        self._field.clear()
        self._value.clear()

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if not name or len(name) > 64:
            raise Refusal(400, 'A part has no name; expected Content-Disposition: form-data; name="...".')
        if name in self.parts:
            raise Refusal(400, f"Part {name!r} comes twice.")
        filename = options.get(b"filename")
        kind = self._headers.get("content-type", "").split(";")[0].strip().lower()
        shown = filename.decode("utf-8", "replace") if filename is not None else None
        self._sink = self._open_sink(name)
        if isinstance(self._sink, Writer):
            self._sink.seek(self._parser.boundary)
        self.parts[name] = Part(name, shown, kind, self._sink)

    def _finish(self) -> None:
        """Nothing comes any more: this thread waits for what still looks at long parts, so that no other need."""
        for part in self.parts.values():
            if isinstance(part.sink, Writer) and part.sink.is_long:
                part.sink.look()
        self._ended = True


def plain_parts(whole: bytes, boundary: bytes) -> list[tuple[Head, memoryview]] | None:
    """The parts of a whole body as most clients write it, cut in a few calls of C; the parser makes forty of Python a
    part. None of any other, and of one with a fault: a `Reader` says what it is."""
    mark = b"\r\n--" + boundary
    if not whole.startswith(mark[2:]):
        return None
    found: dict[str, tuple[Head, memoryview]] = {}
    at = len(mark) - 2
    while whole.startswith(b"\r\n", at):
        begins = whole.find(BLANK, at, at + PLAIN_HEAD)
        ends = whole.find(mark, begins + len(BLANK)) if begins >= 0 else -1
        head = _head(whole[at + 2 : begins]) if ends >= 0 else None
        if head is None or head.name in found or len(found) == MAX_PARTS:
            return None
        found[head.name] = head, memoryview(whole)[begins + len(BLANK) : ends]
        at = ends + len(mark)
    return list(found.values()) if whole[at : at + 5] in (b"--", b"--\r\n") else None


@functools.lru_cache(256)
def _head(headers: bytes) -> Head | None:
    """What a `Reader` makes of them, None where it refuses. Callers name the same parts again and again."""
    reader = Reader(b"x", lambda name: io.BytesIO())
    try:
        reader.feed([b"--x\r\n" + headers + BLANK + b"\r\n--x--"])
        (part,) = reader.finish().values()
    except Refusal:
        return None
    return Head(part.name, part.filename, part.content_type)


async def read_multipart(
    request: Request,
    limit: int,
    held: Holder,
    open_sink: Callable[[str], Any],
    opened: Callable[[Reader], None],
) -> dict[str, Part]:
    """Read the whole body; `opened` is told of the reader first, so that its sinks can be closed whatever happens."""
    boundary = parse_options_header(request.headers.get("content-type", ""))[1].get(b"boundary")
    if not boundary:
        raise Refusal(400, "multipart/form-data without a boundary parameter.")
    if len(boundary) > LONGEST_BOUNDARY:
        raise Refusal(400, f"The boundary of the multipart body is longer than {LONGEST_BOUNDARY} characters.")
    reader = Reader(boundary, open_sink)
    opened(reader)
    if is_short(request) and announced(request) <= limit:
        pieces: list[bytes] = []
        await read_short(request, pieces.append, held.take)
        plain = plain_parts(b"".join(pieces), boundary)
        if plain is None:
            await run_in_threadpool(reader.feed, pieces)
        else:
            reader.fill(plain)
    else:
        await feed(portions(request, limit, held.take), reader.feed, Fetch(request, reader, held))
        if reader.is_sought:
            await run_in_threadpool(reader.feed, [b""])
    return reader.finish()
