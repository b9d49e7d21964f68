"""The head of an answer, of which all but the values is put together once.

uvicorn looks at each header of each answer: whether its name and its value can be written, and what both mean for how
the body goes out. Answers of one kind have the same names, so what these mean is found once. Values are looked at in
each answer, all of them at a time.
"""

import functools
from collections.abc import Sequence
from typing import Any

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

LENGTH = b"content-length"
BY_UVICORN = {b"connection", b"transfer-encoding"}
"""Headers by which the server is told what to do with the connection or the body."""


class Heads(RequestResponseCycle):
    """A cycle of uvicorn's, of another method than HEAD: one that was made becomes one of these by its class.

    What it was given to hold it would hold in a ring, which the collector would have to find for each answer.

    It leans on names inside uvicorn: the cycle's own that it sets, STATUS_LINE and both patterns of headers. Heads that
    tell no length, or tell the server anything, are left to uvicorn, as are those of connections that close.
    """

    async def send(self, message: Any) -> None:
        """Send a message of ASGI."""
        if message["type"] != "http.response.start" or not self._began(message):
            await super().send(message)

    def _began(self, message: Message) -> bool:
        """Whether the head was written here."""
        if self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive:
            return False
        headers = (*self.default_headers, *message.get("headers", ()))
        names, values = zip(*headers, strict=True) if headers else ((), ())
        form = _form(message["status"], names)
        if form is None or self.access_log or HEADER_VALUE_RE.search(b"\t".join(values)):
            return False
        text, at = form
        self.expected_content_length, self.chunked_encoding = int(values[at]), False
        self.response_started, self.waiting_for_100_continue = True, False
        self.transport.write(text % values)
        return True


@functools.lru_cache(256)
def _form(status: int, names: Sequence[bytes]) -> tuple[bytes, int] | None:
    """A head with a place for each value, and which of them is the length; None where uvicorn is to write it."""
    lower = [name.lower() for name in names]
    if LENGTH not in lower or BY_UVICORN & set(lower) or any(HEADER_RE.search(name) for name in names):
        return None
    lines = b"".join(b"%b: %%b\r\n" % name.replace(b"%", b"%%") for name in lower)
    return b"%b%b\r\n" % (STATUS_LINE[status], lines), lower.index(LENGTH)
