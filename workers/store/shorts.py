"""Arrays of less than a mebibyte as files that are written and read in one go.

A long array is mapped, and its upload is hashed and looked at by threads. Of a short one all that takes longer than
its bytes: two tenths of a millisecond each, where an answer may have six.
"""

import contextlib
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Array
from workers.jobs.job import InputRef, UnknownBlob
from workers.store.digests import digest_of_short
from workers.store.folder import Folder
from workers.store.inline import kind_of
from workers.store.layouts import NUMBERS, npy_form, npy_head
from workers.store.names import file_of, name_of
from workers.store.pool import pool
from workers.store.upload import WORTH_A_SLAB

WORTH_A_THREAD = 1 << 17
"""Bytes that take longer to hash than a thread to begin."""


STARTS = 8
"""Entries by which two arrays mostly differ that are not alike."""


@dataclass(frozen=True)
class Short:
    """An .npy file that is still to be written."""

    pieces: tuple[bytes, memoryview]
    digest: str
    size: int
    reference: InputRef

    @classmethod
    def of(cls, array: Array) -> "Short | None":
        """The file of an array; None where it is too long for one, or has another order."""
        if not 0 < array.nbytes < WORTH_A_SLAB or not array.flags.c_contiguous or array.dtype.kind not in NUMBERS:
            return None
        head, data = npy_head(array.dtype, array.shape), array.reshape(-1).view(np.uint8).data
        digest = digest_of_short(head, data)
        told = {"blob": digest, "format": "npy", "dtype": kind_of(array.dtype), "shape": list(array.shape)}
        return cls((head, data), digest, len(head) + len(data), told)

    def written(self, folder: Path) -> Path:
        """A new file in that folder. Raises OSError."""
        path = folder / uuid.uuid4().hex
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if os.writev(descriptor, self.pieces) != self.size:
                _write_rest(descriptor, b"".join(self.pieces))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return path


def place(folder: Folder, name: str) -> str:
    """Where a folder has a blob of that name. Raises UnknownBlob."""
    file = file_of(name)
    return f"{folder.root}/{file[:2]}/{file}"


class Sheaf:
    """Short files by their names, on their way into a folder. To be closed: what has no name by then is gone."""

    def __init__(self, named: Mapping[str, Short], folder: Any) -> None:
        self._named, self._folder, self._local = named, folder, isinstance(folder, Folder)
        self._written: dict[str, Path] = {}

    def write(self) -> None:
        """Write those that are not there, so far without a name. Raises OSError."""
        for name, file in self._named.items():
            if name not in self._written and not self._renewed(name, file.size):
                self._written[name] = file.written(self._folder.temporary)

    def publish(self) -> None:
        """Give them their names, once Redis knows these. Raises OSError, and what the folder raises."""
        self.write()  # before Redis knew them, one that was there may have been deleted
        while self._written:
            name, path = self._written.popitem()
            try:
                self._give(name, path)
            except BaseException:
                self._written[name] = path
                raise

    def _give(self, name: str, path: Path) -> None:
        if self._local:
            if self._renewed(name, self._named[name].size):  # an upload may have forced it to the disk meanwhile
                path.unlink()
                return
            with contextlib.suppress(FileNotFoundError):  # the folder knows what to do
                os.rename(path, place(self._folder, name))
                return
        self._folder.publish(name, path, durable=False)

    def close(self) -> None:
        """Remove what was written in vain."""
        for path in self._written.values():
            path.unlink(missing_ok=True)

    def _renewed(self, name: str, size: int) -> bool:
        """Whether a local folder has it: its time begins anew.

        Answers hold the same masses again and again, and a file that is made in vain costs as much as any other.
        """
        if not self._local:
            return False
        path = place(self._folder, name)
        try:
            if os.stat(path).st_size != size:
                return False
            os.utime(path)
        except FileNotFoundError:
            return False
        return True


def shorts_of(arrays: Mapping[str, Array]) -> dict[str, Short]:
    """The files of those arrays that are short, by name; long ones of them are hashed side by side.

    What is alike, as masses that were left out, is hashed once.
    """
    long = [name for name, array in arrays.items() if array.nbytes >= WORTH_A_THREAD]
    beside = {name: pool().threads.submit(Short.of, arrays[name]) for name in long[1:]}
    files: dict[str, Short | None] = {}
    seen: dict[Any, str] = {}
    for name, array in arrays.items():
        if name in beside:
            continue
        if not array.flags.c_contiguous:  # no short file, and to look at its start may copy all of it
            files[name] = Short.of(array)
            continue
        like = seen.setdefault(_start(array), name)
        alike = like != name and arrays[like].tobytes() == array.tobytes()
        files[name] = files[like] if alike else Short.of(array)
    files |= {name: file.result() for name, file in beside.items()}
    return {name: file for name in arrays if (file := files[name]) is not None}


def _start(array: Array) -> Any:
    """What is the same of contiguous arrays that are alike."""
    return array.dtype, array.shape, array.reshape(-1)[:STARTS].tobytes()


def _write_rest(descriptor: int, whole: bytes) -> None:
    """What a disk that is nearly full took a part of: again until it says that it is full."""
    done = os.lseek(descriptor, 0, os.SEEK_CUR)
    while done < len(whole):
        done += os.write(descriptor, whole[done:])


def read_short(folder: Any, reference: Mapping[str, Any], owner: str) -> Array | None:
    """The array of a reference, from a local folder.

    None where it is not short, or not there as the service writes it: who reads it as any other finds out why.
    """
    form = npy_form(reference)
    if form is None or form[2] >= WORTH_A_SLAB or not isinstance(folder, Folder):
        return None
    kind, head, count = form
    try:
        descriptor = os.open(place(folder, name_of(reference["blob"], owner)), os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, UnknownBlob):
        return None
    try:
        whole = np.empty(len(head) + count, np.uint8)
        if os.fstat(descriptor).st_size != len(whole) or os.readv(descriptor, [whole.data]) != len(whole):
            return None
    finally:
        os.close(descriptor)
    if whole[: len(head)].tobytes() != head:
        return None
    return np.frombuffer(whole.data, kind, offset=len(head)).reshape(reference["shape"])
