"""Uploads in an arena, for tests."""

from concurrent.futures import Executor
from pathlib import Path

from workers.store.arena import Arena
from workers.store.slab import STEP

SIZE = 1 << 16
"""Bytes of a quarter of the usual arena."""


def laid(arena: Arena, threads: Executor, file: str, data: bytes) -> Path:
    """Where the slab is that has these bytes and this name."""
    slab = arena.take(len(data), threads)
    assert slab is not None
    for at in range(0, len(data), STEP):
        slab.ready(at)
    slab.view[:] = data
    slab.written()
    arena.lay(file, slab.path)
    slab.close()
    found = arena.find(file)
    assert found is not None
    return found
