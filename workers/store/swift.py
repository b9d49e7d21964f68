"""Long arrays that lie in the arena as the service or NumPy writes them, mapped in a few calls of the kernel.

The general way opens such a file five times and asks for its size four times: what packs it, what format it has, its
header, its lock, its mapping. A job of a millisecond spends half of one there.
"""

import fcntl
import io
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels import Array
from workers.jobs.job import UnknownBlob
from workers.store.codec import Form, Limits, Reading
from workers.store.folder import Folder, file_of, name_of
from workers.store.layouts import USUAL_NPY_HEADER, BadLayout, npy_form, npy_place
from workers.store.sight import Sight


def read_swift(folder: Any, reference: Mapping[str, Any], owner: str, limits: Limits) -> Array | None:
    """The array of a reference, mapped from the arena under a lock.

    None where it is not there, or not as it is usually written: who reads it as any other finds out why.
    """
    form = npy_form(reference)
    if form is None or not isinstance(folder, Folder) or folder.arena is None:
        return None
    kind, head, count = form
    if count // kind.itemsize > limits.max_elements:
        return None
    try:
        file = file_of(name_of(reference["blob"], owner))
        return _mapped(f"{folder.arena.blobs}/{file}", head, kind, tuple(reference["shape"]))
    except (OSError, ValueError, UnknownBlob):
        return None


def read_in_place(whole: memoryview, sight: Sight, form: Form, limits: Limits) -> Reading | None:
    """An upload that lies in memory, as the one array that was seen there: nothing is opened or mapped, and no page of
    it is looked for again. It may not be written to, and is good for as long as the memory.

    None where it is not as it is usually written, or the form claims something: who reads it as any other finds out.
    """
    said = form.member, form.dtype, form.shape, form.scale
    if form.format not in (None, "npy") or any(one is not None for one in said):
        return None
    try:
        kind, shape, offset, by_columns = npy_place(bytes(whole[:USUAL_NPY_HEADER]))
    except BadLayout:
        return None
    if by_columns or not 0 < len(shape) <= 8 or not all(type(extent) is int and extent > 0 for extent in shape):
        return None
    count = math.prod(shape)
    if count > limits.max_elements or offset + count * kind.itemsize != len(whole):
        return None
    found: Array = np.frombuffer(whole, kind, count, offset).reshape(shape)
    sight.tell(found, offset)
    return Reading("npy", None, found)


def _mapped(path: str, head: bytes, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
    """As `arena.leased` has it: a lock first, and then a look whether the name is still this file's."""
    with io.FileIO(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as file:
        descriptor = file.fileno()
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        there = os.fstat(descriptor)
        whole = there.st_size == len(head) + math.prod(shape) * kind.itemsize
        if not whole or not os.path.samestat(there, os.stat(path)) or os.pread(descriptor, len(head), 0) != head:
            return None
        # Copy on write, as everywhere (layouts.py); the mapping has a descriptor of its own, and with it the lock.
        found: Array = np.memmap(file, kind, "c", len(head), shape)
        found.filename = path  # type: ignore[attr-defined]
        return found
