"""One connection to a service, and HTTP/1.1 over it.

The standard library's client has the parser of e-mail read the head of each answer, and looks at each header that is
sent with a regular expression: a quarter of a millisecond a call, where an answer may take three.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPException, RemoteDisconnected
from typing import Any

from allot_client.arrays import Array

CONNECT_S = 5.0
LONGEST_LINE = 1 << 16
MOST_HEADERS = 100
EMPTY = (204, 304)
"""Answers without a body, whatever their head says of its length."""


class Said:
    """An answer whose head has been read.

    Attributes:
        status: its number.
        headers: by their names in small letters; of one that comes twice, the last.
        length: bytes of its body; None where it comes in chunks.
        will_close: the connection is of no more use after it.
    """

    def __init__(self, file: Any) -> None:
        """Read the head of the answer that comes next. Raises HTTPException, OSError."""
        self._file = file
        version, self.status = self._begin()
        while 100 <= self.status < 200:
            self._headers()
            version, self.status = self._begin()
        self.headers = self._headers()
        connection = self.headers.get("connection", "").lower()
        self.will_close = "close" in connection or (version == b"HTTP/1.0" and "keep-alive" not in connection)
        self.length: int | None = None
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            said = "0" if self.status in EMPTY else self.headers.get("content-length", "")
            if not (said.isascii() and said.isdigit()):  # its head may have been cut off
                raise HTTPException("an answer does not say how long it is")
            self.length = int(said)

    def _begin(self) -> tuple[bytes, int]:
        line = self._line()
        if not line:
            raise RemoteDisconnected("the service hung up without an answer")
        version, status, *_ = (*line.split(None, 2), b"")
        if not version.startswith(b"HTTP/1.") or not status.isdigit() or not line.endswith(b"\n"):
            raise HTTPException(f"an answer begins with {line[:60]!r}")
        return version, int(status)

    def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _ in range(MOST_HEADERS):
            line = self._line()
            if line in (b"\r\n", b"\n"):
                return found
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or not line.endswith(b"\n"):
                raise HTTPException("the head of an answer is cut off")
            found[name.strip().lower()] = value.strip()
        raise HTTPException(f"an answer has more than {MOST_HEADERS} headers")

    def _line(self) -> bytes:
        line: bytes = self._file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise HTTPException("an answer has a line that is too long")
        return line

    def read(self) -> bytes:
        """All of its body. Raises HTTPException, OSError; ValueError, OverflowError, MemoryError for a wrong length."""
        return b"".join(self._chunks()) if self.length is None else self._exactly(self.length)

    def readinto(self, room: memoryview) -> int:
        """The next bytes of a body that says its length; 0 at the end of the connection."""
        return int(self._file.readinto(room))

    def _chunks(self) -> Iterator[bytes]:
        while count := int(self._line().split(b";")[0], 16):
            if count < 0:
                raise ValueError(count)
            yield self._exactly(count)
            self._line()
        self._headers()

    def _exactly(self, count: int) -> bytes:
        found: bytes = self._file.read(count)
        if len(found) < count:
            raise HTTPException(f"the answer ends {count - len(found)} bytes early")
        return found


class Line:
    """A connection with one request at a time. A request and its body go out at once: a service that is sent the head
    first wakes up twice."""

    def __init__(self, host: str, port: int) -> None:
        """Connect. Raises OSError."""
        name = f"[{host}]" if ":" in host else host
        self._named = name if port == 80 else f"{name}:{port}"
        self._sock = socket.create_connection((host, port), CONNECT_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, verb: str, path: str, headers: Mapping[str, str], body: Iterator[Any], timeout_s: float) -> bool:
        """Send a request; False where the service reads no more, as it may have answered.

        Args:
            verb, path, headers: of printable ASCII.
            body: pieces of bytes, and lists of arrays.
            timeout_s: each wait takes so long at most.
        """
        if not all(value.isprintable() for value in headers.values()):
            raise ValueError("a header holds a character that no header carries")
        said = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{verb} {path} HTTP/1.1\r\nHost: {self._named}\r\nAccept-Encoding: identity\r\n{said}\r\n"
        self._sock.settimeout(timeout_s)
        try:
            self._sock.sendall(b"".join((head.encode("ascii"), next(body, b""))))  # with all of a short body
            for part in body:
                if isinstance(part, list):
                    self._send_together(part)
                else:
                    self._sock.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _send_together(self, arrays: list[Array]) -> None:
        """Send arrays one after the other, from their own memory."""
        while arrays:
            sent, k = self._sock.sendmsg([one.data for one in arrays]), 0
            while k < len(arrays) and sent >= arrays[k].nbytes:
                sent -= arrays[k].nbytes
                k += 1
            if k < len(arrays):
                self._sock.sendall(arrays[k].data.cast("B")[sent:])
            arrays = arrays[k + 1 :]

    def hear(self) -> Said:
        """The answer. Raises HTTPException, OSError."""
        return Said(self._sock.makefile("rb"))

    def is_quiet(self) -> bool:
        """Whether nothing came while it was idle: else the service has hung up."""
        self._sock.setblocking(False)
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Hang up."""
        self._sock.close()
