"""Blobs as files: named by digest and owner, written aside and renamed into place, never changed after that.

ab/abcd....owner        a blob: all of it is on the disk, whatever happens to the machine
ab/abcd....owner.seen   what was seen of its numbers as it came (sight.py); may be missing or torn
fresh/<boot>/abcd...    bytes that are laid and not settled: every process of this boot of this machine finds them,
                        and after the next boot nobody does, since a power cut may have torn them
tmp/                    what is being written

With an arena (arena.py), long blobs lie there first, and are copied here when they are settled or published.
"""

import contextlib
import functools
import io
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.jobs.job import UnknownBlob
from workers.runtime.config import private_folder
from workers.store.arena import PATIENCE_S, Arena, is_slab
from workers.store.disk import copy_out, flush, give_name
from workers.store.names import FILE, file_of, name_in

SEEN = ".seen"
PROBE = bytes(1 << 14)
MOST_LAID = 4 << 30
"""Bytes that may lie unsettled in one folder: what a slow disk still has to take."""


@functools.cache
def boot() -> str:
    """What tells this boot of this machine from all others, and from other machines that share its folders."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"process-{os.getpid()}"  # nobody else finds what is laid here


class Folder:
    """A local folder of blobs, spread over 256 subfolders, which are there from the start."""

    def __init__(self, root: Path, most_laid: int = MOST_LAID, arena: Arena | None = None) -> None:
        self.root, self._most_laid, self.arena = private_folder(root), most_laid, arena
        self._fresh = private_folder(root / "fresh" / boot())
        self.temporary = private_folder(root / "tmp")
        for first in range(256):
            private_folder(root / f"{first:02x}")

    def lay(self, name: str, written: Path, patient: bool = True) -> bool:
        """Put a finished file where this machine's processes find it, without a wait for the disk; `settle` it soon.

        False where too many bytes are laid already: `publish` this one. Raises as `Arena.lay`, unless it is `patient`.
        """
        copied = self._laid_there(name, written, patient) if is_slab(written) else written
        if copied is None:
            return True
        self._fresh.mkdir(parents=True, exist_ok=True, mode=0o700)
        laid = sum(_size(path) for path in self._fresh.iterdir())
        fits = laid + _size(copied) <= self._most_laid
        if fits:
            copied.rename(self._fresh / file_of(name))
        elif copied != written:
            copied.unlink()
        return fits

    def _laid_there(self, name: str, slab: Path, patient: bool = True) -> Path | None:
        """Lay a slab. A file of the same bytes where the arena's lock is not to be had; if not `patient`, raises."""
        assert self.arena is not None
        try:
            self.arena.lay(file_of(name), slab, PATIENCE_S if patient else 0.0)
        except BlockingIOError:
            if not patient:
                raise
            copied = self.temporary / f"copied-{uuid.uuid4().hex}"
            copy_out(slab, copied)
            return copied
        return None

    def is_laid(self, name: str) -> bool:
        """Whether it is laid and not settled."""
        in_arena = self.arena is not None and self.arena.is_laid(file_of(name))
        return in_arena or (self._fresh / file_of(name)).exists()

    def swift(self, name: str) -> Path | None:
        """Where the blob lies in memory; to be opened by `arena.leased`, and looked for at `path` where that fails."""
        return None if self.arena is None else self.arena.find(file_of(name))

    def settle(self, name: str) -> None:
        """Make a laid blob durable; returns at once where it is.

        The very bytes that were forced to the disk get the name: equal ones may be laid anew meanwhile.
        """
        laid, target = self._fresh / file_of(name), self._file(name)
        if self.arena is not None and self.arena.is_laid(target.name):
            self._settle_slab(self.arena, target)
        try:
            descriptor = os.open(laid, os.O_RDONLY)
        except FileNotFoundError:
            return
        link = self.temporary / f"settled-{uuid.uuid4().hex}"
        try:
            os.fsync(descriptor)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            give_name(descriptor, link)
            link.rename(target)
            flush(target.parent)
            laid.unlink(missing_ok=True)
        except FileNotFoundError:  # another process has settled it, or laid equal bytes over it
            if laid.exists() and os.path.samestat(laid.stat(), os.fstat(descriptor)):
                raise
            if not target.exists():
                self.settle(name)
        finally:
            os.close(descriptor)
            link.unlink(missing_ok=True)

    def _settle_slab(self, arena: Arena, target: Path) -> None:
        slab = arena.find(target.name)
        if slab is None:
            return
        copied = self.temporary / f"settled-{uuid.uuid4().hex}"
        try:
            copy_out(slab, copied)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            copied.rename(target)
            flush(target.parent)
            with contextlib.suppress(FileNotFoundError):
                copied.write_bytes((arena.seen / target.name).read_bytes())
                copied.rename(target.with_name(f"{target.name}{SEEN}"))
                (arena.seen / target.name).unlink(missing_ok=True)
            arena.settled(target.name)
        except FileNotFoundError:  # another process has settled it, and it was taken or deleted meanwhile
            if arena.is_laid(target.name):
                raise
        finally:
            copied.unlink(missing_ok=True)

    def left(self, seconds: float) -> Iterator[str]:
        """Names of what was laid so long ago that whoever laid it has died."""
        before = time.time() - seconds
        for file, _ in self.arena.laid(seconds) if self.arena is not None else ():
            if (found := FILE.fullmatch(file)) is not None:
                yield name_in(found)
        for path in self._fresh.glob("*"):
            found = FILE.fullmatch(path.name)
            with contextlib.suppress(FileNotFoundError):
                if found is not None and path.stat().st_mtime < before:
                    yield name_in(found)

    def publish(self, name: str, written: Path, durable: bool = True) -> None:
        """Move a finished file into place.

        A `durable` one survives a power cut, and takes the place of an equal one: every upload does all the work. One
        that is not (a result: its record in Redis may be lost just so) is dropped when there is one already; it can
        be found cut short after a power cut, is then refused when read, and replaced here.
        """
        target = self._file(name)
        if is_slab(written):
            if (copied := self._laid_there(name, written)) is None:
                if durable:
                    self.settle(name)
                return
            written = copied
        if not durable and target.exists() and target.stat().st_size == written.stat().st_size:
            os.utime(target)
            written.unlink()
            return
        if durable:
            flush(written)
        try:
            written.rename(target)  # last: a blob that is there is whole
        except FileNotFoundError:  # what tidies up temporary folders has taken the folder
            target.parent.mkdir(exist_ok=True, mode=0o700)
            written.rename(target)
        if durable:
            flush(target.parent)

    def path(self, name: str, settled: bool = True) -> Path:
        """A local file that holds the blob.

        Args:
            settled: bytes that lie in memory alone are settled for it. Else there is none.

        Raises:
            UnknownBlob: there is none.
        """
        if settled and self.arena is not None and self.arena.is_laid(file_of(name)):
            self.settle(name)
        for there in (self._file(name), self._fresh / file_of(name), self._file(name)):  # it may settle meanwhile
            if there.exists():
                return there
        raise UnknownBlob(f"there is no blob {name[:72]}")

    def start(self, name: str, count: int) -> tuple[bytes, int] | None:
        """The first bytes of the blob and the size of all, None when it is not there."""
        try:
            with self.path(name).open("rb") as file:
                return file.read(count), os.fstat(file.fileno()).st_size
        except (FileNotFoundError, UnknownBlob):
            return None

    def remark(self, name: str, text: bytes, coming: bool = False) -> None:
        """Write down what was seen of the blob's numbers: beside its bytes, and with them on the disk.

        `coming`: it will be laid in the arena.
        """
        file = file_of(name)
        if self.arena is not None and (coming or self.arena.is_laid(file)):
            # who reads half of it takes it for nothing; there may be no room, or no such folder as the service ends
            with contextlib.suppress(OSError), io.FileIO(f"{self.arena.seen}/{file}", "w") as remark:
                remark.write(text)
            return
        written = self.temporary / f"seen-{uuid.uuid4().hex}"
        written.write_bytes(text)
        written.rename(self._seen(name))

    def remarked(self, name: str) -> bytes:
        """What was written down; b"" where nothing was."""
        file = file_of(name)
        on_disk = f"{self.root}/{file[:2]}/{file}{SEEN}"
        for path in (on_disk,) if self.arena is None else (f"{self.arena.seen}/{file}", on_disk):
            with contextlib.suppress(FileNotFoundError), io.FileIO(path) as remark:
                return remark.readall()
        return b""

    def _seen_in_memory(self, file: str) -> list[Path]:
        return [] if self.arena is None else [self.arena.seen / file]

    def note(self, digest: str) -> dict[str, Any]:
        """What was noted beside a blob in the days when all owners shared it; {} where nothing was."""
        try:
            return dict(json.loads(self._file(digest).with_suffix(".json").read_text()))
        except FileNotFoundError:
            return {}

    def delete(self, name: str) -> None:
        """Remove the blob; mapped copies live on until they are let go."""
        target = self._file(name)
        if self.arena is not None:
            self.arena.drop(target.name)
        target.unlink(missing_ok=True)
        (self._fresh / target.name).unlink(missing_ok=True)
        for seen in (*self._seen_in_memory(target.name), self._seen(name)):
            seen.unlink(missing_ok=True)
        if target.suffix == "":
            target.with_suffix(".json").unlink(missing_ok=True)

    def older_than(self, seconds: float) -> Iterator[str]:
        """Names of the blobs that were last published so long ago; what was left half done then is removed."""
        before = time.time() - seconds
        for path in self.arena.seen.glob("*") if self.arena is not None else ():
            if self.arena is not None and self.arena.find(path.name) is None:  # its slab was taken for others
                path.unlink(missing_ok=True)
        for path in self.temporary.iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
        for folder in self.root.glob("fresh/*"):
            if folder != self._fresh and folder.stat().st_mtime < before:
                shutil.rmtree(folder, ignore_errors=True)
        for path in self.root.glob("??/*"):
            if path.suffix == ".json" or not path.is_file() or path.stat().st_mtime >= before:
                continue
            found = FILE.fullmatch(path.name)
            if found is None and not (path.suffix == SEEN and path.with_suffix("").exists()):
                path.unlink(missing_ok=True)
            elif found is not None:
                yield name_in(found)

    def free(self) -> int | None:
        """Bytes that the disk still takes, beside those that it is about to get."""
        laid = 0 if self.arena is None else sum(size for _, size in self.arena.laid())
        return max(0, shutil.disk_usage(self.temporary).free - laid)

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

    def _seen(self, name: str) -> Path:
        file = self._file(name)
        return file.with_name(f"{file.name}{SEEN}")

    def _file(self, name: str) -> Path:
        file = file_of(name)
        return self.root / file[:2] / file


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it was settled
        return 0
