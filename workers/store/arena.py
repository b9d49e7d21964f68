"""Memory that bytes arrive in and are read from, used again and again: files of a tmpfs, called slabs.

A page of fresh memory costs more than a copy into one that was touched before. So a slab that nobody needs any more is
not given back, but taken for the next bytes of as many. Its folders:

spare/    used before, nobody's
taken/    somebody writes to it, under an exclusive lock
blobs/    has a blob's name: mode 0600 while no disk has the bytes (laid), 0700 once one has (kept)
seen/     what was seen of the numbers of those; the folder of the store looks after it
lock      whoever takes a slab, or changes a lock that they have, holds this one

Invariant: what is written is a slab that no other process reads. Everybody who reads a slab holds a shared lock on it,
through the very mapping: the kernel takes the lock back with the last mapping, however its process ends. A slab is
written under its exclusive lock, after its name has gone, so nobody new finds it. Whoever opened it before that sees,
with their lock, that the name is another file's now, and looks elsewhere. Who writes has mappings without a lock from
earlier, and uses none of them (mappings.py).

A slab is cut or lengthened to the bytes that come next, where it has nearly as many: callers rarely send the very same
size twice. It keeps its pages, and its size while anybody reads it or has said so (sizes.py). One with a blob's name is
taken so if YOUNGER others of nearly that size were laid since: then uploads of that size follow one another, and it is
the least likely to be asked for. What was laid once and is solved again and again stays.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

from workers.runtime.config import private_folder
from workers.store.lying import KEPT, LAID, Lying, free_of, got, locked, lying, mode_of, unlink
from workers.store.mappings import Mapping, Mappings
from workers.store.resized import is_near, may_be_resized, resized, whole
from workers.store.sizes import may_resize
from workers.store.slab import Slab, Taken

LOG = logging.getLogger(__name__)
MARK = "allot-arena-"
"""How the names of arenas begin: a path in one is known by it."""
BLOCK = 512
"""Bytes, as `st_blocks` counts."""
YOUNGER = 4
PATIENCE_S = 1.0
"""For the lock of the arena, which is held for as long as it takes to look through a folder."""


def is_slab(path: Path) -> bool:
    """Whether a path lies in an arena."""
    return len(path.parts) > 2 and path.parts[-3].startswith(MARK)


@contextlib.contextmanager
def leased(path: Path) -> Iterator[int]:
    """A descriptor of a slab, locked: a mapping that is made of it keeps the lock for as long as it lives.

    Raises:
        FileNotFoundError: it has been taken for something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not got(descriptor, fcntl.LOCK_SH):
            raise FileNotFoundError(f"{path} is being written anew")
        if not os.path.samestat(os.fstat(descriptor), path.stat()):
            raise FileNotFoundError(f"{path} is another by now")
        yield descriptor
    finally:
        os.close(descriptor)


class Arena:
    """The slabs of one store on this machine, for all of its processes.

    Args:
        root: on a tmpfs; its name begins with MARK.
        most: bytes of all slabs.

    Attributes:
        blobs: its folder of slabs that have a blob's name.
        most: as given.
    """

    def __init__(self, root: Path, most: int) -> None:
        self.root, self.most = private_folder(root), most
        self.spare, self._taken, self.blobs = (private_folder(root / name) for name in ("spare", "taken", "blobs"))
        self.seen = private_folder(root / "seen")
        self._mappings = Mappings()

    def take(self, size: int, threads: Executor) -> Slab | None:
        """A slab of so many bytes, of which nobody knows what is in them; None where there is no room.

        Args:
            threads: they find its pages, ahead of who writes to them.
        """
        if not 0 < size <= self.most:
            return None
        try:
            with self._alone():
                self._reap()
                found = self._again(size) or self._like(size, lying(self.spare)) or self._like(size, self._stale(size))
                if found is None and self._make_room(size):
                    found = self._new(size)
            return None if found is None else Slab(found, threads, self)
        except OSError:  # files are slower, and right
            return None

    def take_used(self, size: int, threads: Executor) -> Slab | None:
        """One of exactly so many bytes whose pages are all there; None where there is none."""
        with contextlib.suppress(OSError):
            with self._alone():
                self._reap()
                found = self._again(size)
            slab = None if found is None else Slab(found, threads, self)
            if slab is None or slab.is_whole:
                return slab
            slab.close()
        return None

    def take_near(self, size: int, threads: Executor, new: bool = False) -> Slab | None:
        """One that had nearly so many bytes and has so many now, with all its pages; else a `new` one, or None.

        What it lacks of them is found here, after the lock: for somebody who has the time. Nothing is done once half of
        all bytes are in use, so that no other slab is given up for its length.
        """
        with contextlib.suppress(OSError):
            with self._alone():
                self._reap()
                *_, used = self._lying()
                if used + size > self.most // 2:
                    return None
                found = self._like(size, lying(self.spare)) or self._like(size, self._stale(size))
                if found is None and new:
                    found = self._new(size)
            if found is not None:
                try:
                    found = whole(found, size)
                except OSError:
                    self._put_back(found)
                    raise
                return Slab(found, threads, self)
        return None

    def find_ahead(self, step: int, most: int) -> None:
        """Find the pages of `step` bytes for uploads to come, in a spare slab of up to `most` that has grown so.

        Nothing is done once half of all bytes are in use. A slab that an upload asks for meanwhile is another.

        Raises:
            OSError: there is no memory for it, or nobody gets the lock.
        """
        with self._alone():
            *_, used = self._lying()
            if used + step > self.most // 2:
                return
            found = self._longer(step, most) or self._new(step)
        try:
            os.posix_fallocate(found.descriptor, found.whole, step)
        finally:
            self._put_back(found)

    def mapped(self, path: Path) -> Mapping:
        """The memory of a slab of which the caller has the exclusive lock. Raises OSError."""
        return self._mappings.of(path)

    def share(self, descriptor: int) -> None:
        """From the lock of who writes to that of who reads. Nobody takes the slab in between."""
        with self._alone():
            fcntl.flock(descriptor, fcntl.LOCK_SH)

    def lay(self, file: str, written: Path, patience_s: float = PATIENCE_S) -> None:
        """Give a slab the file name of a blob whose bytes are in no other place. Raises BlockingIOError."""
        target = self.blobs / file
        with self._alone(patience_s):
            if mode_of(target) == KEPT:
                target.rename(self.spare / uuid.uuid4().hex)
            written.rename(target)
            os.utime(target)

    def find(self, file: str) -> Path | None:
        """Where a blob's slab is. To be opened by `leased`: it may be taken at any time."""
        path = self.blobs / file
        return path if path.exists() else None

    def is_laid(self, file: str) -> bool:
        """Whether a blob's bytes are here and, as far as is known, in no other place."""
        return mode_of(self.blobs / file) == LAID

    def settled(self, file: str) -> None:
        """A disk has the blob's bytes, too: its slab may be taken for others."""
        with contextlib.suppress(FileNotFoundError):
            (self.blobs / file).chmod(KEPT)

    def drop(self, file: str) -> None:
        """The blob is gone; who has mapped it keeps it until they let go."""
        with contextlib.suppress(FileNotFoundError):
            (self.blobs / file).rename(self.spare / uuid.uuid4().hex)

    def laid(self, seconds: float = 0.0) -> Iterator[tuple[str, int]]:
        """File names and sizes of what was laid at least so long ago."""
        before = time.time() - seconds
        for entry in os.scandir(self.blobs):
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat()
                if found.st_mode & 0o777 == LAID and found.st_mtime <= before:
                    yield entry.name, found.st_size

    def clear(self) -> None:
        """Give back all memory that holds nothing of its own. Called when the service ends."""
        with contextlib.suppress(OSError), self._alone():
            self._reap()
            for one in [*lying(self.spare), *free_of(lying(self.blobs))]:
                unlink(Path(one.path))
            for folder in (self.spare, self._taken, self.blobs):
                folder.rmdir()  # what is not empty stays, and all around it
            shutil.rmtree(self.root)

    @contextlib.contextmanager
    def _alone(self, patience_s: float = PATIENCE_S) -> Iterator[None]:
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + patience_s
            while not got(descriptor, fcntl.LOCK_EX):
                if time.monotonic() >= until:  # whoever has it is frozen
                    raise BlockingIOError(f"nobody gets the lock of {self.root}")
                time.sleep(0.001)
            yield
        finally:
            os.close(descriptor)

    def _reap(self) -> None:
        """Slabs whose writer has died are spare."""
        for path in self._taken.iterdir():
            descriptor = locked(path)
            if descriptor is not None:
                path.rename(self.spare / path.name)
                os.close(descriptor)

    def _again(self, size: int) -> Taken | None:
        """A slab of exactly that size."""
        return self._first(lying(self.spare), size) or self._first(free_of(lying(self.blobs)), size)

    def _first(self, among: list[Lying], size: int) -> Taken | None:
        for one in among:
            if one.size == size and (found := self._taken_from(Path(one.path))):
                return found
        return None

    def _stale(self, size: int) -> list[Lying]:
        """Slabs with the names of blobs that a disk has, of nearly that size, but for the youngest."""
        near = [one for one in lying(self.blobs) if is_near(one.size, size)]
        return free_of(sorted(near, key=lambda one: one.laid)[:-YOUNGER])

    def _like(self, size: int, among: list[Lying]) -> Taken | None:
        """A slab of nearly that size, the nearest first, cut or lengthened."""
        for one in sorted(among, key=lambda one: abs(one.size - size)):
            path = Path(one.path)
            if not is_near(one.size, size) or not may_be_resized(path) or not (found := self._taken_from(path)):
                continue
            if may_resize(found.descriptor) and (size <= one.size or self._make_room(size - one.size)):
                return resized(found, size)
            self._put_back(found)
        return None

    def _longer(self, step: int, most: int) -> Taken | None:
        """The longest spare slab of whole steps that may have one more, with that, whose pages are not there yet."""
        grown = [one for one in lying(self.spare) if one.size % step == 0 and one.size + step <= most]
        for one in sorted(grown, key=lambda one: one.size, reverse=True):
            if found := self._taken_from(Path(one.path)):
                if found.whole == one.size and may_resize(found.descriptor):
                    os.ftruncate(found.descriptor, one.size + step)
                    return found
                self._put_back(found)
        return None

    def _put_back(self, found: Taken) -> None:
        found.path.rename(self.spare / found.path.name)
        os.close(found.descriptor)

    def _taken_from(self, path: Path) -> Taken | None:
        """A slab that nobody maps, without its name."""
        descriptor = locked(path)
        if descriptor is None:
            return None
        taken = self._taken / uuid.uuid4().hex
        path.rename(taken)
        os.fchmod(descriptor, LAID)
        now = os.fstat(descriptor)
        return Taken(taken, descriptor, now.st_size if now.st_blocks * BLOCK >= now.st_size else 0)

    def _lying(self) -> tuple[list[Lying], list[Lying], int]:
        """What is spare, what has a blob's name, and the bytes of all, with what somebody writes to."""
        spare, named = lying(self.spare), lying(self.blobs)
        return spare, named, sum(one.size for one in (*spare, *named, *lying(self._taken)))

    def _make_room(self, size: int) -> bool:
        spare, named, used = self._lying()
        free = [*spare, *free_of(named)]
        if used - sum(one.size for one in free) + size > self.most:
            return False
        for one in free:
            if used + size <= self.most:
                break
            used -= one.size if unlink(Path(one.path)) else 0
        return used + size <= self.most

    def _new(self, size: int) -> Taken:
        path = self._taken / uuid.uuid4().hex
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, LAID)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, size)  # counts from now on
        return Taken(path, descriptor, 0)


def arena_of(store: Path, folder: str, most: int) -> Arena | None:
    """The arena of a store, None where settings name none or it cannot be."""
    if not folder or most <= 0:
        return None
    try:
        return Arena(Path(folder) / f"{MARK}{hashlib.sha256(str(store.absolute()).encode()).hexdigest()[:16]}", most)
    except OSError as error:
        LOG.warning("no arena in %s, large bodies go to the disk first: %s", folder, error)
        return None
