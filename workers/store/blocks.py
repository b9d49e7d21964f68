"""The bytes of a long upload, a block at a time: threads write, hash and look at one while the next one fills.

A block is a piece of the tree digest. Blocks are shared by all uploads of a process, so that their memory is bounded
and has been touched before. An upload that finds none free does the work of that piece by itself, in its own thread:
slower, as it was before there were blocks, and without looking. So a client that sends a byte a minute keeps a block
from others, and no more.
"""

import functools
import hashlib
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels import Glance
from workers.store.digests import PIECE, PLAIN, Following, Hashed, tree_of
from workers.store.disk import hasten
from workers.store.sight import Sight, Watch
from workers.store.slab import Slab

THREADS = max(1, min(8, os.cpu_count() or 1))
MOST_BLOCKS = 3 * THREADS + 2
STEP = 1 << 20
"""Bytes of a piece from which on the next are hashed while those behind them come, and of which one thread takes the
checksum: who waits for the last piece waits for a part of its work."""
SHORT = 1 << 16
"""So few bytes are looked at in less time than a thread takes to begin."""
LEAD = 2 * THREADS
"""Blocks of one upload that may be under way: a client that is faster than the disk waits."""


@dataclass(frozen=True)
class Done:
    """A piece that was written."""

    digest: bytes
    glance: Glance | None = None


@dataclass(frozen=True)
class Piece:
    """A piece under way; in a slab, whose memory nobody else wants, it is looked at beside the rest of its work."""

    work: Future[Done]
    look: Future[Glance | None] | None = None
    totals: tuple[Future[int | None], ...] = ()

    def glance(self, whole: bool = True) -> Glance | None:
        """What it shows; unless `whole`, without a checksum that somebody still takes."""
        found = self.work.result().glance if self.look is None else self.look.result()
        if found is None or not self.totals or not whole:
            return found
        parts = [total.result() for total in self.totals]
        checksum = None if None in parts else sum(part for part in parts if part is not None) % 2**64
        return replace(found, seen=replace(found.seen, checksum=checksum))


class _Pool:
    """Blocks that are free, and threads that work on others."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(THREADS, "blocks")
        self.eyes = ThreadPoolExecutor(THREADS, "looks")  # a problem is built from what they see, before all is hashed
        self._free: deque[bytearray] = deque()
        self._made = 0

    def take(self) -> bytearray | None:
        """A block, None where all are taken."""
        try:
            return self._free.pop()
        except IndexError:
            if self._made >= MOST_BLOCKS:  # two threads may both pass: one block more
                return None
            self._made += 1
            return bytearray(PIECE)

    def give(self, block: bytearray) -> None:
        """Give a block back."""
        self._free.append(block)


@functools.cache
def pool() -> _Pool:
    """Of this process, made when first needed."""
    return _Pool()


class Blocks:
    """What comes of an upload behind its first piece, which has been written to its file and hashed as `first`.

    Where all of it goes to a slab from its first byte, there is no such piece.

    Args:
        descriptor: opens the file of the upload, or says which it is.
        watch: looks at the pieces; None where nobody wants to know.
        start: the first piece.
        early: the bytes will be forced to the disk: begin with it at once.
        lasts: what is written stays as it is until all of it is flushed, so that threads may copy it.
        slab: where they are to be, all of them; None puts them into the file. So does `leave`, and more bytes than it
            has.
    """

    def __init__(
        self,
        descriptor: Callable[[], int],
        first: Hashed | None,
        watch: Watch | None,
        start: Callable[[], bytes],
        early: bool,
        lasts: bool = False,
        slab: Slab | None = None,
    ) -> None:
        self._descriptor, self._first, self._watch, self._early = descriptor, first, watch, early
        self._lasts = lasts
        self._slab = slab
        self._size = 0 if first is None else first.size
        if slab is not None and first is not None:
            slab.view[: first.size] = start()
        elif early and slab is None:
            hasten(descriptor(), 0, self._size)
        self._block: bytearray | memoryview | None = None
        self._hash: Following | None = None  # of that piece
        self._ahead: list[Future[None]] = []
        self._alone: Any = None  # the hash of a piece for which there was no block
        self._parts: list[Piece] = []
        self._last = False  # the piece that fills the slab is under way before anybody says that it is the last
        self._glance: Future[Glance | None] | None = None
        if watch is not None and first is not None:
            self._glance = pool().threads.submit(lambda: watch.look(memoryview(start()), 0))

    def write(self, view: memoryview) -> None:
        """Take the next bytes. Raises OSError where those before them could not be written."""
        if self._slab is not None and self._size + len(view) > self._slab.size:
            self.leave()
        while view:
            inside = self._size % PIECE
            if not self._begun:
                self._begin()
            part, view = view[: PIECE - inside], view[PIECE - inside :]
            if self._lasts and self._slab is not None and len(part) == PIECE:
                self._size += PIECE
                self._end(part)
                continue
            if self._block is not None:
                self._block[inside : inside + len(part)] = part
            else:
                self._alone.update(part)
                _put(self._descriptor(), part, self._size)
            self.came(len(part))

    def place(self) -> memoryview | None:
        """Memory in which the next bytes of this piece may be put, for `came`; None where only `write` takes them.

        Raises OSError as `write`.
        """
        if self._slab is not None and self._size == self._slab.size:
            return None
        if not self._begun:
            self._begin()
        return None if self._block is None else memoryview(self._block)[self._size % PIECE :]

    def came(self, count: int) -> None:
        """So many bytes more are where they belong. Raises OSError as `write`."""
        self._size += count
        if count and self._size % PIECE == 0:
            self._end()
        elif self._slab is not None and self._size == self._slab.size and self._begun:
            self._end()
            self._last = True
        elif self._hash is not None:
            inside = self._size % PIECE
            self._hash.came(inside)
            if inside // STEP > (inside - count) // STEP:
                self._ahead.append(pool().threads.submit(self._hash.follow))

    @property
    def _begun(self) -> bool:
        """Whether a piece is under way."""
        return self._block is not None or self._alone is not None

    @property
    def in_slab(self) -> bool:
        """Whether all that came is there."""
        return self._slab is not None

    def leave(self) -> None:
        """Go on in the file: it gets what is in the slab. Raises OSError."""
        slab, self._slab = self._slab, None
        if slab is None:
            return
        wait(self._under_way())  # they may still write to it
        _put(self._descriptor(), slab.view[: self._size], 0)
        inside = self._size % PIECE
        if inside and (self._block is not None or self._last):
            if self._last:  # it was not
                self._parts.pop()
            self._block, self._hash, self._last = None, None, False
            self._alone = hashlib.sha256(slab.view[self._size - inside : self._size])
            self._watch = None

    def _begin(self) -> None:
        if self._slab is not None:
            try:
                self._slab.ready(self._size)
                self._block = self._slab.view[self._size : self._size + PIECE]
                self._hash = Following(self._block)
                return
            except OSError:  # no memory: there may be room on the disk
                self.leave()
        self._block = pool().take()
        if self._block is None:
            self._alone = hashlib.sha256()
        if len(self._parts) >= LEAD:
            self._parts[-LEAD].work.result()

    def _end(self, source: memoryview | None = None) -> None:
        """The piece is whole, or the last. With `source` its bytes are still there."""
        count = (self._size - 1) % PIECE + 1
        block, self._block = self._block, None
        if block is None:
            done: Future[Done] = Future()
            done.set_result(Done(self._alone.digest()))
            self._parts.append(Piece(done))
            self._alone = self._watch = None
        else:
            at, view = self._size - count, memoryview(block)[:count]
            hashing, self._hash = self._hash, None
            self._ahead = [one for one in self._ahead if not one.done()]
            look: Future[Glance | None] | None = None
            totals: tuple[Future[int | None], ...] = ()
            if self._slab is not None and self._watch is not None and count <= SHORT and source is None:
                look = Future()
                look.set_result(self._watch.look(view, at))
            elif self._slab is not None and self._watch is not None:
                look = pool().eyes.submit(self._watch.look, view, at, False)
                if self._watch.sums:
                    steps = range(0, count, STEP)
                    summed, threads = self._watch.summed, pool().threads
                    totals = tuple(threads.submit(summed, view[step : step + STEP], at + step) for step in steps)
            work = pool().threads.submit(self._work, block, count, at, look is None, source, hashing)
            self._parts.append(Piece(work, look, totals))

    def _work(
        self,
        block: bytearray | memoryview,
        count: int,
        at: int,
        looks: bool,
        source: memoryview | None,
        hashing: Following | None,
    ) -> Done:
        try:
            view = memoryview(block)[:count]
            if source is not None:
                np.copyto(np.frombuffer(view, np.uint8), np.frombuffer(source, np.uint8))
            if isinstance(block, bytearray):
                _put(self._descriptor(), view, at)
                if self._early:
                    hasten(self._descriptor(), at, count)
            digest = hashlib.sha256(view).digest() if hashing is None else hashing.digest(count)
            watch = self._watch if looks else None  # which another piece may end meanwhile
            return Done(digest, None if watch is None else watch.look(view, at))
        finally:
            if isinstance(block, bytearray):
                pool().give(block)

    def flush(self) -> None:
        """Wait until all that came is written and hashed. Nothing may come after that. Raises OSError."""
        self._end_last()
        for part in self._parts:
            part.work.result()

    def look(self) -> None:
        """Wait until all that came is written and looked at; in a slab it may still be hashed. Else as `flush`."""
        self._end_last()
        for part in self._parts:
            part.glance(whole=False)

    def _end_last(self) -> None:
        self._last = False
        if self._size % PIECE and self._begun:
            self._end()

    def digest(self) -> str:
        """Of all."""
        self.flush()
        parts = [part.work.result().digest for part in self._parts]
        if self._first is not None:
            parts.insert(0, bytes.fromhex(self._first.digest.partition(":")[2]))
        return tree_of(parts, self._size) if self._size > PIECE else f"{PLAIN}:{parts[0].hex()}"

    def sight(self, whole: bool = True) -> Sight | None:
        """What was seen of the array; unless `whole`, perhaps without its checksum."""
        self.look()
        if self._watch is None:
            return None
        glances = [part.glance(whole) for part in self._parts]
        return self._watch.sight([self._glance.result(), *glances] if self._glance else glances, self._size)

    def _under_way(self) -> list[Future[Any]]:
        return [*self._ahead, *(one for part in self._parts for one in (part.work, part.look, *part.totals) if one)]

    def close(self) -> None:
        """Wait for the threads, which use the file, and give back what is left."""
        wait([*self._under_way(), *([self._glance] if self._glance else [])])
        if isinstance(self._block, bytearray):
            pool().give(self._block)
        self._block = self._slab = None


def _put(descriptor: int, view: memoryview, at: int) -> None:
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
