"""On a GPU: a small instance's tree goes before the semidefinite bound, where the time is enough for it."""

import importlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, Solution, Termination
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Indices
from kernels.qap import QapOptions, outcome, turns
from tests.kernels.hosted import planted
from tests.kernels.test_qap_branch import grid
from tests.kernels.test_qap_tree import best_of

FLOOR, SOLVER = "kernels.qap.bounds.relaxed.gpu_floor", "kernels.qap.gpu"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is done one after the other: the solver of a GPU, whose parts on the device are replaced."""
    pytest.importorskip("cupy", reason="cupy is not installed")
    told: list[str] = []
    relaxed = importlib.import_module("kernels.qap.bounds.relaxed")
    floor = SimpleNamespace(wanted=lambda *given: True, raise_floor=lambda *given: told.append("floor"))
    monkeypatch.setitem(sys.modules, FLOOR, floor)  # the real one needs cuBLAS as soon as it is imported
    monkeypatch.setattr(relaxed, "gpu_floor", floor, raising=False)
    monkeypatch.delitem(sys.modules, SOLVER, raising=False)
    monkeypatch.setattr(turns, "relaxed_s", lambda n: 0.01)
    monkeypatch.setattr(outcome, "first_bounds", lambda *given: [])
    yield told
    sys.modules.pop(SOLVER, None)


def solved(
    monkeypatch: pytest.MonkeyPatch, seen: list[str], n: int, limit_s: float | None, ended: Termination
) -> Solution:
    gpu: Any = importlib.import_module(SOLVER)

    def search(
        problem: Any, options: Any, deadline: Any, start: Indices, target: Any, policy: Any = None
    ) -> outcome.Searched:
        if policy is not None:
            seen.append(f"generations that grow by {policy.growth}")
        return outcome.Searched(start, Termination.ITERATION_LIMIT, 1, {"rounds": 1, "moves": 1}, [])

    def prove(*given: Any) -> tuple[Indices, Termination, dict[str, Any], None]:
        seen.append("tree")
        return given[3], ended, given[5], None

    monkeypatch.setattr(gpu.gpu_memetic, "compiled", lambda *given: True)
    monkeypatch.setattr(gpu, "_memetic", search)
    monkeypatch.setattr(gpu, "_prove", prove)
    flow, distance = np.random.default_rng(n).integers(1, 99, (2, n, n))
    problem = QuadraticAssignment(flow + flow.T, distance + distance.T)
    found: Solution = gpu.solve(problem, QapOptions(), Deadline(limit_s))
    return found


@pytest.mark.parametrize(
    ("n", "limit_s", "ended", "expected"),
    [
        (20, 60.0, Termination.OPTIMAL, ["tree"]),
        (20, 60.0, Termination.TIME_LIMIT, ["tree", "floor"]),
        (20, None, Termination.OPTIMAL, ["tree"]),
        (20, 5.0, Termination.OPTIMAL, ["floor", "tree"]),
        (22, 30.0, Termination.OPTIMAL, ["tree"]),
        (24, 60.0, Termination.OPTIMAL, ["floor", "tree"]),
        (24, 100.0, Termination.OPTIMAL, ["tree"]),
        (25, 3600.0, Termination.OPTIMAL, ["floor", "tree"]),
    ],
)
def test_the_order_follows_from_size_and_time(
    monkeypatch: pytest.MonkeyPatch,
    seen: list[str],
    n: int,
    limit_s: float | None,
    ended: Termination,
    expected: list[str],
) -> None:
    solution = solved(monkeypatch, seen, n, limit_s, ended)
    assert [told for told in seen if told in ("tree", "floor")] == expected
    assert solution.termination is ended


def test_the_search_before_the_bound_does_not_grow(monkeypatch: pytest.MonkeyPatch, seen: list[str]) -> None:
    """Where many members tie, as on a grid, each generation is an epoch of its own: 60 that grow took seconds."""
    solved(monkeypatch, seen, 20, 3.0, Termination.TIME_LIMIT)
    assert seen == ["generations that grow by 1", "floor", "tree"]


def test_a_tree_leaves_time_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "relaxed_s", lambda n: 0.5)
    assert turns.kept_s(20, 100.0) == 10.0
    assert turns.kept_s(20, 20.0) == 4.0
    assert turns.kept_s(20, float("inf")) == 0.0
    assert turns.tree_goes_first(20, 9.1)
    assert not turns.tree_goes_first(20, 8.9)  # 4 s are kept, and 5 s needed
    behind = Deadline(10.0)
    assert outcome.Watched(behind, None, kept_s=4.0).remaining_s <= 6.0
    assert outcome.Watched(behind, None, kept_s=4.0).expired() is None
    assert outcome.Watched(behind, None, kept_s=11.0).expired() is Termination.TIME_LIMIT
    assert outcome.Watched(Deadline(10.0, lambda: True), None, kept_s=11.0).expired() is Termination.STOPPED
    assert behind.expired() is None


def proved_on(monkeypatch: pytest.MonkeyPatch, problem: QuadraticAssignment, **how: Any) -> Solution:
    """As the solver of a GPU does it, whose population finds nothing and whose nodes lie on the host."""
    gpu: Any = importlib.import_module(SOLVER)

    def evolve(problem: Any, watched: Any, people: Any, *given: Any, **options: Any) -> Any:
        while watched.expired() is None:
            time.sleep(0.005)
        return SimpleNamespace(permutation=people.start, termination=watched.expired(), generations=1, moves=1)

    def search(problem: Any, options: Any, deadline: Any, start: Indices, target: Any) -> outcome.Searched:
        return outcome.Searched(start, Termination.ITERATION_LIMIT, 1, {"rounds": 1, "moves": 1}, [])

    monkeypatch.setattr(gpu.gpu_memetic, "compiled", lambda *given: True)
    monkeypatch.setattr(gpu.gpu_memetic, "evolve", evolve)
    monkeypatch.setattr(gpu, "_memetic", search)
    monkeypatch.setattr(gpu.gpu_branch, "DeviceTree", planted(**how))
    found: Solution = gpu.solve(problem, QapOptions(), Deadline(60))
    assert found.facts["tree"]["check_s"] <= 60
    found.facts["tree"]["check_s"] = 120.0  # of a busy machine
    return found


def test_the_answer_has_the_log_of_the_tree(monkeypatch: pytest.MonkeyPatch, seen: list[str]) -> None:
    problem = grid(4, 4, 1)
    problem = replace(problem, start=best_of(problem))
    solution = proved_on(monkeypatch, problem)
    assert solution.termination is Termination.OPTIMAL
    certificate = SOLVERS["qap"].certify(problem, solution)
    assert certificate.facts["verified"] is True
    assert solution.facts["tree"]["resumed"] is False
    assert solution.facts["nodes"] > 100

    again = replace(problem, log=solution.arrays["tree"])
    solution = proved_on(monkeypatch, again)
    assert (solution.termination, solution.facts["nodes"]) == (Termination.OPTIMAL, 0)
    assert solution.facts["tree"]["resumed"] is True
    assert SOLVERS["qap"].certify(again, solution).facts["verified"] is True


def test_a_devices_tree_proves_floats_too(monkeypatch: pytest.MonkeyPatch, seen: list[str]) -> None:
    """Rounded to integers; what is as good as the answer before rounding is priced in fractions."""
    rng = np.random.default_rng(4)
    flow, distance = rng.random((2, 11, 11))
    problem = QuadraticAssignment(flow, distance)
    best = SOLVERS["qap"].solve(problem, QapOptions(seed=1), Deadline(60)).arrays["permutation"]
    problem = replace(problem, start=best)
    solution = proved_on(monkeypatch, problem)
    assert solution.termination is Termination.CONVERGED
    assert solution.facts["proved"] is False
    assert solution.facts["nodes"] > 0
    certificate = SOLVERS["qap"].certify(problem, solution)
    assert certificate.facts["verified"] is True
    assert certificate.termination is Termination.OPTIMAL
    assert (solution.arrays["permutation"] == best).all()
