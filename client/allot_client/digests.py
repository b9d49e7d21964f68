"""What the service calls bytes: the SHA-256 of all, and beyond 4 MiB a tree of it, which several threads work out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

PIECE, LEAF = 4 << 20, 512 << 10
HEADING = b"allot sha256u 524288\n"
THREADS = max(1, min(8, os.cpu_count() or 1))


def digest_of(parts: Iterable[bytes | memoryview]) -> str:
    """The digest of these bytes, one part behind the other."""
    views = [memoryview(part).cast("B") for part in parts]
    size = sum(len(view) for view in views)
    if size <= PIECE:
        return f"sha256:{_sha256(views).hex()}"
    whole = hashlib.sha256(HEADING + size.to_bytes(8, "little"))
    with ThreadPoolExecutor(THREADS) as threads:
        for leaves in threads.map(_leaves, _cut(views, PIECE)):
            whole.update(leaves)
    return f"sha256u:{whole.hexdigest()}"


def _cut(views: list[memoryview], size: int) -> Iterator[list[memoryview]]:
    """The same bytes in pieces of that size, each as the views that it is made of."""
    held: list[memoryview] = []
    room = size
    for view in views:
        while len(view):
            held.append(view[:room])
            view = view[room:]
            room -= len(held[-1])
            if not room:
                yield held
                held, room = [], size
    if held:
        yield held


def _leaves(views: list[memoryview]) -> bytes:
    """The SHA-256 of each 512 KiB of a piece, one behind the other."""
    return b"".join(map(_sha256, _cut(views, LEAF)))


def _sha256(views: Iterable[memoryview]) -> bytes:
    hashed = hashlib.sha256()
    for view in views:
        hashed.update(view)
    return hashed.digest()
