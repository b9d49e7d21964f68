"""Clients that cost next to nothing: every connection of one process in one loop, requests made up beforehand.

A client beside the service takes its CPU from it. One of http.client takes 0.25 ms a job and a thread for each
connection; this one 0.04 ms.
"""

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

RECEIVE = 1 << 16
LENGTH = b"content-length: "


@dataclass
class Caller:
    """One connection, on which one request follows the other."""

    line: socket.socket
    requests: Sequence[bytes]
    next: int
    sent_at: float = 0.0
    got: bytes = b""
    taken_ms: list[float] = field(default_factory=list)

    def send(self) -> None:
        """The next request."""
        self.sent_at = time.perf_counter()
        self.line.sendall(self.requests[self.next % len(self.requests)])
        self.next += 1

    def answer(self) -> bytes | None:
        """The whole answer, None while some of it is missing. Raises ConnectionError."""
        piece = self.line.recv(RECEIVE)
        if not piece:
            raise ConnectionError("the service hung up")
        self.got += piece
        head = self.got.find(b"\r\n\r\n")
        if head < 0:
            return None
        at = self.got.lower().index(LENGTH, 0, head) + len(LENGTH)
        if len(self.got) < head + 4 + int(self.got[at : self.got.index(b"\r\n", at)]):
            return None
        whole, self.got = self.got, b""
        self.taken_ms.append(1e3 * (time.perf_counter() - self.sent_at))
        return whole


def posts(bodies: Sequence[bytes]) -> list[bytes]:
    """Jobs whose caller waits for the answer, as they go over the wire."""
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nPrefer: wait=20\r\n"
    return [head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies]


def call(port: int, bodies: Sequence[bytes], connections: int, seconds: float) -> tuple[list[float], list[str]]:
    """Post jobs on so many connections for so long, on each the next when the last was answered.

    Returns:
        milliseconds of each answer, and what was no answer.
    """
    requests, wrong = posts(bodies), list[str]()
    callers = [Caller(socket.create_connection(("127.0.0.1", port)), requests, k) for k in range(connections)]
    with selectors.DefaultSelector() as ready:
        for one in callers:
            one.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(one.line, selectors.EVENT_READ, one)
            one.send()
        until, left = time.monotonic() + seconds, len(callers)
        while left:
            for key, _ in ready.select():
                one = key.data
                answer = one.answer()
                if answer is None:
                    continue
                good = answer.startswith(b"HTTP/1.1 200 ") and b'"optimal"' in answer
                if not good:
                    wrong.append(repr(answer[:200]))
                if good and time.monotonic() < until:
                    one.send()
                else:
                    left -= 1
                    ready.unregister(one.line)
                    one.line.close()
    return [ms for one in callers for ms in one.taken_ms], wrong
