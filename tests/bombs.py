"""Bytes that take long to make: by the process whose test sends them, and not by each that collects the tests."""

from collections.abc import Callable

Made = bytes | Callable[[], bytes]
"""Bytes, or what makes them."""


def made(data: Made) -> bytes:
    return data() if callable(data) else data
