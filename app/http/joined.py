"""An answer's headers and the beginning of its body in one piece.

uvicorn writes them one after the other, and uvloop hands each piece to the kernel at once: two system calls, two
segments, and two wakings of whoever reads them.
"""

import asyncio

LENGTH = b"\r\ncontent-length: "
COPIED = 64 << 10
"""Longer pieces are handed on beside the headers, not copied behind them."""


class Joined:
    """What one cycle of uvicorn, of another method than HEAD, takes for its transport.

    A cycle calls `write`, `close`, and `is_closing` before it says that it waits for a body.

    Headers that tell a length wait for the first piece of the body, which follows even where it is empty. Others are
    those of a stream, whose first event may be far away.
    """

    __slots__ = ("_begun", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._begun, self._head = transport, False, b""

    def write(self, piece: bytes) -> None:
        """Write headers, or a piece of the body."""
        if not self._begun:
            self._begun = True
            if LENGTH in piece:
                self._head = piece
                return
        elif self._head:
            head, self._head = self._head, b""
            if len(piece) > COPIED:
                self._transport.writelines((head, piece))
                return
            piece = b"".join((head, piece))
        self._transport.write(piece)

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close behind all that was written."""
        if self._head:
            self.write(b"")
        self._transport.close()
