"""Whose request the event loop begins next, where several owners ask at once."""

import asyncio
from collections import deque


class Turns:
    """One request begins in each turn of the event loop; owners take turns, and each one's requests keep their order.

    A hundred requests of one owner that arrive together so cost another owner the time of one, and not of a hundred.
    A request that comes alone begins at once.
    """

    def __init__(self) -> None:
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # the first owner is the next
        self._begun = False

    async def take(self, owner: str) -> None:
        """Return once it is the turn of this request of the owner."""
        loop = asyncio.get_running_loop()
        if not self._begun:
            self._begun = True
            loop.call_soon(self._next, loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._lines.setdefault(owner, deque()).append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._lines:
            owner = next(iter(self._lines))
            line = self._lines.pop(owner)
            turn = line.popleft()
            if line:
                self._lines[owner] = line  # behind the others
            if not turn.done():  # its caller may have gone away
                turn.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._begun = False
