"""One thread for BLAS beside a search that has the other cores.

OpenBLAS's threads wait for each other by turning round. Where other threads want the cores, an eigenvalue problem of
order 122 then takes 300 ms in two threads and 8 ms in one.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "", "_64")
_lock = Lock()
_inside = 0
_before: list[int] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Every OpenBLAS of this process uses one thread while anybody is inside; does nothing for other libraries."""
    global _inside
    pairs = _libraries()
    with _lock:
        _inside += 1
        if _inside == 1:
            _before[:] = [get() for get, _ in pairs]
            for _, put in pairs:
                put(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, put), count in zip(pairs, _before, strict=True):
                    put(count)


@cache
def _libraries() -> list[tuple[Any, Any]]:
    """How to ask and to tell each OpenBLAS that is loaded for its number of threads."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:  # not Linux
        return []
    paths = sorted({line.split(maxsplit=5)[5] for line in lines if "openblas" in line.lower() and ".so" in line})
    found = []
    for path in paths:
        library = ctypes.CDLL(path)
        for prefix in PREFIXES:
            for suffix in SUFFIXES:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    put.argtypes = [ctypes.c_int]
                    found.append((get, put))
    return found
