"""Slabs that are cut or lengthened to the bytes that come next: which may be, and the pages that they lack."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from workers.store.sizes import may_resize
from workers.store.slab import Taken

LEAST, MOST = 0.5, 1.25
"""What a slab may have of the bytes that are asked for. A longer one would lose more pages than it saves."""
FEW = 256 << 10
"""Bytes whose pages are found under the lock of the arena, in a quarter of a millisecond: no thread is waited for."""
MARGIN = 64
"""Uploads of one kind that follow one another differ by a few such parts of their bytes."""


def roomy(size: int, before: int) -> int:
    """Bytes of a slab for an upload of nearly `size`: as many as `before` while that has one part more to eight.

    A mapping of a slab stays good for as long as the slab comes back to its length.
    """
    part = size // MARGIN
    return before if size + part <= before <= size + 8 * part else size + 4 * part


def is_near(size: int, wanted: int) -> bool:
    """Whether a slab of `size` bytes may become one of as many as are wanted."""
    return LEAST * wanted <= size <= MOST * wanted


def may_be_resized(path: Path) -> bool:
    """Whether nobody keeps the size of a slab. One that is taken in vain has lost its blob's name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return may_resize(descriptor)
    finally:
        os.close(descriptor)


def resized(found: Taken, size: int) -> Taken:
    """A slab, cut or lengthened, with the pages of a few bytes more than it had."""
    os.ftruncate(found.descriptor, size)
    if 0 < size - found.whole <= FEW:
        with contextlib.suppress(OSError):  # `Slab.ready` tells whoever writes there
            return whole(found, size)
    return replace(found, whole=min(found.whole, size))


def whole(found: Taken, size: int) -> Taken:
    """A slab of `size` bytes with all of its pages. Raises OSError: there is no memory for them."""
    if found.whole < size:
        os.posix_fallocate(found.descriptor, found.whole, size - found.whole)
    return replace(found, whole=size)
