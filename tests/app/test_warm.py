from argparse import Namespace

import pytest

from app.cli import warm
from app.cli.warm import warm_one
from workers.runtime import devices


def test_a_solver_warms_up_without_complaint() -> None:
    assert warm_one("lap", "cpu")[0] == ""


def test_what_cannot_be_compiled_is_told() -> None:
    assert "KeyError" in warm_one("sudoku", "cpu")[0]


def test_with_a_gpu_all_that_is_listed_for_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only what a few small solves ask for: a user's first job of another size waited for the compiler."""
    compiled: list[list[str]] = []
    monkeypatch.setattr(warm, "compile_ahead", compiled.append)
    monkeypatch.setattr(warm, "architectures_here", lambda: ["90"])
    monkeypatch.setattr(warm, "SOLVERS", {})
    for gpus in ([], ["a GPU"]):
        monkeypatch.setattr(devices, "visible_gpus", lambda gpus=gpus: gpus)
        assert warm.warm(Namespace(cubins=False, record=False)) == 0
    assert compiled == [["90"]]


def test_a_driver_that_does_not_work_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")

    def broken() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", broken)
    assert warm.architectures_here() == []
