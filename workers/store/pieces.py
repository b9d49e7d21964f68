"""What threads do with a piece of an upload, and what comes of it."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from kernels import Glance
from workers.store.digests import LEAF, Following, leaves_of

SHORT = 1 << 16
"""So few bytes are hashed and looked at in less time than a thread takes to begin."""


class Shown(NamedTuple):
    """What some bytes of an upload show: of the numbers, and where in it a mark begins that was looked for."""

    glance: Glance | None
    mark: int | None


Look = Callable[[memoryview, int], Shown]
"""At bytes that begin at such a byte of the upload. In any thread."""


@dataclass(frozen=True)
class Done:
    """A piece that was written; the digests of its leaves."""

    digests: bytes
    glance: Glance | None = None


class Piece(Protocol):
    """A piece that is whole, or the last."""

    def done(self) -> Done:
        """What came of it, once it is written and hashed."""

    def shown(self) -> list[Shown]:
        """What its bytes show."""

    def under_way(self) -> list[Future[Any]]:
        """What threads may still do."""

    def dropped(self) -> list[Future[Any]]:
        """What threads do of it that nobody wants any more: what none has begun never will be, but for its writing."""


class Whole:
    """A piece that one thread writes, hashes and looks at."""

    def __init__(self, work: Future[Done]) -> None:
        self._work = work

    def done(self) -> Done:
        """As `Piece`."""
        return self._work.result()

    def shown(self) -> list[Shown]:
        """As `Piece`."""
        return [Shown(self.done().glance, None)]

    def under_way(self) -> list[Future[Any]]:
        """As `Piece`."""
        return [self._work]

    def dropped(self) -> list[Future[Any]]:
        """As `Piece`: it is written in any case."""
        return [self._work]


class Glimpse:
    """A look at some bytes, by whoever comes first: a thread, or the one that waits for it.

    Attributes:
        shown: what it showed.
    """

    def __init__(self, look: Look | None, part: memoryview, at: int) -> None:
        self._todo = [(look, part, at)]
        self.shown: Future[Shown] = Future()

    def take(self) -> None:
        """Look, unless somebody does, or nobody wants to know any more."""
        try:
            look, part, at = self._todo.pop()
        except IndexError:
            return
        if self.shown.set_running_or_notify_cancel():
            try:
                self.shown.set_result(Shown(None, None) if look is None else look(part, at))
            except Exception as wrong:
                self.shown.set_exception(wrong)


class Filling:
    """A piece in a slab, whose memory nobody else wants: threads work on what is there while the next bytes come.

    Each change of threads takes Python's lock from who receives. So one task looks at bytes and then hashes them, and
    the checksum is left to who solves. Whoever reads bytes first waits for memory: the kernel has just written them. A
    thread that sleeps may take milliseconds to wake on a virtual machine: who waits for a look takes it.

    Args:
        memory: of the piece.
        at: where it begins in the upload.
        look: looks at it; None where nobody wants to know.
        is_alone: it is the whole upload, and hashed from its front by one thread at a time.
        threads: they hash it, and look at what several of them hash. What one hashes is looked at by who receives it,
            whose core has it at hand: another would wait longer for it than the look takes.
    """

    def __init__(self, memory: Any, at: int, look: Look | None, is_alone: bool, threads: Executor) -> None:
        self._memory, self._at, self._look = memoryview(memory), at, look
        self._threads = threads
        self._following = Following(memory, threads) if is_alone else None
        self._looks: list[Glimpse] = []
        self._runs: list[Future[bytes]] = []
        self._handed = 0

    @property
    def is_alone(self) -> bool:
        """Whether `done` has the digest of all bytes in the place of those of leaves."""
        return self._following is not None

    def came(self, there: int, step: int) -> None:
        """So many bytes of it are there by now: those that fill leaves are handed on, if they are `step` at least."""
        if self._following is not None:
            self._following.came(there)
        until = there - there % LEAF
        if until - self._handed >= step:
            self._hand(until, step)

    def end(self, count: int, step: int) -> None:
        """There are so many, and no more will come."""
        if self._following is not None:
            self._following.end(count)
        if count > self._handed:
            self._hand(count, step)
        self._memory = memoryview(b"")

    def _hand(self, until: int, step: int) -> None:
        """All that is there, in tasks of `step` bytes."""
        begin, self._handed = self._handed, until
        if self._following is not None:
            if self._look is not None:
                self._glimpse(self._memory[begin:until], begin).take()
            return
        for start in range(begin, until, step):
            part = self._memory[start : min(start + step, until)]
            glimpse = self._glimpse(part, start)
            if len(part) <= SHORT:
                self._runs.append(known(_seen_and_hashed(part, glimpse)))
            else:
                self._runs.append(self._threads.submit(_seen_and_hashed, part, glimpse))

    def _glimpse(self, part: memoryview, start: int) -> Glimpse:
        self._looks.append(Glimpse(self._look, part, self._at + start))
        return self._looks[-1]

    def done(self) -> Done:
        """As `Piece`."""
        if self._following is not None:
            return Done(self._following.digests())
        return Done(b"".join(run.result() for run in self._runs))

    def shown(self) -> list[Shown]:
        """As `Piece`. Where no thread looks yet this one does, at the last bytes first: threads begin with others."""
        for glimpse in reversed(self._looks):
            glimpse.take()
        return [glimpse.shown.result() for glimpse in self._looks] or [Shown(None, None)]

    def under_way(self) -> list[Future[Any]]:
        """As `Piece`."""
        hashes: list[Future[Any]] = [] if self._following is None else [*self._following.runs]
        return [*hashes, *(glimpse.shown for glimpse in self._looks), *self._runs]

    def dropped(self) -> list[Future[Any]]:
        """As `Piece`."""
        return [one for one in self.under_way() if not one.cancel()]


def _seen_and_hashed(part: memoryview, glimpse: Glimpse) -> bytes:
    """What is seen is told at once."""
    glimpse.take()
    return leaves_of(part)


def known(value: Any) -> "Future[Any]":
    """A future of what is there."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future
