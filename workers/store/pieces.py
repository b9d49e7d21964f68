"""What threads do with a piece of an upload, and what comes of it."""

from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from kernels import Glance
from workers.store.digests import Following, Leaves


@dataclass(frozen=True)
class Done:
    """A piece that was written; the digests of its leaves."""

    digests: bytes
    glance: Glance | None = None


class Piece:
    """A piece under way; in a slab, whose memory nobody else wants, it is looked at beside the rest of its work."""

    def __init__(self, work: Future[Done] | None = None) -> None:
        self.work = work
        self.hashes: Leaves | Following | None = None
        self.looks: list[Future[Glance | None]] = []
        self.totals: list[Future[int | None]] = []

    def done(self) -> Done:
        """What came of it, once it is written and hashed."""
        if self.work is not None:
            return self.work.result()
        assert self.hashes is not None
        return Done(self.hashes.digests())

    def glances(self, whole: bool = True) -> list[Glance | None]:
        """What it shows; unless `whole`, without checksums that somebody still takes."""
        if not self.looks:
            return [self.done().glance]
        found = [look.result() for look in self.looks]
        if not self.totals or not whole or None in found:
            return list(found)
        parts = [total.result() for total in self.totals]
        checksum = None if None in parts else sum(part for part in parts if part is not None) % 2**64
        first, *others = (one for one in found if one is not None)
        nothing = None if checksum is None else 0
        return [_with(first, checksum), *(_with(one, nothing) for one in others)]

    def under_way(self) -> list[Future[Any]]:
        """What threads may still do."""
        hashes: list[Future[Any]] = [*self.hashes.runs] if self.hashes is not None else []
        return [*hashes, *self.looks, *self.totals, *([self.work] if self.work is not None else [])]

    def dropped(self) -> list[Future[Any]]:
        """What threads do of it that nobody wants any more: what none has begun never will be, but for its writing."""
        return [one for one in self.under_way() if one is self.work or not one.cancel()]


def _with(one: Glance, checksum: int | None) -> Glance:
    return replace(one, seen=replace(one.seen, checksum=checksum))


def known(value: Any) -> "Future[Any]":
    """A future of what is there."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future
