"""What is posted, over the standard library, as httpx spends several times the processor time on each request.

For a service on plain HTTP with nothing between. Whatever else there may be is httpx's: TLS, a proxy, a login in the
URL, cookies, a transport or hooks of the caller's own, and streams. Long bodies go from the arrays' own memory to the
socket, and long answers from the socket into one piece of memory.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies

from allot_client.arrays import Array
from allot_client.body import SLICE
from allot_client.flows import SAFETENSORS, Answer, Call
from allot_client.memory import filled
from allot_client.reading import WORTH_BYTES

MOST_IDLE = 64
CONNECT_S = 5.0
BROKEN = (OSError, HTTPException)
GATHERS = hasattr(socket.socket, "sendmsg")
"""Whether a socket takes arrays that lie apart; Windows' do not."""
PATIENT = sys.platform == "linux" and socket.socket.__module__ == "socket"
"""Whether a socket can be told how long to wait for room; those of event loops that stand in for threads cannot."""
LONGEST = 16 << 20
"""Bytes that are sent in one call then."""


class NotThere(ConnectionError):
    """Nothing answers there."""


def open_quick(url: str, headers: Mapping[str, str]) -> Quick | None:
    """The quick way to a service, None where there is none. `headers` are those of every request."""
    address = urlsplit(url)
    plain = address.scheme == "http" and address.hostname and "@" not in address.netloc and not getproxies()
    if not plain or not all(map(_plain, (address.netloc, address.path, *headers.values()))):
        return None
    return Quick(str(address.hostname), address.port or 80, address.path, headers)


def answered(quick: Quick, url: str, call: Call) -> Answer:
    """The answer to a call, or why there is none."""
    try:
        return quick.ask(call)
    except NotThere as error:
        return Answer(0, {}, b"", nothing_at(url, error))
    except BROKEN as error:
        return Answer(0, {}, b"", f"{type(error).__name__} at {url}: {error}")


def nothing_at(url: str, error: Exception) -> str:
    """That there is no service, in words."""
    return f"nothing answers at {url} ({error}); is the service running, and is ALLOT_URL right?"


class Line(HTTPConnection):
    """A connection that sends the head of a request and its body at once: a service that is sent the head first wakes
    up twice."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, timeout=CONNECT_S)
        self._parts: list[Any] = []

    def send(self, data: Any) -> None:
        """Keep what `request` gives, for `flush`."""
        self._parts.append(data)

    def flush(self, timeout_s: float) -> bool:
        """Send it; False where the service reads no more, as it may have answered. Each wait takes so long at most."""
        parts, self._parts = self._parts, []
        self.sock.settimeout(timeout_s)
        try:
            self.sock.sendall(b"".join(parts[:2]))  # its head, and all of a short body
            with _patient(self.sock, timeout_s) if len(parts) > 2 else nullcontext():
                for part in parts[2:]:
                    if isinstance(part, list):
                        self._send_together(part)
                    else:
                        self._send_all(part)
        except (BrokenPipeError, ConnectionResetError):
            return False
        except BlockingIOError as error:
            raise TimeoutError("the service took no byte of the body for too long") from error
        return True

    def _send_all(self, part: Any) -> None:
        view = memoryview(part).cast("B")
        while view:
            view = view[self.sock.send(view) :]

    def _send_together(self, arrays: list[Array]) -> None:
        """Send arrays one after the other, from their own memory."""
        while arrays:
            sent, k = self.sock.sendmsg([one.data for one in arrays]), 0
            while k < len(arrays) and sent >= arrays[k].nbytes:
                sent -= arrays[k].nbytes
                k += 1
            if k < len(arrays):
                self._send_all(arrays[k].data.cast("B")[sent:])
            arrays = arrays[k + 1 :]

    def is_quiet(self) -> bool:
        """Whether nothing came while it was idle: else the service has hung up."""
        self.sock.setblocking(False)
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


class Quick:
    """Connections to one service, each with one request at a time; those that are idle are used again."""

    def __init__(self, host: str, port: int, prefix: str, headers: Mapping[str, str]) -> None:
        self._host, self._port, self._prefix, self._always = host, port, prefix.rstrip("/"), headers
        self._idle: deque[Line] = deque()
        self._pid = os.getpid()
        self._closed = False

    def takes(self, call: Call) -> bool:
        """Whether a call may go this way: one that posts."""
        return call.body is not None and not self._closed and _plain(call.path) and " " not in call.path

    def ask(self, call: Call) -> Answer:
        """The answer. One that sets a cookie is the last to come this way.

        Raises:
            NotThere: nothing answers.
            what is in BROKEN: it broke off.
        """
        path = self._prefix + call.path + (f"?{urlencode(call.params)}" if call.params else "")
        length = {"Content-Length": str(call.body.length)} if call.body else {}
        line = self._line()
        try:
            line.request(call.method, path, _slices(call), {**self._always, **call.headers, **length})
            whole = line.flush(call.timeout_s)
            response = line.getresponse()
            if response.length is None and not response.chunked:  # its head may have been cut off
                raise HTTPException("an answer does not say how long it is")
            content = _content(response)
        except BaseException:  # what is still to come belongs to this request
            line.close()
            raise
        headers = {name.lower(): value for name, value in response.headers.items()}
        self._closed = self._closed or "set-cookie" in headers
        if self._closed or not whole or len(self._idle) >= MOST_IDLE:
            line.close()
        elif not response.will_close:
            self._idle.append(line)
        return Answer(response.status, headers, content)

    def _line(self) -> Line:
        """A connection that is open, as far as can be known."""
        if self._pid != os.getpid():  # those of the process that forked are its own
            self._idle, self._pid = deque(), os.getpid()
        while self._idle:
            line = self._idle.pop()
            if line.is_quiet():
                return line
            line.close()
        line = Line(self._host, self._port)
        try:
            line.connect()
        except OSError as error:
            raise NotThere(str(error)) from error
        return line

    def close(self) -> None:
        """Close what is idle; nothing more goes this way."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _slices(call: Call) -> Iterator[Any]:
    """The body; all of a small one at once."""
    if call.body is None:
        return iter(())
    return call.body.parts(LONGEST if PATIENT else SLICE) if GATHERS else call.body.slices()


@contextmanager
def _patient(line: socket.socket, timeout_s: float) -> Iterator[None]:
    """A block in which the system waits until bytes are sent, and not Python: for each time that a connection has room
    again, Python asks for the interpreter, which other threads hold. BlockingIOError: none was sent for so long."""
    if PATIENT:
        line.setblocking(True)
        whole, part = divmod(max(timeout_s, 1e-3), 1)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(whole), int(1e6 * part)))
    try:
        yield
    finally:
        line.settimeout(timeout_s)


def _content(response: HTTPResponse) -> bytes | memoryview:
    """The body of an answer, for all of which memory is taken first; of a long file of arrays they can share it."""
    is_file = (response.getheader("content-type") or "").startswith(SAFETENSORS)
    try:
        if not is_file or response.length is None or response.length < WORTH_BYTES:
            return response.read()
        return filled(response.length, b"", response.readinto)
    except (ValueError, OverflowError, MemoryError):  # lengths are below 0, or no memory holds so much
        raise HTTPException("an answer says a length that cannot be") from None


def _plain(text: str) -> bool:
    """Whether a text may stand in the head of a request as it is."""
    return text.isascii() and text.isprintable()
