"""The total of an array's words, in the plainest way."""

from typing import Any


def total_of(array: Any) -> int:
    """Modulo 2^64, the last word filled up with zeros."""
    data = array.tobytes()
    return sum(int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)) % 2**64
