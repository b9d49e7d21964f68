"""The safetensors format, in which large answers come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

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
    def read(cls, data: bytes | memoryview) -> tuple[str, dict[str, Array]]:
        """What the service says of the answer, as JSON, and arrays by name: the memory of `data`, read-only."""
        length = int.from_bytes(data[:8], "little")
        header = json.loads(bytes(data[8 : 8 + length]))
        told = header.pop("__metadata__", {}).get("document", "{}")
        arrays = {}
        for name, entry in header.items():
            start, stop = (8 + length + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(
                data[start:stop] if start % 8 else memoryview(data)[start:stop], cls.DTYPES[entry["dtype"]]
            )
            arrays[name] = flat.reshape(entry["shape"])
        return told, arrays
