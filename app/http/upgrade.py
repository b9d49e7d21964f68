"""Requests that ask for another protocol, as Java's client asks for HTTP/2, are answered in this one (RFC 9110, 7.8).

The parser takes the end of such a request's headers for the end of the request, and stops. Where a body follows, a new
parser reads on, for which it begins with the headers that say how long it is.
"""

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

FRAMING = (b"content-length", b"transfer-encoding")
NOTHING = memoryview(b"")
REFUSED = "Invalid HTTP request received."


class Staying(HttpToolsProtocol):
    """uvicorn's protocol, which stays with HTTP/1.1.

    It leans on names inside uvicorn: data_received, send_400_response, _should_upgrade, scope, headers, parser.
    """

    def _should_upgrade(self) -> bool:
        """No: uvicorn would hand a connection to a library of WebSockets, where one is installed."""
        return False

    @property
    def is_cut(self) -> bool:
        """Whether the parser is about to stop in front of a body."""
        return self.parser.should_upgrade() and bool(self._framing())

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self._unset_keepalive_if_required()
        rest: bytes | memoryview = data
        try:
            while rest:
                rest = self._behind_request(rest)
        except httptools.HttpParserError:
            self.logger.warning(REFUSED)
            self.send_400_response(REFUSED)

    def _behind_request(self, data: bytes | memoryview) -> memoryview:
        """Have the parser read; what it has left, where it stopped behind headers. Raises HttpParserError."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            framing = self._framing()
            self.parser = new_parser(Behind(self) if framing else self)
            if framing:
                self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
            return memoryview(data)[stopped.args[0] :]
        return NOTHING

    def _framing(self) -> bytes:
        """Header lines, whole: those of the request in hand that say where its body ends."""
        if self.scope["method"] == "CONNECT":  # what follows would be no body
            return b""
        return b"".join(b"%b: %b\r\n" % (name, value) for name, value in self.headers if name in FRAMING)


class Behind:
    """What a parser tells, but for the headers that it begins with."""

    def __init__(self, protocol: Staying) -> None:
        self._to, self._begun = protocol, False
        self.on_body, self.on_message_complete = protocol.on_body, protocol.on_message_complete

    def on_message_begin(self) -> None:
        """Called by the parser."""
        if self._begun:
            self._to.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Called by the parser."""
        if self._begun:
            self._to.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        if self._begun:
            self._to.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        if self._begun:
            self._to.on_headers_complete()
        self._begun = True


def new_parser(protocol: Any) -> Any:
    """As uvicorn makes one."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
