"""How busy, how full and how warm GPUs are, as NVIDIA's management library tells. It needs no CUDA context.

The library comes with the driver. Where it is missing, or does not know a GPU, nothing is told.
"""

import ctypes
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
CORE = 0
"""Of the sensors of temperature, the one on the chip."""
MINUTE_S = 60.0
MINUTES = 60
"""Of use that is remembered."""
log = logging.getLogger(__name__)


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """Readings of some GPUs, by UUID."""

    def __init__(self, uuids: Sequence[str], library: str = LIBRARY) -> None:
        self._handles: dict[str, ctypes.c_void_p] = {}
        if not uuids:
            return
        try:
            self._library = ctypes.CDLL(library)
            ready = self._library.nvmlInit_v2() == 0
        except (OSError, AttributeError) as error:
            log.warning("no figures of GPUs are told: %s", error)
            return
        for uuid in uuids if ready else ():
            handle = ctypes.c_void_p()
            if self._library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0:
                self._handles[uuid] = handle

    def readings(self) -> list[dict[str, Any]]:
        """Of each GPU that is known: uuid, and what it tells of utilisation (0 to 1), bytes_used and celsius."""
        return [{"uuid": uuid, **self._reading(handle)} for uuid, handle in self._handles.items()]

    def _reading(self, handle: ctypes.c_void_p) -> dict[str, Any]:
        busy, memory, celsius = _Utilisation(), _Memory(), ctypes.c_uint()
        found: dict[str, Any] = {}
        if self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy)) == 0:
            found["utilisation"] = busy.gpu / 100
        if self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0:
            found["bytes_used"] = memory.used
        if self._library.nvmlDeviceGetTemperature(handle, CORE, ctypes.byref(celsius)) == 0:
            found["celsius"] = celsius.value
        return found


class LastHour:
    """How busy the first of some GPUs was, by minute."""

    def __init__(self) -> None:
        self._minutes: deque[int] = deque(maxlen=MINUTES)
        self._minute: list[float] = []
        self._begun = time.monotonic()

    def of(self, readings: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`bytes_used`, `utilisation` in percent, `use_per_minute`; of each what the first reading tells."""
        first = readings[0] if readings else {}
        told = {"bytes_used": first["bytes_used"]} if "bytes_used" in first else {}
        if "utilisation" in first:
            self._note(100 * first["utilisation"])
            told |= {"utilisation": round(100 * first["utilisation"]), "use_per_minute": [*self._minutes]}
        return told

    def _note(self, percent: float) -> None:
        """Add a reading to its minute; a minute that is over becomes its mean."""
        self._minute.append(percent)
        if time.monotonic() - self._begun >= MINUTE_S:
            self._minutes.append(round(sum(self._minute) / len(self._minute)))
            self._minute, self._begun = [], time.monotonic()
