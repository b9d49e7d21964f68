"""How transport solves end: limits, cancellation, rounding, infeasible and empty problems, absurd starts."""

import itertools
from typing import Any

import numpy as np
import pytest

from kernels import Deadline, Device, Termination
from kernels.problems.transport import transport as build
from kernels.uot.cpu.sweeps import make_sweeps
from kernels.uot.marginals import Marginals
from tests.instances import transport
from tests.kernels.test_uot import distance, optimum, run
from tests.oracles.transport_exact import dual, potential_plan, primal


@pytest.mark.parametrize("start", [1e300, -1e300, 1e5])
def test_absurd_warm_start_is_survived(start: float) -> None:
    given = transport.matrix(20, 30)
    _, solution, certificate = run(given | {"f0": np.full(20, start), "g0": np.full(30, start)}, reg=0.05)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.holds


def test_no_time_is_answered_with_the_gap_it_has(device: Device) -> None:
    _, solution, certificate = run(transport.matrix(60, 60), device, Deadline(0.0), reg=0.01, reg_m=100.0)
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel > 1e-6


def test_iteration_limit_is_said(device: Device) -> None:
    _, solution, certificate = run(transport.matrix(60, 60), device, reg=0.01, reg_m=100.0, iterations=5)
    assert solution.termination is Termination.ITERATION_LIMIT
    assert solution.iterations == 5
    assert certificate.holds


def test_cancel_keeps_what_there_is() -> None:
    _, solution, certificate = run(transport.matrix(60, 60), deadline=Deadline(cancelled=lambda: True))
    assert solution.termination is Termination.STOPPED
    assert certificate.holds


def test_tolerance_of_zero_ends_when_rounding_is_left() -> None:
    _, solution, certificate = run(transport.matrix(40, 40), reg=0.05, tolerance=0.0)
    assert solution.termination in (Termination.CONVERGED, Termination.GAP_REACHED)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-12


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_balanced_mass_without_a_way_is_infeasible(side: str, device: Device) -> None:
    given = transport.matrix(5, 6)
    given["cost"][(2, slice(None)) if side == "rows" else (slice(None), 2)] = np.inf
    _, solution, certificate = run(given, device, reg_m=("inf", 1.0) if side == "rows" else (1.0, "inf"))
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds


@pytest.mark.parametrize("reference", ["product", "uniform"])
def test_balanced_mass_that_does_not_fit_is_infeasible_by_its_rows(reference: str) -> None:
    cost = np.array([[1.0, np.inf, np.inf], [2.0, np.inf, np.inf], [1.0, 3.0, 2.0]])  # two rows, one column for them
    _, solution, certificate = run({"cost": cost}, reg=0.1, reg_m="inf", reference=reference)
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds
    np.testing.assert_array_equal(solution.arrays["hall_rows"], [0, 1])


def test_balanced_plan_with_forbidden_entries_meets_its_marginals() -> None:
    given = transport.balanced(20, 30)
    given["cost"][::2, ::3] = np.inf
    problem, solution, certificate = run(given, reg=0.05, reg_m="inf")
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-6
    assert certificate.max_violation < 1e-13
    plan, value = optimum(problem)
    assert distance(solution.arrays["plan"], plan) < 1e-4
    assert certificate.bound is not None
    assert certificate.bound == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_masses_of_very_different_sums(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    cost = rng.integers(0, 10, (25, 30)) if seed % 2 else rng.normal(size=(25, 30))
    a, b = rng.random(25) * 10 ** rng.uniform(-2, 2), rng.random(30) * 10 ** rng.uniform(-2, 2)
    _, solution, certificate = run({"cost": cost, "a": a, "b": b}, reg=0.02, reg_m=[50.0, 3.0])
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.holds


def test_everything_forbidden_is_an_empty_plan(device: Device) -> None:
    given = transport.matrix(4, 5)
    given["cost"][:] = np.inf
    _, solution, certificate = run(given, device)
    assert not solution.arrays["plan"].any()
    assert certificate.holds
    assert certificate.gap_rel == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("reg_m", [1000.0, (1000.0, "inf"), ("inf", 1000.0), (1000.0, 10.0)])
@pytest.mark.parametrize("reference", ["product", "uniform"])
def test_plain_sweeps_do_not_look_for_constants(reg_m: Any, reference: str, device: Device) -> None:
    """Sinkhorn's slowest modes are two constants: at a strength of 10,000 times reg they take 100,000 sweeps."""
    given = transport.matrix(12, 15)
    _, solution, certificate = run(given, device, reg=0.1, reg_m=reg_m, reference=reference, acceleration=False)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-6
    assert solution.iterations < 60


@pytest.mark.parametrize("reference", ["product", "uniform"])
@pytest.mark.parametrize("strengths", [(0.7, 2.0), (0.7, np.inf), (np.inf, 0.7), (np.inf, np.inf), (1e6, 1e5)])
def test_constants_are_the_best(strengths: tuple[float, float], reference: str) -> None:
    """No two constants near them have a larger dual value; the gap is that of the plan with its columns scaled."""
    rng = np.random.default_rng(8)
    cost, a, b = rng.random((5, 6)), rng.random(5) + 0.1, rng.random(6) + 0.1
    b *= (1.0 if np.isinf(strengths).all() else 7.0) * a.sum() / b.sum()
    problem = build({"cost": cost, "a": a, "b": b}, reg=0.3, reg_m=strengths, reference=reference)
    marginals = Marginals(np, problem, float(np.ptp(cost)))
    sweeps = make_sweeps(problem, "log", "float64")
    sweeps.start(problem.reg)
    g = rng.random(6)
    f, h = sweeps.sweep(g)
    state = marginals.evaluate(f, g, h, problem.reg)
    assert state.dual == pytest.approx(float(dual(problem, state.f, state.g)), rel=1e-9)
    for s, c in itertools.product((-1e-3, 0.0, 1e-3), repeat=2):
        assert float(dual(problem, state.f + s, state.g + c)) <= state.dual + 1e-9 * abs(state.dual)
    plan = np.array(potential_plan(problem, state.f, state.g), float)
    np.testing.assert_allclose(plan.sum(axis=0), state.column_sums, rtol=1e-8)
    if np.isinf(problem.reg_m[1]):
        plan *= b / plan.sum(axis=0)
    if not np.isinf(strengths).all():
        assert float(primal(problem, plan)) - state.dual <= state.gap * (1 + 1e-6) + 1e-7 * abs(state.dual)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_the_published_iteration_goes_on_where_float32_hides_the_gap(tolerance: float, device: Device) -> None:
    rng = np.random.default_rng(9)
    given = {"cost": 0.1 * rng.random((3, 3))}
    options: dict[str, Any] = {"reg": 1e3, "reg_m": "inf", "method": "map-uot", "tolerance": tolerance}
    _, solution, certificate = run(given, device, **options)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= tolerance
    assert solution.iterations < 1000


def test_a_poor_start_at_small_reg_costs_little_more_than_none(device: Device) -> None:
    """What it takes from the way of falling regs, it must not take from its end."""
    given = transport.balanced(14, 17)
    options: dict[str, Any] = {"reg": 3e-4, "reg_m": "inf", "iterations": 3000}
    _, cold, _ = run(given, device, **options)
    rng = np.random.default_rng(12)
    start = {"f0": rng.uniform(-1, 1, 14), "g0": rng.uniform(-1, 1, 17)}
    _, warm, certificate = run(given | start, device, **options)
    assert cold.termination is warm.termination is Termination.GAP_REACHED
    assert certificate.holds
    assert warm.iterations < 1.5 * cold.iterations
    assert warm.facts["stages"] == cold.facts["stages"]
    assert len(run(given | {"f0": cold.arrays["f"], "g0": cold.arrays["g"]}, device, **options)[1].facts["stages"]) == 1


@pytest.mark.parametrize("reg_m", [1.0, (1.0, "inf"), "inf"])
@pytest.mark.parametrize("points", [False, True])
def test_potentials_of_hundreds_of_reg_leave_the_plan_its_mass(reg_m: Any, points: bool, device: Device) -> None:
    """The largest f plus the largest g is 1,200 reg here, and no entry of the plan is large."""
    given = transport.cloud(40, 50)
    given["b"] /= 1.3
    if not points:
        given = {"cost": ((given["x"][:, None] - given["y"]) ** 2).sum(-1), "a": given["a"], "b": given["b"]}
        given["cost"][0] += 3  # the row that nothing near can reach
    else:
        given["x"][0] -= 1.5
    _, solution, certificate = run(given, device, reg=0.0003, reg_m=reg_m, tolerance=1e-3)
    f, g = solution.arrays["f"], solution.arrays["g"]
    assert (f.max() + g.max()) / 0.0003 > 700
    assert solution.arrays["plan"].sum() == pytest.approx(1, abs=0.3)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.termination is None
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-3


@pytest.mark.parametrize("reg_m", ["inf", 100.0])
@pytest.mark.parametrize("form", ["points", "cost"])
def test_a_cloud_beside_itself_takes_few_sweeps(reg_m: Any, form: str) -> None:
    """Plain sweeps of it hardly mix: 10,000 are too few where both sides are exact, and at reg_m 100 it takes 262."""
    x = np.random.default_rng(0).normal(size=(64, 2))
    cost = ((x[:, None] - x) ** 2).sum(axis=2)
    given = {"x": x, "y": x.copy()} if form == "points" else {"cost": (cost + cost.T) / 2}
    problem, solution, certificate = run(given, reg=0.01, reg_m=reg_m)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-6
    assert solution.iterations < 60
    assert Marginals(np, problem, 1.0).symmetric()


def test_what_is_alike_on_both_sides() -> None:
    """Half-way steps pay for distances alone: other symmetric costs take twice the sweeps with them."""
    rng = np.random.default_rng(1)
    x, even = rng.random((300, 2)), np.full(300, 1 / 300)
    near = np.linalg.norm(x[:, None] - x, axis=2)
    near = (near + near.T) / 2
    wrong = near.copy()
    wrong[290, 280] += 1e-3  # far from both edges
    other, uneven = rng.random((300, 300)), rng.random(300)
    forbidden = near.copy()
    forbidden[3, 5] = forbidden[5, 3] = np.inf
    for given, strengths, expected in (
        ({"cost": near}, (1.0, 1.0), True),
        ({"cost": near, "a": uneven, "b": uneven}, (1.0, 1.0), True),
        ({"cost": near, "a": uneven}, (1.0, 1.0), False),
        ({"cost": near}, (1.0, 2.0), False),
        ({"cost": wrong}, (1.0, 1.0), False),
        ({"cost": other + other.T}, (1.0, 1.0), False),
        ({"cost": forbidden}, (1.0, 1.0), False),
        ({"x": x, "y": x + 1, "a": even}, (1.0, 1.0), False),
    ):
        problem = build(given, reg=0.1, reg_m=strengths)
        assert Marginals(np, problem, 1.0).symmetric() is expected
