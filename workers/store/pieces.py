"""What threads do with a piece of an upload, and what comes of it."""

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Protocol

from kernels import Glance
from workers.store.digests import LEAF, Following, leaves_of
from workers.store.sight import Watch

SHORT = 1 << 16
"""So few bytes are hashed in less time than a thread takes to begin."""
SEEN_HERE = 2 * LEAF
"""So few are looked at in that time."""


@dataclass(frozen=True)
class Done:
    """A piece that was written; the digests of its leaves."""

    digests: bytes
    glance: Glance | None = None


class Piece(Protocol):
    """A piece that is whole, or the last."""

    def done(self) -> Done:
        """What came of it, once it is written and hashed."""

    def glances(self) -> list[Glance | None]:
        """What it shows."""

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

    def glances(self) -> list[Glance | None]:
        """As `Piece`."""
        return [self.done().glance]

    def under_way(self) -> list[Future[Any]]:
        """As `Piece`."""
        return [self._work]

    def dropped(self) -> list[Future[Any]]:
        """As `Piece`: it is written in any case."""
        return [self._work]


class Filling:
    """A piece in a slab, whose memory nobody else wants: threads work on what is there while the next bytes come.

    Each time a thread asks for Python's lock, whoever receives waits for it: a hash does so once in LEAF bytes, NumPy
    in every pass. So a few bytes are looked at by who receives them, and the checksum is left to who solves.

    Args:
        memory: of the piece.
        at: where it begins in the upload.
        watch: looks at it; None where nobody wants to know.
        is_alone: it is the whole upload, and hashed from its front by one thread at a time.
        threads: they hash it.
        eyes: they look at it. A problem is built from what they see, before all is hashed.
    """

    def __init__(
        self, memory: Any, at: int, watch: Watch | None, is_alone: bool, threads: Executor, eyes: Executor
    ) -> None:
        self._memory, self._at, self._watch = memoryview(memory), at, watch
        self._threads, self._eyes = threads, eyes
        self._following = Following(memory, threads) if is_alone else None
        self._looks: list[Future[Glance | None]] = []
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
        """A look at all that is there, and hashes of `step` bytes for each task."""
        at, view = self._at + self._handed, self._memory[self._handed : until]
        self._handed = until
        if self._watch is not None:
            look, here = self._watch.look, len(view) <= SEEN_HERE
            self._looks.append(known(look(view, at)) if here else self._eyes.submit(look, view, at))
        if self._following is not None:
            return
        for begin in range(0, len(view), step):
            part = view[begin : begin + step]
            here = len(part) <= SHORT
            self._runs.append(known(leaves_of(part)) if here else self._threads.submit(leaves_of, part))

    def done(self) -> Done:
        """As `Piece`."""
        if self._following is not None:
            return Done(self._following.digests())
        return Done(b"".join(run.result() for run in self._runs))

    def glances(self) -> list[Glance | None]:
        """As `Piece`."""
        return [look.result() for look in self._looks] or [None]

    def under_way(self) -> list[Future[Any]]:
        """As `Piece`."""
        hashes: list[Future[Any]] = [] if self._following is None else [*self._following.runs]
        return [*hashes, *self._looks, *self._runs]

    def dropped(self) -> list[Future[Any]]:
        """As `Piece`."""
        return [one for one in self.under_way() if not one.cancel()]


def known(value: Any) -> "Future[Any]":
    """A future of what is there."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future
