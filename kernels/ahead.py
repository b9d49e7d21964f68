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
        array: contiguous. It is page-locked and not yet filled, or lies at `lies`, too.
        lies: an address at which the same memory is page-locked.

    Raises:
        CuPy's errors, where there is no room on the device.
    """

    def __init__(self, array: Costs, lies: int | None = None) -> None:
        import cupy

        self._host, self._device = array, cupy.empty(array.size, array.dtype)
        self._lies = array.ctypes.data if lies is None else lies
        self._stream = cupy.cuda.get_current_stream().ptr

    @staticmethod
    def takes(array: Costs) -> bool:
        """Whether it is worth it."""
        return LEAST_BYTES <= array.nbytes <= MOST_BYTES and bool(array.flags.c_contiguous)

    @classmethod
    def of(cls, array: Costs, lies: int | None = None) -> "Ahead | None":
        """For such an array; None where it is not worth it, or there is no room."""
        if not cls.takes(array):
            return None
        import cupy

        from kernels.gpu_room import bytes_free, bytes_unused

        try:
            enough = array.nbytes <= bytes_unused() or TIMES * array.nbytes <= bytes_free()
            return cls(array, lies) if enough else None
        except cupy.cuda.memory.OutOfMemoryError:
            return None

    def send(self, begin: int, end: int) -> None:
        """Bytes from `begin` to `end` are there. In any thread."""
        import cupy

        to, of = self._device.data.ptr + begin, self._lies + begin
        cupy.cuda.runtime.memcpyAsync(to, of, end - begin, TO_DEVICE, self._stream)

    def all_sent(self) -> None:
        """`sent_ahead` finds it from now on, until `forget`."""
        _sent.append((weakref.ref(self._host), _place(self._host), self._device))

    @staticmethod
    def come() -> None:
        """Wait until all is there that nobody has asked for yet."""
        if _sent:
            import cupy

            cupy.cuda.get_current_stream().synchronize()

    @staticmethod
    def forget() -> None:
        """What was sent ahead is for nobody any more."""
        _sent.clear()


_sent: list[tuple["weakref.ref[Costs]", tuple[int, int, str], Any]] = []


def sent_ahead(array: Costs) -> Any | None:
    """The array on the device, where it was sent ahead: whoever asks first has it alone."""
    at = _number(array)
    return None if at is None else _sent.pop(at)[2].reshape(array.shape)


def is_sent(array: Costs) -> bool:
    """Whether `sent_ahead` has it: it takes no more memory of the device then."""
    return _number(array) is not None


def _number(array: Costs) -> int | None:
    """Which of those that were sent it is."""
    if not _sent or not array.flags.c_contiguous:
        return None
    place = _place(array)
    return next((at for at, (whole, one, _) in enumerate(_sent) if whole() is not None and one == place), None)


def _place(array: Costs) -> tuple[int, int, str]:
    return array.ctypes.data, array.nbytes, array.dtype.str
