from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Device, Inputs, InvalidProblem, Solution, Termination
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
    problem, solution, certificate = run(transport.batch(3, 20, 30), device)
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
    assert fast.iterations * 10 < plain.iterations


def test_plan_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.uot import cpu_threads

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
def test_balanced_mass_that_does_not_fit_is_infeasible_by_its_dual(reference: str) -> None:
    cost = np.array([[1.0, np.inf, np.inf], [2.0, np.inf, np.inf], [1.0, 3.0, 2.0]])  # two rows, one column for them
    _, solution, certificate = run({"cost": cost}, reg=0.1, reg_m="inf", reference=reference)
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds
    assert certificate.bound is not None


def test_balanced_plan_with_forbidden_entries_meets_its_marginals() -> None:
    given = transport.balanced(20, 30)
    given["cost"][::2, ::3] = np.inf
    problem, solution, certificate = run(given, reg=0.05, reg_m="inf")
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.holds
    assert certificate.objective is None
    assert certificate.max_violation < 1e-5
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
    assert not CARD.certify(problem, solution).holds
    solution.arrays["plan"][3, 4] = -1e-3
    assert not CARD.certify(problem, solution).holds


BAD: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("nan cost", {"cost": np.array([[np.nan, 1.0]])}, {}, "cost"),
    ("-inf cost", {"cost": np.array([[-np.inf, 1.0]])}, {}, "cost"),
    ("empty", {"cost": np.empty((0, 3))}, {}, "cost"),
    ("no cost", {"a": np.ones(3)}, {}, "cost"),
    ("flat cost", {"cost": np.ones(3)}, {}, "cost"),
    ("text", {"cost": np.array([["a", "b"]])}, {}, "cost"),
    ("long a", {"cost": np.ones((2, 3)), "a": np.ones(3)}, {}, "a"),
    ("negative b", {"cost": np.ones((2, 3)), "b": np.array([1.0, -1.0, 1.0])}, {}, "b"),
    ("nan a", {"cost": np.ones((2, 3)), "a": np.array([1.0, np.nan])}, {}, "a"),
    ("inf a", {"cost": np.ones((2, 3)), "a": np.array([1.0, np.inf])}, {}, "a"),
    ("no mass", {"cost": np.ones((2, 3)), "a": np.zeros(2)}, {}, "a"),
    ("masses differ", {"cost": np.ones((2, 2)), "a": np.ones(2), "b": np.full(2, 2.0)}, {"reg_m": "inf"}, "b"),
    ("only x", {"x": np.ones((2, 3))}, {}, "y"),
    ("cost and x", {"cost": np.ones((2, 2)), "x": np.ones((2, 3)), "y": np.ones((2, 3))}, {}, "cost"),
    ("dimensions differ", {"x": np.ones((2, 3)), "y": np.ones((2, 4))}, {}, "y"),
    ("huge dimension", {"x": np.ones((2, 2000)), "y": np.ones((2, 2000))}, {}, "x"),
    ("nan point", {"x": np.full((2, 3), np.nan), "y": np.ones((2, 3))}, {}, "x"),
    ("reg far below cost", {"cost": np.array([[0.0, 1.0]])}, {"reg": 1e-14}, "cost"),
    ("distances overflow", {"x": np.full((2, 2), 1e200), "y": np.ones((2, 2))}, {}, "x"),
    ("plan too large", {"x": np.ones((50_000, 1)), "y": np.ones((50_000, 1))}, {}, "output"),
    ("mass explodes", {"cost": np.array([[-1e4, 0.0]])}, {"reg_m": 1.0}, "cost"),
    ("warm start of wrong length", {"cost": np.ones((2, 3)), "g0": np.ones(2)}, {}, "g0"),
    ("nan warm start", {"cost": np.ones((2, 3)), "g0": np.full(3, np.nan)}, {}, "g0"),
]


@pytest.mark.parametrize(("inputs", "options", "field"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_input_is_named(inputs: dict[str, Array], options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as raised:
        CARD.build(inputs, TransportOptions.model_validate(options))
    assert raised.value.field == field
    assert "expected" in raised.value.message


@pytest.mark.parametrize(
    "options",
    [
        {"reg": 0.0},
        {"reg": -1.0},
        {"reg_m": 0.0},
        {"reg_m": [1.0, -1.0]},
        {"reg_m": [1.0]},
        {"reg_m": "infinite"},
        {"tolerance": -1e-3},
        {"iterations": 0},
        {"metric": "cosine"},
        {"unknown": 1},
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        TransportOptions.model_validate(options)


@pytest.mark.parametrize(
    ("given", "strengths"),
    [(2, (2, 2)), ("inf", (np.inf, np.inf)), (None, (np.inf, np.inf)), ([1.5, "inf"], (1.5, np.inf)), (np.inf,) * 2],
)
def test_reg_m_spells_infinity(given: Any, strengths: Any) -> None:
    wanted = strengths if isinstance(strengths, tuple) else (strengths, strengths)
    assert TransportOptions.model_validate({"reg_m": given}).strengths == wanted


def test_example_works_when_pasted() -> None:
    inputs = {name: np.array(value) for name, value in CARD.example["inputs"].items()}
    assert run(inputs, **CARD.example["options"])[2].holds


def test_masses_left_out_are_uniform() -> None:
    problem = CARD.build({"cost": np.ones((2, 4))}, TransportOptions())  # type: ignore[call-arg]
    np.testing.assert_array_equal(problem.a, [0.5, 0.5])
    np.testing.assert_array_equal(problem.b, np.full(4, 0.25))


def test_estimate_covers_the_kernel_and_the_plan() -> None:
    options = TransportOptions.model_validate({})
    problem = CARD.build(transport.matrix(100, 200), options)
    assert CARD.estimate(problem, options, "cpu").host_bytes >= 100 * 200 * 8 * 2


@pytest.mark.parametrize("mass", [1.0, 1.3])
@pytest.mark.parametrize("strength", [1e4, 1e6, 1e7])
def test_strong_penalties_are_certified(mass: float, strength: float) -> None:
    rng = np.random.default_rng(3)
    inputs = {"cost": rng.random((20, 25)), "a": np.full(20, 1 / 20), "b": np.full(25, mass / 25)}
    assert run(inputs, reg=0.1, reg_m=strength)[2].holds


def test_a_penalty_beyond_float64_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="at most 1e\\+08, beyond"):
        run({"cost": np.ones((2, 2))}, reg=0.1, reg_m=1e300)
