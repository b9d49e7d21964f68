"""The safetensors format, in which large answers come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from allot_client.arrays import Array


@dataclass(frozen=True)
class Safetensors:
    """Reads the safetensors format: 8 bytes of length, a JSON header, then the arrays' bytes."""

    DTYPES: ClassVar[dict[str, str]] = {
        "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
        "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
    }  # fmt: skip

    @classmethod
    def document(cls, data: bytes | memoryview) -> dict[str, Any]:
        """What the service says of the answer whose arrays these are."""
        header = json.loads(bytes(data[8 : 8 + int.from_bytes(data[:8], "little")]))
        return dict(json.loads(header["__metadata__"]["document"]))

    @classmethod
    def read(cls, data: bytes | memoryview) -> dict[str, Array]:
        """Arrays by name; they share the memory of `data` and are read-only."""
        length = int.from_bytes(data[:8], "little")
        header = json.loads(bytes(data[8 : 8 + length]))
        header.pop("__metadata__", None)
        arrays = {}
        for name, entry in header.items():
            start, stop = (8 + length + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(
                data[start:stop] if start % 8 else memoryview(data)[start:stop], cls.DTYPES[entry["dtype"]]
            )
            arrays[name] = flat.reshape(entry["shape"])
        return arrays
