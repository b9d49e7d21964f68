"""Which device a problem gets, from what is alive and what its card says."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Estimate, InvalidProblem, Solver
from workers.jobs.job import Device, DoesNotFit, NoSuchDevice, WorkerInfo
from workers.runtime import devices

BOTH = {"cpu": "kernels.lap.cpu.solver", "gpu": "kernels.lap.gpu"}


def card(
    prefers_gpu: bool = True, modules: Any = BOTH, needs: int = 100, spreads: bool = False, runs_on: Any = None
) -> Solver:
    return dataclasses.replace(
        SOLVERS["lap"],
        prefers_gpu=lambda problem, options: prefers_gpu,
        modules=modules,
        spreads=lambda problem, options: spreads,
        runs_on=lambda problem, options: tuple(modules) if runs_on is None else runs_on,
        estimate=lambda problem, options, device: Estimate(needs, needs, 1.0),
    )


def worker(device: Device, memory: int = 1000, gpus: int = 1, **more: Any) -> WorkerInfo:
    gpu = {"bytes_total": memory, "count": gpus} if device == "gpu" else None
    return WorkerInfo(device, device, device, "idle", 0.1, memory, gpu, **more)


CPU, GPU = worker("cpu"), worker("gpu")


@pytest.mark.parametrize(
    ("made", "asked", "workers", "expected"),
    [
        (card(), "auto", [CPU, GPU], "gpu"),
        (card(prefers_gpu=False), "auto", [CPU, GPU], "cpu"),
        (card(prefers_gpu=False), "auto", [GPU], "gpu"),
        (card(), "auto", [CPU], "cpu"),
        (card(), "auto", [], "cpu"),
        (card(), "cpu", [CPU, GPU], "cpu"),
        (card(prefers_gpu=False), "gpu", [CPU, GPU], "gpu"),
        (card(needs=2000), "auto", [worker("cpu", 4000), GPU], "cpu"),
        (card(runs_on=("cpu",)), "auto", [CPU, GPU], "cpu"),
        (card(runs_on=("gpu",), prefers_gpu=False), "auto", [CPU, GPU], "gpu"),
        (card(needs=2000, spreads=True), "gpu", [CPU, worker("gpu", gpus=2)], "gpu"),
        (card(), "auto", [CPU, worker("gpu", broken={"lap": "no kernel image"})], "cpu"),
        (card(modules={"gpu": "kernels.lap.gpu"}, prefers_gpu=False), "auto", [CPU, GPU], "gpu"),
    ],
)
def test_choice(made: Solver, asked: Any, workers: list[WorkerInfo], expected: Device) -> None:
    assert devices.choose(made, None, None, asked, workers) == expected


@pytest.mark.parametrize(
    ("made", "asked", "workers", "error"),
    [
        (card(), "gpu", [CPU], NoSuchDevice),
        (card(), "gpu", [], NoSuchDevice),
        (card(), "cpu", [GPU], NoSuchDevice),
        (card(modules={"cpu": "kernels.lap.cpu.solver"}), "gpu", [CPU, GPU], InvalidProblem),
        (card(runs_on=("cpu",)), "gpu", [CPU, GPU], InvalidProblem),
        (card(runs_on=("gpu",)), "cpu", [CPU, GPU], InvalidProblem),
        (card(runs_on=("gpu",)), "auto", [CPU], NoSuchDevice),
        (card(needs=2000), "gpu", [CPU, GPU], DoesNotFit),
        (card(needs=2000), "auto", [CPU, GPU], DoesNotFit),
        (card(needs=2000), "gpu", [CPU, worker("gpu", gpus=2)], DoesNotFit),
        (card(needs=2000, spreads=True), "gpu", [CPU, GPU], DoesNotFit),
        (card(needs=2000), "auto", [GPU], DoesNotFit),
    ],
)
def test_refusal(made: Solver, asked: Any, workers: list[WorkerInfo], error: type[Exception]) -> None:
    with pytest.raises(error):
        devices.choose(made, None, None, asked, workers)


SMI = "GPU-a, NVIDIA H200, 580.1, 143771, 143000\nGPU-b, NVIDIA H200, 580.1, 143771, [N/A]\nbroken line\n"


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, ["GPU-a", "GPU-b"]), ("1", ["GPU-b"]), ("GPU-b,GPU-a", ["GPU-b", "GPU-a"]), ("", []), ("7,0", [])],
)
def test_visible_gpus(monkeypatch: pytest.MonkeyPatch, visible: str | None, expected: list[str]) -> None:
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = devices._visible(devices._parse(SMI))
    assert [gpu.uuid for gpu in found] == expected
    assert all(gpu.bytes_total == 143771 << 20 for gpu in found)


def test_a_problem_that_fits_exactly_is_taken() -> None:
    assert devices.choose(card(needs=1000), np.eye(2), None, "gpu", [GPU]) == "gpu"
