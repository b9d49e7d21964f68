"""The compiled sweep says of every answer what `certify_dense` says, to the last bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Solution
from kernels.certificates import swept
from kernels.certificates.assignment import certify_dense
from kernels.problems import Assignment
from tests.kernels.lap_cases import FAMILIES, draw

LAP = SOLVERS["lap"]


def answered(cost: Array, maximize: bool = False, **start: Any) -> tuple[Assignment, Solution]:
    options = LAP.options(maximize=maximize)
    problem = LAP.build({"cost": cost, **start}, options)
    return problem, LAP.solve(problem, options, Deadline())


def agree(problem: Assignment, solution: Solution) -> None:
    assert swept.certify(problem, solution) == certify_dense(problem, solution)


def changed(solution: Solution, name: str, array: Any) -> Solution:
    return replace(solution, arrays=solution.arrays | {name: array})


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_what_the_plain_certificate_says(family: str) -> None:
    rng = np.random.default_rng(len(family))
    for _ in range(100):
        cost, maximize, start = draw(family, rng)
        agree(*answered(cost, maximize, **start))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (65, 65), (130, 130), (60, 200), (200, 60)])
def test_of_rows_longer_than_a_stride(shape: tuple[int, int], dtype: Any) -> None:
    rng = np.random.default_rng(shape)
    for maximize in (False, True):
        problem, solution = answered((rng.normal(size=shape) * 1e3).astype(dtype), maximize)
        agree(problem, solution)
        if shape[0] <= shape[1]:
            assert swept._proof(problem, solution) is not None, "the sweep was not used"


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_it_refuses_what_the_plain_certificate_refuses(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    cost = (rng.random((70, 70)) * 100).astype(dtype)
    problem, solution = answered(cost)
    twice, beyond, missing = (solution.arrays["assignment"].copy() for _ in range(3))
    twice[0], beyond[3], missing[5] = twice[1], 70, -1
    swapped = solution.arrays["assignment"].copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    wrong: list[tuple[str, Any]] = [("assignment", a) for a in (twice, beyond, missing, swapped)]
    for name in ("u", "v"):
        duals = solution.arrays[name]
        for bad in (duals + 1, duals * 3, np.zeros_like(duals), duals[:-1], np.full_like(duals, 2**62)):
            wrong.append((name, bad))
        if dtype is np.float64:
            wrong += [(name, np.where(np.arange(70) == 7, odd, duals)) for odd in (np.nan, np.inf, 1e-3, 1e300)]
            wrong.append((name, np.nextafter(duals, np.inf)))
    for name, array in wrong:
        agree(problem, changed(solution, name, array))


def test_a_bound_one_unit_too_high_would_show() -> None:
    """Lines whose least is attained by several entries with different rounding errors."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        cost = 0.1 + rng.integers(0, 3, (90, 90)) * 2.0**-55 + rng.integers(0, 2, (90, 90)) * 2.0**40
        problem, solution = answered(cost)
        for _ in range(5):
            agree(problem, changed(solution, "v", solution.arrays["v"] + rng.normal(size=90)))


def test_forbidden_entries_and_free_columns() -> None:
    rng = np.random.default_rng(3)
    cost = rng.random((80, 120))
    cost[rng.random(cost.shape) < 0.5] = np.inf
    problem, solution = answered(cost)
    agree(problem, solution)
    agree(problem, changed(solution, "v", np.abs(solution.arrays["v"]) + 0.5))
    problem, solution = answered(-cost, True)
    agree(problem, solution)
    nothing = np.full((3, 3), np.inf)
    nothing[:, 0] = 1.0
    agree(*answered(nothing))


def test_it_is_asked_for_what_is_not_brief() -> None:
    problem, solution = answered(np.random.default_rng(4).random((30, 30)))
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swept, "_proof", lambda *_: calls.append("asked"))
        LAP.certify(problem, changed(solution, "u", solution.arrays["u"] * np.nan))
    assert calls == ["asked"]
