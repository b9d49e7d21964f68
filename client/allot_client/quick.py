"""What is posted, over sockets of our own, as httpx spends several times the processor time on each request.

For a service on plain HTTP with nothing between. Whatever else there may be is httpx's: TLS, a proxy, a login in the
URL, cookies, a transport or hooks of the caller's own, and streams. Long bodies go from the arrays' own memory to the
socket, and long answers from the socket into one piece of memory.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies

import numpy as np

from allot_client.flows import SAFETENSORS, Answer, Call
from allot_client.line import Line, Said
from allot_client.reading import WORTH_BYTES

MOST_IDLE = 64
BROKEN = (OSError, HTTPException)
GATHERS = hasattr(socket.socket, "sendmsg")
"""Whether a socket takes arrays that lie apart; Windows' do not."""


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
            headers = {**self._always, **call.headers, **length}
            whole = line.send(call.method, path, headers, _slices(call), call.timeout_s)
            response = line.hear()
            content = _content(response)
        except BaseException:  # what is still to come belongs to this request
            line.close()
            raise
        self._closed = self._closed or "set-cookie" in response.headers
        if self._closed or not whole or response.will_close or len(self._idle) >= MOST_IDLE:
            line.close()
        else:
            self._idle.append(line)
        return Answer(response.status, response.headers, content)

    def _line(self) -> Line:
        """A connection that is open, as far as can be known."""
        if self._pid != os.getpid():  # those of the process that forked are its own
            self._idle, self._pid = deque(), os.getpid()
        while self._idle:
            line = self._idle.pop()
            if line.is_quiet():
                return line
            line.close()
        try:
            return Line(self._host, self._port)
        except OSError as error:
            raise NotThere(str(error)) from error

    def close(self) -> None:
        """Close what is idle; nothing more goes this way."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _slices(call: Call) -> Iterator[Any]:
    """The body; all of a small one at once."""
    if call.body is None:
        return iter(())
    return call.body.parts() if GATHERS else call.body.slices()


def _content(response: Said) -> bytes | memoryview:
    """The body of an answer, for all of which memory is taken first; of a long file of arrays they can share it."""
    is_file = response.headers.get("content-type", "").startswith(SAFETENSORS)
    try:
        if not is_file or response.length is None or response.length < WORTH_BYTES:
            return response.read()
        whole: Any = np.empty(response.length, np.uint8).data
    except (ValueError, OverflowError, MemoryError):  # lengths are below 0, or no memory holds so much
        raise HTTPException("an answer says a length that cannot be") from None
    rest = whole
    while rest:
        count = response.readinto(rest)
        if count == 0:
            raise HTTPException(f"the answer ends {len(rest)} bytes early")
        rest = rest[count:]
    return memoryview(whole).toreadonly()


def _plain(text: str) -> bool:
    """Whether a text may stand in the head of a request as it is."""
    return text.isascii() and text.isprintable()
