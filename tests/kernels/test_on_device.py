"""Which certificate an answer of a GPU gets, with a device certificate that is told what to say."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from kernels import (
    SOLVERS,
    Certificate,
    Deadline,
    Device,
    Estimate,
    InputChanged,
    Solution,
    Solver,
    solve_and_prove,
)
from kernels import on_device as rooms
from kernels.certificates.gpu.checksum import Pending, checksum
from kernels.on_device import Certifier
from kernels.problems import Array
from kernels.solution import OnDevice

LAP = SOLVERS["lap"]
HERE = Certificate(1.0, 1.0, 0.0, 0.0, 0.0, True, "told", {"certified_on": "gpu"})


class Told:
    """A device certificate: its module's functions."""

    def __init__(self, says: Callable[[], Certificate | None], for_it: bool = True) -> None:
        self._says, self._for_it = says, for_it
        self.asked: list[int] = []

    def inputs(self, problem: Any) -> list[Array] | None:
        return [problem.weights] if self._for_it else None

    def seconds(self, problem: Any) -> float:
        return 0.25

    def certify(self, problem: Any, solution: Solution, checksums: Pending) -> Certificate | None:
        self.asked.append(checksums.of(problem.weights))
        return self._says()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Told]:
    def tell(says: Callable[[], Certificate | None], for_it: bool = True) -> Told:
        module = Told(says, for_it)
        monkeypatch.setattr(rooms, "_module_of", lambda card: module)
        return module

    return tell


def problem_and_answer() -> tuple[Any, Solution]:
    problem = LAP.build({"cost": np.random.default_rng(0).random((5, 5))}, LAP.options())
    return problem, LAP.solve(problem, LAP.options(), Deadline(), "cpu")


def raising(error: Exception) -> Callable[[], Certificate | None]:
    def says() -> Certificate | None:
        raise error

    return says


def test_the_device_is_asked_with_the_checksum_of_the_input(told: Any) -> None:
    module, (problem, solution) = told(lambda: HERE), problem_and_answer()
    assert Certifier(LAP, problem, "gpu").certify(solution, lambda fraction: None) is HERE
    assert module.asked == [checksum(problem.weights)]


@pytest.mark.parametrize("says", [lambda: None, raising(MemoryError("no room"))], ids=["nothing", "no-memory"])
def test_what_the_device_cannot_say_is_asked_of_the_cpu(told: Any, says: Any) -> None:
    told(says)
    problem, solution = problem_and_answer()
    found = Certifier(LAP, problem, "gpu").certify(solution, lambda fraction: None)
    assert found == LAP.certify(problem, solution)


def test_an_input_that_changed_is_not_certified_elsewhere(told: Any) -> None:
    told(raising(InputChanged("written over")))
    problem, solution = problem_and_answer()
    with pytest.raises(InputChanged):
        Certifier(LAP, problem, "gpu").certify(solution, lambda fraction: None)


def test_answers_of_the_cpu_and_problems_that_are_not_for_it(told: Any) -> None:
    module, (problem, solution) = told(lambda: HERE, for_it=False), problem_and_answer()
    for device in ("cpu", "gpu"):
        certifier = Certifier(LAP, problem, device)
        assert certifier.seconds is None
        assert certifier.certify(solution, lambda fraction: None).facts.get("certified_on") is None
    assert module.asked == []


def given(card: Solver[Any, Any]) -> dict[str, Any]:
    """What a card was made of."""
    return {field.name: getattr(card, field.name) for field in fields(card)}


def test_a_limit_keeps_room_for_the_certificate_that_is_used(told: Any) -> None:
    """A certificate of 9 s on the CPU would leave a solver nothing of 5 s; on the device it takes little."""
    told(lambda: HERE)
    problem, solution = problem_and_answer()
    left: list[float] = []

    class Card(Solver):
        def solve(self, problem: Any, options: Any, deadline: Deadline, device: Device = "cpu") -> Solution:
            left.append(deadline.remaining_s)
            return solution

    card = Card(**given(LAP) | {"estimate": lambda *_: Estimate(0, 0, 1.0, certify_seconds=9.0)})
    for device, expected in (("gpu", 4.75), ("cpu", 0.0)):
        _, certificate = solve_and_prove(card, problem, LAP.options(), Deadline(5.0, clock=lambda: 0.0), device)  # type: ignore[arg-type]
        assert left[-1] == pytest.approx(expected, abs=0.2)
        assert (certificate.facts.get("certified_on") == "gpu") == (device == "gpu")


def test_device_memory_is_let_go(told: Any) -> None:
    told(lambda: HERE)
    problem, solution = problem_and_answer()
    held = replace(solution, uploads=[OnDevice(problem.weights, object())])

    class Card(Solver):
        def solve(self, problem: Any, options: Any, deadline: Deadline, device: Device = "cpu") -> Solution:
            return held

    found, _ = solve_and_prove(Card(**given(LAP)), problem, LAP.options(), Deadline(), "gpu")
    assert found.uploads == []
