"""Where fetched bytes go: to the place that whoever writes them has ready, else through memory of this request."""

import ctypes
import functools
from typing import Any

from workers.store.upload import Writer

SCRATCH = 256 << 10


class Whole:
    """A body that is one upload, as `fetching.Into`."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._scratch = writer, bytearray()

    def place(self) -> memoryview:
        """Memory for the next bytes. Raises StoreFull."""
        found = self._writer.place()
        if found is not None:
            return found
        self._scratch = self._scratch or bytearray(SCRATCH)
        return memoryview(self._scratch)

    def came(self, view: memoryview) -> None:
        """They are there. Raises UploadTooLarge, StoreFull."""
        if view.obj is self._scratch:
            self._writer.write(view)
        else:
            self._writer.came(len(view))


def before(view: memoryview, mark: bytes) -> int:
    """How many bytes come before the first `mark`, or before what may be the beginning of one at the end."""
    found = _find(view, mark)
    if found >= 0:
        return found
    tail = bytes(view[max(0, len(view) - len(mark) + 1) :])
    ends = next((k for k in range(len(tail), 0, -1) if mark.startswith(tail[len(tail) - k :])), 0)
    return len(view) - ends


def _find(view: memoryview, mark: bytes) -> int:
    search = _memmem()
    if search is None or not view:
        return bytes(view).find(mark)
    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    return (search(start, len(view), mark, len(mark)) or start - 1) - start


@functools.cache
def _memmem() -> Any:
    """Of the C library: Python's own holds all other threads up."""
    try:
        call = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    call.restype = ctypes.c_void_p
    return call
