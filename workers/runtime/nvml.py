"""How busy, how full and how warm GPUs are, as NVIDIA's management library tells. It needs no CUDA context.

The library comes with the driver. Where it is missing, or does not know a GPU, nothing is told.
"""

import ctypes
import logging
from collections.abc import Sequence
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
CORE = 0
"""Of the sensors of temperature, the one on the chip."""
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
