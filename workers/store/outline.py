"""What an upload's first bytes say of its array, without reading or inflating the rest. For estimates alone."""

import gzip
import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import zstandard

from workers.store import layouts, unpack
from workers.store.codec import Form

Outline = tuple[np.dtype[Any], tuple[int, ...]]
MOST_LINES = 1 << 20
"""Rows and columns of what is told by its header alone: vectors are read."""
FAULTS = (OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError, *unpack.ZIP_FAULTS)


def outline(path: Path, form: Form, max_elements: int) -> Outline | None:
    """Dtype and shape of the one array; None where only reading all of it can tell. Claims are not checked."""
    try:
        found = _told(path, form)
    except (layouts.BadLayout, unpack.Damaged, unpack.TooLarge, *FAULTS):
        return None  # whoever reads it whole says what is wrong
    if found is not None and form.scale is not None:
        found = np.dtype(np.float64), found[1]
    return found if found is not None and _plausible(found, path.stat().st_size, max_elements) else None


def _plausible(found: Outline, size: int, max_elements: int) -> bool:
    """Whether a file of that size may hold so much; one that may not is read, and refused with a sentence."""
    dtype, shape = found
    if not shape or len(shape) > 8 or not all(type(extent) is int and 0 < extent <= max_elements for extent in shape):
        return False
    claimed = math.prod(shape) * dtype.itemsize
    return (
        math.prod(shape) <= max_elements
        and sum(shape) <= MOST_LINES
        and claimed <= max(unpack.FREE_BYTES, unpack.RATIO * size)
    )


def _told(path: Path, form: Form) -> Outline | None:
    if form.format == "raw" and form.dtype is not None and form.shape is not None:
        return np.dtype(np.float32) if form.dtype == layouts.BRAIN else layouts.named(form.dtype), form.shape
    with path.open("rb") as file:
        how = unpack.packing(file.read(4))
        file.seek(0)
        if how == "gzip":
            return _npy(gzip.GzipFile(fileobj=file))
        if how == "zstd":
            opener = zstandard.ZstdDecompressor(max_window_size=unpack.LONGEST_WINDOW)
            return _npy(opener.stream_reader(file))
        if file.read(4) == unpack.ZIP:
            return _member(path, form.member)
        file.seek(0)
        return _npy(file)


def _npy(stream: IO[bytes] | Any) -> Outline | None:
    return layouts.npy_claims(io.BytesIO(stream.read(layouts.NPY_START)))


def _member(path: Path, name: str | None) -> Outline | None:
    listed = {info.filename.removesuffix(".npy"): info for info in unpack.members(path)}
    wanted = name if name is not None else next(iter(listed)) if len(listed) == 1 else None
    if wanted not in listed:
        return None
    with zipfile.ZipFile(path) as archive, archive.open(listed[wanted]) as stream:
        return _npy(stream)
