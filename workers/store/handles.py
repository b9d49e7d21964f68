"""Arrays handed from one process to another: where in which file their numbers lie, as JSON.

A process that reads what strangers sent leaves files behind, and tells of them; the one that asked maps them. Nothing
is pickled, and what a handle says is held against the file like any header.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Array, Csr
from workers.store import layouts
from workers.store.codec import Decoded, Reading
from workers.store.unpack import Scratch

PARTS = ("indptr", "indices", "values")
Handle = dict[str, Any]


def hand(value: Decoded, folder: Path, scratch: Scratch) -> Handle:
    """Where `value` lies; what is in memory alone is written to a new file first, and charged."""
    if isinstance(value, dict):
        return {"arrays": {name: hand(array, folder, scratch) for name, array in value.items()}}
    if isinstance(value, Csr):
        parts = {name: hand(getattr(value, name), folder, scratch) for name in PARTS}
        return {"csr": parts, "shape": list(value.shape)}
    if isinstance(value, np.memmap) and value.filename is not None and value.base.__class__.__name__ == "mmap":
        return lying(value, Path(value.filename), int(value.offset))
    scratch.charge(value.nbytes)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=scratch.prefix, delete=False) as file:
        np.ascontiguousarray(value).tofile(file)
    return lying(np.ascontiguousarray(value), Path(file.name), 0)


def lying(array: Array, path: Path, offset: int) -> Handle:
    """Of an array that lies in a file."""
    order = "C" if array.flags.c_contiguous else "F"
    return {"path": str(path), "offset": offset, "dtype": array.dtype.str, "shape": list(array.shape), "order": order}


def take(handle: Mapping[str, Any], max_elements: int) -> Decoded:
    """What a handle tells of, mapped. Raises layouts.BadLayout."""
    if "arrays" in handle:
        return {name: _array(one, max_elements) for name, one in handle["arrays"].items()}
    if "csr" in handle:
        indptr, indices, values = (_array(handle["csr"][name], max_elements) for name in PARTS)
        n_rows, n_cols = handle["shape"]
        return Csr(indptr, indices, values, (n_rows, n_cols))
    return _array(handle, max_elements)


def single(handle: Mapping[str, Any]) -> Array | Csr:
    """The one matrix that a handle tells of, however large: it was measured when it was handed."""
    found = take(handle, layouts.LONGEST_EXTENT)
    assert not isinstance(found, dict)
    return found


def _array(handle: Mapping[str, Any], max_elements: int) -> Array:
    dtype = np.dtype(handle["dtype"])
    return layouts.mapped(Path(handle["path"]), dtype, tuple(handle["shape"]), handle["offset"], max_elements,
                          handle["order"])  # fmt: skip


def reading_of(told: Mapping[str, Any], max_elements: int) -> Reading:
    """What another process has read. Raises layouts.BadLayout."""
    return Reading(told["format"], told["member"], take(told["value"], max_elements), told["dtype"], told["scale"])


def told_of(reading: Reading, folder: Path, scratch: Scratch) -> dict[str, Any]:
    """The other way round."""
    said = {"format": reading.format, "member": reading.member, "dtype": reading.dtype, "scale": reading.scale}
    return {**said, "value": hand(reading.value, folder, scratch)}
