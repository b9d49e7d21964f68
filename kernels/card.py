"""A solver's card: what it takes, what it promises, and how to run it on each device."""

import functools
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from kernels.deadline import Deadline
from kernels.demonstration import Demonstration
from kernels.problems import Inputs
from kernels.problems.seen import seen_of
from kernels.solution import Certificate, Solution, unheard

Device = Literal["cpu", "gpu"]


class Options(BaseModel):
    """What every solver's options share: unknown names are refused and nothing is coerced silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class InputSpec:
    """One named input array.

    Attributes:
        sparse: CSR is accepted too.
        masked: forbidden entries of an integer matrix are `FORBIDDEN` and leave the others exact.
        maximised: its entries are always maximised, so that -inf is what forbids one.
        main: a file that holds one matrix and no name holds this input.
        ragged: what is taken in place of one array. matrices: a list of matrices of different sizes, which become one
            flat array. lines: a list of lists of different lengths, which become one.
        sizes: the input that is told the rows and columns of those matrices.
    """

    name: str
    description: str
    required: bool = True
    sparse: bool = False
    masked: bool = False
    maximised: bool = False
    main: bool = False
    ragged: Literal["", "matrices", "lines"] = ""
    sizes: str = ""


@dataclass(frozen=True)
class Bundle:
    """A file that fills several inputs at once.

    Attributes:
        name: of the file part, or of the input that refers to the file.
        fills: the inputs that it must hold.
        kind: what such a file is called, and what is expected of it.
    """

    name: str
    fills: tuple[str, ...]
    kind: str
    expected: str


@dataclass(frozen=True)
class Companion:
    """A small text file beside the inputs, whose one number becomes an option.

    Attributes:
        name: of the file part.
        option: the option that takes the number.
        read: (text, inputs) -> the number; raises `InvalidProblem` where the text does not belong to the inputs.
    """

    name: str
    option: str
    read: Callable[[str, Inputs], int | float]


@dataclass(frozen=True)
class Estimate:
    """What a job will need, before it runs: an upper bound on its bytes, a guess of its seconds.

    Attributes:
        host_bytes: of memory that loading, solving and certifying take at their peak, the inputs among them.
        device_bytes: of a GPU's memory.
        seconds: of the solver alone, if nothing but its own stopping rules ends it; inf where only a time limit does.
        certify_seconds: of one certificate. A time limit is kept by it: rather too high than too low.
        first_seconds: of the solver when there is no time at all: the first answer that it can give.
    """

    host_bytes: int
    device_bytes: int
    seconds: float
    certify_seconds: float = 0.0
    first_seconds: float = 0.0

    def within(self, time_limit_s: float) -> "Estimate":
        """The same under a time limit: the solver stops early enough for its certificate, but not without an answer."""
        most = max(self.first_seconds, time_limit_s - self.certify_seconds)
        return replace(self, seconds=min(self.seconds, most))


Problem = TypeVar("Problem", default=Any)
OptionsOf = TypeVar("OptionsOf", bound=Options, default=Any)
Proved = TypeVar("Proved", contravariant=True)
"""What a solver solves, and its options. A plain `Solver` is any of them: a registry's entry, known by name alone."""


class Certify(Protocol[Proved]):
    """Recomputes a proof; `progress` hears how far it has come, in [0, 1]."""

    def __call__(
        self, problem: Proved, solution: Solution, progress: Callable[[float], None] = unheard, /
    ) -> Certificate:
        """See `Solver.certify`."""


@dataclass(frozen=True)
class Solver(Generic[Problem, OptionsOf]):
    """One solver, as data.

    Attributes:
        name: the wire name ("lap").
        summary: one line for a person.
        inputs: the named arrays it takes.
        options: its options as a pydantic model (a subclass of `Options`).
        build: checks inputs and options and returns the problem; raises `InvalidProblem`.
        certify: recomputes the proof from problem and solution with code of kernels/certificates.
        device_certificate: dotted module of the second implementation of `certify`, for answers of a GPU: `inputs(
            problem)` lists the arrays that it reads, or is None where it is not for this problem; `seconds(problem)` is
            about what it takes; `certify(problem, solution, checksums)` returns a certificate, or None where `certify`
            is to be asked. "": there is none.
        mend: given a solution whose termination its certificate did not earn, returns a better founded one (duals
            rebuilt from the assignment, or a cold solve) or None when there is nothing to try. It looks at the
            deadline. Only `kernels.proving` calls it.
        estimate: memory and time from problem and options on a device, without solving.
        prefers_gpu: True when the GPU, where there is one, is the faster device for this problem (measured).
        spreads: True when the GPU solver can divide this problem among several GPUs of one worker.
        modules: dotted module per device; each has `solve(problem, options, deadline) -> Solution` and
            `warm_up() -> None`. Imported when first used, so that a machine without CUDA never imports cupy.
        compiled_proofs: dotted modules of certificates that compile; their `warm_up()` goes with that of any device.
        runs_on: the devices that can solve this problem with these options; None: all of `modules`.
        joint: by device, what solves small problems of one shape, with the same options, in one go: of each its
            solution and its certificate, those of a solve by itself, or None where it is to be solved by itself. On a
            device that is missing nothing is gained by company.
        claimed: the objective of an answer for which no certificate was asked, as the solver has it; None: it has none.
        warm_start: maps a result array of an earlier job to the input that takes it.
        example: a wire request that works when pasted (small, with `solver`, `inputs`, `options`).
        bundles: files that fill several inputs at once.
        companions: files beside the inputs that say an option.
        groups: maps a result array to the object under which an answer shows it.
        unread: inputs that `build` neither reads nor copies where they were seen as they arrived
            (kernels/problems/seen.py), and the kinds of dtype for which that holds, as "fi".
        outline: as `build`, from a main input of which only shape and type mean something; what it returns is for
            `estimate` and its like, and its entries are not looked at one by one. None: there is no such estimate.
    """

    name: str
    summary: str
    inputs: tuple[InputSpec, ...]
    options: type[OptionsOf]
    build: Callable[[Inputs, OptionsOf], Problem]
    certify: Certify[Problem]
    estimate: Callable[[Problem, OptionsOf, Device], Estimate]
    prefers_gpu: Callable[[Problem, OptionsOf], bool]
    modules: Mapping[Device, str]
    warm_start: Mapping[str, str] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    spreads: Callable[[Problem, OptionsOf], bool] = lambda problem, options: False
    runs_on: Callable[[Problem, OptionsOf], tuple[Device, ...]] | None = None
    claimed: Callable[[Problem, Solution], float | None] | None = None
    mend: Callable[[Problem, OptionsOf, Solution, Deadline, Device], Solution | None] | None = None
    joint: Mapping[
        Device, Callable[[Sequence[Problem], OptionsOf, Deadline], Sequence[tuple[Solution, Certificate] | None]]
    ] = field(default_factory=dict)
    device_certificate: str = ""
    compiled_proofs: tuple[str, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    companions: tuple[Companion, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    outline: Callable[[Inputs, OptionsOf], Problem] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def specs(self) -> dict[str, InputSpec]:
        """Its inputs by name."""
        return {spec.name: spec for spec in self.inputs}

    @functools.cached_property
    def files(self) -> tuple[str, ...]:
        """The names of the files that it takes beside its inputs."""
        return (*(bundle.name for bundle in self.bundles), *(companion.name for companion in self.companions))

    @property
    def main(self) -> InputSpec | None:
        """The input that a file of one matrix holds, None where there is no such."""
        return next((spec for spec in self.inputs if spec.main), None)

    def reads(self, name: str, array: Any) -> bool:
        """Whether `build` looks at every entry of that input."""
        seen = seen_of(array)
        return seen is None or seen.masked or array.dtype.kind not in self.unread.get(name, "")

    def forbidden(self, name: str, maximize: bool) -> float:
        """What forbids an entry of that input: -inf where its entries are maximised, here or by the caller's wish."""
        return -math.inf if maximize or self.specs[name].maximised else math.inf

    def suits(self, problem: Problem, options: OptionsOf) -> tuple[Device, ...]:
        """The devices that this solver has for this problem with these options."""
        return tuple(self.modules) if self.runs_on is None else self.runs_on(problem, options)

    def demonstrations(self) -> tuple[Demonstration, ...]:
        """Problems that show this solver, each with a check of the answer; none where its folder has no `shown`."""
        found = self._beside("shown")
        return () if found is None else tuple(found.demonstrations())

    def larger(self) -> Iterator[tuple[Inputs, dict[str, Any]]]:
        """Inputs and options of problems for which a GPU compiles what it does not for small ones, if there are any."""
        found = self._beside("larger")
        return iter(()) if found is None else found.larger()

    def _beside(self, name: str) -> Any:
        """A module of the solver's folder, if it has that one."""
        room = next(iter(self.modules.values()))
        while room := room.rpartition(".")[0]:
            if importlib.util.find_spec(f"{room}.{name}") is not None:
                return importlib.import_module(f"{room}.{name}")
        return None

    def solve(self, problem: Problem, options: OptionsOf, deadline: Deadline, device: Device = "cpu") -> Solution:
        """Run the solver of `device`. Raises KeyError when this solver has none for it."""
        return _module(self.modules[device]).solve(problem, options, deadline)  # type: ignore[no-any-return]

    def grouped(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays by name, those that belong together under one name (the duals u and v, the potentials f and g)."""
        shown: dict[str, Any] = {}
        for name, array in arrays.items():
            group = self.groups.get(name)
            if group is None:
                shown[name] = array
            else:
                shown.setdefault(group, {})[name] = array
        return shown

    def load(self, device: Device) -> None:
        """Import what solves on a device."""
        importlib.import_module(self.modules[device])

    def warm_up(self, device: Device) -> None:
        """Compile and run every kernel of `device` once on a tiny problem."""
        for step in self.steps(device):
            step()

    def steps(self, device: Device) -> list[Callable[[], None]]:
        """What `warm_up` does, in parts that may run in processes of their own.

        A module has one, or names several in `STEPS`: they can be pickled, and share little of what they compile.
        """
        modules = [importlib.import_module(name) for name in (self.modules[device], *self.compiled_proofs)]
        return [step for module in modules for step in getattr(module, "STEPS", (module.warm_up,))]


def _module(name: str) -> Any:
    """A module of a device. Asking the importer takes as long as a small problem's matrix to be read."""
    return sys.modules.get(name) or importlib.import_module(name)
