"""The certificate of points on a device: the CPU's words, from arrays that stay where they are."""

import importlib
import sys
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline
from kernels.certificates.metrics import certify_assignment, coarsely, exactly
from kernels.proving import solve_and_prove
from tests.fuzz.families.points import METRICS
from tests.kernels.strict_arrays import StrictArray, StrictModule
from tests.kernels.test_metrics import points

LAP = SOLVERS["lap"]
SHAPES = [(40, 40, 3), (30, 45, 9), (45, 30, 9)]


@pytest.fixture
def xp(device: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """CuPy where there is a GPU; for the CPU what is as strict as it."""
    if device == "gpu":
        return importlib.import_module("cupy")
    module = StrictModule()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def solved(inputs: dict[str, Array], **options: Any) -> tuple[Any, Any, Certificate]:
    given = LAP.options(**options)
    problem = LAP.build(inputs, given)
    return problem, *solve_and_prove(LAP, problem, given, Deadline(60), "cpu")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("maximize", [False, True])
def test_it_says_what_the_cpu_says(xp: Any, metric: str, shape: tuple[int, int, int], maximize: bool) -> None:
    problem, solution, here = solved(points(metric, *shape), metric=metric, maximize=maximize)
    there = certify_assignment(problem, solution, xp=xp)
    assert (there.holds, there.termination, there.objective) == (here.holds, here.termination, here.objective)
    assert there.bound == pytest.approx(here.bound, rel=2.0**-50)
    assert there.gap_abs == pytest.approx(here.gap_abs, abs=2.0**-45 * abs(here.objective or 0))


@pytest.mark.parametrize("metric", METRICS)
def test_in_several_blocks_too(xp: Any, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(coarsely.ENTRIES, "cupy", 200)
    monkeypatch.setitem(exactly.AT_ONCE, "cupy", 50)
    problem, solution, here = solved(points(metric, 40, 40, 4), metric=metric)
    there = certify_assignment(problem, solution, xp=xp)
    assert (there.holds, there.termination, there.objective) == (here.holds, here.termination, here.objective)


def test_costs_that_are_all_alike_are_left_to_the_sweep(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.certificates.metrics import assignment

    monkeypatch.setattr(assignment, "MOST", 3)
    monkeypatch.setattr(assignment, "SMALL", 10)
    problem, solution, here = solved({"x": np.zeros((20, 9)) + 0.1, "y": np.ones((20, 9))}, metric="euclidean")
    there = certify_assignment(problem, solution, xp=xp)
    assert there.holds
    assert there.bound == pytest.approx(here.bound, rel=1e-12)
    assert there.bound is not None
    assert there.objective is not None
    assert there.bound <= there.objective


def test_wrong_answers_are_refused(xp: Any) -> None:
    problem, solution, _ = solved(points("euclidean", 12, 12), metric="euclidean")
    solution.arrays["assignment"] = np.zeros_like(solution.arrays["assignment"])
    assert not certify_assignment(problem, solution, xp=xp).holds


def test_the_stand_in_is_strict() -> None:
    module = StrictModule()
    there = module.asarray(np.ones(3))
    assert isinstance(there + 1, StrictArray)
    for wrong in (
        lambda: there + np.ones(3),
        lambda: np.ones(3) + there,
        lambda: np.asarray(there),
        lambda: np.sqrt(there),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert (there + there).get().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("metric", ["inner", "cityblock"])
def test_float32_below_the_normal_numbers_are_no_zeros(xp: Any, metric: str) -> None:
    """Halves of 2^-126 and less, which CuPy's kernels flush to 0 in float32."""
    x = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 5.0]], np.float32)
    y = (np.array([[1.0, 3.0], [2.0, 0.0], [5.0, 1.0]]) * 2.0**-140).astype(np.float32)
    problem, solution, here = solved({"x": x, "y": y}, metric=metric)
    there = certify_assignment(problem, solution, xp=xp)
    assert (there.objective, there.termination) == (here.objective, here.termination)
    assert there.bound == pytest.approx(here.bound, rel=2.0**-50)
