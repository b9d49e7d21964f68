"""What an upload's first bytes say of its array, without reading or inflating the rest. For estimates alone."""

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import zstandard

from workers.store import layouts, unpack
from workers.store.codec import Form

Outline = tuple[np.dtype[Any], tuple[int, ...]]
FAULTS = (OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError, *unpack.ZIP_FAULTS)


def outline(path: Path, form: Form, max_elements: int) -> Outline | None:
    """Dtype and shape of the one array; None where only reading all of it can tell. Claims are not checked."""
    try:
        found = _told(path, form)
    except (layouts.BadLayout, unpack.Damaged, unpack.TooLarge, *FAULTS):
        return None  # whoever reads it whole says what is wrong
    if found is None or not found[1] or not all(type(extent) is int and extent > 0 for extent in found[1]):
        return None
    return found if np.prod(found[1], dtype=object) <= max_elements else None


def _told(path: Path, form: Form) -> Outline | None:
    if form.format == "raw" and form.dtype is not None and form.shape is not None:
        return layouts.named(form.dtype), form.shape
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
