"""Quadratic assignment on a device under odd options, hard numbers and short limits; the twin of test_qap_limits.py."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Certificate, Deadline, Progress, Solution, Termination, solve_and_prove
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions
from tests.conftest import gpu_is_here
from tests.instances import quadratic as instances

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
CARD = SOLVERS["qap"]
METHODS = ["auto", "tabu", "2opt", "memetic"]


def prove(
    inputs: Any, seconds: float | None = None, **options: Any
) -> tuple[QuadraticAssignment, Solution, Certificate]:
    chosen = QapOptions(**options)
    problem = CARD.build(inputs, chosen)
    return problem, *solve_and_prove(CARD, problem, chosen, Deadline(seconds), "gpu")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 3, 8, 9])
@pytest.mark.parametrize("floating", [False, True])
def test_small_problems_end_at_once(n: int, method: str, floating: bool) -> None:
    rng = np.random.default_rng(n)
    flow, distance = rng.integers(0, 99, (2, n, n)) * (0.1 if floating else 1)
    _, solution, certificate = prove({"flow": flow, "distance": distance}, 5.0, method=method, rounds=2)
    assert certificate.holds
    if n < 9:
        assert solution.termination is Termination.OPTIMAL
        assert certificate.facts["verified"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("starts", [1, 2])
def test_a_population_of_one_is_searched(method: str, starts: int) -> None:
    for n in (12, 40):
        inputs = {"flow": instances.symmetric(n, 10, 1), "distance": instances.symmetric(n, 10, 2)}
        problem, solution, certificate = prove(inputs, rounds=3, starts=starts, method=method, population=True)
        assert certificate.holds
        assert len(solution.arrays["population"]) == starts
        assert problem.objective(solution.arrays["permutation"]) < problem.objective(np.arange(n))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exponent", [20, 52, 60, 61])
def test_no_forbidden_pair_is_used_near_the_limit_of_int64(exponent: int, method: str) -> None:
    n = 12
    rng = np.random.default_rng(exponent)
    linear = rng.integers(-9, 9, (n, n)).astype(float)
    linear[rng.random((n, n)) < 0.7] = np.inf
    linear[np.arange(n), rng.permutation(n)] = 5
    largest = 2**exponent // (2 * n * n)
    flow, distance = rng.integers(largest // 2, largest, (n, n)), rng.integers(0, 3, (n, n))
    inputs = {"flow": flow, "distance": distance, "linear": linear}
    for seconds in (0.0, 0.15, 1.0):
        problem, solution, certificate = prove(inputs, seconds, method=method, population=True)
        assert certificate.holds
        assert problem.allows(solution.arrays["permutation"])
        assert all(problem.allows(member) for member in solution.arrays.get("population", []))
        assert certificate.bound is not None
        assert certificate.bound <= problem.objective(solution.arrays["permutation"])


@pytest.mark.parametrize("inputs", [instances.impossible, lambda: {"flow": np.eye(20), "distance": np.eye(20)}])
def test_infeasible_and_trivial_problems(inputs: Any) -> None:
    problem, solution, certificate = prove(inputs(), 5.0)
    assert certificate.holds
    assert certificate.facts["verified"]
    assert solution.termination is (Termination.OPTIMAL if problem.n == 20 else Termination.INFEASIBLE)


def test_iterations_and_objectives_that_are_told_never_go_back() -> None:
    problem = CARD.build({"flow": instances.symmetric(16, 10, 4), "distance": instances.grid(4, 4)}, QapOptions())
    seen: list[Progress] = []
    solution, certificate = solve_and_prove(CARD, problem, QapOptions(), Deadline(6, on_progress=seen.append), "gpu")
    assert certificate.holds
    told = [progress.iteration for progress in seen]
    assert told == sorted(told)
    objectives = [progress.objective for progress in seen if progress.objective is not None]
    assert objectives == sorted(objectives, reverse=True)
    if solution.termination is Termination.OPTIMAL and not certificate.facts["verified"]:
        assert certificate.facts["claimed_bound"] == certificate.objective


def test_floats_of_few_bits_are_proved_as_integers() -> None:
    inputs = {"flow": instances.symmetric(12, 10, 4) * 0.25, "distance": instances.grid(3, 4) * 2.0**-40}
    _, solution, certificate = prove(inputs, 20.0)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.facts["bounds_checked"]["rlt1"] > 0


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_bounds_of_floats_are_proved_at_any_scale(scale: float) -> None:
    rng = np.random.default_rng(3)
    flow, distance = rng.random((2, 60, 60))
    _, solution, certificate = prove({"flow": (flow + flow.T) * scale, "distance": distance}, 1.0)
    claims, checked = solution.facts["bounds"], certificate.facts["bounds_checked"]
    assert claims.keys() == checked.keys()
    for name, claim in claims.items():
        assert checked[name] == pytest.approx(claim, rel=1e-9)


@pytest.mark.parametrize("n", [37, 113])
def test_a_size_that_is_not_compiled_yet_keeps_its_limit(n: int) -> None:
    inputs = {"flow": instances.symmetric(n, 10, 4), "distance": instances.symmetric(n, 10, 5)}
    for seconds in (0.01, 0.3):
        _, solution, certificate = prove(inputs, seconds)
        assert certificate.holds
        assert certificate.bound is not None
        assert solution.timings_ms["solve"] < 1e3 * seconds + 8000


def test_targets_of_any_size() -> None:
    inputs = {"flow": instances.symmetric(12, 10, 4), "distance": instances.grid(3, 4)}
    for target in (-1e300, -0.5, 1e300):
        _, solution, certificate = prove(inputs, rounds=2, target=target, method="memetic")
        assert certificate.holds
        assert (solution.termination is Termination.GAP_REACHED) == (target > 0)
