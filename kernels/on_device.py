"""Certifying where the data are: a job that a GPU solved is certified there, by the card's second implementation.

The checksums of the input were taken as it arrived, or are taken in threads while the device solves. The certificate on
the device compares them with what it reads, since a solver's stray write must not certify itself.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kernels.arriving import Arrived
from kernels.card import Device, Problem, Solver
from kernels.solution import Certificate, Number, Solution

CLOSE = 1e-9
"""Of an objective: more than what the two ways of rounding make of it."""


class Certifier:
    """The certificates of one job.

    Make it before the solve; `certify` may be called several times. Where the card has no certificate for the device,
    or that one says nothing of this problem or answer, or the device has no memory left, the CPU's certificate is used.
    """

    def __init__(self, card: Solver, problem: Any, device: Device) -> None:
        self._card, self._problem = card, problem
        self._module = _module_of(card) if device == "gpu" else None
        inputs = None if self._module is None else self._module.inputs(problem)
        self._checksums = None if inputs is None else Arrived(inputs)

    @property
    def seconds(self) -> float | None:
        """About what a certificate on the device takes; None where the CPU's is used."""
        if self._module is None or self._checksums is None:
            return None
        return float(self._module.seconds(self._problem))

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


def disagreement(device: Certificate, cpu: Certificate, maximize: bool) -> list[str]:
    """Where the CPU's certificate of an answer contradicts the device's, in sentences; empty where it does not.

    Both are proofs, so both may be true and differ by rounding: objectives by CLOSE of themselves and by the larger
    gap, which is stated anyway, and words by gaps that are near each other. A bound beyond the other's objective,
    another word, or an answer that is none is a contradiction.
    """
    found = []
    if not cpu.holds:
        found.append(f"the CPU refutes the answer: {cpu.proved}")
    near = _near(device.objective, device.gap_abs, cpu.gap_abs)
    if cpu.termination is not None and not near:
        found.append(f"by the CPU the answer has earned {cpu.termination.value} alone")
    found += _problems_apart(device.facts.get("problems", {}), cpu.facts.get("problems", {}))
    here, there = device.objective, cpu.objective
    if (here is None) != (there is None):
        found.append(f"the objective is {here} by the device and {there} by the CPU")
    if here is not None and there is not None:
        exact = isinstance(here, int) and isinstance(there, int)
        tolerated = 0 if exact else CLOSE * max(abs(here), abs(there)) + max(device.gap_abs or 0, cpu.gap_abs or 0)
        if abs(here - there) > tolerated:
            found.append(f"the objective is {here!r} by the device and {there!r} by the CPU")
    sign = -1 if maximize else 1
    for bound, objective, whose in ((device.bound, there, "device"), (cpu.bound, here, "CPU")):
        if bound is None or objective is None:
            continue
        # A plan that misses its balanced sides by rounding may cost a little less than the best that does not.
        exact = isinstance(bound, int) and isinstance(objective, int)
        if sign * (bound - objective) > (0 if exact else CLOSE * abs(objective)):
            found.append(f"the {whose}'s bound {bound!r} is beyond the objective {objective!r}")
    return found


def _near(objective: Number | None, gap: Number | None, other: Number | None) -> bool:
    """Whether two gaps of one answer in floats differ by rounding alone."""
    if objective is None or gap is None or other is None or isinstance(objective, int):
        return gap == other
    return abs(gap - other) <= CLOSE * abs(objective)


def _problems_apart(device: Mapping[str, Any], cpu: Mapping[str, Any]) -> list[str]:
    """Problems of a batch that ended otherwise, by another gap."""
    if device.keys() != cpu.keys() or len(device.get("terminations", ())) != len(cpu.get("terminations", ())):
        return [f"problems are told of as {sorted(device)} by the device and {sorted(cpu)} by the CPU"]
    listed = (device.get(name, ()) for name in ("terminations", "objectives", "gaps"))
    others = (cpu.get(name, ()) for name in ("terminations", "gaps"))
    return [
        f"problem {k} ended {word} by the device and {other} by the CPU"
        for k, (word, objective, gap, other, other_gap) in enumerate(zip(*listed, *others, strict=True))
        if word != other and not _near(objective, gap, other_gap)
    ]


def certify_small(card: Solver[Problem], problem: Problem, solution: Solution) -> None:
    """Compile what certifies answers of this form on the device, however small this one is."""
    module = _module_of(card)
    if module is not None and module.suits(problem):
        module.certify(problem, solution, Arrived(module.arrays(problem)))


def _module_of(card: Solver) -> Any:
    """Imported when first used, so that a machine without CUDA never imports cupy; None without it."""
    try:
        return import_module(card.device_certificate) if card.device_certificate else None
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        return None
