"""What bytes are called: by a digest whose first letters say how it is worked out.

    sha256:<hex>     the SHA-256 of all bytes
    sha256t:<hex>    of a tree, which several threads can work out: the SHA-256 of a line that says so, of how many
                     bytes there are (8 bytes, little-endian), and of the SHA-256 of each piece of 4 MiB in their order

Bytes that fit into one piece are called by the first, and more than that by the second, unless whoever sends them
names the first. The count and the line keep a list of digests from being taken for bytes, and the other way round. A
digest says which bytes these are. It says nothing of how they are to be read.
"""

import hashlib
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PIECE = 4 << 20
PLAIN, TREE = "sha256", "sha256t"
DIGEST = re.compile(r"sha256t?:[0-9a-f]{64}")
HEADING = b"allot sha256t 4194304\n"


def tree_of(pieces: Iterable[bytes], size: int) -> str:
    """The digest of `size` bytes of whose pieces these are the SHA-256."""
    whole = hashlib.sha256(HEADING + size.to_bytes(8, "little"))
    for piece in pieces:
        whole.update(piece)
    return f"{TREE}:{whole.hexdigest()}"


class Hashed:
    """Takes bytes in any portions and works out their digest, in one thread.

    Args:
        plain: call them by the SHA-256 of all, however many they are.
    """

    def __init__(self, plain: bool = False) -> None:
        self._all = hashlib.sha256() if plain else None
        self._piece = hashlib.sha256()
        self._done: list[bytes] = []
        self.size = 0

    def write(self, data: Any) -> int:
        """Take the next bytes."""
        view = memoryview(data)
        if not view.nbytes:  # an array without entries cannot be looked at as bytes
            return 0
        view = view.cast("B")
        start = 0
        while start < len(view):
            if self.size and self.size % PIECE == 0:
                self._done.append(self._piece.digest())
                self._piece = hashlib.sha256()
            part = view[start : start + PIECE - self.size % PIECE]
            (self._all or self._piece).update(part)
            self.size += len(part)
            start += len(part)
        return len(view)

    @property
    def digest(self) -> str:
        """Of what came so far."""
        if self._all is not None or self.size <= PIECE:
            return f"{PLAIN}:{(self._all or self._piece).hexdigest()}"
        return tree_of([*self._done, self._piece.digest()], self.size)


class Following:
    """The SHA-256 of a piece of memory that still fills: threads hash what is there, one at a time."""

    def __init__(self, memory: Any) -> None:
        self._memory = memoryview(memory)
        self._hash: Any = None
        self._lock = threading.Lock()
        self._there = self._done = 0

    def came(self, there: int) -> None:
        """So many bytes of it are there by now."""
        self._there = there

    def follow(self) -> None:
        """Hash what is there, unless another thread does."""
        while self._done < self._there and self._lock.acquire(blocking=False):
            try:
                self._hash_until(self._there)
            finally:
                self._lock.release()

    def digest(self, count: int) -> bytes:
        """Of the first `count` bytes, which are all. Nobody looks at the memory after that."""
        with self._lock:
            self._hash_until(count)
            self._there = count
            found: bytes = self._hash.digest()
            return found

    def _hash_until(self, there: int) -> None:
        self._hash = self._hash or hashlib.sha256()
        self._hash.update(self._memory[self._done : there])
        self._done = there


def digest_of_short(*parts: Any) -> str:
    """The digest of bytes that are one piece at most, in parts."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part)
    return f"{PLAIN}:{hashed.hexdigest()}"


def digest_of(data: Any, like: str | None = None) -> str:
    """The digest of bytes; by the scheme of the digest `like`, where one is given."""
    hashed = Hashed(plain=like is not None and like.startswith(f"{PLAIN}:"))
    hashed.write(data)
    return hashed.digest


def digest_of_file(path: Path, like: str | None = None) -> str:
    """The same of a file."""
    hashed = Hashed(plain=like is not None and like.startswith(f"{PLAIN}:"))
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hashed.write(chunk)
    return hashed.digest
