"""Where the numbers lie in a binary file: npy, safetensors and raw headers, checked against the bytes that came.

Nothing here trusts a header: shape times item size must equal the bytes behind it, in Python's integers, before
anything is allocated. Arrays are mapped from the file, not read.
"""

import contextlib
import functools
import io
import json
import math
import os
import re
import reprlib
import sys
import threading
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from workers.store import npy_heads
from workers.store.arena import is_slab, leased

Array = npt.NDArray[Any]
NUMBERS = "biuf"
LONGEST_HEADER = 1 << 20
LONGEST_EXTENT = 1 << 48
LONGEST_NAME = 255
MOST_TENSORS = 4096
LONGEST_NPY_HEADER = 10_000
NPY_START = 12 + LONGEST_NPY_HEADER
"""So many bytes hold any header of an .npy file that is read here."""
USUAL_NPY_HEADER = 256
NPY_1_0 = b"\x93NUMPY\x01\x00"
VOID = np.dtype("V2")
DTYPE = re.compile(r"[<>=|]?[a-zA-Z]{1,12}[0-9]{0,4}")
TENSORS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
    "BF16": "<u2",
}
_one_at_a_time = threading.Lock()
"""NumPy reads a header with `ast`, which counts how deep it is for all threads together: a thread that was interrupted
there by another may raise SystemError (CPython issue 106905)."""
BRAIN = "bfloat16"
BRAIN_TENSOR = "BF16"


class Brain(np.memmap):
    """bfloat16, which NumPy does not have, as its bits in uint16; narrow.py makes numbers of them."""


class BadLayout(ValueError):
    """The header is not what the format says, or does not fit the bytes behind it.

    `part` is what of a reference is at fault ("format", "member", "dtype", "shape"), "" where the bytes are.
    """

    def __init__(self, message: str, part: str = "") -> None:
        super().__init__(message)
        self.part = part


def npy(path: Path, max_elements: int, *, text: bool = False, brain: bool = False) -> Array:
    """Map an .npy file; `text` allows a short string too (SciPy's npz holds one).

    `brain`: two bytes of which NumPy does not know what they are, as it writes them of an array of bfloat16, are that.
    """
    with path.open("rb") as file:
        shape, fortran, dtype = _npy_header(file)
        offset = file.tell()
    is_brain = brain and dtype == VOID
    dtype = np.dtype("<u2") if is_brain else _number(dtype, allow="US" if text else "")
    array = _map(path, dtype, shape, offset, path.stat().st_size - offset, max_elements, "F" if fortran else "C")
    return array.view(Brain) if is_brain else array


def npy_start(start: bytes, size: int) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
    """Dtype and shape of an .npy file of `size` bytes, from its first NPY_START; None when it is none."""
    file = io.BytesIO(start)
    try:
        shape, _, dtype = _npy_header(file)
        dtype = _number(dtype)
    except BadLayout:
        return None
    whole = all(type(extent) is int and extent >= 0 for extent in shape)
    return (dtype, shape) if whole and file.tell() + math.prod(shape) * dtype.itemsize == size else None


def npy_claims(file: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Dtype and shape that a header claims, whatever comes behind it. Raises BadLayout."""
    shape, _, dtype = _npy_header(file)
    return _number(dtype), shape


def npy_place(start: bytes) -> tuple[np.dtype[Any], tuple[int, ...], int, bool]:
    """Dtype, shape, where the numbers begin and whether columns come first, of an .npy file that starts so.

    Raises BadLayout.
    """
    file = io.BytesIO(start[:NPY_START])
    shape, fortran, dtype = _npy_header(file)
    return _number(dtype), shape, file.tell(), fortran


def npy_length(array: Array) -> int:
    """How many bytes `write_npy` writes; 0 where only writing tells."""
    if not array.flags.c_contiguous or array.dtype.hasobject:
        return 0
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.tell() + array.nbytes


@functools.lru_cache(256)
def npy_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """What an .npy file of such an array begins with."""
    return npy_heads.worded(dtype, shape)


def npy_form(reference: Mapping[str, Any]) -> tuple[np.dtype[Any], bytes, int] | None:
    """Of an .npy file that a reference names: its dtype, what it begins with as the service writes it, and the bytes
    behind that. None where it is read in another way, or not so plain."""
    dtype, shape = reference.get("dtype"), reference.get("shape")
    if reference.get("format") != "npy" or not isinstance(dtype, str) or not isinstance(shape, list):
        return None
    if {"member", "scale", "kind"} & reference.keys() or not 0 < len(shape) <= 8:
        return None
    return _npy_form(dtype, tuple(shape)) if all(type(extent) is int and extent > 0 for extent in shape) else None


@functools.lru_cache(256)
def _npy_form(dtype: str, shape: tuple[int, ...]) -> tuple[np.dtype[Any], bytes, int] | None:
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        return None
    plain = kind.kind in NUMBERS and kind.name == dtype
    return (kind, npy_head(kind, shape), math.prod(shape) * kind.itemsize) if plain else None


def npy_size(start: bytes) -> int:
    """Of a whole .npy file that starts so; 0 where it is none."""
    try:
        dtype, shape, offset, _ = npy_place(start)
    except BadLayout:
        return 0
    whole = len(shape) <= 8 and all(type(extent) is int and 0 < extent <= LONGEST_EXTENT for extent in shape)
    return offset + math.prod(shape) * dtype.itemsize if whole else 0


Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
"""Shape, whether columns come first, and dtype."""


def _npy_header(file: IO[bytes]) -> Header:
    """What the header says; `file` then stands at the numbers.

    The usual ones are remembered: an upload's is read several times.
    """
    begins, start = file.tell(), file.read(USUAL_NPY_HEADER)
    length = len(NPY_1_0) + 2 + int.from_bytes(start[len(NPY_1_0) : len(NPY_1_0) + 2], "little")
    if start.startswith(NPY_1_0) and length <= len(start):
        told = _usual_header(start[:length])
        file.seek(begins + length)
        return told
    file.seek(begins)
    return _read_header(file)


@functools.lru_cache(256)
def _usual_header(head: bytes) -> Header:
    return npy_heads.heard(head) or _read_header(io.BytesIO(head))


def _read_header(file: IO[bytes]) -> Header:
    try:
        version = np.lib.format.read_magic(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of headers written by Python 2
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            with _one_at_a_time:
                shape, fortran, dtype = read(file, max_header_size=LONGEST_NPY_HEADER)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, OverflowError, EOFError,
            tokenize.TokenError) as error:  # fmt: skip
        raise BadLayout(f"is not an npy file: {str(error)[:200]}") from error
    return shape, fortran, dtype


def raw(path: Path, dtype: str, shape: tuple[int, ...], max_elements: int) -> Array:
    """Map bare bytes, whose dtype and shape came beside them."""
    if dtype == BRAIN:
        return _map(path, np.dtype("<u2"), shape, 0, path.stat().st_size, max_elements, "C").view(Brain)
    return _map(path, _number(named(dtype)), shape, 0, path.stat().st_size, max_elements, "C")


def named(dtype: str) -> np.dtype[Any]:
    """The dtype of that name. Raises BadLayout."""
    if DTYPE.fullmatch(dtype):
        with contextlib.suppress(TypeError, ValueError):
            return np.dtype(dtype)
    raise BadLayout(f"is {dtype[:50]!r}; expected one like float32, float64, int32 or int64", "dtype")


def safetensors(path: Path, max_elements: int, member: str | None = None) -> dict[str, Array]:
    """Map every tensor of a safetensors file, or the one of that name."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, LONGEST_HEADER):
            raise BadLayout(f"says that its header has {length} bytes; the file has {size}")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise BadLayout("is not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise BadLayout("is not a safetensors file: its header is not an object")
    if len(header) > MOST_TENSORS:
        raise BadLayout(f"holds {len(header)} tensors; the limit is {MOST_TENSORS}")
    header = {member: header[member]} if member in header else header
    return {
        name: _map(path, *entry, max_elements, "C").view(Brain)
        if header[name]["dtype"] == BRAIN_TENSOR
        else _map(path, *entry, max_elements, "C")
        for name, entry in _tensors(header, 8 + length, size)
    }


def _tensors(
    header: dict[str, Any], start: int, size: int
) -> Iterator[tuple[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]]:
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise BadLayout(f"names a tensor {reprlib.repr(name)}; expected up to {LONGEST_NAME} printable characters")
        try:
            dtype, shape, (begin, end) = np.dtype(TENSORS[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        except KeyError as error:
            raise BadLayout(f"tensor {name[:50]!r} has an unknown dtype or lacks {error}") from error
        except (TypeError, ValueError) as error:
            raise BadLayout(f"tensor {name[:50]!r} is not described as the format says") from error
        numbers = [begin, end, *shape] if isinstance(shape, list) else [None]
        if not all(type(number) is int for number in numbers) or not 0 <= begin <= end <= size - start:
            raise BadLayout(f"tensor {name[:50]!r} lies outside the file")
        yield name, (dtype, tuple(shape), start + begin, end - begin)


def _number(dtype: np.dtype[Any], allow: str = "") -> np.dtype[Any]:
    if dtype.hasobject:
        raise BadLayout("holds Python objects; expected numbers (nothing is unpickled here)")
    if dtype.names is not None or dtype.kind not in NUMBERS + allow or dtype.itemsize == 0:
        known = f" (or that its dtype is said to be {BRAIN})" if dtype == VOID else ""
        raise BadLayout(f"has dtype {str(dtype)[:80]}; expected integers or floats{known}")
    if dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big"):
        native = dtype.newbyteorder("<").str
        raise BadLayout(f"is big-endian ({dtype.str}); expected little-endian, as array.astype({native!r}) makes it")
    return dtype


def _map(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, held: int, max_elements: int, order: str
) -> Array:
    if len(shape) > 8 or any(type(extent) is not int or not 0 <= extent <= LONGEST_EXTENT for extent in shape):
        shown = reprlib.repr(shape)
        raise BadLayout(f"has shape {shown}; expected up to 8 extents, none negative or above {LONGEST_EXTENT}")
    elements = math.prod(shape)
    if elements > max_elements:
        raise BadLayout(f"has shape {shape}, {elements} entries; the limit is {max_elements}")
    if elements * dtype.itemsize != held:
        raise BadLayout(
            f"has shape {shape} of {dtype}, {elements * dtype.itemsize} bytes, but {held} bytes came behind the header"
        )
    if elements == 0:  # NumPy wants the other extents to fit all the same
        return np.empty(shape if math.prod(filter(None, shape)) < LONGEST_EXTENT else (0,) * len(shape), dtype)
    # Copy on write, not read-only: numba compiles every kernel anew for arrays that cannot be written.
    if not is_slab(path):
        return np.memmap(path, dtype, "c", offset, shape, "F" if order == "F" else "C")
    with leased(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        found: Array = np.memmap(file, dtype, "c", offset, shape, "F" if order == "F" else "C")
        return of_slab(found, str(path), os.fstat(descriptor))


def of_slab(array: Array, path: str, there: os.stat_result) -> Array:
    """Say of an array that was mapped from a slab where it lies: the slab's name may be another slab's later."""
    array.filename = path  # type: ignore[attr-defined]
    array.inode = (there.st_dev, there.st_ino)  # type: ignore[attr-defined]
    return array


def mapped(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, max_elements: int, order: str
) -> Array:
    """Map numbers that lie somewhere in a file. Raises BadLayout."""
    size = math.prod(shape) * dtype.itemsize
    if offset + size > path.stat().st_size:
        raise BadLayout(f"has shape {shape} of {dtype} at byte {offset}, beyond the end of its file")
    return _map(path, dtype, shape, offset, size, max_elements, order)
