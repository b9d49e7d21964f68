"""One upload on its way into the store: to disk as it comes, hashed beside, read once, then kept as its owner's."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from workers.jobs.job import DigestMismatch, InputRef, UploadTooLarge
from workers.store.blocks import Blocks
from workers.store.codec import AS_FOUND, Form, Limits, Reading, describe, read
from workers.store.digests import PIECE, Hashed
from workers.store.disk import room
from workers.store.layouts import NPY_START
from workers.store.reference import frozen
from workers.store.sight import Sight, Watch


class Keeper(Protocol):
    """Who takes a finished upload: the store."""

    limits: Limits

    def adopt(self, writer: "Writer", owner: str, brief: bool = False) -> None:
        """Keep it for this owner."""


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


class Writer:
    """One upload on its way to disk: `write` chunks, then `commit`. Leaving the `with` block drops the rest.

    What is longer than a piece of the digest goes through blocks of memory, which threads write and hash while the
    next bytes come. Without a free block it is written and hashed here.

    Args:
        plain: its digest is to be that of all bytes, in one thread.
        look: it comes from outside and will be kept: see the range of its numbers, where it is one array, and begin
            early to write it to the disk.
        checksum: asked once of a long upload that is looked at: whether to take the checksum of its array, which a
            GPU's certificate compares.
    """

    def __init__(
        self,
        keeper: Keeper,
        max_bytes: int,
        folder: Path,
        plain: bool = False,
        checksum: Callable[[], bool] = bool,
        look: bool = False,
    ) -> None:
        self._keeper = keeper
        self._max_bytes = max_bytes
        with room():
            descriptor, path = tempfile.mkstemp(dir=folder)
        self._descriptor = descriptor
        self._hash = Hashed(plain)
        self._plain, self._checksum, self._look = plain, checksum, look
        self._blocks: Blocks | None = None
        self._head = b""
        self.path = Path(path)
        self.size = 0

    @property
    def digest(self) -> str:
        """Of what has been written so far."""
        return self._hash.digest if self._blocks is None else self._blocks.digest()

    @property
    def is_long(self) -> bool:
        """Whether threads work on it, which `flush` waits for."""
        return self._blocks is not None

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
            if self._blocks is None:
                first = view if self._plain else view[: PIECE - self.size]
                self._write_here(first)
                view = view[len(first) :]
                if not view:
                    return len(chunk)
                start = os.pread(self._descriptor, NPY_START, 0) if self._look else b""
                watch = Watch.of(start, self._checksum) if self._look else None
                self._blocks = Blocks(self._descriptor, self._hash, watch, self._start, early=self._look)
            self._blocks.write(view)
            self.size += len(view)
        return len(chunk)

    def writelines(self, chunks: Iterable[bytes | memoryview]) -> None:
        """Append several. Raises as `write`."""
        for chunk in chunks:
            self.write(chunk)

    def _write_here(self, view: memoryview) -> None:
        self._hash.write(view)
        self.size += len(view)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def _start(self) -> bytes:
        return os.pread(self._descriptor, PIECE, 0)

    def flush(self) -> Path:
        """Everything written so far is in `path`. Raises StoreFull."""
        with room():
            if self._blocks is not None:
                self._blocks.flush()
        return self.path

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

    def close(self) -> None:
        """Drop the bytes, unless they were kept."""
        if self._descriptor >= 0:
            if self._blocks is not None:
                self._blocks.close()
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
