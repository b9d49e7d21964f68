"""Blobs as files: named by digest and owner, written aside and renamed into place, never changed after that."""

import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.jobs.job import UnknownBlob
from workers.runtime.config import private_folder

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NAME = re.compile(r"sha256:([0-9a-f]{64})(?::([0-9a-f]{32}))?")
FILE = re.compile(r"([0-9a-f]{64})(?:\.([0-9a-f]{32}))?")
PROBE = bytes(1 << 14)


def name_of(digest: str, owner: str) -> str:
    """What an owner's bytes of that digest are kept as, here and in Redis.

    Every owner's are kept apart, also where they are equal: what one does with his can then take no time, no room
    and no answer from another, and nobody can find out what others have. A name without an owner is of before that.

    Raises:
        UnknownBlob: it is not a digest.
    """
    hexadecimal(digest)
    return f"{digest}:{hashlib.sha256(owner.encode()).hexdigest()[:32]}"


def hexadecimal(digest: str) -> str:
    """The hexadecimal part of a well-formed digest, which alone may become part of a path.

    Raises:
        UnknownBlob: it is not a digest.
    """
    if not DIGEST.fullmatch(digest):
        raise UnknownBlob(f"{digest[:80]!r} is not a digest; expected sha256: and 64 hexadecimal digits")
    return digest[7:]


def file_of(name: str) -> str:
    """The file name of a blob's name. Raises UnknownBlob."""
    found = NAME.fullmatch(name)
    if found is None:
        raise UnknownBlob(f"{name[:80]!r} is not the name of a blob")
    return found[1] if found[2] is None else f"{found[1]}.{found[2]}"


class Folder:
    """A local folder of blobs, spread over 256 subfolders, which are there from the start."""

    def __init__(self, root: Path) -> None:
        self.root = private_folder(root)
        self.temporary = private_folder(root / "tmp")
        for first in range(256):
            private_folder(root / f"{first:02x}")

    def publish(self, name: str, written: Path, durable: bool = True) -> None:
        """Move a finished file into place.

        A `durable` one survives a power cut, and takes the place of an equal one: every upload does all the work. One
        that is not (a result: its record in Redis may be lost just so) is dropped when there is one already; it can
        be found cut short after a power cut, is then refused when read, and replaced here.
        """
        target = self._file(name)
        if not durable and target.exists() and target.stat().st_size == written.stat().st_size:
            os.utime(target)
            written.unlink()
            return
        target.parent.mkdir(exist_ok=True, mode=0o700)  # what tidies up temporary folders may have taken it
        if durable:
            _flush(written)
        written.rename(target)  # last: a blob that is there is whole
        if durable:
            _flush(target.parent)

    def path(self, name: str) -> Path:
        """A local file that holds the blob.

        Raises:
            UnknownBlob: there is none.
        """
        target = self._file(name)
        if not target.exists():
            raise UnknownBlob(f"there is no blob {name[:71]}")
        return target

    def start(self, name: str, count: int) -> tuple[bytes, int] | None:
        """The first bytes of the blob and the size of all, None when it is not there."""
        try:
            with self._file(name).open("rb") as file:
                return file.read(count), os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None

    def note(self, digest: str) -> dict[str, Any]:
        """What was noted beside a blob in the days when all owners shared it; {} where nothing was."""
        try:
            return dict(json.loads(self._file(digest).with_suffix(".json").read_text()))
        except FileNotFoundError:
            return {}

    def delete(self, name: str) -> None:
        """Remove the blob; mapped copies live on until they are let go."""
        target = self._file(name)
        target.unlink(missing_ok=True)
        if target.suffix == "":
            target.with_suffix(".json").unlink(missing_ok=True)

    def older_than(self, seconds: float) -> Iterator[str]:
        """Names of the blobs that were last published so long ago; what was left half done then is removed."""
        before = time.time() - seconds
        for path in self.temporary.iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
        for path in self.root.glob("??/*"):
            if path.suffix == ".json" or not path.is_file() or path.stat().st_mtime >= before:
                continue
            found = FILE.fullmatch(path.name)
            if found is None:
                path.unlink(missing_ok=True)
            else:
                yield ":".join(["sha256", *(part for part in found.groups() if part)])

    def free(self) -> int | None:
        """Bytes that the disk still takes."""
        return shutil.disk_usage(self.temporary).free

    def check(self) -> None:
        """Raise OSError when nothing can be written here. A full disk still takes files, as long as they are empty."""
        probe = self.temporary / f"probe-{uuid.uuid4().hex}"
        try:
            with probe.open("wb") as file:
                file.write(PROBE)
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        file = file_of(name)
        return self.root / file[:2] / file


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
