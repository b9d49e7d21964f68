"""What a full disk means, whoever writes to it; how a wait for it is made short; and how memory gets there."""

import contextlib
import ctypes
import errno
import fcntl
import functools
import mmap
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.jobs.job import StoreFull
from workers.store.arena import leased

SPARE_BYTES = 64 << 20
"""Uploads are refused while less than this is free on disk: Redis needs to append."""


def require_space(folder: Path, count: int = 0) -> None:
    """Raise StoreFull when writing `count` bytes would leave less than the reserve of that disk."""
    if shutil.disk_usage(folder).free - count < SPARE_BYTES:
        raise StoreFull(f"the store's disk is nearly full: less than {SPARE_BYTES >> 20} MiB are free")


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Work on the store's disk. Raises StoreFull where that is full, whichever call it is that finds out."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"the store's disk is full: {os.strerror(error.errno)}") from error
        raise


SYNC_FILE_RANGE_WRITE = 2


def hasten(descriptor: int, at: int, count: int) -> None:
    """Have the kernel begin to write these bytes of a file to the disk, so that an fsync later has little left to do.

    A hint, which promises nothing: where there is no such call, the fsync does it all.
    """
    call = _sync_file_range()
    if call is not None:
        call(descriptor, at, count, SYNC_FILE_RANGE_WRITE)


@functools.cache
def _sync_file_range() -> Any:
    """Of the C library, which Python does not show."""
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return call


ALIGNED = 4096
STEP = 16 << 20


def copy_out(slab: Path, target: Path) -> None:
    """Write a slab of the arena to a new file and force it to the disk, past the page cache where the disk can.

    Raises:
        FileNotFoundError: the slab is another by now.
        OSError: the disk is full, or gone.
    """
    with leased(slab) as source:
        size = os.fstat(source).st_size
        view = memoryview(mmap.mmap(source, size, access=mmap.ACCESS_READ))
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        done = 0
        if _past_cache(descriptor, True):
            done = _put(descriptor, view[: size - size % ALIGNED], 0)
            _past_cache(descriptor, False)
        while done < size:
            done += os.pwrite(descriptor, view[done : done + STEP], done)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _past_cache(descriptor: int, wanted: bool) -> bool:
    """Turn O_DIRECT on or off; whether that could be done."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    direct = getattr(os, "O_DIRECT", 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | direct if wanted else flags & ~direct)
        return bool(direct)
    except OSError:
        return False


def _put(descriptor: int, view: memoryview, at: int) -> int:
    """Write whole blocks; returns how far it came before the disk did not take them in this way."""
    while at < len(view):
        try:
            count = os.pwrite(descriptor, view[at : at + STEP], at)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return at
        if count % ALIGNED:
            return at + count
        at += count
    return at


def give_name(descriptor: int, name: Path) -> None:
    """Give the bytes of an open file another name; a durable copy of them where the disk is another, or has no links.

    Raises FileNotFoundError where the file has no name left.
    """
    try:
        opened = f"/proc/self/fd/{descriptor}"
        os.link(opened, name, src_dir_fd=descriptor, follow_symlinks=True)  # without src_dir_fd it does not follow
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(f"/proc/self/fd/{descriptor}", name)
        flush(name)


def flush(path: Path) -> None:
    """Force what is written of a file or a folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
