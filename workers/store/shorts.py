"""Arrays of less than a mebibyte as files that are written and read in one go.

A long array is mapped, and its upload is hashed and looked at by threads. Of a short one all that takes longer than
its bytes: two tenths of a millisecond each, where an answer may have six.
"""

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Array
from workers.jobs.job import InputRef, UnknownBlob
from workers.store.blocks import pool
from workers.store.digests import digest_of_short
from workers.store.folder import Folder, file_of, name_of
from workers.store.inline import kind_of
from workers.store.layouts import NUMBERS, npy_form, npy_head
from workers.store.upload import WORTH_A_SLAB

WORTH_A_THREAD = 1 << 17
"""Bytes that take longer to hash than a thread to begin."""


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


def shorts_of(arrays: Mapping[str, Array]) -> dict[str, Short]:
    """The files of those arrays that are short, by name; long ones of them are hashed side by side."""
    long = [name for name, array in arrays.items() if array.nbytes >= WORTH_A_THREAD]
    beside = {name: pool().threads.submit(Short.of, arrays[name]) for name in long[1:]}
    files = {name: Short.of(array) for name, array in arrays.items() if name not in beside}
    files |= {name: file.result() for name, file in beside.items()}
    return {name: file for name in arrays if (file := files[name]) is not None}


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
        file = file_of(name_of(reference["blob"], owner))
        descriptor = os.open(f"{folder.root}/{file[:2]}/{file}", os.O_RDONLY | os.O_CLOEXEC)
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
