"""Request bodies: small inputs as JSON, others as a multipart body that is sent straight from the arrays' memory.

A body knows its length and can be produced again for a retry. Arrays are sent in slices: a client library that is
handed one object of 512 MiB copies what is left of it at every send.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allot_client.arrays import FORBIDDEN_INTEGER, Array, Series, Sparse

SLICE = 1 << 20
SPARSE_PARTS = ("indptr", "indices", "values")
SMALL_ELEMENTS = 4096
"""Inputs of so many entries in all go as JSON: one part less to open on the other side."""
WORTH_PACKING = 64
"""From so many entries on an array goes as its bytes in base64, which takes a thirtieth of the time of their digits."""
Piece = bytes | memoryview


@dataclass(frozen=True)
class Blob:
    """A reference to an uploaded array: what the service answered to its upload, used in jobs as it is."""

    reference: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The digest of the bytes, "sha256:" and 64 hex digits."""
        return str(self.reference["blob"])


@dataclass(frozen=True)
class File:
    """A file of a format that the service reads itself (QAPLIB, MatrixMarket), sent as it is."""

    name: str
    content: bytes


Input = Array | Series | Sparse | Blob | File


@dataclass
class Body:
    """Pieces of memory to send in order, and their media type."""

    pieces: Sequence[Piece | Series]
    media_type: str
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = sum(len(piece) for piece in self.pieces)

    def slices(self) -> Iterator[bytes]:
        """The body in slices of about a mebibyte; every call begins again. Small pieces go together, as a copy."""
        for part in self.parts():
            yield _joined(part) if isinstance(part, list) else part

    def parts(self, longest: int = SLICE) -> Iterator[bytes | list[Array]]:
        """The same, but of a series its arrays, and of a long piece up to so many bytes."""
        small = bytearray()
        for piece in self.pieces:
            if not isinstance(piece, Series) and len(small) + len(piece) <= SLICE:
                small += piece
                continue
            if small:
                yield bytes(small)
                small.clear()
            if isinstance(piece, Series):
                yield from piece.groups(SLICE)
                continue
            view = memoryview(piece)
            for start in range(0, len(view), longest):
                yield view[start : start + longest]  # type: ignore[misc]  # httpx sends any buffer
        if small:
            yield bytes(small)

    def content(self) -> bytes | Iterator[bytes]:
        """What httpx is given: the body at once where it is small, else its slices."""
        return b"".join(self.slices()) if self.length <= SLICE else self.slices()


def _joined(arrays: list[Array]) -> Any:
    """One slice of them, as a copy."""
    return np.concatenate([one.reshape(-1) for one in arrays]).data.cast("B")


def job_body(job: Mapping[str, Any], inputs: Mapping[str, Input]) -> Body:
    """The body of a job: JSON where the inputs are small or already uploaded, else multipart."""
    arrays = {name: value for name, value in inputs.items() if not isinstance(value, Blob)}
    references: dict[str, Any] = {
        name: dict(value.reference) for name, value in inputs.items() if isinstance(value, Blob)
    }
    if sum(map(_size, arrays.values())) <= SMALL_ELEMENTS and all(_fits_json(value) for value in arrays.values()):
        shown = {name: _as_json(value) for name, value in arrays.items()}
        text = json.dumps({**job, "inputs": {**references, **shown}}, allow_nan=False)
        return Body([text.encode()], "application/json")
    files: dict[str, Input] = {}
    for name, value in arrays.items():
        if isinstance(value, Sparse):
            parts = {part: f"{name}.{part}" for part in SPARSE_PARTS}
            files |= {file: getattr(value, part) for part, file in parts.items()}
            named = {part: {"part": file} for part, file in parts.items()}
            references[name] = {"csr": {**named, "shape": list(value.shape)}}
        else:
            files[name] = value
    document = {**job, "inputs": references} if references else dict(job)
    return _multipart(document, files)


def _fits_json(value: Input) -> bool:
    if isinstance(value, Sparse):
        return all(_fits_json(part) for part in (value.indptr, value.indices, value.values))
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        return False
    if _packs(value):
        return True
    if value.size == 0 and value.ndim > 1:  # lists would not say how many columns there are
        return False
    return bool(np.isfinite(value).all())


def _packs(value: Array) -> bool:
    """Whether its bytes stand for it. A forbidden integer is told as null, and uint64 has no type there."""
    if value.size < WORTH_PACKING or value.dtype == np.uint64:
        return False
    return value.dtype.kind == "f" or not (value == FORBIDDEN_INTEGER).any()


def _packed(value: Array) -> dict[str, Any]:
    """Its bytes, in the type that its digits would be read in."""
    kind = "float64" if value.dtype.kind == "f" else "int64"
    data = np.ascontiguousarray(value, f"<{kind[0]}8").tobytes()
    return {"data": base64.b64encode(data).decode(), "dtype": kind, "shape": list(value.shape)}


def _size(value: Input) -> int:
    if isinstance(value, Sparse):
        return int(value.indptr.size + 2 * value.values.size)
    return int(value.size) if isinstance(value, (np.ndarray, Series)) else SMALL_ELEMENTS + 1


def _as_json(value: Input) -> Any:
    if isinstance(value, Sparse):
        parts = {name: _as_json(getattr(value, name)) for name in SPARSE_PARTS}
        return {"csr": {**parts, "shape": list(value.shape)}}
    assert isinstance(value, np.ndarray)
    if _packs(value):
        return _packed(value)
    if value.dtype == np.int64 and (value == FORBIDDEN_INTEGER).any():
        shown = value.astype(object)
        shown[value == FORBIDDEN_INTEGER] = None
        return shown.tolist()
    return value.tolist()


def _multipart(document: Mapping[str, Any], arrays: Mapping[str, Input]) -> Body:
    boundary = f"allot-{secrets.token_hex(32)}"  # as long as it may be: the longer, the faster it is looked for
    pieces: list[Piece | Series] = [_head(boundary, "job", None), json.dumps(document, allow_nan=False).encode()]
    for name, value in arrays.items():
        filename, content = _as_file(name, value)
        pieces += [b"\r\n", _head(boundary, name, filename), *content]
    pieces.append(f"\r\n--{boundary}--\r\n".encode())
    return Body(pieces, f"multipart/form-data; boundary={boundary}")


def _head(boundary: str, name: str, filename: str | None) -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode()


def _as_file(name: str, value: Input) -> tuple[str, Sequence[Piece | Series]]:
    if isinstance(value, File):
        return value.name, [value.content]
    if isinstance(value, Series):
        return f"{name}.npy", [_npy_head(value.dtype, (value.size,)), value]
    assert isinstance(value, np.ndarray)
    return f"{name}.npy", npy_pieces(value)


def npy_pieces(array: Array) -> list[Piece]:
    """An .npy file of `array`: a header, then the array's own memory (a copy only where it is not in C order)."""
    flat = np.ascontiguousarray(array)
    return [_npy_head(flat.dtype, flat.shape), memoryview(flat.reshape(-1).view(np.uint8).data)]


@functools.lru_cache(64)
def _npy_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Callers send the same forms again and again; NumPy takes 40 us to word one."""
    head = io.BytesIO()
    said = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, said)
    return head.getvalue()
