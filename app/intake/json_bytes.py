"""Arrays whose bytes stand in the JSON itself, as base64: a tenth of the work that numbers as text are, on both sides.

{"data": "AAAAAAAA8D8=", "dtype": "float64", "shape": [1]}
"""

import binascii
import math
import reprlib
from typing import Any

import numpy as np
import pybase64

from app.intake.json_arrays import DEEPEST
from kernels import Array, InvalidProblem

KEYS = {"data", "dtype", "shape"}
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("int32", "int64", "float32", "float64")}
"""The types of problems; others come as files."""


def is_packed(value: Any) -> bool:
    """Whether this is an array in bytes, right or wrong."""
    return isinstance(value, dict) and value.keys() == KEYS


def array_from_bytes(field: str, value: dict[str, Any], max_elements: int) -> Array:
    """The array that the bytes are, in C order and little-endian; it cannot be written to.

    Raises:
        InvalidProblem: names what does not fit.
    """
    dtype, shape, data = value["dtype"], value["shape"], value["data"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidProblem(f"{field}.dtype", f"is {reprlib.repr(dtype)}; expected one of {', '.join(DTYPES)}")
    good = isinstance(shape, list) and 0 < len(shape) <= DEEPEST
    if not good or set(map(type, shape)) != {int} or min(shape) < 0:
        raise InvalidProblem(f"{field}.shape", f"is {reprlib.repr(shape)}; expected 1 to {DEEPEST} extents")
    elements = math.prod(shape)
    least = elements or math.prod([max(1, extent) for extent in shape])
    if least > max_elements:
        what = f"holds {elements} entries" if elements else f"has shape {reprlib.repr(shape)}"
        raise InvalidProblem(field, f"{what}; at most {max_elements} are taken")
    try:
        raw = _bytes_of(data) if isinstance(data, str) else None
    except ValueError as wrong:  # also of what is not ASCII
        raise InvalidProblem(f"{field}.data", f"is not base64: {wrong}") from None
    if raw is None:
        raise InvalidProblem(f"{field}.data", "is no text; expected the array's bytes as base64 beside dtype and shape")
    kind = DTYPES[dtype]
    if len(raw) != elements * kind.itemsize:
        expected = f"{elements * kind.itemsize}, which are {elements} of {dtype}"
        raise InvalidProblem(f"{field}.data", f"is {len(raw)} bytes; expected {expected}")
    return np.frombuffer(raw, kind).reshape(shape)


def _bytes_of(data: str) -> bytes:
    """What base64 says. Raises ValueError, in the words of the standard library, which is slower."""
    try:
        return pybase64.b64decode(data, validate=True)
    except ValueError:
        return binascii.a2b_base64(data, strict_mode=True)
