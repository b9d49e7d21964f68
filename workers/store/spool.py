"""Bytes of an upload that no block takes: in memory while they are few and may stay there, then in a file.

What is short travels in the record of its job, so most of it never needs a file: to make one, write it, open and map it
again and drop it took an API process half a millisecond a call.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from workers.store.disk import require_space

SLICE = 1 << 20


class Spool:
    """Takes bytes, and gives them back as memory or as a file.

    Args:
        folder: where the file will be.
        most: so many bytes stay in memory, as long as nobody asks for the file.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._held = bytearray()
        self._descriptor = -1
        self.path = Path()
        """The file's, once there is one."""

    @property
    def memory(self) -> memoryview | None:
        """All that came, not to be written to, where no file has it. What is asked for once nothing comes any more."""
        return memoryview(self._held).toreadonly() if self._held and self._descriptor < 0 else None

    def descriptor(self) -> int:
        """The file, made when it is first needed. Raises OSError, and StoreFull where the disk nearly is."""
        if self._descriptor < 0:
            if self._held:
                require_space(self._folder, len(self._held))
            self._descriptor, path = tempfile.mkstemp(dir=self._folder)
            self.path = Path(path)
            try:
                _put(self._descriptor, memoryview(self._held))
            except OSError:
                self.close()  # the bytes are still in memory, and nowhere else
                raise
            self._held = bytearray()
        return self._descriptor

    def write(self, view: memoryview) -> None:
        """Take the next bytes. Raises as `descriptor`."""
        if self._descriptor < 0 and len(self._held) + len(view) <= self._most:
            self._held += view
        else:
            _put(self.descriptor(), view)

    def start(self, count: int) -> bytes:
        """The first bytes, so many at most. Raises as `descriptor`."""
        return os.pread(self.descriptor(), count, 0)

    def close(self) -> None:
        """Drop the file."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
            self.path.unlink(missing_ok=True)


def slices(there: int | memoryview, begin: int, end: int) -> Iterator[bytes]:
    """Those bytes of a file that is open, or of memory, a few at a time."""
    for start in range(begin, end, SLICE):
        until = min(start + SLICE, end)
        yield os.pread(there, until - start, start) if isinstance(there, int) else bytes(there[start:until])


def _put(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]
