"""Who may hold a connection, and for how long: what is counted and timed before there is a request to look at.

A connection is idle while no whole request is in it: before the first byte, in the middle of headers, or between two
requests. Idle ones are many at no cost to whoever opens them, so they are the first to go when there are too many, and
first those of an address that has many: of the LOOKED_AT that have been idle for longest, one of the address with most.
But a client may well open thousands before it asks anything on the first. A request whose body does not come, and a
client that does not read its answer, are ended too. One sweep a second looks at all connections; httptools refuses what
is ambiguous (both lengths, bare LF, folded or nameless headers).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.http.balance import Place
from app.http.config import HttpSettings
from app.http.fetching import Fetching
from app.http.short import SAID

SWEEP_S = 1.0
LOOKED_AT = 64
MOST_HEAD = 64 << 10
SLOWEST_B_PER_S = 1024
GRACE_S = 30.0
"""A body may be slow for so long before its rate is looked at."""
QUIET_S = 10.0
"""A connection that has been idle for so long is no load until its next request."""
PROBLEM = (
    b"HTTP/1.1 %d %b\r\ncontent-type: application/problem+json\r\nx-content-type-options: nosniff\r\n"
    b"retry-after: 1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
)
TITLES = {400: "Bad Request", 408: "Request Timeout", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
          503: "Service Unavailable"}  # fmt: skip
OF_PROXIES = (b"x-forwarded-for", b"x-forwarded-proto")
"""Headers that uvicorn takes from a proxy that it trusts."""
LENGTH = "length"
LOG = logging.getLogger("allot.door")


class Door:
    """The connections of this process.

    Args:
        http: how many may be there, and for how long.
        place: of this process among several, which hears of every change; None for one that answers alone.
    """

    def __init__(self, http: HttpSettings, place: Place | None = None) -> None:
        self.http, self._place = http, place
        self.all: dict[Guarded, None] = {}
        self.idle: dict[Guarded, None] = {}
        """In the order in which they became idle."""
        self.of_address: Counter[str] = Counter()
        self.idle_of_address: Counter[str] = Counter()
        self.turned_away = self._quiet = 0
        self._sweep: asyncio.TimerHandle | None = None

    def enter(self, connection: "Guarded") -> str | None:
        """Let a connection in, or say why not."""
        if self._sweep is None:
            self._sweep = connection.loop.call_later(SWEEP_S, self._look_around)
        address = connection.address
        if self.of_address[address] >= self.http.max_connections_per_address:
            return "this address has too many connections"
        if len(self.all) >= self.http.max_connections and not self._make_room():
            return "there are too many connections"
        if self.idle_of_address[address] >= self.http.max_idle_per_address:
            self._close(next(one for one in self.idle if one.address == address))
        self.all[connection] = None
        self.of_address[address] += 1
        self.rest(connection)
        self._tell()
        return None

    def leave(self, connection: "Guarded") -> None:
        """Forget a connection."""
        if connection in self.all:
            self.work(connection)
            del self.all[connection]
            _less(self.of_address, connection.address)
            self._tell()

    def rest(self, connection: "Guarded") -> None:
        """No whole request is in it any more."""
        if connection not in self.idle and connection in self.all:
            self.idle[connection] = None
            self.idle_of_address[connection.address] += 1

    def work(self, connection: "Guarded") -> None:
        """A request is in it."""
        if connection in self.idle:
            del self.idle[connection]
            _less(self.idle_of_address, connection.address)
            if connection.quiet:
                connection.quiet = False
                self._quiet -= 1
                self._tell()

    def _tell(self) -> None:
        if self._place is not None:
            self._place.know(len(self.all) - self._quiet)

    def _make_room(self) -> bool:
        """Close an idle connection; False where there is none."""
        oldest = list(islice(self.idle, LOOKED_AT))
        if oldest:
            self._close(max(oldest, key=lambda one: self.idle_of_address[one.address]))
        return bool(oldest)

    def _close(self, connection: "Guarded") -> None:
        self.turned_away += 1
        connection.hang_up()
        self.leave(connection)

    def _look_around(self) -> None:
        self._sweep = None
        now = time.monotonic()
        for connection in list(self.all):
            connection.look(now)
        for connection in self.idle:
            if not connection.quiet and now - connection.came > QUIET_S:
                connection.quiet = True
                self._quiet += 1
        self._tell()
        if self.all:
            loop = next(iter(self.all)).loop
            self._sweep = loop.call_later(SWEEP_S, self._look_around)


def _less(counter: Counter[str], address: str) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]


class Guarded(Fetching):
    """uvicorn's protocol under the eyes of a Door. `Guarded.of(door)` is the class to give to uvicorn.

    It leans on names inside uvicorn: connection_made, connection_lost, data_received, on_message_begin,
    on_headers_complete, on_body, on_message_complete, on_response_complete, flow, transport, and cycle with its body.
    """

    door: Door

    @classmethod
    def of(cls, door: Door) -> "type[Guarded]":
        """The protocol of the connections that go through `door`."""
        return type("Guarded", (cls,), {"door": door})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address = ""
        self.came = self.heard = time.monotonic()
        self.head = self.taken = self.requests = 0
        self.in_head = self.in_body = self.quiet = False
        self.stuck_since: float | None = None
        self.said: tuple[tuple[bytes, bytes], ...] = ()
        self.made: dict[Any, Any] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Called by the loop."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        refused = self.door.enter(self)
        if refused:
            self.door.turned_away += 1
            LOG.warning("%s turned away: %s", self.address, refused)
            self.refuse(429 if "address" in refused else 503, f"Not now: {refused}.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self.door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        if self.transport.is_closing():
            return
        self.heard = time.monotonic()
        if not self.in_head and not self.in_body:
            self.came = self.heard
        self.head += len(data)
        super().data_received(data)
        if not self.in_head:
            self.head = 0
        elif self.head > MOST_HEAD and not self.transport.is_closing():
            self.refuse(431, f"The headers are larger than {MOST_HEAD} bytes.")

    def on_message_begin(self) -> None:
        """Called by the parser at the first byte of a request."""
        super().on_message_begin()
        self.in_head, self.came = True, time.monotonic()

    def on_headers_complete(self) -> None:
        """Called by the parser: there is a request now, and its body begins."""
        self.in_head, self.in_body, self.taken = False, True, 0
        self.requests += 1
        self.door.work(self)
        headers = tuple(self.headers)  # a copy: what a chunked body ends with is added to the list
        if headers != self.said:
            self.said, self.made = headers, {}
            self.app = _without_proxy(self.config.loaded_app, headers)
        scope: Any = self.scope
        scope[SAID] = self.made
        super().on_headers_complete()
        if self.requests >= self.door.http.requests_per_connection:
            self.cycle.keep_alive = False

    def announced(self) -> int:
        """Bytes of the body, which the same headers say once."""
        if LENGTH not in self.made:
            self.made[LENGTH] = super().announced()
        found: int = self.made[LENGTH]
        return found

    def on_body(self, body: bytes) -> None:
        """Called by the parser.

        A piece that finds the last one fetched is handed on as it is: uvicorn would copy it into its buffer, and from
        there into the message.
        """
        self.counted(len(body))
        if not self.cycle.body and not self.cycle.response_complete:
            self.cycle.body = body  # type: ignore[assignment]
            body = b""
        super().on_body(body)

    def counted(self, count: int) -> None:
        """Called for all bytes of a body."""
        self.taken += count
        self.heard = time.monotonic()
        super().counted(count)

    def on_message_complete(self) -> None:
        """Called by the parser at the last byte of a request, or where it stops in front of a body."""
        if self.is_cut:
            return
        self.in_body = False
        super().on_message_complete()
        self._rest_if_done()

    def on_response_complete(self) -> None:
        """Called when the last byte of an answer has been written."""
        super().on_response_complete()
        self._rest_if_done()

    def _rest_if_done(self) -> None:
        if not self.in_body and not self.pipeline and (self.cycle is None or self.cycle.response_complete):
            self.came = time.monotonic()
            self.door.rest(self)

    def look(self, now: float) -> None:
        """End what has lasted for too long; called once a second."""
        http = self.door.http
        if self.in_head or not self.requests:
            if now - self.came > http.header_timeout_s:
                self.refuse(408, "The headers did not come in time.")
        elif self.in_body and not self.flow.read_paused:
            slow = now - self.came > GRACE_S and self.taken < SLOWEST_B_PER_S * (now - self.came)
            if slow or now - self.heard > http.body_timeout_s:
                self.refuse(408, "The body did not come in time.")
        if not self.flow.write_paused:
            self.stuck_since = None
        elif self.stuck_since is None:
            self.stuck_since = now
        elif now - self.stuck_since > http.unread_timeout_s:
            self.hang_up()

    def refuse(self, status: int, detail: str) -> None:
        """Answer, unless an answer has begun, and close."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            title = TITLES[status]
            body = b'{"type":"urn:allot:problem:%b","title":"%b","status":%d,"detail":"%b"}' % (
                title.lower().replace(" ", "-").encode(), title.encode(), status, detail.encode())  # fmt: skip
            self.transport.write(PROBLEM % (status, title.encode(), len(body), body))
        self.transport.close()
        self.door.leave(self)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what its parser does not take."""
        self.refuse(400, "This is not a request that can be read in one way only.")

    def hang_up(self) -> None:
        """Close without a word."""
        self.transport.abort()


def _without_proxy(app: Any, headers: Iterable[tuple[bytes, bytes]]) -> Any:
    """What answers, without uvicorn's layer for what proxies say where none says anything."""
    said = any(name in OF_PROXIES for name, _ in headers)
    return app.app if isinstance(app, ProxyHeadersMiddleware) and not said else app


class Sparse(logging.Filter):
    """Lets so many complaints of one kind pass a second, and says how many it left out.

    The access log and the audit log are records of what happened, and all of them pass.
    """

    def __init__(self, per_s: int = 10) -> None:
        super().__init__()
        self._per_s, self._second = per_s, 0
        self._seen: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """True for a record that is to be written."""
        if record.levelno < logging.WARNING:
            return True
        second, kind = int(record.created), (record.name, str(record.msg))
        if second != self._second:
            left_out = sum(max(0, count - self._per_s) for count in self._seen.values())
            self._seen.clear()
            self._second = second
            if left_out:
                record.msg, record.args = f"{record.getMessage()} ({left_out} more lines were left out)", ()
        self._seen[kind] += 1
        return self._seen[kind] <= self._per_s
