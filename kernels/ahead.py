"""Arrays that are sent to the device while they are read: each piece as soon as it is there.

A solver that copies the array as it lies finds it there (`gpu_locked.uploaded`). CuPy is imported when one is sent.
"""

import weakref
from typing import Any

from kernels.problems.arrays import Costs

LEAST_BYTES, MOST_BYTES, TIMES = 1 << 20, 64 << 20, 10
"""Of such an array, and how many times as many are to be free: nobody has said yet what the solver needs."""
TO_DEVICE = 1
"""cudaMemcpyHostToDevice."""


class Ahead:
    """An array on its way to the device while it is read. It must stay as it is until the stream has passed.

    Args:
        array: contiguous and page-locked, and not yet filled.

    Raises:
        CuPy's errors, where there is no room on the device.
    """

    def __init__(self, array: Costs) -> None:
        import cupy

        self._host, self._device = array, cupy.empty(array.size, array.dtype)
        self._stream = cupy.cuda.get_current_stream().ptr

    @classmethod
    def of(cls, array: Costs) -> "Ahead | None":
        """For an array that is about to be filled; None where it is not worth it, or there is no room."""
        if not LEAST_BYTES <= array.nbytes <= MOST_BYTES or not array.flags.c_contiguous:
            return None
        import cupy

        from kernels.gpu_room import bytes_free, bytes_unused

        try:
            return cls(array) if array.nbytes <= bytes_unused() or TIMES * array.nbytes <= bytes_free() else None
        except cupy.cuda.memory.OutOfMemoryError:
            return None

    def send(self, begin: int, end: int) -> None:
        """Bytes from `begin` to `end` are there. In any thread."""
        import cupy

        to, of = self._device.data.ptr + begin, self._host.ctypes.data + begin
        cupy.cuda.runtime.memcpyAsync(to, of, end - begin, TO_DEVICE, self._stream)

    def all_sent(self) -> None:
        """`sent_ahead` finds it from now on, until the next one or `forget`."""
        _sent[:] = [(weakref.ref(self._host), _place(self._host), self._device)]

    @staticmethod
    def forget() -> None:
        """What was sent ahead is for nobody any more."""
        _sent.clear()


_sent: list[tuple["weakref.ref[Costs]", tuple[int, int, str], Any]] = []


def sent_ahead(array: Costs) -> Any | None:
    """The array on the device, where it was sent ahead: whoever asks first has it alone."""
    for whole, place, device in _sent:
        if whole() is not None and array.flags.c_contiguous and _place(array) == place:
            _sent.clear()
            return device.reshape(array.shape)
    return None


def _place(array: Costs) -> tuple[int, int, str]:
    return array.ctypes.data, array.nbytes, array.dtype.str
