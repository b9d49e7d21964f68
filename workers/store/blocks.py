"""The bytes of a long upload, a block at a time: threads write, hash and look at one while the next one fills.

A block is a piece of the tree digest. Blocks are shared by all uploads of a process, so that their memory is bounded
and has been touched before. An upload that finds none free does the work of that piece by itself, in its own thread:
slower, as it was before there were blocks, and without looking. So a client that sends a byte a minute keeps a block
from others, and no more.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from kernels import Glance
from workers.store.digests import LEAF, PIECE, PLAIN, Hashed, digest_of, leaves_of, tree_of
from workers.store.disk import hasten
from workers.store.marks import before, find
from workers.store.pieces import Done, Filling, Piece, Shown, Whole, known
from workers.store.pool import THREADS, pool
from workers.store.sight import Sight, Watch
from workers.store.slab import Slab

STEP, SEEN = (2 * LEAF, LEAF) if THREADS > 4 else (4 * LEAF, 2 * LEAF)
"""Of a piece in a slab so much at a time is handed to a thread while the next bytes come, and when it ends. Each task
takes the interpreter from who receives: half as many save a tenth of the processor time that 8 MiB cost the API. By the
smaller ones the digest, which is waited for, is known 0.8 ms earlier, where there are cores for them all. SEEN is of
the end of an upload, and of one that is a piece alone, which one thread hashes from its front."""
END = 16 << 20
"""Before the last so many bytes of a slab a piece is handed to threads when it is whole, and not as it fills: each task
takes the interpreter from who receives, and what is hashed meanwhile is not waited for."""
LEAD = 2 * THREADS
"""Blocks of one upload that may be under way: a client that is faster than the disk waits."""


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

    Attributes:
        mark: what threads look for in a slab, for `marked`.
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
        self._piece: Filling | None = None  # in a slab: the one that fills
        self._alone: Hashed | None = None  # of a piece for which there was no block
        self._parts: list[Piece] = []
        self._last = False  # the piece that fills the slab is under way before anybody says that it is the last
        self.mark = b""
        self._left: tuple[int | None, bytes] = None, b""
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
            elif self._alone is not None:
                self._alone.write(part)
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
        elif self._piece is not None and self._is_near_end:
            self._piece.came(self._size % PIECE, self._step)

    @property
    def _begun(self) -> bool:
        """Whether a piece is under way."""
        return self._block is not None or self._alone is not None

    @property
    def _is_near_end(self) -> bool:
        return self._slab is not None and self._slab.size - self._size <= END

    @property
    def _step(self) -> int:
        assert self._slab is not None
        return SEEN if self._size == self._slab.size or self._slab.size <= PIECE else STEP

    @property
    def awaited(self) -> list[Future[Any]]:
        """What threads still do with what came."""
        return [one for one in self._under_way() if not one.done()]

    @property
    def in_slab(self) -> bool:
        """Whether all that came is there."""
        return self._slab is not None

    def leave(self) -> None:
        """Go on in the file: it gets what is in the slab. Raises OSError."""
        if self._slab is None:
            return
        self._left = self._marked(0, self._size), self._last_bytes()
        slab, self._slab = self._slab, None
        wait(self._under_way())  # they may still write to it
        _put(self._descriptor(), slab.view[: self._size], 0)
        inside = self._size % PIECE
        if slab.size <= PIECE:  # hashed as all that comes, which it is not
            self._parts.clear()
            inside = self._size
        elif self._last:
            self._parts.pop()
        if inside and (self._block is not None or self._last or slab.size <= PIECE):
            self._alone, self._watch = Hashed(), None
            self._alone.write(slab.view[self._size - inside : self._size])
            self._block, self._piece, self._last = None, None, False
            if inside == PIECE:
                self._end()

    def _begin(self) -> None:
        if self._slab is not None:
            try:
                self._slab.ready(self._size)
                self._block = self._slab.view[self._size : self._size + PIECE]
                alone = self._slab.size <= PIECE
                look = self._shown if self._watch is not None or self.mark else None
                self._piece = Filling(self._block, self._size, look, alone, pool().threads)
                return
            except OSError:  # no memory: there may be room on the disk
                self.leave()
        self._block = pool().take()
        if self._block is None:
            self._alone = Hashed()
        if len(self._parts) >= LEAD:
            self._parts[-LEAD].done()

    def _end(self, source: memoryview | None = None) -> None:
        """The piece is whole, or the last. With `source` its bytes are still there."""
        count = (self._size - 1) % PIECE + 1
        if self._block is None:
            assert self._alone is not None
            self._parts.append(Whole(known(Done(b"".join(self._alone.leaves)))))
            self._alone = self._watch = None
        elif self._slab is not None and source is None:
            assert self._piece is not None
            self._piece.end(count, self._step if self._is_near_end else PIECE)
            self._parts.append(self._piece)
        else:
            work = pool().threads.submit(self._work, self._block, count, self._size - count, source)
            self._parts.append(Whole(work))
        self._block = self._piece = None

    def _work(self, block: bytearray | memoryview, count: int, at: int, source: memoryview | None) -> Done:
        try:
            view = memoryview(block)[:count]
            if source is not None:
                np.copyto(np.frombuffer(view, np.uint8), np.frombuffer(source, np.uint8))
            if isinstance(block, bytearray):
                _put(self._descriptor(), view, at)
                if self._early:
                    hasten(self._descriptor(), at, count)
            watch = self._watch  # which another piece may end meanwhile
            return Done(leaves_of(view), None if watch is None else watch.look(view, at))
        finally:
            if isinstance(block, bytearray):
                pool().give(block)

    def _shown(self, view: memoryview, at: int) -> Shown:
        watch = self._watch  # which another piece may end meanwhile
        return Shown(None if watch is None else watch.look(view, at), self._marked(at, at + len(view)))

    def _marked(self, begin: int, end: int) -> int | None:
        """Where the mark begins that ends in those bytes of the slab."""
        if not self.mark or self._slab is None:
            return None
        begin = max(0, begin - len(self.mark) + 1)
        found = find(self._slab.view[begin:end], self.mark)
        return None if found < 0 else begin + found

    def marked(self, following: bytes) -> int | None:
        """Where the first mark begins in what came to the slab, or may begin that goes on in the `following` bytes."""
        last = self._last_bytes()
        begins, size = before(memoryview(bytearray(last + following)), self.mark), self._size
        found = self._found()
        return size - len(last) + begins if found is None and begins < len(last) else found

    def _found(self) -> int | None:
        if self._slab is None:
            return self._left[0]
        if self._slab.size > self._size:  # threads have not been given all of it
            return self._marked(0, self._size)
        places = [one.mark for part in self._parts for one in part.shown() if one.mark is not None]
        return min(places, default=None)

    def _last_bytes(self) -> bytes:
        """The end of what came to the slab: as much as a mark that goes on behind it may have there."""
        if self._slab is None:
            return self._left[1]
        return bytes(self._slab.view[max(0, self._size - len(self.mark) + 1) : self._size])

    def flush(self) -> None:
        """Wait until all that came is written and hashed. Nothing may come after that. Raises OSError."""
        self._end_last()
        for part in self._parts:
            part.done()

    def look(self) -> None:
        """Wait until all that came is written and looked at; in a slab it may still be hashed. Else as `flush`."""
        self._end_last()
        for part in reversed(self._parts):  # threads began with the first
            part.shown()

    def _end_last(self) -> None:
        self._last = False
        if self._size % PIECE and self._begun:
            self._end()

    def digest(self) -> str:
        """Of all."""
        self.flush()
        if self._size <= PIECE:
            return self._short_digest()
        first = [] if self._first is None else self._first.leaves
        return tree_of([*first, *(part.done().digests for part in self._parts)], self._size)

    def _short_digest(self) -> str:
        if self._slab is None:
            return digest_of(os.pread(self._descriptor(), PIECE, 0))
        first = self._parts[0]
        if isinstance(first, Filling) and first.is_alone:
            return f"{PLAIN}:{first.done().digests.hex()}"
        return digest_of(self._slab.view[: self._size])  # less came than was said, or it was copied by threads

    def sight(self) -> Sight | None:
        """What was seen of the array."""
        self.look()
        if self._watch is None:
            return None
        glances = [shown.glance for part in self._parts for shown in part.shown()]
        return self._watch.sight([self._glance.result(), *glances] if self._glance else glances, self._size)

    def _under_way(self) -> list[Future[Any]]:
        """What threads do, or have done."""
        current = [] if self._piece is None else self._piece.under_way()
        return [*current, *(one for part in self._parts for one in part.under_way())]

    def close(self) -> None:
        """Give back what is left, once no thread uses its memory or its file. What none has begun is left undone."""
        pieces = [*self._parts, *([] if self._piece is None else [self._piece])]
        first = [self._glance] if self._glance is not None and not self._glance.cancel() else []
        wait([*first, *(one for piece in pieces for one in piece.dropped())])
        if isinstance(self._block, bytearray):
            pool().give(self._block)
        self._block = self._piece = self._slab = None


def _put(descriptor: int, view: memoryview, at: int) -> None:
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
