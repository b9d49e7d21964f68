"""Blobs as files: named by digest, written aside and renamed into place, never changed after that."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.config import private_folder
from workers.job import UnknownBlob

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def hexadecimal(digest: str) -> str:
    """The hexadecimal part of a well-formed digest, which alone may become part of a path.

    Raises:
        UnknownBlob: it is not a digest.
    """
    if not DIGEST.fullmatch(digest):
        raise UnknownBlob(f"{digest[:80]!r} is not a digest; expected sha256: and 64 hexadecimal digits")
    return digest[7:]


class Folder:
    """A local folder of blobs, each with a JSON sidecar, spread over 256 subfolders."""

    def __init__(self, root: Path) -> None:
        self.root = private_folder(root)
        self.temporary = private_folder(root / "tmp")

    def publish(self, digest: str, written: Path, sidecar: dict[str, Any], durable: bool = True) -> None:
        """Move a finished file into place, or drop it when the same bytes are there already.

        A `durable` one survives a power cut. One that is not (a result: its record in Redis may be lost just so) can
        be found cut short after that; it is then refused when read, and replaced here.
        """
        target = self._file(digest)
        if target.exists() and target.stat().st_size == written.stat().st_size:
            os.utime(target)
            written.unlink()
            return
        target.parent.mkdir(exist_ok=True, mode=0o700)
        note = written.with_suffix(".json")
        note.write_text(json.dumps(sidecar))
        if durable:
            _flush(written)
            _flush(note)
        note.rename(target.with_suffix(".json"))
        written.rename(target)  # last: a blob that is there is whole and described
        if durable:
            _flush(target.parent)

    def sidecar(self, digest: str) -> dict[str, Any] | None:
        """What was noted about the blob, None when it is not there."""
        target = self._file(digest)
        try:
            note = json.loads(target.with_suffix(".json").read_text())
        except FileNotFoundError:
            return None
        return note if target.exists() else None

    def path(self, digest: str) -> Path:
        """A local file that holds the blob.

        Raises:
            UnknownBlob: there is none.
        """
        target = self._file(digest)
        if not target.exists():
            raise UnknownBlob(f"there is no blob {digest}")
        return target

    def delete(self, digest: str) -> None:
        """Remove the blob; mapped copies live on until they are let go."""
        target = self._file(digest)
        target.unlink(missing_ok=True)
        target.with_suffix(".json").unlink(missing_ok=True)

    def older_than(self, seconds: float) -> Iterator[str]:
        """Digests of the blobs that were last published so long ago; half-written files of that age are removed."""
        before = time.time() - seconds
        for path in self.temporary.iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
        for path in self.root.glob("??/*"):
            if path.suffix == "" and path.stat().st_mtime < before:
                yield f"sha256:{path.name}"

    def check(self) -> None:
        """Raise OSError when nothing can be written here."""
        probe = self.temporary / f"probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()

    def _file(self, digest: str) -> Path:
        name = hexadecimal(digest)
        return self.root / name[:2] / name


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
