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
from workers.store.codec import Limits
from workers.store.folder import Folder
from workers.store.layouts import npy_form, of_slab
from workers.store.names import file_of, name_of


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
        return of_slab(np.memmap(file, kind, "c", len(head), shape), path, there)
