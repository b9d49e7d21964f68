"""The transport solver against a slow float64 one, on every device that is there, and its claims one by one."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Device, Inputs, Solution, Termination
from kernels.problems import UnbalancedTransport
from kernels.uot import TransportOptions
from kernels.uot.support import costs
from tests.instances import Case, transport
from tests.oracles import transport as oracle

CARD = SOLVERS["uot"]


def run(
    inputs: Inputs, device: Device = "cpu", deadline: Deadline | None = None, **options: Any
) -> tuple[UnbalancedTransport, Solution, Certificate]:
    if device not in CARD.modules:
        pytest.skip(f"uot has no {device} solver")
    chosen = TransportOptions.model_validate(options)
    problem = CARD.build(inputs, chosen)
    solution = CARD.solve(problem, chosen, deadline or Deadline(60), device)
    return problem, solution, CARD.certify(problem, solution)


def optimum(problem: UnbalancedTransport) -> tuple[Array, float]:
    cost = costs(problem, slice(None))
    rest = (cost, problem.a, problem.b, problem.reg, problem.reg_m, problem.reference)
    plan = oracle.solve(*rest)
    return plan, oracle.value(plan, *rest)


def distance(plan: Array, wanted: Array) -> float:
    return float(abs(plan - wanted).sum() / wanted.sum())


SOLVED = [c for c in transport.CASES if c.options.get("rule") != "published" and "batch" not in c.label]


@pytest.mark.parametrize("case", SOLVED, ids=str)
def test_agrees_with_the_oracle(case: Case, device: Device) -> None:
    problem, solution, certificate = run(case.inputs(), device, **case.options)
    plan, value = optimum(problem)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-6
    assert certificate.bound is not None
    slack = 1e-9 * abs(value)
    assert certificate.bound <= value + slack
    assert certificate.objective == pytest.approx(value, rel=2e-6)
    if "plan" in solution.arrays:
        assert distance(solution.arrays["plan"], plan) < 2e-3


def test_each_problem_of_a_batch_is_solved_by_itself(device: Device) -> None:
    problem, solution, certificate = run(transport.batch(3, 20, 30), device, tolerance=1e-7)
    assert certificate.holds
    for k in range(3):
        assert distance(solution.arrays["plan"][k], optimum(problem.one(k))[0]) < 2e-3


@pytest.mark.parametrize("reg", [1e-2, 1e-3])
@pytest.mark.parametrize("method", ["fused", "log"])
def test_float32_is_right_at_small_reg(reg: float, method: str) -> None:
    problem, solution, _ = run(transport.matrix(24, 20, "float32"), reg=reg, method=method, storage="float32")
    assert solution.termination is Termination.GAP_REACHED
    assert distance(solution.arrays["plan"], optimum(problem)[0]) < 3e-3


def test_float32_goes_on_in_float64_below_its_noise() -> None:
    _, solution, certificate = run(transport.matrix(60, 60), reg=0.01, reg_m=100.0, storage="float32", tolerance=1e-11)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-11
    assert solution.facts["storage"] == "float32, then float64"


def test_published_rule_is_balanced_and_corrected_rule_is_not() -> None:
    given = transport.balanced(40, 50)
    problem, corrected, _ = run(given, reg=0.05, method="map-uot")
    assert distance(corrected.arrays["plan"], optimum(problem)[0]) < 2e-3
    problem, published, certificate = run(
        given, reg=0.05, method="map-uot", rule="published", iterations=5000, storage="float64"
    )
    assert published.termination is Termination.CONVERGED
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel > 1e-3
    balanced, _, _ = run(given, reg=0.05, reg_m="inf")
    assert distance(published.arrays["plan"], optimum(balanced)[0]) < 1e-4
    assert distance(published.arrays["plan"], optimum(problem)[0]) > 0.05


@pytest.mark.parametrize("reg", [0.05, 1e-3])
def test_published_rule_without_a_fixed_point_is_answered_all_the_same(reg: float) -> None:
    given = transport.matrix(30, 20) | {"b": np.full(20, 9.0)}  # masses differ, so its scalings diverge
    _, solution, certificate = run(given, reg=reg, reg_m=0.05, method="map-uot", rule="published", iterations=400)
    assert solution.termination is Termination.ITERATION_LIMIT
    assert certificate.holds
    assert np.isfinite(solution.arrays["plan"]).all()


def test_acceleration_saves_sweeps() -> None:
    given = transport.matrix(100, 100)
    _, plain, _ = run(given, reg=0.02, reg_m=5.0, acceleration=False)
    _, fast, _ = run(given, reg=0.02, reg_m=5.0, storage="float32")
    assert fast.iterations * 3 < plain.iterations


def test_plan_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.uot.cpu import threads as cpu_threads

    given = transport.matrix(400, 500, "float32")
    plans = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(cpu_threads, "_threads", threads)
        plans.append(run(given, reg=0.05)[1].arrays["plan"])
    np.testing.assert_array_equal(plans[0], plans[1])
    np.testing.assert_array_equal(plans[0], plans[2])


def test_warm_start_saves_sweeps(device: Device) -> None:
    given = transport.matrix(60, 70)
    _, cold, _ = run(given, device, reg=0.01)
    start = {wanted: cold.arrays[name] for name, wanted in CARD.warm_start.items()}
    _, warm, certificate = run(given | start, device, reg=0.01)
    assert warm.iterations <= 3
    assert certificate.holds


def test_potentials_are_the_gradient_of_the_optimum() -> None:
    given = transport.matrix(12, 9)
    options: dict[str, Any] = {"reg": 0.1, "reg_m": 1.0, "tolerance": 1e-12}
    _, solution, _ = run(given, **options)
    slope = 1.0 * (1 - np.exp(-solution.arrays["f"])) + 0.1 * (
        given["b"].sum() - (solution.arrays["plan"].sum(axis=1) / given["a"])
    )
    step = 1e-5
    for i in (0, 7):
        values = []
        for sign in (1, -1):
            a = given["a"].copy()
            a[i] += sign * step
            certificate = run(given | {"a": a}, **options)[2]
            assert certificate.objective is not None
            values.append(float(certificate.objective))
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope[i], rel=1e-5)


def test_top_entries_and_marginals_are_those_of_the_plan() -> None:
    given = transport.matrix(30, 40)
    _, whole, _ = run(given, top_k=4)
    _, short, certificate = run(given, output="potentials", top_k=4)
    plan = whole.arrays["plan"]
    assert "plan" not in short.arrays
    assert certificate.holds
    np.testing.assert_allclose(short.arrays["row_marginal"], plan.sum(axis=1))
    np.testing.assert_allclose(short.arrays["column_marginal"], plan.sum(axis=0))
    np.testing.assert_allclose(short.arrays["top_values"], -np.sort(-plan, axis=1)[:, :4])
    np.testing.assert_array_equal(short.arrays["top_columns"], whole.arrays["top_columns"])


def test_certificate_sees_a_wrong_plan() -> None:
    problem, solution, certificate = run(transport.matrix(30, 40), reg=0.05)
    assert certificate.holds
    solution.arrays["plan"] *= 1.05
    wrong = CARD.certify(problem, solution)
    assert wrong.termination is Termination.CONVERGED
    assert wrong.gap_rel is not None
    assert wrong.gap_rel > 1e-3
    solution.arrays["plan"][3, 4] = -1e-3
    assert not CARD.certify(problem, solution).holds


@pytest.mark.parametrize("mass", [1.0, 1.3])
@pytest.mark.parametrize("strength", [1e4, 1e6, 1e7])
def test_strong_penalties_are_certified(mass: float, strength: float) -> None:
    rng = np.random.default_rng(3)
    inputs = {"cost": rng.random((20, 25)), "a": np.full(20, 1 / 20), "b": np.full(25, mass / 25)}
    assert run(inputs, reg=0.1, reg_m=strength)[2].holds
