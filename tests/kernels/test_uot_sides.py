"""A part of the mass, total variation and squares: against linear and convex programming, and POT; their proofs."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import block_array, eye, kron

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Claim,
    Deadline,
    Inputs,
    InvalidProblem,
    Solution,
    Termination,
    recheck,
    solve_and_prove,
)
from tests.conftest import need_gpu

CARD = SOLVERS["uot"]
KINDS: list[dict[str, Any]] = [
    {"mass_share": 0.6},
    {"mass_share": 1.0},
    {"marginals": "tv", "reg_m": [0.7, 1.3]},
    {"marginals": "l2", "reg_m": [20.0, 50.0]},
]


def prove(inputs: Inputs, device: Any = "cpu", **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options.model_validate(options)
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(), device)
    word = (certificate.termination or solution.termination).value
    proof = certificate
    numbers = (proof.objective, proof.bound, proof.gap_abs, proof.gap_rel, proof.max_violation)
    said = recheck("uot", inputs, options, Claim(word, *numbers, solution.arrays, certificate.facts))
    assert said
    assert all(one.holds for one in said), [one for one in said if not one.holds]
    return solution, certificate


def programme(cost: Array, a: Array, b: Array, mass: float | None, strengths: tuple[float, float]) -> float | None:
    """The optimum by linear programming; None where there is no plan."""
    m, n = cost.shape
    free = np.isfinite(cost)
    limits = [(0, None if one else 0) for one in free.ravel()]
    prices = np.where(free, cost, 0).ravel()
    rows, columns = kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))
    if mass is not None:
        sides = {"A_ub": block_array([[rows], [columns]]), "b_ub": np.r_[a, b] * (1 + 1e-14)}
        found = linprog(prices, **sides, A_eq=np.ones((1, m * n)), b_eq=[mass], bounds=limits)
        return None if found.status == 2 else float(found.fun)
    sides = block_array(
        [[rows, -eye(m), None], [-rows, -eye(m), None], [columns, None, -eye(n)], [-columns, None, -eye(n)]]
    )
    prices = np.r_[prices, np.full(m, strengths[0]), np.full(n, strengths[1])]
    found = linprog(prices, A_ub=sides, b_ub=np.r_[a, -a, b, -b], bounds=limits + [(0, None)] * (m + n))
    return float(found.fun)


def instance(seed: int) -> tuple[Array, Array, Array, bool]:
    """Costs, masses, and whether they are whole."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 8, 2)
    whole = seed % 2 == 0
    cost = rng.integers(-4, 20, (m, n)).astype(float) if whole else rng.normal(size=(m, n))
    a, b = rng.integers(0, 9, m) + (np.arange(m) == 0), rng.integers(0, 9, n) + (np.arange(n) == 0)
    if seed % 3 == 0:
        cost[rng.random((m, n)) < 0.4] = np.inf
    return (cost, a, b, True) if whole else (cost, a * 0.37, b * 0.11, False)


@pytest.mark.parametrize("seed", range(24))
def test_a_part_of_the_mass_without_entropy_agrees_with_linear_programming(seed: int) -> None:
    cost, a, b, whole = instance(seed)
    most = min(a.sum(), b.sum())
    mass = most if seed % 5 == 0 else float(np.ceil(most * 0.6)) if whole else most * 0.6
    given = cost.astype(int) if whole and np.isfinite(cost).all() else cost
    options = {"mass_share": 1.0} if seed % 5 == 0 else {"mass": float(mass)}
    solution, certificate = prove({"cost": given, "a": a, "b": b}, method="exact", **options)
    wanted = programme(cost, a, b, mass, (0, 0))
    assert certificate.holds
    if wanted is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert (certificate.termination or solution.termination) is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(wanted, abs=1e-9)
    plan = solution.arrays["plan"]
    assert certificate.max_violation <= (0 if whole else 1e-13)
    assert (plan.sum(axis=1) <= a + 1e-13).all()
    assert (plan.sum(axis=0) <= b + 1e-13).all()
    assert plan.sum() == pytest.approx(mass, rel=1e-13)


@pytest.mark.parametrize("seed", range(24))
def test_total_variation_without_entropy_agrees_with_linear_programming(seed: int) -> None:
    cost, a, b, whole = instance(seed)
    rng = np.random.default_rng(seed)
    strengths = tuple(float(one) for one in rng.integers(2, 9, 2) * (1 if whole else 0.3))
    cost = np.maximum(cost, -0.9 * sum(strengths)).round() if whole else np.maximum(cost, -0.9 * sum(strengths))
    given = cost.astype(int) if whole and np.isfinite(cost).all() else cost
    inputs = {"cost": given, "a": a, "b": b}
    solution, certificate = prove(inputs, method="exact", marginals="tv", reg_m=list(strengths))
    wanted = programme(cost, a, b, None, (strengths[0], strengths[1]))
    assert certificate.holds
    assert (certificate.termination or solution.termination) is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(wanted, abs=1e-9)


def test_partial_transport_agrees_with_pot() -> None:
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(5)
    cost, a, b = rng.random((12, 15)), rng.random(12), rng.random(15)
    mass = 0.5 * float(min(a.sum(), b.sum()))
    _, certificate = prove({"cost": cost, "a": a, "b": b}, method="exact", mass=mass)
    assert certificate.objective == pytest.approx((ot.partial.partial_wasserstein(a, b, cost, m=mass) * cost).sum())
    inputs, options = {"cost": cost, "a": a, "b": b}, {"mass": mass, "reference": "uniform", "tolerance": 1e-10}
    solution, certificate = prove(inputs, reg=0.05, **options)
    theirs = ot.partial.entropic_partial_wasserstein(a, b, cost, 0.05, m=mass, numItermax=500, stopThr=1e-12)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-10
    assert solution.arrays["plan"] == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("kind", ["tv", "l2"])
def test_marginals_with_a_price_agree_with_pot(kind: str) -> None:
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(6)
    cost, a, b = rng.random((6, 5)), rng.random(6) / 3, rng.random(5) / 3
    strengths = np.array([0.4, 0.3]) if kind == "tv" else np.array([3.0, 5.0])
    inputs = {"cost": cost, "a": a, "b": b}
    options = {"marginals": kind, "reg_m": strengths.tolist(), "tolerance": 1e-10, "reg": 0.1}
    solution, certificate = prove(inputs, **options)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-10

    def value(plan: Array) -> float:
        apart = [plan.sum(axis=1) - a, plan.sum(axis=0) - b]
        paid = [abs(one).sum() if kind == "tv" else (one**2).sum() / 2 for one in apart]
        entropy = (plan * np.log(np.where(plan > 0, plan, 1) / np.outer(a, b)) - plan + np.outer(a, b)).sum()
        return float((plan * cost).sum() + strengths @ paid + 0.1 * entropy)

    theirs = ot.unbalanced.lbfgsb_unbalanced(a, b, cost, 0.1, strengths, regm_div=kind, numItermax=100, stopThr=1e-12)
    assert certificate.objective == pytest.approx(value(solution.arrays["plan"]), rel=1e-9)
    assert certificate.bound is not None
    assert certificate.bound <= value(theirs)
    assert value(theirs) == pytest.approx(certificate.objective, rel=5e-2 if kind == "tv" else 1e-3)


@pytest.mark.parametrize("reg", [1.0, 0.003])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_the_certificate_closes_at_any_reg(options: dict[str, Any], reg: float) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.random((30, 2)), rng.random((41, 2)) + 0.3
    a, b = rng.random(30) / 15, np.r_[rng.random(40) / 20, 0.0]
    solution, certificate = prove({"x": x, "y": y, "a": a, "b": b}, reg=reg, tolerance=1e-7, **options)
    assert (certificate.termination or solution.termination) is Termination.GAP_REACHED
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-7
    assert certificate.max_violation < 1e-12
    limit = (
        prove({"x": x, "y": y, "a": a, "b": b}, method="exact", **options)[1]
        if reg < 1 and "l2" not in str(options)
        else None
    )
    if limit is not None and certificate.bound is not None and limit.objective is not None:
        assert certificate.objective is not None
        assert certificate.objective == pytest.approx(limit.objective, abs=0.05)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_forbidden_entries_carry_nothing(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    cost, a, b = rng.random((20, 25)), rng.random(20) / 10, rng.random(25) / 10
    cost[rng.random(cost.shape) < 0.6] = np.inf
    cost[3], cost[:, 4] = np.inf, np.inf
    if options.get("mass_share") == 1.0:
        b[4] += 3.0
        b[5:] += 1.0
        a[3] = 0.0
    solution, certificate = prove({"cost": cost, "a": a, "b": b}, reg=0.05, tolerance=1e-7, **options)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-7
    assert not solution.arrays["plan"][np.isinf(cost)].any()


def test_where_forbidden_entries_leave_no_way_rows_show_it() -> None:
    cost = np.array([[1.0, np.inf], [2.0, np.inf], [np.inf, 3.0]])
    inputs = {"cost": cost, "a": np.array([4.0, 3.0, 1.0]), "b": np.array([2.0, 9.0])}
    for options in ({"method": "exact"}, {"reg": 0.1}):
        solution, certificate = prove(inputs, mass=3.5, **options)
        assert solution.termination is Termination.INFEASIBLE
        assert certificate.holds
        assert sorted(solution.arrays["hall_rows"]) == [0, 1]
        assert prove(inputs, mass=2.9, **options)[1].objective is not None


@pytest.mark.parametrize("method", ["exact", "auto"])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_corrupted_answer_proves_nothing_false(options: dict[str, Any], method: str) -> None:
    if method == "exact" and options.get("marginals") == "l2":
        return
    rng = np.random.default_rng(9)
    inputs = {"cost": rng.random((6, 5)), "a": rng.random(6), "b": rng.random(5)}
    chosen = CARD.options.model_validate({"method": method, **options, **({"reg": 0.1} if method == "auto" else {})})
    problem = CARD.build(inputs, chosen)
    solution, good = solve_and_prove(CARD, problem, chosen, Deadline(), "cpu")
    assert good.objective is not None
    assert good.bound is not None
    for _ in range(30):
        arrays = {name: array.copy() for name, array in solution.arrays.items()}
        name = ("f", "g", "plan")[rng.integers(3)]
        at = tuple(rng.integers(0, size) for size in arrays[name].shape)
        arrays[name][at] += rng.choice([-1e-3, 1e-3, 0.3, -0.3, 50.0, -50.0])
        found = CARD.certify(problem, dataclasses.replace(solution, arrays=arrays))
        if found.bound is not None:
            assert found.bound <= good.objective
        if found.objective is not None and found.holds:
            assert found.objective >= good.bound - 1e-12
    for name, wrong in (("g", np.nan), ("plan", np.nan), ("plan", -1.0)):
        arrays = {key: array.copy() for key, array in solution.arrays.items()}
        arrays[name].flat[0] = wrong
        found = CARD.certify(problem, dataclasses.replace(solution, arrays=arrays))
        assert found.bound is None or not found.holds


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("mass", {"mass": 5.0}),
        ("mass_share", {"mass": 0.5, "mass_share": 0.5}),
        ("marginals", {"mass": 0.5, "marginals": "tv"}),
        ("reg_m", {"mass": 0.5, "reg_m": 1.0}),
        ("reg_m", {"marginals": "tv", "reg_m": [1.0, "inf"]}),
        ("method", {"marginals": "l2", "method": "exact"}),
        ("method", {"marginals": "tv", "method": "fused"}),
        ("reg", {"mass": 0.5, "method": "exact", "reg": 0.1}),
        ("output", {"mass": 0.5, "output": "potentials"}),
        ("cost", {"marginals": "tv", "method": "exact", "reg_m": 0.25}),
        ("top_k", {"mass": 0.5, "top_k": 2}),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(field: str, options: dict[str, Any]) -> None:
    cost = np.array([[1.0, -1.0], [0.5, 2.0]])
    with pytest.raises(InvalidProblem) as caught:
        CARD.build({"cost": cost}, CARD.options.model_validate(options))
    assert caught.value.field == field


def test_the_mass_is_never_more_than_a_side_has() -> None:
    b = np.array([5 / 3, 1.0, 0.0, 8 / 3, 3.0])  # the float nearest to their sum is above it
    given = sum(map(Fraction, b.tolist()), Fraction(0))
    assert math.fsum(b) > given
    for options in ({"mass_share": 1.0}, {"mass": math.fsum(b)}):
        chosen = CARD.options.model_validate({"method": "exact", **options})
        assert CARD.build({"cost": np.ones((2, 5)), "a": np.array([6.0, 7.0]), "b": b}, chosen).mass <= given


def test_a_share_of_whole_masses_need_not_be_whole() -> None:
    inputs = {"cost": np.array([[1, 16], [27, 30]]), "a": np.array([1, 9]), "b": np.array([1, 6])}
    solution, certificate = prove(inputs, method="exact", mass_share=0.37)
    assert (certificate.termination or solution.termination) is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(1 + 1.59 * 30)


def proved_beside(inputs: Inputs, changed: dict[str, Array], **options: Any) -> Certificate:
    """The certificate of the exact solver's answer with other arrays in it."""
    chosen = CARD.options.model_validate({"method": "exact", **options})
    problem = CARD.build(inputs, chosen)
    solution, _ = solve_and_prove(CARD, problem, chosen, Deadline(), "cpu")
    return CARD.certify(problem, dataclasses.replace(solution, arrays=solution.arrays | changed))


@pytest.mark.parametrize(
    ("cost", "reg_m", "g", "optimum"),
    [
        ([[5.0]], 0.1, np.array([0.1], np.float32), 0.2),  # a limit that is rounded to float32 is another
        ([[2**53 + 3]], 2.0**60, np.array([0]), 2**53 + 3),  # and so is an integer beside a limit that is a float
        ([[3]], 300.0, np.array([1], np.int8), 3),
    ],
)
def test_potentials_of_any_type_prove_no_more_than_the_optimum(cost: Any, reg_m: float, g: Array, optimum: Any) -> None:
    one = np.ones(1, np.asarray(cost).dtype)
    found = proved_beside({"cost": np.array(cost), "a": one, "b": one}, {"g": g}, marginals="tv", reg_m=reg_m)
    assert found.bound is not None
    assert Fraction(found.bound) <= Fraction(optimum)


def test_potentials_and_plans_out_of_range_prove_nothing() -> None:
    inputs = {"cost": np.array([[-1e300, 1.0]]), "a": np.ones(1), "b": np.ones(2)}
    with np.errstate(over="ignore"):
        found = proved_beside(inputs, {"g": np.full(2, np.finfo(float).max)}, mass=1.0)
    assert (found.bound, found.termination) == (None, Termination.CONVERGED)
    found = proved_beside(inputs, {"plan": np.full((1, 2), 1e308)}, mass=1.0)
    assert (found.objective, found.facts["mass"]) == (None, None)


def test_a_value_beyond_the_floats_is_none() -> None:
    one, options = np.ones(1), {"method": "auto", "marginals": "l2", "reg": 0.1, "reg_m": 1.0}
    found = proved_beside({"cost": np.ones((1, 1)), "a": one, "b": one}, {"plan": np.full((1, 1), 1e300)}, **options)
    assert (found.objective, found.bound is None) == (None, False)


def test_a_price_that_is_nothing_beside_reg_is_solved_and_proved() -> None:
    """In units in which reg is near 1 it is below all floats, and so is its ratio to reg."""
    rng = np.random.default_rng(0)
    inputs = {"cost": rng.random((5, 6)), "a": rng.random(5), "b": rng.random(6)}
    _, certificate = prove(inputs, marginals="l2", reg=7e290, reg_m=3e-283)
    assert certificate.holds
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert certificate.bound <= certificate.objective
    found = proved_beside(inputs, {"f": np.full(5, 1e200)}, method="auto", marginals="l2", reg=7e290, reg_m=3e-283)
    assert found.bound is None
    rank_1 = {"cost": np.zeros((1, 1)), "a": np.ones(1), "b": np.ones(1)}
    found = proved_beside(rank_1, {"plan": np.full((1, 1), 2.0)}, method="auto", marginals="l2", reg=7e290, reg_m=1e-20)
    assert found.objective is not None


@pytest.mark.parametrize("mass", [1e-20, 1e-300])
def test_a_mass_far_below_the_lines_is_moved(mass: float) -> None:
    inputs = {"cost": np.array([[0.0, 1.0], [0.0, 1.0]]), "a": np.ones(2), "b": np.array([mass / 4, 1.0])}
    solution, certificate = prove(inputs, method="exact", mass=mass)
    assert (certificate.termination or solution.termination) is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(0.75 * mass, rel=1e-12)
    assert solution.arrays["plan"].sum() == pytest.approx(mass, rel=1e-12)
    empty = proved_beside(inputs, {"plan": np.zeros((2, 2)), "g": np.zeros(2)}, mass=mass)
    assert (empty.objective, empty.termination) == (None, Termination.CONVERGED)


def test_whole_costs_are_not_rounded_without_a_word() -> None:
    inputs = {"cost": np.array([[2**53 + 3]]), "a": np.array([1]), "b": np.array([1])}
    for strength in (2.0**61, 2.0**51 + 0.5):
        with pytest.raises(InvalidProblem, match=r"beyond 2\^53"):
            CARD.build(inputs, CARD.options.model_validate({"method": "exact", "marginals": "tv", "reg_m": strength}))
    inputs["cost"] -= 1  # a float: no error
    _, certificate = prove(inputs, method="exact", marginals="tv", reg_m=2.0**61)
    assert certificate.objective == certificate.bound == 2**53 + 2


@pytest.mark.parametrize("power", [275, -275, 41])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_powers_of_two_change_nothing_but_the_scale(options: dict[str, Any], power: int) -> None:
    rng = np.random.default_rng(11)
    inputs = {"cost": rng.random((7, 9)), "a": rng.random(7), "b": rng.random(9)}

    def scaled(k: int) -> Solution:
        units = {"reg": math.ldexp(0.1, k), "reg_m": [math.ldexp(r, k) for r in options.get("reg_m", ())]}
        chosen = options | {name: value for name, value in units.items() if value}
        return prove(inputs | {"cost": np.ldexp(inputs["cost"], k)}, **chosen)[0]

    plain, other = scaled(0).arrays, scaled(power).arrays
    np.testing.assert_array_equal(other["plan"], plain["plan"])
    np.testing.assert_array_equal(other["f"], np.ldexp(plain["f"], power))
    np.testing.assert_array_equal(other["g"], np.ldexp(plain["g"], power))


@pytest.mark.gpu
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_the_gpu_agrees_with_the_cpu(options: dict[str, Any]) -> None:
    need_gpu()
    rng = np.random.default_rng(10)
    inputs = {"cost": rng.random((70, 90)), "a": rng.random(70) / 30, "b": rng.random(90) / 40}
    found = [prove(inputs, device, reg=0.01, tolerance=1e-9, **options) for device in ("cpu", "gpu")]
    for _, certificate in found:
        assert certificate.gap_rel is not None
        assert certificate.gap_rel <= 1e-9
    assert found[0][1].objective == pytest.approx(found[1][1].objective, rel=1e-8)


def test_what_rounding_leaves_of_a_mass_is_no_fault() -> None:
    """Lines far heavier than what is moved: the sweeps miss 5e-14 of it, which the gap counts."""
    inputs = {
        "cost": np.array([[np.inf, 6.97e-28], [9.79e-29, np.inf]]),
        "a": np.array([90.19, 44.71]),
        "b": np.array([2.88e-4, 8.78e-4]),
    }
    given: dict[str, Any] = {"reg": 1e-30, "mass_share": 1.0, "tolerance": 1e-13, "reference": "uniform"}
    solution, certificate = prove(inputs, **given)
    assert certificate.objective is not None
    assert (certificate.termination or solution.termination) is Termination.GAP_REACHED


def test_an_objective_below_the_normal_numbers_may_be_one_of_the_smallest_above() -> None:
    inputs = {"cost": np.array([[3.81469727e-06, 0.0]]), "a": np.ones(1), "b": np.array([2.0, 1.0])}
    options = {"method": "exact", "mass_share": 0.37}
    solution, _ = prove(inputs, **options)
    solution.arrays["plan"][0, 0] = 2.22507386e-314
    problem = CARD.build(inputs, CARD.options.model_validate(options))
    found = CARD.certify(problem, solution)
    assert found.objective is not None
    assert 0 < found.objective < 1e-319
    word = (found.termination or solution.termination).value
    numbers = (found.objective, found.bound, found.gap_abs, found.gap_rel, found.max_violation)
    said = recheck("uot", inputs, options, Claim(word, *numbers, solution.arrays, found.facts))
    assert [one.holds for one in said if one.name == "objective"] == [True]


@pytest.mark.parametrize("termination", [Termination.OPTIMAL, Termination.GAP_REACHED])
def test_mass_that_is_not_moved_makes_no_plan_optimal(termination: Termination) -> None:
    """1e-9 of what all of it would cost was 1e-3 here, and a price of -1e300 allows any gap: 3e-6 was optimal."""
    inputs: Inputs = {"cost": np.array([[3.0, 1.0]]), "a": np.array([1e6]), "b": np.array([2e-6, 2e-6])}
    options = {"method": "exact", "mass": 1e-6}
    problem = CARD.build(inputs, CARD.options(**options))
    arrays = {"plan": np.array([[1e-6, 0.0]]), "f": np.zeros(1), "g": np.array([0.0, -1e300])}
    found = CARD.certify(problem, Solution(termination, "none", arrays))
    assert found.objective == pytest.approx(3e-6)
    assert found.termination is Termination.CONVERGED
    numbers = found.objective, found.bound, found.gap_abs, found.gap_rel, found.max_violation
    said = recheck("uot", inputs, options, Claim("converged", *numbers, arrays, found.facts, found.proved))
    assert all(one.holds for one in said)
    said = recheck("uot", inputs, options, Claim("optimal", *numbers, arrays, found.facts))
    assert {one.name for one in said if not one.holds} == {"optimal"}


@pytest.mark.parametrize(
    "options",
    [
        {"method": "exact", "mass_share": 0.5},
        {"method": "exact", "marginals": "tv", "reg_m": [0.3, 0.4]},
        {"reg": 0.1, "marginals": "tv", "reg_m": [0.3, 0.4]},
        {"reg": 0.1, "marginals": "l2", "reg_m": [2.0, 1.0]},
        {"reg": 0.1, "mass_share": 0.5},
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_numbers_a_little_better_than_what_is_proved_are_found(options: dict[str, Any], seed: int) -> None:
    """Objectives 2^-52 of the terms too small, and bounds 2^-40 of them too large, passed `allot verify`."""
    rng = np.random.default_rng(seed)
    inputs: Inputs = {"cost": rng.random((3, 4)), "a": rng.random(3), "b": rng.random(4)}
    solution, found = prove(inputs, **options)
    assert found.objective is not None
    assert found.bound is not None
    word, facts = str(found.termination or solution.termination), {**solution.facts, **found.facts}

    def wrong(objective: float, bound: float) -> set[str]:
        claim = Claim(word, objective, bound, found.gap_abs, None, found.max_violation, solution.arrays, facts)
        return {one.name for one in recheck("uot", inputs, options, claim) if one.holds is False}

    assert not wrong(found.objective, found.bound)
    assert "bound" in wrong(found.objective, found.bound + 2.0**-41 * found.objective)
    if "method" in options:  # with entropy float64 knows less of the plan's value
        assert "objective" in wrong(math.nextafter(found.objective * (1 - 2.0**-53), 0), found.bound)
