"""How much a build makes of its inputs. Two lists of points are few bytes, and the costs between them are many.

Whoever builds what strangers sent says how much that may be. Elsewhere nobody asks.
"""

from collections.abc import Callable
from contextvars import ContextVar

PROBLEM, MANY = 1 << 11, 1 << 17
"""Entries that take about as long to make as one small problem of several; as many as are made of all of them at most,
since problems take time and hardly memory."""
_ask: ContextVar[Callable[[int], object] | None] = ContextVar("made", default=None)


class TooMuch(Exception):
    """A build would make more than it may."""


class asking:
    """A block in which a problem is built: `ask` is told of entries of 8 bytes before they are made, and may raise."""

    __slots__ = ("_ask", "_token")

    def __init__(self, ask: Callable[[int], object] | None) -> None:
        self._ask = ask

    def __enter__(self) -> None:
        self._token = _ask.set(self._ask)

    def __exit__(self, *_: object) -> None:
        _ask.reset(self._token)


def at_most(entries: int) -> Callable[[int], None]:
    """What raises TooMuch once more than so many entries are made."""
    left = entries

    def ask(count: int) -> None:
        nonlocal left
        left -= count
        if left < 0:
            raise TooMuch

    return ask


def make(entries: int) -> None:
    """So many entries are made next. Raises what whoever is asked raises."""
    ask = _ask.get()
    if ask is not None:
        ask(entries)
