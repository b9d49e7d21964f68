"""Transport on the entries of a sparse cost: what is answered, how it compares, and what is refused."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Csr,
    Deadline,
    InvalidProblem,
    Solution,
    Termination,
    solve_and_prove,
)
from kernels.problems.sparse_transport import SparseTransport
from kernels.uot.outer import Rules, iterate
from kernels.uot.sparse.flow import Network
from kernels.uot.sparse.solver import solve
from kernels.uot.sparse.sweeps import HOST, SparseMarginals, SparseSweeps, Sweeper
from tests.conftest import need_gpu
from tests.instances import sparse_transport as instances
from tests.instances.sparse_transport import dense, graph, stored
from tests.kernels.strict_arrays import STRICT

CARD = SOLVERS["uot"]
FAMILIES = {case.label: case for case in instances.CASES}
SQUARE = graph(6, 5)


def solved(inputs: Any, limit_s: float = 60, **options: Any) -> tuple[SparseTransport, Solution, Certificate]:
    asked = CARD.options(**options)
    problem = CARD.build(inputs, asked)
    solution, certificate = solve_and_prove(CARD, problem, asked, Deadline(limit_s), "cpu")
    assert certificate.holds, certificate
    return problem, solution, certificate


def beyond(problem: SparseTransport) -> float:
    """What the dense objective has more: reg a_i b_j of the entries that are not stored."""
    if problem.reference == "uniform":
        return 0.0
    whole = np.outer(problem.a, problem.b)
    whole[problem.entry_rows, problem.entry_columns] = 0.0
    return problem.reg * float(whole.sum())


@pytest.mark.parametrize("label", FAMILIES)
def test_the_dense_problem_with_the_others_forbidden_has_the_same_optimum(label: str) -> None:
    case = FAMILIES[label]
    inputs: dict[str, Any] = dict(case.inputs())
    problem, solution, certificate = solved(inputs, **case.options)
    strengths = tuple("inf" if math.isinf(one) else one for one in problem.reg_m)
    options = {**case.options, "reg": problem.reg, "reg_m": strengths, "tolerance": 1e-7}
    asked = CARD.options(**options)
    other = CARD.build(inputs | {"cost": dense(inputs["cost"])}, asked)
    whole, proof = solve_and_prove(CARD, other, asked, Deadline(60), "cpu")
    ended = certificate.termination or solution.termination
    if whole.termination is Termination.INFEASIBLE:
        assert ended is Termination.INFEASIBLE
        return
    assert ended is Termination.GAP_REACHED
    assert proof.objective is not None
    assert certificate.objective is not None
    assert certificate.gap_abs is not None
    assert proof.gap_abs is not None
    apart = abs(certificate.objective + beyond(problem) - proof.objective)
    assert apart <= certificate.gap_abs + proof.gap_abs + 1e-12 * abs(proof.objective)
    plan = np.zeros(problem.shape)
    plan[problem.entry_rows, problem.entry_columns] = solution.arrays["entry_values"]
    near = math.sqrt(max(certificate.gap_abs, proof.gap_abs) / problem.reg * (1 + plan.sum()))
    assert abs(plan - whole.arrays["plan"]).sum() <= 4 * near  # by strong convexity of the entropic term


def test_the_plan_stands_in_the_order_of_the_cost() -> None:
    given = instances.unsorted(20, 30)
    inputs = given | {"cost": given["cost"]}
    order = np.concatenate(
        [start + np.argsort(given["cost"].indices[start:end]) for start, end in instances._runs(given["cost"])]
    )
    cost = given["cost"]
    inputs["cost"] = Csr(cost.indptr, cost.indices[order], cost.values[order], cost.shape)
    plans = [solved(one, reg=0.05, reg_m=1.0, tolerance=1e-12)[1].arrays["entry_values"] for one in (given, inputs)]
    np.testing.assert_allclose(plans[0][order], plans[1], rtol=1e-4)


def test_marginals_are_those_of_the_plan_and_exact_sides_are_met() -> None:
    problem, solution, certificate = solved(graph(30, 40), reg=0.02, reg_m="inf")
    arrays = solution.arrays
    rows = np.bincount(problem.entry_rows, arrays["entry_values"], 30)
    np.testing.assert_array_equal(rows, arrays["row_marginal"])
    np.testing.assert_allclose(arrays["row_marginal"], problem.a, rtol=1e-12)
    np.testing.assert_allclose(arrays["column_marginal"], problem.b, rtol=1e-12)
    assert certificate.max_violation is not None
    assert certificate.max_violation < 1e-12


def test_integers_cost_what_they_are() -> None:
    inputs = graph(12, 9)
    whole = (inputs["cost"].values * 100).astype(np.int16)
    found = []
    for values in (whole, whole.astype(np.float64), whole.astype(np.uint64)):
        cost = Csr(inputs["cost"].indptr.astype(np.uint32), inputs["cost"].indices.astype(np.int64), values, (12, 9))
        found.append(solved(inputs | {"cost": cost}, reg=5.0, reg_m=50.0)[2].objective)
    assert len(set(found)) == 1


def test_a_pair_that_is_stored_as_0_costs_nothing() -> None:
    cost = Csr(np.array([0, 1, 2]), np.array([0, 1]), np.array([0.0, 1.0]), (2, 2))
    _, solution, _ = solved({"cost": cost}, reg=0.1, reg_m="inf")
    np.testing.assert_allclose(solution.arrays["entry_values"], 0.5)


@pytest.mark.parametrize(("there", "a", "b", "name", "lines"), [
    ([[1, 0, 0], [1, 0, 0], [1, 1, 1]], [1, 1, 1], [1, 1, 1], "hall_rows", [0, 1]),
    ([[1, 1, 1], [0, 0, 0], [1, 1, 1]], [1, 1, 1], [1, 1, 1], "hall_rows", [1]),
    ([[1, 1, 0], [1, 1, 0], [1, 1, 0]], [1, 1, 1], [1, 1, 1], "hall_columns", [2]),
    ([[1, 1, 0], [1, 1, 0], [0, 0, 1]], [1, 1, 2], [2, 1, 1], "hall_rows", [2]),
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1, 0, 1], [0, 1, 1], "hall_rows", [0]),
])  # fmt: skip
def test_lines_that_have_too_much_show_that_no_plan_exists(
    there: Any, a: Any, b: Any, name: str, lines: list[int]
) -> None:
    inputs = {"cost": stored(np.ones((3, 3)), np.array(there, bool)), "a": np.array(a, float), "b": np.array(b, float)}
    _, solution, certificate = solved(inputs, reg=0.1, reg_m="inf")
    assert solution.termination is Termination.INFEASIBLE
    assert solution.arrays[name].tolist() == lines
    assert certificate.objective is None
    relaxed = ("inf", 1.0) if name == "hall_rows" and len(lines) == 2 else (1.0, 1.0)
    assert solved(inputs, reg=0.1, reg_m=relaxed)[2].objective is not None


def test_a_side_without_mass_leaves_the_empty_plan_or_none() -> None:
    inputs = graph(4, 5) | {"b": np.zeros(5)}
    _, solution, certificate = solved(inputs, reg=0.1, reg_m=2.0)
    assert not solution.arrays["entry_values"].any()
    assert certificate.objective == pytest.approx(2.0 * inputs["a"].sum())
    assert solved(inputs, reg=0.1, reg_m=(1.0, "inf"))[1].termination is Termination.GAP_REACHED
    assert solved(inputs, reg=0.1, reg_m=("inf", 1.0))[1].termination is Termination.INFEASIBLE


def test_no_entry_at_all() -> None:
    empty = Csr(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0), (3, 2))
    _, solution, certificate = solved({"cost": empty}, reg=0.1, reg_m=3.0)
    assert solution.arrays["f"].tolist() == [math.inf] * 3
    assert certificate.objective == pytest.approx(6.0)
    assert certificate.gap_rel == pytest.approx(0.0, abs=1e-12)
    assert solved({"cost": empty}, reg=0.1, reg_m=("inf", 1.0))[1].termination is Termination.INFEASIBLE


def test_entries_that_no_plan_can_use_do_not_hold_it_up() -> None:
    """A plan exists, but is 0 on some entries: the best potentials are infinite, and sweeps come near them slowly."""
    inputs = {"cost": stored(np.zeros((3, 3)), np.tri(3, dtype=bool)), "a": np.ones(3), "b": np.ones(3)}
    _, solution, certificate = solved(inputs, reg=0.1, reg_m="inf", tolerance=1e-4)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-4


def test_a_flow_completes_what_is_far_off() -> None:
    problem = CARD.build(graph(40, 30), CARD.options(reg=0.1, reg_m="inf"))
    network = Network(problem)
    for plan in (np.zeros(problem.nnz), np.full(problem.nnz, 1.0), np.random.default_rng(0).random(problem.nnz) ** 9):
        found = network.along_paths(plan, Deadline())
        assert (found >= 0).all()
        assert sum(float(abs(one).sum()) for one in network.missing(found)) <= 4 * network.rounding


def test_a_large_graph_whose_rows_have_one_way_only() -> None:
    """A chain: each flow goes through all of it."""
    n = 3000
    there = np.eye(n, dtype=bool) | np.eye(n, k=1, dtype=bool)
    a, b = np.ones(n), np.ones(n)
    a[0], b[-1] = 1.5, 1.5
    _, solution, certificate = solved({"cost": stored(np.ones((n, n)), there), "a": a, "b": b}, reg=0.1, reg_m="inf")
    assert certificate.objective is not None
    np.testing.assert_allclose(solution.arrays["row_marginal"], a)


@pytest.mark.parametrize("reg_m", [1.0, "inf"])
def test_a_time_limit_and_a_word_from_outside_end_it(reg_m: Any) -> None:
    inputs, options = graph(200, 200), {"reg": 1e-4, "reg_m": reg_m, "tolerance": 0.0}
    problem, solution, _ = solved(inputs, limit_s=0.05, **options)
    assert solution.termination in (Termination.TIME_LIMIT, Termination.CONVERGED)
    asked = CARD.options(**options)
    stopped = CARD.solve(problem, asked, Deadline(cancelled=lambda: True), "cpu")
    assert stopped.termination is Termination.STOPPED
    assert CARD.certify(problem, stopped).bound is not None


def test_it_says_how_far_it_is() -> None:
    told: list[Any] = []
    asked = CARD.options(reg=0.01, reg_m=1.0)
    CARD.solve(CARD.build(graph(50, 50), asked), asked, Deadline(on_progress=told.append), "cpu")
    assert len(told) > 3
    assert told[-1].gap < 1e-6


def test_it_goes_on_from_potentials() -> None:
    inputs, options = graph(40, 50), {"reg": 0.01, "reg_m": 5.0}
    _, cold, _ = solved(inputs, **options)
    _, warm, certificate = solved(inputs | {"f0": cold.arrays["f"], "g0": cold.arrays["g"]}, **options)
    assert warm.iterations < cold.iterations / 2
    wild = solved(inputs | {"g0": np.full(50, 1e12)}, **options)
    assert wild[1].termination is Termination.GAP_REACHED
    assert certificate.gap_rel is not None


def test_iterations_are_counted_and_limited() -> None:
    _, solution, certificate = solved(graph(40, 50), reg=1e-3, reg_m="inf", iterations=7)
    assert solution.iterations == 7
    assert certificate.termination is None
    assert solution.termination is Termination.ITERATION_LIMIT
    assert certificate.objective is not None


def test_threads_and_thick_lines_change_nothing() -> None:
    """A row of all columns beside rows of few: groups of lines of every length."""
    rng = np.random.default_rng(3)
    there = rng.random((60, 5000)) < 0.01
    there[7] = there[:, 11] = True
    there[np.arange(5000) % 60, np.arange(5000)] = True
    inputs = {"cost": stored(rng.random(there.shape), there)}
    problem = CARD.build(inputs, CARD.options(reg=0.02, reg_m=1.0))
    network, held = Network(problem), SparseMarginals(np, problem)
    sweeps = SparseSweeps(HOST, network, held)
    sweeps.start(0.02)
    g = rng.random(5000)
    f, h = sweeps.sweep(g)
    cost = dense(inputs["cost"])
    sums = (problem.b * np.exp((g - cost) / 0.02)).sum(axis=1)
    np.testing.assert_allclose(f, -0.02 * np.log(sums) / 1.02, atol=1e-13)
    np.testing.assert_allclose(h, 0.02 * np.log((problem.a[:, None] * np.exp((f[:, None] - cost) / 0.02)).sum(axis=0)))


def test_a_dual_value_of_the_sweeps_is_that_of_the_entries() -> None:
    problem = CARD.build(graph(20, 30), CARD.options(reg=0.05, reg_m=1.0))
    held = SparseMarginals(np, problem)
    sweeps = SparseSweeps(HOST, Network(problem), held)
    outcome = iterate(held, sweeps, np.zeros(30), Rules(1e-10, Deadline()), stages=[0.05], limit=500)
    arrays = {"f": outcome.state.f, "g": outcome.state.g, "entry_values": np.zeros(problem.nnz)}
    arrays |= {"row_marginal": np.zeros(20), "column_marginal": np.zeros(30)}
    bound = CARD.certify(problem, Solution(Termination.CONVERGED, "log", arrays)).bound
    assert bound == pytest.approx(outcome.state.dual, rel=1e-12)


def test_potentials_that_ran_away_have_no_small_gap() -> None:
    """Beside a value of -10^9 what their plan misses looks like nothing."""
    problem = CARD.build(graph(20, 30), CARD.options(reg=0.05, reg_m="inf"))
    held = SparseMarginals(np, problem)
    sweeps = SparseSweeps(HOST, Network(problem), held)
    g = iterate(held, sweeps, np.zeros(30), Rules(1e-6, Deadline()), stages=[0.05], limit=500).state.g
    far = g + 1e9 * np.random.default_rng(0).random(30)
    f, h = sweeps.sweep(far)
    state = held.evaluate(f, far, h, 0.05)
    assert state.dual < -1e6
    assert state.relative_gap > 0.5
    f, h = sweeps.sweep(g)
    assert held.evaluate(f, g, h, 0.05).relative_gap <= 1e-6


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"cost": replace(SQUARE["cost"], values=SQUARE["cost"].values * np.nan)}, {}, "cost.values"),
    ({"cost": replace(SQUARE["cost"], values=SQUARE["cost"].values + np.inf)}, {}, "cost.values"),
    ({"cost": replace(SQUARE["cost"], values=SQUARE["cost"].values.astype(complex))}, {}, "cost.values"),
    ({"cost": replace(SQUARE["cost"], values=SQUARE["cost"].values[:-1])}, {}, "cost"),
    ({"cost": replace(SQUARE["cost"], values=SQUARE["cost"].values * 1e300)}, {"reg": 1.0}, "cost"),
    ({"cost": replace(SQUARE["cost"], indices=SQUARE["cost"].indices + 1)}, {}, "cost.indices"),
    ({"cost": replace(SQUARE["cost"], indices=SQUARE["cost"].indices - 1)}, {}, "cost.indices"),
    ({"cost": replace(SQUARE["cost"], indices=SQUARE["cost"].indices + 0.5)}, {}, "cost.indices"),
    ({"cost": replace(SQUARE["cost"], indptr=SQUARE["cost"].indptr[::-1].copy())}, {}, "cost.indptr"),
    ({"cost": replace(SQUARE["cost"], indptr=SQUARE["cost"].indptr[:-1])}, {}, "cost.indptr"),
    ({"cost": replace(SQUARE["cost"], shape=(6, 2**40))}, {}, "cost"),
    ({"cost": replace(SQUARE["cost"], shape=(2**62, 5))}, {}, "cost"),
    ({"cost": replace(SQUARE["cost"], shape=(6, 0))}, {}, "cost"),
    ({"cost": Csr(np.array([0, 3]), np.array([0, 1, 0]), np.ones(3), (1, 2))}, {}, "cost.indices"),
    ({"cost": Csr(np.array([0, 3]), np.array([0, 1, 1]), np.ones(3), (1, 2))}, {}, "cost.indices"),
    ({"a": -SQUARE["a"]}, {}, "a"),
    ({"a": SQUARE["a"][:-1]}, {}, "a"),
    ({"a": SQUARE["cost"]}, {}, "a"),
    ({"b": SQUARE["b"] * np.nan}, {}, "b"),
    ({"b": 2 * SQUARE["b"]}, {"reg_m": "inf"}, "b"),
    ({"x": np.ones((6, 2))}, {}, "x"),
    ({"labels": np.zeros(5, int)}, {}, "labels"),
    ({"g0": np.zeros(4)}, {}, "g0"),
    ({}, {"reg": 1e-14}, "cost"),
    ({}, {"reg": 1e-120}, "reg"),
    ({}, {"reg_m": 1e300}, "reg_m"),
    ({}, {"method": "exact"}, "method"),
    ({}, {"method": "fused"}, "method"),
    ({}, {"storage": "float32"}, "storage"),
    ({}, {"marginals": "tv"}, "marginals"),
    ({}, {"mass": 0.5}, "mass"),
    ({}, {"mass_share": 0.5}, "mass_share"),
    ({}, {"divergence": True}, "divergence"),
    ({}, {"output": "potentials"}, "output"),
    ({}, {"gradients": True}, "gradients"),
    ({}, {"barycentric": True}, "barycentric"),
    ({}, {"top_k": 3}, "top_k"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_wrong_is_said(number: int) -> None:
    inputs, options, field = WRONG[number]
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build(SQUARE | inputs, CARD.options(**options))
    assert wrong.value.field == field
    assert "expected" in wrong.value.message


@pytest.mark.parametrize("power", [-60, -3, 3, 60])
def test_units_change_nothing(power: int) -> None:
    inputs, unit = graph(20, 30), 10.0**power
    cost = inputs["cost"]
    scaled = inputs | {"cost": replace(cost, values=cost.values * unit)}
    for reg_m in (1.0, math.inf):
        first = solved(inputs, reg=0.05, reg_m=reg_m)[2].objective
        other = solved(scaled, reg=0.05 * unit, reg_m=reg_m * unit)[2].objective
        assert first is not None
        assert other == pytest.approx(first * unit, rel=1e-5)


def test_strengths_in_units_of_the_costs() -> None:
    inputs = graph(20, 30)
    cost = inputs["cost"]
    rows = np.repeat(np.arange(20), np.diff(cost.indptr))
    weights = inputs["a"][rows] * inputs["b"][cost.indices]
    problem, solution, _ = solved(inputs, reg_scale="median", reg=0.1, reg_m=2.0)
    assert problem.reg == pytest.approx(0.1 * float(np.median(cost.values)))
    problem, solution, _ = solved(inputs)
    mean = float((weights * cost.values).sum() / weights.sum())
    assert solution.facts["reg"] == pytest.approx(0.05 * mean)
    assert solution.facts["reg_m"] == pytest.approx([mean, mean])


def test_without_a_certificate_the_objective_is_the_solvers_own() -> None:
    inputs, options = graph(20, 30), {"reg": 0.05, "reg_m": 1.0}
    proved = solved(inputs, **options)[2].objective
    asked = CARD.options(**options, certificate="none")
    _, certificate = solve_and_prove(CARD, CARD.build(inputs, asked), asked, Deadline(), "cpu")
    assert certificate.objective == pytest.approx(proved, rel=1e-12)
    assert certificate.bound is None


def test_masses_that_barely_exist() -> None:
    inputs: dict[str, Array | Csr] = dict(graph(8, 9))
    for options in ({"reg_m": 1.0}, {"reg_m": 1.0, "reference": "uniform"}):
        masses = {name: np.asarray(inputs[name]) * 1e-200 for name in "ab"}
        _, solution, certificate = solved(inputs | masses, reg=0.5, **options)
        assert np.isfinite(solution.arrays["entry_values"]).all()
        assert certificate.bound is not None


def test_the_gap_is_one_of_all_that_is_paid() -> None:
    """Mass that no entry reaches costs what it costs: beside a negative value of the others it can leave little."""
    there = np.zeros((5, 3), bool)
    there[:3, :2] = True
    cost = stored(np.full((5, 3), -0.5), there)
    _, solution, certificate = solved({"cost": cost}, reg=0.02, reg_m=0.5)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.termination is None
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-6


def _strictly(lines: Any, scale: float, values: Any) -> Any:
    return STRICT.asarray(HOST.soft(lines, scale, values.get()))


@pytest.mark.parametrize("label", ["plain", "uniform", "rows", "columns", "balanced", "lonely", "small-reg"])
def test_the_sweeps_of_a_device_mix_no_arrays_of_the_host_in(label: str) -> None:
    """On a stand-in for CuPy: the same answer as with NumPy."""
    case = FAMILIES[f"sparse-{label}"]
    asked = CARD.options(**case.options)
    problem = CARD.build(case.inputs(), asked)
    device = Sweeper("log", STRICT, lambda lines: lines, _strictly)
    here, there = (solve(problem, asked, Deadline(60), one) for one in (HOST, device))
    assert here.iterations == there.iterations
    for name in ("f", "g", "entry_values"):
        np.testing.assert_allclose(there.arrays[name], here.arrays[name], rtol=1e-9, atol=1e-12)
    assert CARD.certify(problem, there).holds


@pytest.mark.gpu
@pytest.mark.parametrize("reg_m", [1.0, ("inf", 1.0), "inf"])
def test_the_gpu_finds_the_same(reg_m: Any) -> None:
    need_gpu()
    inputs, asked = graph(3000, 2500, 0.01), CARD.options(reg=0.01, reg_m=reg_m)
    problem = CARD.build(inputs, asked)
    there, proof = solve_and_prove(CARD, problem, asked, Deadline(60), "gpu")
    assert proof.holds
    assert there.termination is Termination.GAP_REACHED
    assert proof.objective == pytest.approx(solved(inputs, reg=0.01, reg_m=reg_m)[2].objective, rel=3e-6)
