"""What is returned is what is proved: exact sides, flows on permitted entries, batches, scales, where solves stop."""

from typing import Any

import numpy as np
import pytest

from kernels import Array, Certificate, Deadline, Device, Inputs, Progress, Solution, Termination, solve_and_prove
from kernels.uot import TransportOptions
from kernels.uot.flow import settle
from tests.instances import transport
from tests.kernels.test_uot import CARD

LINES = 4 * np.finfo(np.float64).eps  # of the mass, a line: what rounding may leave open of an exact side


def prove(
    inputs: Inputs, device: Device = "cpu", deadline: Deadline | None = None, **options: Any
) -> tuple[Solution, Certificate]:
    if device not in CARD.modules:
        pytest.skip(f"uot has no {device} solver")
    chosen = TransportOptions.model_validate(options)
    return solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, deadline or Deadline(60), device)


def open_sides(plan: Array, inputs: dict[str, Array], reg_m: Any) -> float:
    """L1 distance of the plan's exact marginals over the mass and the number of lines."""
    strengths = reg_m if isinstance(reg_m, tuple) else (reg_m, reg_m)
    sides = zip((plan.sum(axis=1), plan.sum(axis=0)), (inputs["a"], inputs["b"]), strengths, strict=True)
    away = [float(abs(found - wanted).sum() / wanted.sum()) for found, wanted, r in sides if r == "inf"]
    return max(away, default=0.0) / sum(plan.shape)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("acceleration", [True, False])
@pytest.mark.parametrize("reg_m", [("inf", 1.0), (1.0, "inf"), "inf"])
def test_the_returned_plan_meets_its_exact_sides(tolerance: float, acceleration: bool, reg_m: Any) -> None:
    for seed in range(10):
        rng = np.random.default_rng([10, seed])
        inputs = {"cost": rng.random((12, 9)), "a": rng.random(12), "b": rng.random(9)}
        if seed % 2:
            inputs["cost"] = inputs["cost"].astype(np.float32)
        if reg_m == "inf":
            inputs["b"] *= inputs["a"].sum() / inputs["b"].sum()
        options = {"reg": 0.05, "reg_m": reg_m, "tolerance": tolerance, "acceleration": acceleration}
        solution, certificate = prove(inputs, **options)
        assert solution.termination is Termination.GAP_REACHED
        assert open_sides(solution.arrays["plan"], inputs, reg_m) <= LINES
        assert certificate.max_violation <= 100 * LINES


def test_a_side_is_met_by_the_first_answer_too(device: Device) -> None:
    inputs = transport.matrix(50, 60)
    solution, certificate = prove(inputs, device, Deadline(0.0), reg=0.01, reg_m=("inf", 100.0))
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.objective is not None
    assert open_sides(solution.arrays["plan"], inputs, ("inf", 100.0)) <= LINES


@pytest.mark.parametrize("reg_m", [("inf", 1.0), "inf"])
def test_potentials_say_what_their_plan_is(reg_m: Any, device: Device) -> None:
    inputs = transport.balanced(30, 40)
    solution, certificate = prove(inputs, device, reg=0.05, reg_m=reg_m, output="potentials", tolerance=1e-3)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.max_violation < 1e-12
    assert certificate.facts["row_marginal_within"] < 1e-12
    np.testing.assert_allclose(solution.arrays["row_marginal"], inputs["a"], rtol=1e-13)


def test_forbidden_entries_get_a_flow(device: Device) -> None:
    for seed in range(10):
        rng = np.random.default_rng([11, seed])
        cost = np.where(rng.random((9, 8)) < 0.4, np.inf, rng.random((9, 8)))
        given = np.where(np.isfinite(cost), rng.random((9, 8)), 0.0)
        inputs = {"cost": cost, "a": given.sum(axis=1) + 1e-3, "b": given.sum(axis=0)}
        inputs["a"] *= inputs["b"].sum() / inputs["a"].sum()
        for output in ("plan", "potentials"):
            solution, certificate = prove(inputs, device, reg=0.1, reg_m="inf", output=output)
            assert certificate.holds
            assert solution.termination in (Termination.GAP_REACHED, Termination.INFEASIBLE)
            if solution.termination is Termination.GAP_REACHED:
                assert certificate.max_violation <= 100 * LINES * inputs["a"].sum() + 1e-10 * (output != "plan")


def test_a_flow_takes_back_what_it_must() -> None:
    """The tree's flow would need an entry below zero: paths go backwards through entries with mass."""
    allowed = np.array([[True, True, False], [True, False, True], [False, True, True]])
    plan = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    a, b = np.array([0.25, 1.0, 1.0]), np.array([0.25, 0.5, 1.5])
    settled = settle(plan, allowed, a, b, lambda: None)
    assert settled.left < 1e-14
    assert settled.hall_rows is None
    assert (plan >= 0).all()
    assert not plan[~allowed].any()


def test_rows_that_do_not_fit_are_named() -> None:
    allowed = np.array([[True, False], [True, False], [True, True]])
    settled = settle(allowed / 3, allowed, np.full(3, 1 / 3), np.full(2, 0.5), lambda: None)
    np.testing.assert_array_equal(settled.hall_rows, [0, 1])


def test_masses_that_nearly_fit_leave_a_residual_and_no_objective() -> None:
    """Block by block the masses differ by 1e-9: no plan exists, and none is claimed to be."""
    cost = np.array([[0.1, np.inf], [np.inf, 0.2]])
    inputs = {"cost": cost, "a": np.array([0.5, 0.5]), "b": np.array([0.5 + 1e-9, 0.5 - 1e-9])}
    solution, certificate = prove(inputs, reg_m="inf")
    assert certificate.holds
    assert solution.termination is not Termination.GAP_REACHED
    assert certificate.objective is None
    assert certificate.max_violation >= 1e-9


def test_masses_are_rescaled_once_and_the_factor_is_said() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random(7), rng.random(9)
    b *= a.sum() / b.sum() * (1 + 1e-7)
    _, certificate = prove({"cost": rng.random((7, 9)), "a": a, "b": b}, reg_m="inf")
    assert certificate.facts["mass_factor"] == pytest.approx(1 - 1e-7, abs=1e-12)
    assert certificate.max_violation < 1e-13


@pytest.mark.parametrize("reg_m", [1.0, "inf", ("inf", 0.5), (3.0, "inf")])
@pytest.mark.parametrize("reference", ["product", "uniform"])
def test_zero_costs_are_answered(reg_m: Any, reference: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng([12, seed])
        shape = tuple(int(k) for k in rng.integers(1, 7, 2))
        solution, certificate = prove({"cost": np.zeros(shape)}, reg_m=reg_m, reference=reference)
        assert certificate.holds
        np.testing.assert_allclose(solution.arrays["plan"].sum(), 1, rtol=2 if reference == "uniform" else 1e-6)
        assert certificate.gap_abs is not None
        assert certificate.gap_abs < 1e-7


@pytest.mark.parametrize("reg_m", [(0.0028, "inf"), ("inf", 0.0028)])
def test_a_column_that_underflows_is_worked_out_again(reg_m: Any, device: Device) -> None:
    inputs = transport.matrix(6, 5)
    inputs["cost"] = inputs["cost"] + 100
    solution, certificate = prove(inputs, device, reg=0.01, reg_m=reg_m)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.objective is not None
    assert open_sides(solution.arrays["plan"], inputs, reg_m) <= LINES


@pytest.mark.parametrize("tolerance", [1e-13, 1e-14, 1e-15, 1e-16, 0.0])
@pytest.mark.parametrize("reg_m", [1.0, "inf", (1.0, "inf")])
def test_what_rounding_hides_is_not_claimed(tolerance: float, reg_m: Any) -> None:
    solution, certificate = prove(transport.balanced(30, 40), reg=0.05, reg_m=reg_m, tolerance=tolerance)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-12
    reached = certificate.gap_rel <= tolerance
    assert solution.termination is (Termination.GAP_REACHED if reached else Termination.CONVERGED)
    assert solution.iterations < 300


@pytest.mark.parametrize(("tolerance", "most"), [(1e-1, 4), (1e-3, 7), (1e-6, 10)])
def test_a_solve_stops_at_the_gap_that_is_asked_for(tolerance: float, most: int) -> None:
    rng = np.random.default_rng(4)
    inputs = {"x": rng.random((256, 2)), "y": rng.random((256, 2))}
    solution, certificate = prove(inputs, reg=0.05, reg_m=1.0, tolerance=tolerance)
    assert solution.termination is Termination.GAP_REACHED
    assert solution.iterations <= most
    assert certificate.gap_rel is not None
    assert certificate.gap_rel > 1e-3 * tolerance  # one sweep gains a factor of 30


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_balanced_at_large_reg_takes_few_sweeps(tolerance: float, device: Device) -> None:
    solution, certificate = prove(transport.balanced(200, 300), device, reg=1.0, reg_m="inf", tolerance=tolerance)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= tolerance
    assert solution.iterations <= (20 if device == "cpu" else 60)


def test_batches_stop_early_and_say_each_gap(device: Device) -> None:
    rng = np.random.default_rng(5)
    solution, certificate = prove({"cost": rng.random((4, 256, 256))}, device, tolerance=1e-6)
    assert solution.termination is Termination.GAP_REACHED
    assert solution.iterations <= 100
    assert max(certificate.facts["problems"]["gaps_rel"]) <= 1e-6


def test_one_infeasible_problem_leaves_the_others_their_answers(device: Device) -> None:
    rng = np.random.default_rng(6)
    cost = rng.random((3, 4, 5))
    cost[1, 2] = np.inf
    solution, certificate = prove({"cost": cost}, device, reg_m="inf")
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds
    listed = certificate.facts["problems"]
    assert listed["terminations"] == ["gap_reached", "infeasible", "gap_reached"]
    assert listed["objectives"][1] is None
    assert certificate.objective == pytest.approx(listed["objectives"][0] + listed["objectives"][2], rel=1e-15)
    for k in (0, 2):
        alone, proof = prove({"cost": cost[k]}, device, reg_m="inf")
        assert listed["objectives"][k] == pytest.approx(proof.objective, rel=1e-6)
        np.testing.assert_allclose(solution.arrays["plan"][k], alone.arrays["plan"], atol=1e-4)


def test_a_plan_of_next_to_no_mass_is_warned_of() -> None:
    rng = np.random.default_rng(7)
    faint = prove({"x": rng.normal(size=(64, 100)), "y": rng.normal(size=(64, 100))}, reg=0.05, reg_m=1.0)[1]
    assert "cheaper to give up" in faint.facts["warning"]
    assert faint.facts["mass"] < 1e-6
    assert "warning" not in prove(transport.matrix(20, 30))[1].facts


@pytest.mark.parametrize("power", [40, -40, 100, -100, 300, -300])
@pytest.mark.parametrize("reg_m", [(1.0, 1.0), ("inf", 1.0), ("inf", "inf"), (1e-3, 10.0)])
def test_powers_of_two_change_nothing_but_the_scale(power: int, reg_m: Any) -> None:
    inputs = transport.balanced(20, 25)

    def scaled(k: int) -> tuple[Solution, Certificate]:
        strengths = tuple(r if r == "inf" else float(np.ldexp(r, k)) for r in reg_m)
        cost = np.ldexp(inputs["cost"], k)
        return prove(inputs | {"cost": cost}, reg=float(np.ldexp(0.05, k)), reg_m=strengths)

    (plain, proof), (other, proof_of_other) = scaled(0), scaled(power)
    assert other.termination is plain.termination
    assert other.iterations == plain.iterations
    assert proof_of_other.objective == float(proof.objective or 0) * 2.0**power
    assert proof_of_other.bound == float(proof.bound or 0) * 2.0**power
    np.testing.assert_array_equal(other.arrays["plan"], plain.arrays["plan"])


def test_a_start_out_of_proportion_costs_time_and_not_the_answer() -> None:
    inputs = transport.matrix(20, 30)
    _, cold = prove(inputs, reg=0.05)
    for start in (1e300, -1e12, 1e6):
        given = inputs | {"f0": np.full(20, start), "g0": start * np.random.default_rng(1).normal(size=30)}
        solution, certificate = prove(given, reg=0.05, iterations=30)
        assert solution.termination is Termination.GAP_REACHED
        assert certificate.objective == pytest.approx(cold.objective, rel=2e-6)


def test_sweeps_are_counted_on_from_float32_to_float64() -> None:
    heard: list[Progress] = []
    inputs = transport.matrix(60, 60)
    options = {"reg": 0.01, "reg_m": 100.0, "storage": "float32", "tolerance": 1e-11}
    solution, _ = prove(inputs, "cpu", Deadline(60, on_progress=heard.append), **options)
    counts = [one.iteration for one in heard]
    assert solution.facts["storage"] == "float32, then float64"
    assert counts == sorted(counts)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (5, 4)])
def test_one_mass_alone(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(8)
    a, b = np.zeros(shape[0]), rng.random(shape[1])
    a[-1] = b.sum()
    for reg_m in (1.0, "inf", ("inf", 2.0)):
        solution, certificate = prove({"cost": rng.random(shape), "a": a, "b": b}, reg_m=reg_m)
        assert solution.termination is Termination.GAP_REACHED
        assert certificate.holds
