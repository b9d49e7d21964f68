"""One blob that comes in ranges: over several connections at once, in any order, and over days where it has to.

Each upload in ranges has a name that its owner chose and a length that its first range said. Its bytes lie in one file,
and a second one beside it lists the ranges that are there. A range is listed once all of its bytes are on the disk, so
one that broke off is simply sent again. Processes of one host change the list under a lock of the file system. What
nobody continues is swept with everything else that was left half done.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from workers.jobs.job import StoreFull
from workers.jobs.quotas import Quota, too_much_kept
from workers.store.disk import SPARE_BYTES, room
from workers.store.store import Store

PREFIX = ".ranges-"
MOST_UPLOADS = 64
"""Of one owner at once."""
MOST_RANGES = 4096
"""Apart from each other, of one upload."""
Span = tuple[int, int]
"""From, and up to but without."""


class OtherLength(ValueError):
    """An upload has one length, and this range says another."""


class TooMany(ValueError):
    """The owner has too many uploads under way, or this one has too many holes."""


class NoUpload(KeyError):
    """There is no upload of that name, or it is another's."""


@dataclass(frozen=True)
class Progress:
    """What is there of an upload."""

    total: int
    spans: tuple[Span, ...]

    @property
    def whole(self) -> bool:
        """Whether every byte is."""
        return self.spans == ((0, self.total),)


class Ranges:
    """One owner's upload in ranges, by the name that they gave it, in a folder for half-finished files."""

    def __init__(self, folder: Path, owner: str, name: str) -> None:
        self._folder = folder
        whose = hashlib.sha256(owner.encode()).hexdigest()[:32]
        which = hashlib.sha256(name.encode()).hexdigest()[:32]
        self._all = f"{PREFIX}{whose}-"
        self.data = folder / f"{self._all}{which}"
        self._list = folder / f"{self._all}{which}.json"

    def begin(self, total: int) -> None:
        """Make sure that there is an upload of this length. Raises OtherLength, TooMany, StoreFull."""
        with self._locked() as before:
            if before is not None and before.total != total:
                raise OtherLength(f"has {before.total} bytes by its first range; this one says {total}")
            if before is None:
                under_way = sum(1 for _ in self._folder.glob(f"{self._all}*.json"))
                if under_way > MOST_UPLOADS:  # the lock that is held is one of them
                    self._list.unlink(missing_ok=True)
                    raise TooMany(f"is one more than {MOST_UPLOADS} uploads under way; finish or delete some")
                with room():
                    self.data.touch(mode=0o600)
                self._write(Progress(total, ()))

    def announced(self) -> int:
        """Bytes that the owner's other uploads under way are to have."""
        texts = []
        for path in self._folder.glob(f"{self._all}*.json"):
            with suppress(OSError):  # finished just now
                texts.append(path.read_bytes() if path != self._list else b"")
        return sum(found.total for text in texts if (found := _listed(text)) is not None)

    @contextmanager
    def writing(self, at: int) -> Iterator["Hole"]:
        """Write one range from `at` on; leaving the block lists nothing by itself. Raises NoUpload."""
        try:
            descriptor = os.open(self.data, os.O_WRONLY)
        except FileNotFoundError:
            raise NoUpload(self.data.name) from None
        try:
            yield Hole(descriptor, at)
        finally:
            os.close(descriptor)

    def add(self, span: Span) -> Progress:
        """List a range whose bytes are on the disk. Raises NoUpload, TooMany."""
        with self._locked() as before:
            if before is None:
                self._list.unlink(missing_ok=True)
                raise NoUpload(self.data.name)
            spans = merged([*before.spans, span])
            if len(spans) > MOST_RANGES:
                raise TooMany(f"would have {len(spans)} ranges apart from each other; fill the holes between some")
            now = Progress(before.total, spans)
            self._write(now)
            os.utime(self.data)  # both files are swept by their age
            return now

    def progress(self) -> Progress:
        """What is there. Raises NoUpload."""
        if not self._list.exists():
            raise NoUpload(self.data.name)
        with self._locked() as found:
            if found is None:
                self._list.unlink(missing_ok=True)
                raise NoUpload(self.data.name)
            return found

    def drop(self) -> None:
        """Forget the upload. Raises NoUpload."""
        if not self._list.exists():
            raise NoUpload(self.data.name)
        with self._locked() as found:
            self._list.unlink(missing_ok=True)
            self.data.unlink(missing_ok=True)
        if found is None:
            raise NoUpload(self.data.name)

    @contextmanager
    def _locked(self) -> Iterator[Progress | None]:
        """The list as it is, while nobody else changes it; None where there is no upload."""
        descriptor = self._lock()
        try:
            text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            self._descriptor = descriptor
            yield _listed(text) if self.data.exists() else None
        finally:
            os.close(descriptor)

    def _lock(self) -> int:
        """Open the list under a lock. One that was unlinked while this waited for it is not the list any more."""
        while True:
            with room():
                descriptor = os.open(self._list, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if os.path.samestat(os.fstat(descriptor), os.stat(self._list)):
                    return descriptor
            except FileNotFoundError:
                pass
            os.close(descriptor)

    def _write(self, progress: Progress) -> None:
        with room():
            text = json.dumps([progress.total, progress.spans]).encode()
            os.pwrite(self._descriptor, text, 0)
            os.ftruncate(self._descriptor, len(text))
            os.fsync(self._descriptor)


class Hole:
    """Where one range goes."""

    def __init__(self, descriptor: int, at: int) -> None:
        self._descriptor, self._at = descriptor, at
        self.written = 0

    def write(self, piece: bytes) -> None:
        """The next bytes. Raises StoreFull."""
        view = memoryview(piece)
        with room():
            while view:
                count = os.pwrite(self._descriptor, view, self._at + self.written)
                if count == 0:
                    raise StoreFull("the store's disk takes no more")
                self.written += count
                view = view[count:]

    def settle(self) -> None:
        """All of it is on the disk when this returns. Raises StoreFull."""
        with room():
            os.fsync(self._descriptor)


def require_share(store: Store, owner: str, count: int) -> None:
    """Raise QuotaFull where `count` bytes on their way over days are more than the owner may have."""
    quota = Quota() if store.quota_of is None else store.quota_of(owner)
    if 0 < quota.bytes < count:
        raise too_much_kept("bytes", quota)
    free = shutil.disk_usage(store.folder.temporary).free - SPARE_BYTES
    if quota.share < 1 and count > quota.share * max(0, free):
        raise too_much_kept("store", quota)


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The same bytes as ranges that ascend and do not touch."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return tuple(found)


def _listed(text: bytes) -> Progress | None:
    """A list that was cut short by a power cut counts as none."""
    try:
        total, spans = json.loads(text)
        return Progress(int(total), tuple((int(first), int(end)) for first, end in spans))
    except (ValueError, TypeError):
        return None
