"""How busy a GPU is and how much of its memory is taken, asked of the driver's own library. No CUDA context is made.

Where the library is not there, or does not know the device, there is nothing to tell.
"""

import ctypes
import time
from collections import deque
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
MINUTE_S = 60.0
MINUTES = 60
"""Of use that is remembered."""


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Use(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Meter:
    """Reads one GPU.

    Args:
        uuid: of the GPU, or of a part of one.
        library: the driver's library, by name or by path.
    """

    def __init__(self, uuid: str, library: str = LIBRARY) -> None:
        self._minutes: deque[int] = deque(maxlen=MINUTES)
        self._minute: list[int] = []
        self._begun = time.monotonic()
        self._library: Any = None
        self._device = ctypes.c_void_p()
        try:
            found = ctypes.CDLL(library)
            known = found.nvmlInit_v2() == 0
            known = known and found.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device)) == 0
        except (OSError, AttributeError):  # no driver here, or one without these functions
            return
        self._library = found if known else None

    def read(self) -> dict[str, Any]:
        """`bytes_used`, `utilisation` in percent, `use_per_minute`; of each what the driver tells."""
        if self._library is None:
            return {}
        told: dict[str, Any] = {}
        memory, use = _Memory(), _Use()
        if self._library.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(memory)) == 0:
            told["bytes_used"] = memory.used  # by everybody; what a job may have is `bytes_free`, which the child found
        if self._library.nvmlDeviceGetUtilizationRates(self._device, ctypes.byref(use)) == 0:
            self._note(use.gpu)
            told |= {"utilisation": use.gpu, "use_per_minute": [*self._minutes]}
        return told

    def _note(self, percent: int) -> None:
        """Add a reading to its minute; a minute that is over becomes its mean."""
        self._minute.append(percent)
        if time.monotonic() - self._begun >= MINUTE_S:
            self._minutes.append(round(sum(self._minute) / len(self._minute)))
            self._minute, self._begun = [], time.monotonic()
