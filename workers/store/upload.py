"""One upload on its way into the store: to disk as it comes, read once, then kept as its owner's."""

import contextlib
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from workers.jobs.job import DigestMismatch, InputRef, UploadTooLarge
from workers.store.codec import AS_FOUND, Form, Limits, Reading, describe, read
from workers.store.disk import room
from workers.store.reference import frozen


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
    """One upload on its way to disk: `write` chunks, then `commit`. Leaving the `with` block drops the rest."""

    def __init__(self, keeper: Keeper, max_bytes: int, folder: Path) -> None:
        self._keeper = keeper
        self._max_bytes = max_bytes
        with room():
            self._file = tempfile.NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115
        self._hash = hashlib.sha256()
        self.path = Path(self._file.name)
        self.size = 0

    @property
    def digest(self) -> str:
        """Of what has been written so far."""
        return f"sha256:{self._hash.hexdigest()}"

    def write(self, chunk: bytes | memoryview) -> int:
        """Append to the upload.

        Raises:
            UploadTooLarge: past the limit.
            StoreFull: the disk is.
        """
        self.size += len(chunk)
        if self.size > self._max_bytes:
            raise UploadTooLarge(f"the upload is larger than {self._max_bytes} bytes")
        self._hash.update(chunk)
        with room():
            return self._file.write(chunk)

    def flush(self) -> Path:
        """Everything written so far is in `path`. Raises StoreFull."""
        with room():
            self._file.flush()
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
        return Upload(frozen(self.digest, reading), self.size, describe(reading.value))

    def close(self) -> None:
        """Drop the bytes, unless they were kept."""
        with contextlib.suppress(OSError):  # what is left in its buffer may not fit any more, and is not wanted
            self._file.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
