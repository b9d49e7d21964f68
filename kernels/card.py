"""A solver's card: what it takes, what it promises, and how to run it on each device."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from kernels.deadline import Deadline
from kernels.problems import Inputs
from kernels.solution import Certificate, Solution

Device = Literal["cpu", "gpu"]


class Options(BaseModel):
    """What every solver's options share: unknown names are refused and nothing is coerced silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class InputSpec:
    """One named input array. `sparse` says that CSR is accepted too."""

    name: str
    description: str
    required: bool = True
    sparse: bool = False


@dataclass(frozen=True)
class Estimate:
    """What a solve will need, before it runs. Seconds are a guess, bytes an upper bound."""

    host_bytes: int
    device_bytes: int
    seconds: float


@dataclass(frozen=True)
class Solver:
    """One solver, as data.

    Attributes:
        name: the wire name ("lap").
        summary: one line for a person.
        inputs: the named arrays it takes.
        options: its options as a pydantic model (a subclass of `Options`).
        build: checks inputs and options and returns the problem; raises `InvalidProblem`.
        certify: recomputes the proof from problem and solution with code of kernels/certificates.
        estimate: memory and time from problem and options on a device, without solving.
        prefers_gpu: True when the GPU, where there is one, is the faster device for this problem (measured).
        spreads: True when the GPU solver can divide this problem among several GPUs of one worker.
        modules: dotted module per device; each has `solve(problem, options, deadline) -> Solution` and
            `warm_up() -> None`. Imported when first used, so that a machine without CUDA never imports cupy.
        warm_start: maps a result array of an earlier job to the input that takes it.
        example: a wire request that works when pasted (small, with `solver`, `inputs`, `options`).
    """

    name: str
    summary: str
    inputs: tuple[InputSpec, ...]
    options: type[Options]
    build: Callable[[Inputs, Any], Any]
    certify: Callable[[Any, Solution], Certificate]
    estimate: Callable[[Any, Any, Device], Estimate]
    prefers_gpu: Callable[[Any, Any], bool]
    modules: Mapping[Device, str]
    warm_start: Mapping[str, str] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    spreads: Callable[[Any, Any], bool] = lambda problem, options: False

    def solve(self, problem: Any, options: Any, deadline: Deadline, device: Device = "cpu") -> Solution:
        """Run the solver of `device`. Raises KeyError when this solver has none for it."""
        return importlib.import_module(self.modules[device]).solve(problem, options, deadline)  # type: ignore[no-any-return]

    def warm_up(self, device: Device) -> None:
        """Compile and run every kernel of `device` once on a tiny problem."""
        importlib.import_module(self.modules[device]).warm_up()
