"""Answer only once the request has come: a connection that closes on unread bytes is reset, and its client never
sees why it was refused."""

import time
from typing import Protocol

from anyio import move_on_after
from starlette.types import Message

DRAIN_S = 2.0


class Coming(Protocol):
    """A request whose body may be on its way."""

    whole: bool

    async def receive(self) -> Message:
        """The next message, after which `whole` says whether it was the last."""


async def drained(request: Coming) -> None:
    """Read on for a moment when an answer (401, 413, 415, 422, ...) is ready before its request is."""
    until = time.monotonic() + DRAIN_S
    while not request.whole and time.monotonic() < until:
        with move_on_after(until - time.monotonic()):  # a body that never comes is not waited for
            await request.receive()
