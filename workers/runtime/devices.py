"""What is there to solve on, and which of it a problem should get. Never imports cupy."""

import csv
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from workers.jobs.job import AskedDevice, Device, DoesNotFit, NoSuchDevice, WorkerInfo

if TYPE_CHECKING:  # whoever starts workers asks for the GPUs alone, and should not wait for the solvers
    from kernels import Estimate, OptionsOf, Problem, Solver

QUERY = "uuid,name,driver_version,memory.total,memory.free"
MIB = 1 << 20
QUERY_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Gpu:
    """One GPU as nvidia-smi sees it."""

    uuid: str
    name: str
    driver: str
    bytes_total: int
    bytes_free: int

    def to_json(self) -> dict[str, Any]:
        """As it is published by its worker."""
        return asdict(self)


def visible_gpus() -> list[Gpu]:
    """The GPUs of this machine that CUDA_VISIBLE_DEVICES lets through, empty where there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(
            [program, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=QUERY_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _visible(_parse(answer.stdout)) if answer.returncode == 0 else []


def _parse(text: str) -> list[Gpu]:
    found = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) == 5 and row[3].isdigit():
            free = int(row[4]) if row[4].isdigit() else 0
            found.append(Gpu(row[0], row[1], row[2], int(row[3]) * MIB, free * MIB))
    return found


def _visible(gpus: list[Gpu]) -> list[Gpu]:
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return gpus
    chosen = []
    for name in (part.strip() for part in wanted.split(",")):
        match = gpus[int(name) : int(name) + 1] if name.isdigit() else [g for g in gpus if name and g.uuid == name]
        if not match:
            break  # as CUDA does: the first name that is not there ends the list
        chosen += match
    return chosen


def choose(
    card: "Solver[Problem, OptionsOf]",
    problem: "Problem",
    options: "OptionsOf",
    asked: AskedDevice,
    workers: list[WorkerInfo],
) -> Device:
    """The queue for a problem, as `place` finds it."""
    return place(card, problem, options, asked, workers)[0]


def place(
    card: "Solver[Problem, OptionsOf]",
    problem: "Problem",
    options: "OptionsOf",
    asked: AskedDevice,
    workers: list[WorkerInfo],
) -> "tuple[Device, Estimate]":
    """The queue for a problem, and what it needs there.

    `auto` takes a GPU when the solver's card prefers one for this problem and a live GPU worker has the memory.

    Raises:
        InvalidProblem: the solver has nothing for the asked device, or not with these options.
        NoSuchDevice: the asked device has no live worker.
        DoesNotFit: no device of the kind has the memory that the card estimates.
    """
    from kernels import InvalidProblem

    workers = [worker for worker in workers if card.name not in worker.broken] or workers
    here, suits = {worker.device for worker in workers}, card.suits(problem, options)
    if asked != "auto" and asked not in suits:
        raise InvalidProblem("device", f"is {asked}; with these options {card.name} runs on {' or '.join(suits)}")
    if asked == "gpu":
        _require("gpu", here)
        return "gpu", _fit(card, problem, options, "gpu", workers)
    if asked == "auto" and "gpu" in suits and "gpu" in here:
        only_gpu = "cpu" not in here or "cpu" not in suits
        if only_gpu or card.prefers_gpu(problem, options):
            try:
                return "gpu", _fit(card, problem, options, "gpu", workers)
            except DoesNotFit:
                if only_gpu:
                    raise
    if "cpu" not in suits:
        _require("gpu", here)
    _require("cpu", here or {"cpu"})  # with no worker at all, one may be on its way: the job waits for it
    return "cpu", _fit(card, problem, options, "cpu", workers)


def _require(device: Device, here: set[Device]) -> None:
    if device not in here:
        there = f"; there is {' and '.join(sorted(here))}" if here else ""
        raise NoSuchDevice(f"no {device} worker is alive here{there}")


def _fit(
    card: "Solver[Problem, OptionsOf]",
    problem: "Problem",
    options: "OptionsOf",
    device: Device,
    workers: list[WorkerInfo],
) -> "Estimate":
    estimate = card.estimate(problem, options, device)
    if device == "gpu":
        spreads = card.spreads(problem, options)
        gpus = [worker.gpu for worker in workers if worker.gpu]
        needed = estimate.device_bytes
        held = [int(gpu["bytes_total"]) * (int(gpu["count"]) if spreads else 1) for gpu in gpus]
    else:
        needed, held = estimate.host_bytes, [w.host_bytes for w in workers if w.device == "cpu"]
    if held and needed > max(held):
        raise DoesNotFit(
            f"the problem needs about {needed} bytes; the largest {device} here has {max(held)}", needed, max(held)
        )
    return estimate
