"""Long bodies from the socket straight into the memory where they stay, by a thread and past the event loop.

The ordinary way costs each byte three copies under Python's lock: into what the loop reads, into what the parser hands
on, and into its block or slab. 512 MiB took a second of it. A thread that waits at the socket has the kernel copy each
byte once, and holds no lock meanwhile.

The protocol lets go of a body once, in its middle: it stops reading, and from then on counts the bytes that are left by
itself. The parser, which does not know, is replaced when they are all there. A client that is slow goes back to the
loop, which can wait for thousands. What has no length, is encrypted, or comes over no plain socket never leaves it.
"""

import asyncio
import functools
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, cast

from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.http.heads import Heads
from app.http.hops import whole
from app.http.joined import Joined
from app.http.upgrade import Staying, new_parser

SCOPE = "allot.fetching"
LEAST = 1 << 20
"""Shorter bodies, and shorter rests of them, come as they always did."""
AT_ONCE = 1 << 20
"""The kernel wakes the thread when so many bytes are there: each waking takes Python's lock."""
LAST, EACH = 16 << 20, 2 << 20
"""Of the last so many bytes each EACH is handed on as it comes, so that little is left to do behind the last."""
QUANTUM = 64 << 20
"""Bytes that are asked for at the event loop, before a thread fetches them."""
TAIL = 64 << 10
"""So few bytes behind a place come with those that fill it: the end of a body is not waited for twice or thrice."""
STALL_S = 0.1
"""A client that sends less than AT_ONCE in that time is slow."""
MOST_STALLS = 3
MOST_AT_ONCE = 4
"""Threads that wait at sockets, of the few dozen that a process has: bodies beyond these come as they always did."""


class Into(Protocol):
    """Where bytes go."""

    def place(self) -> memoryview:
        """Memory for the next bytes, at least one."""

    def came(self, view: memoryview) -> object:
        """The first so many bytes of that memory have come."""


class Holder(Protocol):
    """Who counts the bytes that are on their way."""

    def take(self, count: int) -> None:
        """So many more come."""

    def give(self, count: int) -> None:
        """So many of them did not."""


class Fetching(Staying):
    """A protocol of which the long plain body of a request can be fetched.

    It leans on names inside uvicorn: on_headers_complete, on_message_complete, data_received, flow, transport,
    scope, headers, parser, pipeline, and cycle with its body, message_event and transport.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.left = self.stalls = 0
        self.bypassed = False

    def on_headers_complete(self) -> None:
        """Called by the parser: a body begins."""
        self.left, self.stalls = self.announced(), 0
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":  # its headers are all that is written: nothing would bring them out
            self.cycle.transport = cast("asyncio.Transport", Joined(self.transport))
            self.cycle.__class__ = Heads
        if self.left >= LEAST and _is_plain(self.transport):
            cast("dict[str, Any]", self.scope)[SCOPE] = Line(self, self.cycle)

    def announced(self) -> int:
        """Bytes of the body, as the headers of the request say."""
        return _length(self.headers)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        if not self.bypassed:
            super().data_received(data)
            return
        body, rest = data[: self.left], data[self.left :]
        self.counted(len(body))
        if not self.cycle.response_complete:
            self.cycle.body += body
            if len(self.cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            self.cycle.message_event.set()
        self.end_if_whole()
        if rest:
            super().data_received(rest)

    def counted(self, count: int) -> None:
        """So many bytes of a body have come, through the parser or past it. Called by the thread that fetches, too."""
        self.left -= count

    def take_over(self) -> tuple[socket.socket, bytes]:
        """Stop the loop from reading: the socket, and what it has read that nobody has asked for yet."""
        self.flow.pause_reading()
        self.bypassed = True
        body, self.cycle.body = bytes(self.cycle.body), bytearray()
        self.cycle.message_event.clear()
        own = socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno()))
        own.settimeout(STALL_S)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, min(AT_ONCE, self.left))  # the kernel makes room for it
        return own, body

    def end_if_whole(self) -> None:
        """A new parser for what follows, once no byte of the body is left."""
        if self.bypassed and self.left == 0:
            self.bypassed = False
            self.parser = new_parser(self)
            self.on_message_complete()


@dataclass(frozen=True)
class Line:
    """One request's way to its socket."""

    protocol: Fetching
    cycle: RequestResponseCycle
    under_way: ClassVar[list["Line"]] = []
    """Of this process; changed in its event loop alone."""

    @property
    def is_free(self) -> bool:
        """Whether the rest of the body can be fetched now."""
        at = self.protocol
        running = at.cycle is self.cycle and not at.pipeline and not self.cycle.disconnected
        worth = at.left >= LEAST and at.stalls < MOST_STALLS
        room = len(self.under_way) < MOST_AT_ONCE
        return running and worth and room and not self.cycle.response_complete and not at.transport.is_closing()

    async def fetch(self, into: Into, held: Holder, before: Callable[[], object]) -> None:
        """Fetch what is left of the body, as long as the client keeps up. The rest comes as it always did.

        Args:
            into: called in a thread.
            held: asked for the bytes before they come.
            before: called in that thread first. The event loop reads no byte meanwhile, which would have been copied.

        Raises what these raise, and ClientDisconnect.
        """
        at = self.protocol
        own, read = at.take_over()
        self.under_way.append(self)
        first: Callable[[], object] | None = partial(_begun, before, into, read)
        try:
            held.take(len(read))
            while first is not None or (at.left and at.stalls < MOST_STALLS):
                quantum = min(QUANTUM, at.left)
                held.take(quantum)
                short = quantum - await whole(_threads(), partial(self._filled, own, into, quantum, first))
                first = None
                if short:
                    held.give(short)
                    at.stalls += 1
                    break
        finally:
            self.under_way.remove(self)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)  # it is the connection's, not this object's
            own.close()
            if not at.transport.is_closing():
                at.end_if_whole()
                at.flow.resume_reading()

    def _filled(self, own: socket.socket, into: Into, most: int, first: Callable[[], object] | None) -> int:
        """How many bytes came before the client fell behind; all, where it kept up. In a thread."""
        if first is not None:
            first()
        count, woken, tail = 0, 0, bytearray()
        while count < most:
            most_now = EACH if self.protocol.left <= LAST else most - count
            room, got = into.place()[: min(most_now, most - count)], 0
            if 0 < most - count - len(room) <= TAIL:
                tail = bytearray(most - count - len(room))
            wanted = len(room) + len(tail)
            while got < wanted:
                if min(AT_ONCE + len(tail), wanted - got) != woken:
                    woken = min(AT_ONCE + len(tail), wanted - got)
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, woken)
                more = self._received(own, room[got:], memoryview(tail)[max(0, got - len(room)) :])
                if more == 0:
                    break
                got += more
            into.came(room[:got])
            _given(into, memoryview(tail)[: max(0, got - len(room))])
            count += got
            if got < wanted:
                break
        return count

    def _received(self, own: socket.socket, room: memoryview, tail: memoryview) -> int:
        """Bytes that are there; 0 where too few come in time. Raises ClientDisconnect."""
        try:
            count = own.recvmsg_into([room, tail])[0] if tail else own.recv_into(room)
        except TimeoutError:
            return 0
        except OSError:
            raise ClientDisconnect from None
        if count == 0 or self.protocol.transport.is_closing():
            raise ClientDisconnect
        self.protocol.counted(count)
        return count


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_AT_ONCE, "fetching")


def _begun(before: Callable[[], object], into: Into, read: bytes) -> None:
    before()
    _given(into, memoryview(read))


def _given(into: Into, view: memoryview) -> None:
    while view:
        room = into.place()
        count = min(len(room), len(view))
        room[:count] = view[:count]
        into.came(room[:count])
        view = view[count:]


def _length(headers: list[tuple[bytes, bytes]]) -> int:
    """Of the body, as its header says; 0 where it does not, or something else does. The parser has checked it."""
    told = [value for name, value in headers if name == b"content-length"]
    packed = any(name in (b"transfer-encoding", b"upgrade") for name, _ in headers)
    return int(told[0]) if len(told) == 1 and told[0].isdigit() and not packed else 0


def _is_plain(transport: asyncio.Transport) -> bool:
    """Whether what is in the socket is what was sent."""
    found = transport.get_extra_info("socket")
    inet = found is not None and found.family in (socket.AF_INET, socket.AF_INET6)
    return inet and transport.get_extra_info("sslcontext") is None
