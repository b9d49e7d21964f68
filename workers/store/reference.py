"""How a job names what it is given: the digest of the bytes, and how they are to be read.

    {"blob": "sha256:...", "format": "npy", "dtype": "float64", "shape": [3, 3]}      one array, or a sparse matrix
    {"blob": "sha256:...", "format": "npz", "member": "cost", "dtype": ..., "shape": ...}    one array of several
    {"csr": {"indptr": ..., "indices": ..., "values": ..., "shape": [m, n]}}          a sparse matrix in three arrays

A digest says what the bytes are and nothing else, so all that can be read in several ways stands beside it. A job
keeps its references as they were when it was submitted; nothing is remembered of a digest. `of_array` and `of_file`
tell the reference of an array or a file without a store, so that anybody can compare.
"""

import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernels import Array, Csr
from workers.jobs.job import InputRef
from workers.store import layouts
from workers.store.codec import AS_FOUND, FORMATS, Form, InvalidUpload, Limits, Reading, describe, read, write_npy
from workers.store.digests import Hashed, digest_of_file, digest_of_short
from workers.store.inline import MOST_BYTES, is_inline
from workers.store.names import name_of
from workers.store.narrow import checked_scale

CSR_PARTS = ("indptr", "indices", "values")
FIELDS = ("format", "member", "dtype", "shape", "scale")
NOTES = ("digest", "size", "kind", "arrays", "links", "href")
"""What the service writes beside a reference for people to read; it may stay there when the reference is used."""
ALIVE = {"blob", "kind", "csr"}
"""Fields of a reference with blobs, of this release or of an earlier one."""
UNLIMITED = Limits(max_bytes=1 << 62, max_elements=1 << 62)


def frozen(digest: str, reading: Reading) -> InputRef:
    """The reference that says all of how these bytes were read."""
    told = describe(reading.value)
    said = (reading.format, reading.member, reading.dtype or told.get("dtype"), told.get("shape"), reading.scale)
    return {"blob": digest, **{name: value for name, value in zip(FIELDS, said, strict=True) if value is not None}}


def form_of(field: str, reference: Mapping[str, Any]) -> Form:
    """How a reference says that its bytes are to be read; what it leaves out, they must say themselves.

    Raises:
        InvalidUpload: names the part of `field` that is no form.
    """
    format, member, dtype, shape, scale = (reference.get(name) for name in FIELDS)
    if format is not None and format not in FORMATS:
        raise InvalidUpload(f"{field}.format", f"is {reprlib.repr(format)}; expected one of {', '.join(FORMATS)}")
    if not isinstance(member, str | None):
        raise InvalidUpload(f"{field}.member", f"is {reprlib.repr(member)}; expected a name")
    if dtype is not None and dtype != layouts.BRAIN:
        try:
            layouts.named(dtype if isinstance(dtype, str) else repr(dtype))
        except layouts.BadLayout as wrong:
            raise InvalidUpload(f"{field}.dtype", str(wrong)) from None
    if shape is not None and not _is_shape(shape):
        raise InvalidUpload(f"{field}.shape", f"is {reprlib.repr(shape)}; expected up to 8 extents, as [3, 4]")
    try:
        factor = None if scale is None else checked_scale(scale)
    except layouts.BadLayout as wrong:
        raise InvalidUpload(f"{field}.scale", str(wrong)) from None
    return Form(format, member, dtype, None if shape is None else tuple(shape), scale=factor)


def _is_shape(given: Any) -> bool:
    return isinstance(given, list) and len(given) <= 8 and all(type(extent) is int and extent >= 0 for extent in given)


def of_array(value: Array | Csr) -> InputRef:
    """The reference of what the service writes for an array that came as numbers: .npy files, as NumPy writes them."""
    if isinstance(value, Csr):
        parts = {name: of_array(getattr(value, name)) for name in CSR_PARTS}
        return {"csr": {**parts, "shape": list(value.shape)}}
    if 0 < value.nbytes <= MOST_BYTES and value.flags.c_contiguous:
        digest = digest_of_short(layouts.npy_head(value.dtype, value.shape), value.data)
    else:
        hashed = Hashed()
        write_npy(hashed, value)
        digest = hashed.digest
    return frozen(digest, Reading("npy", None, value))


def of_file(path: Path, form: Form = AS_FOUND, field: str = "file", limits: Limits = UNLIMITED) -> InputRef:
    """The reference that an upload of this file is answered with. Raises InvalidUpload."""
    return frozen(digest_of_file(path), read(path, form, field, limits))


def blobs(reference: InputRef) -> Iterator[InputRef]:
    """The blobs that one input is made of, each as a reference of its own."""
    reference = shown(reference)
    if "csr" in reference:
        yield from (reference["csr"][name] for name in CSR_PARTS)
    else:
        yield reference


def names(references: Mapping[str, InputRef], owner: str) -> list[str]:
    """What the store calls the owner's blobs that these references are made of, each once."""
    found: dict[str, None] = {}
    for reference in references.values():
        if "digest" in reference and not reference.keys() & ALIVE:  # it brought its data, as most small ones do
            continue
        for blob in blobs(reference):
            if not is_inline(blob):
                found[name_of(blob["blob"], owner)] = None
    return list(found)


def shown(reference: InputRef) -> InputRef:
    """A job's input for its owner to read; of a record that is older than references, what can be said of it."""
    if "kind" not in reference:
        return {name: said for name, said in reference.items() if name != "data"}
    if reference["kind"] != "csr":
        return {"blob": reference["digest"]}
    parts = {name: {"blob": reference[name], "format": "npy"} for name in CSR_PARTS}
    return {"csr": {**parts, "shape": reference["shape"]}}


def written(entry: Mapping[str, Any]) -> InputRef:
    """The reference of an array of a result, which the service wrote: an .npy, whatever else its bytes could be."""
    if "data" in entry:
        return dict(entry)
    digest = entry["blob"] if "blob" in entry else entry["digest"]
    return {"blob": digest, "format": "npy", "dtype": entry["dtype"], "shape": list(entry["shape"])}
