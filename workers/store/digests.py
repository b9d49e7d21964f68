"""What bytes are called: by a digest whose first letters say how it is worked out.

    sha256:<hex>     the SHA-256 of all bytes
    sha256u:<hex>    of a tree, which several threads can work out: the SHA-256 of a line that says so, of how many
                     bytes there are (8 bytes, little-endian), and of the SHA-256 of each 512 KiB in their order
    sha256t:<hex>    the same of each 4 MiB, as trees were before

Bytes of up to 4 MiB are called by the first, and more than that by the second, unless whoever sends them names another.
The count and the line keep a list of digests from being taken for bytes, and the other way round. A digest says which
bytes these are. It says nothing of how they are to be read.
"""

import hashlib
import re
import threading
from collections.abc import Iterable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

PIECE, LEAF = 4 << 20, 512 << 10
PLAIN, TREE, OLD_TREE = "sha256", "sha256u", "sha256t"
LEAVES = {TREE: LEAF, OLD_TREE: PIECE}
DIGEST = re.compile(r"sha256[tu]?:[0-9a-f]{64}")
WORDS = "sha256:, sha256t: or sha256u: and 64 lower-case hex digits"


def scheme_of(digest: str | None) -> str:
    """How a digest is worked out; without one, how those are that nobody named."""
    return TREE if digest is None else digest.partition(":")[0]


def tree_of(leaves: Iterable[bytes], size: int, scheme: str = TREE) -> str:
    """The digest of `size` bytes of whose leaves these are the SHA-256."""
    whole = hashlib.sha256(f"allot {scheme} {LEAVES[scheme]}\n".encode() + size.to_bytes(8, "little"))
    for leaf in leaves:
        whole.update(leaf)
    return f"{scheme}:{whole.hexdigest()}"


class Hashed:
    """Takes bytes in any portions and works out their digest, in one thread.

    Args:
        scheme: that of its name beyond PIECE; PLAIN however many they are.
    """

    def __init__(self, scheme: str = TREE) -> None:
        self._scheme = scheme
        self._all: Any = hashlib.sha256()  # of a tree, as long as it may end as none
        self._leaf: Any = None  # behind the first, which is all there is
        self._done: list[bytes] = []
        self.size = 0

    def write(self, data: Any) -> int:
        """Take the next bytes."""
        view = memoryview(data)
        if not view.nbytes:  # an array without entries cannot be looked at as bytes
            return 0
        view = view.cast("B")
        if self._scheme == PLAIN:
            self._all.update(view)
            self.size += len(view)
            return len(view)
        start, most = 0, LEAVES[self._scheme]
        while start < len(view):
            part = view[start : start + most - self.size % most]
            self._take(part, most)
            start += len(part)
        return len(view)

    def _take(self, part: memoryview, most: int) -> None:
        """Bytes of one leaf."""
        if self.size >= PIECE:
            self._all = None
        if self._all is not None:
            self._all.update(part)
        if self.size >= most:
            if self.size % most == 0:
                self._leaf = hashlib.sha256()
            self._leaf.update(part)
        self.size += len(part)
        if self.size % most == 0:
            self._done.append((self._all if self._leaf is None else self._leaf).digest())

    @property
    def leaves(self) -> list[bytes]:
        """Of what came so far, the last one perhaps not full."""
        if self.size % LEAVES[self._scheme] == 0:
            return list(self._done)
        return [*self._done, (self._all if self._leaf is None else self._leaf).digest()]

    @property
    def digest(self) -> str:
        """Of what came so far."""
        if self._all is not None:
            return f"{PLAIN}:{self._all.hexdigest()}"
        return tree_of(self.leaves, self.size, self._scheme)


class Following:
    """The SHA-256 of a piece of memory that still fills: threads hash what is there, one at a time."""

    def __init__(self, memory: Any, threads: Executor) -> None:
        self._memory, self._threads = memoryview(memory), threads
        self._hash: Any = hashlib.sha256()
        self._lock = threading.Lock()
        self._there = self._done = self._asked = 0
        self.runs: list[Future[bytes]] = []

    def came(self, there: int) -> None:
        """So many bytes of it are there by now."""
        self._there = there
        if there - self._asked >= 2 * LEAF:
            self._asked = there
            self.runs.append(self._threads.submit(self.follow))

    def follow(self) -> bytes:
        """Hash what is there, unless another thread does."""
        while self._done < self._there and self._lock.acquire(blocking=False):
            try:
                self._hash_until(self._there)
            finally:
                self._lock.release()
        return b""

    def end(self, count: int) -> None:
        """There are so many, and no more will come. Nobody looks at the memory after `digests`."""
        self.runs.append(self._threads.submit(self._digest, count))

    def digests(self) -> bytes:
        """Of all bytes, once they are hashed."""
        return self.runs[-1].result()

    def _digest(self, count: int) -> bytes:
        with self._lock:
            self._hash_until(count)
            self._there, self._memory = count, memoryview(b"")
            found: bytes = self._hash.digest()
            return found

    def _hash_until(self, there: int) -> None:
        self._hash.update(self._memory[self._done : there])
        self._done = there


def leaves_of(view: memoryview) -> bytes:
    """The SHA-256 of each leaf of bytes that begin with one, one behind the other."""
    return b"".join(hashlib.sha256(view[at : at + LEAF]).digest() for at in range(0, len(view), LEAF))


def digest_of_short(*parts: Any) -> str:
    """The digest of bytes that are one piece at most, in parts."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part)
    return f"{PLAIN}:{hashed.hexdigest()}"


def digest_of(data: Any, like: str | None = None) -> str:
    """The digest of bytes; by the scheme of the digest `like`, where one is given."""
    hashed = Hashed(PLAIN if memoryview(data).nbytes <= PIECE else scheme_of(like))
    hashed.write(data)
    return hashed.digest


def digest_of_file(path: Path, like: str | None = None) -> str:
    """The same of a file."""
    hashed = Hashed(PLAIN if path.stat().st_size <= PIECE else scheme_of(like))
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hashed.write(chunk)
    return hashed.digest
