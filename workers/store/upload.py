"""One upload on its way into the store: to disk as it comes, hashed beside, read once, then kept as its owner's."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from workers.jobs.job import DigestMismatch, InputRef, UploadTooLarge
from workers.store.blocks import Blocks
from workers.store.codec import AS_FOUND, Form, Limits, Reading, describe, read
from workers.store.digests import PIECE, TREE, Hashed
from workers.store.disk import room
from workers.store.expected import UNKNOWN, Expected
from workers.store.layouts import NPY_START
from workers.store.reference import frozen
from workers.store.sight import Sight, Watch
from workers.store.slab import Slab
from workers.store.spool import Spool, slices


class Keeper(Protocol):
    """Who takes a finished upload: the store."""

    limits: Limits

    def adopt(self, writer: "Writer", owner: str, brief: bool = False) -> None:
        """Keep it for this owner."""


@dataclass(frozen=True)
class BlobInfo:
    """What can be told of bytes without being told how to read them; dtype and shape of an .npy alone."""

    digest: str
    size: int
    dtype: str | None = None
    shape: list[int] | None = None


@dataclass(frozen=True)
class Upload:
    """What an upload is answered with. `layout` is `codec.describe`'s kind, dtype and shape."""

    reference: InputRef
    size: int
    layout: dict[str, Any]

    @property
    def digest(self) -> str:
        """Of its bytes."""
        return str(self.reference["blob"])


WORTH_A_SLAB = 1 << 20
"""Bytes from which threads hash an upload beside those that come next."""


class Writer:
    """One upload on its way to disk: `write` chunks, then `commit`. Leaving the `with` block drops the rest.

    What is longer than a piece of the digest goes through blocks of memory, which threads write and hash while the
    next bytes come. Without a free block it is written and hashed here.

    Args:
        scheme: how its digest is worked out; all but TREE in one thread.
        look: it comes from outside and will be kept: see the range of its numbers, where it is one array, and begin
            early to write it to the disk.
        sums: of a long upload that is looked at, take the total of its words, too, which a GPU's certificate compares.
        size: a long upload of a known size goes to the arena, if there is room, and not to the disk.
    """

    def __init__(
        self,
        keeper: Keeper,
        max_bytes: int,
        folder: Path,
        scheme: str = TREE,
        sums: bool = False,
        look: bool = False,
        size: Expected = UNKNOWN,
    ) -> None:
        self._keeper = keeper
        self._max_bytes = max_bytes
        self._folder, self._mark = folder, b""
        self._spool, self._closed = Spool(folder, size.held), False
        self._hash = Hashed(scheme)
        self._alone, self._sums, self._look = scheme != TREE, sums, look
        self._blocks: Blocks | None = None
        self._expected = size
        self._slab: Slab | None = None
        self.size, self._looked = 0, -1
        self._named: tuple[int, str] = -1, ""

    @property
    def path(self) -> Path:
        """Where the bytes are, once they are flushed."""
        if self._slab is not None:
            return self._slab.path
        if not self._closed:
            with room():
                self._spool.descriptor()
        return self._spool.path

    @property
    def digest(self) -> str:
        """Of what has been written so far."""
        if self._named[0] != self.size:
            self._named = self.size, self._hash.digest if self._blocks is None else self._blocks.digest()
        return self._named[1]

    @property
    def is_long(self) -> bool:
        """Whether threads work on it."""
        return self._blocks is not None

    @property
    def awaited(self) -> list[Future[Any]]:
        """What `flush` waits for."""
        return self._blocks.awaited if self._blocks else []

    @property
    def is_looked(self) -> bool:
        """Whether `look` has been called since the last byte."""
        return self._looked == self.size

    @property
    def memory(self) -> memoryview | None:
        """All that came, to be read until this is closed; None where it lies in a file, or `look` was not called."""
        return self._slab.view.toreadonly() if self._slab is not None and self.is_looked else None

    @property
    def short(self) -> memoryview | None:
        """All that came, where it is in memory because it is short. It is asked for once nothing comes any more."""
        return self._spool.memory if self._blocks is None else None

    @property
    def sight(self) -> Sight | None:
        """What was seen of the numbers of a long upload; None where it was not looked at or is no one array."""
        return None if self._blocks is None else self._blocks.sight()

    def write(self, chunk: bytes | memoryview) -> int:
        """Append to the upload.

        Raises:
            UploadTooLarge: past the limit.
            StoreFull: the disk is.
        """
        view = memoryview(chunk).cast("B")
        if self.size + len(view) > self._max_bytes:
            self.size += len(view)
            raise UploadTooLarge(f"the upload is larger than {self._max_bytes} bytes")
        with room():
            if self._blocks is None and self.size == 0:
                self._blocks = self._begin_there(view)
            if self._blocks is None:
                first = view if self._alone else view[: PIECE - self.size]
                self._write_here(first)
                view = view[len(first) :]
                if not view:
                    return len(chunk)
                self._blocks = self._begin()
            self._blocks.write(view)
            self.size += len(view)
        return len(chunk)

    def place(self) -> memoryview | None:
        """Memory for the next bytes, for `came`; None where `write` has to take them. Raises StoreFull."""
        if self._blocks is None:
            return None
        with room():
            found = self._blocks.place()
        return (found[: self._max_bytes - self.size] or None) if found is not None else None

    def came(self, count: int) -> None:
        """So many bytes are in the memory of `place`. Raises StoreFull."""
        assert self._blocks is not None
        with room():
            self._blocks.came(count)
        self.size += count

    def seek(self, mark: bytes) -> None:
        """Have threads look for a mark in what comes to `place`, where they can. Called before anything comes."""
        self._mark = mark

    @property
    def seeks(self) -> bool:
        """Whether they do: then `marked` is to be asked before anything else is done with the bytes."""
        return bool(self._mark) and self._blocks is not None and self._blocks.in_slab

    def marked(self, following: bytes) -> int | None:
        """Where the first mark begins that threads looked for, or one may that goes on in the `following` bytes; None
        where all bytes come before one."""
        assert self._blocks is not None
        return self._blocks.marked(following)

    def cut(self, at: int) -> Iterator[bytes]:
        """Take back all that came from byte `at` on, which is told. Nothing may come before that has been read.

        Raises:
            StoreFull.
        """
        spool, slab, blocks, size = self._spool, self._slab, self._blocks, self.size
        assert blocks is not None
        with contextlib.ExitStack() as closed, room():
            for one in (spool, slab, blocks):
                if one is not None:
                    closed.callback(one.close)
            blocks.flush()
            there = spool.descriptor() if slab is None else slab.view
            self._spool, self._slab, self._blocks = Spool(self._folder, 0), None, None
            self._hash, self._expected, self.size = Hashed(TREE), UNKNOWN, 0
            self.writelines(slices(there, 0, at))
            yield from slices(there, at, size)

    def _begin_there(self, view: memoryview) -> Blocks | None:
        """In a slab from the first byte on, where the first bytes say how much comes."""
        if self._alone or self._expected.arena is None:
            return None
        start = bytes(view[:NPY_START])
        self._slab = self._expected.take(start, WORTH_A_SLAB, self._max_bytes)
        if self._slab is None:
            return None
        return self._blocks_of(None, start, bytes)

    def _blocks_of(self, first: Hashed | None, start: bytes, again: Callable[[], bytes]) -> Blocks:
        watch = Watch.of(start, self._sums) if self._look else None
        lasts = self._expected.exact
        blocks = Blocks(self._spool.descriptor, first, watch, again, early=self._look, lasts=lasts, slab=self._slab)
        blocks.mark = self._mark
        return blocks

    def _begin(self) -> Blocks:
        """More than a piece comes."""
        start = self._spool.start(NPY_START)
        self._slab = self._expected.take(start, self.size, self._max_bytes)
        return self._blocks_of(self._hash, start, partial(self._spool.start, PIECE))

    def writelines(self, chunks: Iterable[bytes | memoryview]) -> None:
        """Append several. Raises as `write`."""
        for chunk in chunks:
            self.write(chunk)

    def _write_here(self, view: memoryview) -> None:
        self._hash.write(view)
        self.size += len(view)
        self._spool.write(view)

    def flush(self) -> Path:
        """Everything written so far is in `path`, and hashed. Raises StoreFull."""
        with room():
            if self._blocks is not None:
                self._blocks.flush()
        return self.look()

    def look(self) -> Path:
        """Everything written so far is in `path`, and looked at; threads may still hash it. Raises StoreFull."""
        with room():
            if self._blocks is not None:
                self._blocks.look()
            if self._slab is not None and not self._is_shared():
                self._leave()
        self._looked = self.size
        return self.path

    def _is_shared(self) -> bool:
        """Whether the slab holds all bytes and no others, and may be read from now on."""
        assert self._slab is not None
        assert self._blocks is not None
        try:
            return self._slab.size == self.size and self._blocks.in_slab and self._slab.written()
        except OSError:
            return False

    def _leave(self) -> None:
        assert self._slab is not None
        assert self._blocks is not None
        self._blocks.flush()
        self._blocks.leave()
        self._slab.close()
        self._slab = None

    def commit(self, owner: str, form: Form = AS_FOUND, field: str = "file", expected: str | None = None) -> Upload:
        """Check that the bytes decode, and make them the owner's blob.

        Raises:
            InvalidUpload: they do not decode.
            DigestMismatch: they have another digest than `expected`.
            StoreFull, Unavailable: they cannot be kept now.
        """
        self.expect(expected)
        with room():  # what is packed is unpacked beside it
            reading = read(self.flush(), form, field, self._keeper.limits)
        return self.keep(owner, reading)

    def expect(self, digest: str | None) -> None:
        """Raise DigestMismatch when the bytes have another digest than this; None is any."""
        if digest is not None and digest != self.digest:
            raise DigestMismatch(f"the bytes that came have digest {self.digest}; expected {digest[:80]}")

    def keep(self, owner: str, reading: Reading) -> Upload:
        """Make the bytes, which were read so, the owner's blob. Raises StoreFull, Unavailable."""
        self._keeper.adopt(self, owner)
        named = {} if reading.dtype is None else {"dtype": reading.dtype}
        return Upload(frozen(self.digest, reading), self.size, describe(reading.value) | named)

    def foresee(self) -> None:
        """Have memory for the next upload, which may be as long; as for any, that of old blobs is taken for it."""
        if self._slab is not None:
            self._expected.again(self._slab.size)

    def close(self) -> None:
        """Drop the bytes, unless they were kept."""
        if not self._closed:
            self._closed = True
            if self._blocks is not None:
                self._blocks.close()
            if self._slab is not None:
                self._slab.close()
        self._spool.close()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
