import pickle
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from app.cli import warm
from app.cli.warm import Pair, Warmed, warm_one
from kernels import SOLVERS
from workers.runtime import devices


def test_a_solver_warms_up_without_complaint() -> None:
    assert warm_one("lap", "cpu")[0] == ""


def test_what_cannot_be_compiled_is_told() -> None:
    assert "KeyError" in warm_one("sudoku", "cpu")[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_steps_go_to_other_processes(solver: str) -> None:
    steps = SOLVERS[solver].steps("cpu")
    assert steps
    for step in steps:
        assert repr(pickle.loads(pickle.dumps(step))) == repr(step)


class Told:
    """A solver whose steps tell that they were run, and may fail."""

    def __init__(self, run: list[str], *steps: str) -> None:
        self.run, self.named = run, steps

    def steps(self, device: str) -> list[Callable[[], None]]:
        if not self.named:
            raise ImportError("a module that is not there")
        return [partial(self.step, name) for name in self.named]

    def step(self, name: str) -> None:
        self.run.append(name)
        if name == "bad":
            raise RuntimeError(name)


def test_a_solver_is_warm_once_its_steps_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[str] = []
    solvers = {"first": Told(run, "slow", "bad", "other"), "second": Told(run, "alone"), "broken": Told(run)}
    monkeypatch.setattr(warm, "SOLVERS", solvers)

    def last(name: str, device: str) -> Warmed:
        run.append(f"{name} on {device}")
        return "", []

    monkeypatch.setattr(warm, "warm_one", last)
    pairs: list[Pair] = [*((name, "cpu") for name in solvers), ("first", "gpu")]
    with ThreadPoolExecutor(2) as pool:
        assert {pair for pair, _ in warm.warmed_in(pool, pairs)} == set(pairs)
    assert sorted(run) == sorted(
        ["slow", "bad", "other", "alone", "first on cpu", "second on cpu", "broken on cpu", "first on gpu"]
    )
    assert all(run.index(step) < run.index("first on cpu") for step in ("slow", "bad", "other"))
    assert run.index("alone") < run.index("second on cpu")


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
