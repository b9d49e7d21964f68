"""What lies in the folders of an arena (arena.py), and the locks on it."""

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

from workers.store.sizes import give_back

LAID, KEPT = 0o600, 0o700
"""Modes of a slab with a blob's name: while no disk has the bytes, and once one has."""


class Lying(NamedTuple):
    """A slab in one of the folders."""

    path: str
    size: int
    mode: int
    laid: float


def lying(folder: Path) -> list[Lying]:
    """What lies there. One look at each, for there may be thousands, while whoever has the lock looks through them."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                at = entry.stat()
            except FileNotFoundError:  # its name has gone, for which no lock is needed
                continue
            found.append(Lying(entry.path, at.st_size, at.st_mode & 0o777, at.st_mtime))
    return found


def free_of(named: list[Lying]) -> list[Lying]:
    """Slabs that may be taken though they have a name, the least recently laid first."""
    return sorted((one for one in named if one.mode == KEPT), key=lambda one: one.laid)


def locked(path: Path) -> int | None:
    """A descriptor under the exclusive lock; None while anybody maps it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    if got(descriptor, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


def got(descriptor: int, lock: int) -> bool:
    """Whether the lock is to be had now."""
    try:
        fcntl.flock(descriptor, lock | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def unlink(path: Path) -> bool:
    """Give a slab's memory back, unless somebody maps it under its lock."""
    descriptor = locked(path)
    if descriptor is None:
        return False
    path.unlink()
    give_back(descriptor)
    os.close(descriptor)
    return True


def mode_of(path: Path) -> int | None:
    """Of a slab; None where there is none."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return None
