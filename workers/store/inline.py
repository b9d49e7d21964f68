"""Small arrays travel in the record of their job and in its result document, so that a tiny job makes no file.

    {"digest": "sha256:...", "format": "npy", "dtype": "float64", "shape": [32, 32], "data": base64}     an input
    {"dtype": "int64", "shape": [32], "data": base64}                                                    of an answer

Such a reference names the digest of its bytes, so that anybody can compare, but no blob: there is none to fetch. The
`data` of inputs stand apart from the record, which is read often, and are gone once the job has ended.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pybase64
from pydantic_core import from_json

from kernels import Array, Csr
from workers.jobs.job import InputRef

MOST_BYTES = 16 << 10
"""Of all arrays of a job's inputs that came with it."""
MOST_AWAITED_BYTES = 256 << 10
"""The same of a job whose answer somebody waits for, so that it is soon over, while Redis has room."""
MOST_ANSWER_BYTES = 32 << 10
"""Of all arrays of an answer. A file for each costs a job three trips to Redis and its reader as many more files."""
CSR_PARTS = ("indptr", "indices", "values")


@functools.cache
def kind_of(dtype: np.dtype[Any]) -> str:
    """What NumPy calls a type, which takes it longer than to copy a small array."""
    return str(dtype)


@functools.lru_cache(256)
def _named(text: str) -> np.dtype[Any]:
    """The type of that name."""
    return np.dtype(text)


def size_of(value: Array | Csr) -> int:
    """Bytes of the array or the arrays."""
    if isinstance(value, Csr):
        return sum(size_of(getattr(value, name)) for name in CSR_PARTS)
    return int(value.nbytes)


def pack(array: Array) -> InputRef:
    """An array as JSON can carry it, bit for bit."""
    array = np.asarray(array)
    data = pybase64.b64encode_as_string(np.ascontiguousarray(array).data)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def unpack(entry: Mapping[str, Any]) -> Array:
    """The array. It may be written to: numba compiles every kernel anew for those that may not."""
    dtype, data = "", entry["data"]
    if ":" in data:
        dtype, _, data = data.rpartition(":")
    flat = np.frombuffer(pybase64.b64decode_as_bytearray(data, validate=True), _named(dtype or entry["dtype"]))
    return flat.reshape(entry["shape"])


def carried(reference: InputRef, value: Array | Csr) -> InputRef:
    """`reference`, which names a blob, as one that brings the array along."""
    if isinstance(value, Csr):
        parts = {name: carried(reference["csr"][name], getattr(value, name)) for name in CSR_PARTS}
        return {"csr": {**parts, "shape": reference["csr"]["shape"]}}
    told = {name: said for name, said in reference.items() if name != "blob"}
    packed = pack(value)
    narrow = told["dtype"] != kind_of(value.dtype)  # the bytes that came had another type: the data say theirs
    data = f"{packed['dtype']}:{packed['data']}" if narrow else packed["data"]
    return {"digest": reference["blob"], **told, "data": data}


def apart(inputs: Mapping[str, InputRef]) -> tuple[dict[str, InputRef], str]:
    """The references without their data, and the data as JSON; "" when there are none."""
    bare, data = {}, []
    for name, reference in inputs.items():
        bare[name] = copy = _copy(reference)
        for entry in _entries_of(copy):
            if "data" in entry:
                data.append(entry.pop("data"))
    return bare, '["' + '","'.join(data) + '"]' if data else ""  # nothing that `pack` writes has to be escaped


def _copy(reference: InputRef) -> InputRef:
    if "csr" not in reference:
        return dict(reference)
    parts = {name: dict(part) if isinstance(part, dict) else part for name, part in reference["csr"].items()}
    return {**reference, "csr": parts}


def together(inputs: Mapping[str, InputRef], data: str) -> dict[str, InputRef]:
    """What `apart` took apart; `inputs` become the answer's."""
    found = dict(inputs)
    if data:
        left = iter(from_json(data))
        for entry in _entries(found):
            if is_inline(entry):
                entry["data"] = next(left)
    return found


def is_inline(entry: Mapping[str, Any]) -> bool:
    """Whether a reference (of one array) brings its data along, or did: `kind` marks older ones that name a blob."""
    return "data" in entry or ("digest" in entry and "blob" not in entry and "kind" not in entry)


def _entries(inputs: Mapping[str, InputRef]) -> Iterator[InputRef]:
    for reference in inputs.values():
        yield from _entries_of(reference)


def _entries_of(reference: InputRef) -> Sequence[InputRef]:
    return [reference["csr"][name] for name in CSR_PARTS] if "csr" in reference else (reference,)
