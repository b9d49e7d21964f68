import dataclasses

import numpy as np
import pytest

from kernels import SOLVERS, Csr, Deadline, Device, Solution, Solver, Termination, solve_each_form
from kernels.warming import DTYPES, STOPPED_AFTER, variants


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_type_is_compiled(solver: str) -> None:
    found = {
        (value.values if isinstance(value, Csr) else value).dtype
        for inputs in variants(SOLVERS[solver])
        for value in inputs.values()
    }
    assert {np.dtype(dtype) for dtype in DTYPES} <= found


@pytest.mark.parametrize("solver", ["auction", "lap", "uot"])
def test_every_form_is_solved_without_complaint(solver: str, device: Device) -> None:
    solve_each_form(SOLVERS[solver], device)


def test_stopped_solves_are_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def solve(self: Solver, problem: object, options: object, deadline: Deadline, device: Device = "cpu") -> Solution:
        count = 0
        while deadline.expired() is None and count < 20:
            count += 1
        looks.append(count)
        return Solution(Termination.STOPPED, "none", {})

    monkeypatch.setattr(Solver, "solve", solve)
    solve_each_form(dataclasses.replace(SOLVERS["lap"], certify=lambda *_: None), "cpu")  # type: ignore[arg-type]
    assert looks[: len(STOPPED_AFTER) + 1] == [*STOPPED_AFTER, 20]


@pytest.mark.parametrize("solver", ["auction", "lap", "uot"])
def test_larger_problems_that_a_gpu_runs_ahead_are_ones(solver: str) -> None:
    card = SOLVERS[solver]
    dtypes = set()
    for inputs, given in card.larger():
        card.build(inputs, card.options(**given))
        dtypes |= {value.dtype for value in inputs.values() if isinstance(value, np.ndarray)}
    assert {np.dtype(np.float32), np.dtype(np.float64)} <= dtypes
