"""Certifying where the data are: a job that a GPU solved is certified there, by the card's second implementation.

The checksums of the input are taken in threads while the device solves. The certificate on the device compares them
with what it reads, since a solver's stray write must not certify itself.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kernels.card import Device, Solver
from kernels.certificates.gpu.checksum import Pending
from kernels.solution import Certificate, Solution


class Certifier:
    """The certificates of one job.

    Make it before the solve; `certify` may be called several times. Where the card has no certificate for the device,
    or that one says nothing of this problem or answer, or the device has no memory left, the CPU's certificate is used.
    """

    def __init__(self, card: Solver, problem: Any, device: Device) -> None:
        self._card, self._problem = card, problem
        self._module = _module_of(card) if device == "gpu" else None
        inputs = None if self._module is None else self._module.inputs(problem)
        self._checksums = None if inputs is None else Pending(inputs)

    def certify(self, solution: Solution, heard: Callable[[float], None]) -> Certificate:
        """Recompute the proof.

        Raises:
            InputChanged: the input on the device is not the one that arrived.
        """
        found = None if self._checksums is None else self._on_device(solution)
        return self._card.certify(self._problem, solution, heard) if found is None else found

    def _on_device(self, solution: Solution) -> Certificate | None:
        assert self._module is not None
        try:
            found: Certificate | None = self._module.certify(self._problem, solution, self._checksums)
            return found
        except MemoryError:  # CuPy's is one
            return None


def _module_of(card: Solver) -> Any:
    """Imported when first used, so that a machine without CUDA never imports cupy; None without it."""
    try:
        return import_module(card.device_certificate) if card.device_certificate else None
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        return None
