"""Method exact: the network simplex against linear programming, and its certificate against corrupted answers."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import eye, kron, vstack

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

CARD = SOLVERS["uot"]


def prove(inputs: Inputs, deadline: Deadline | None = None, **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options.model_validate({"method": "exact", **options})
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, deadline or Deadline(), "cpu")
    said = recheck("uot", inputs, {"method": "exact", **options}, claim(solution, certificate))
    assert all(one.holds for one in said), said
    return solution, certificate


def claim(solution: Solution, proof: Certificate) -> Claim:
    word = (proof.termination or solution.termination).value
    numbers = (proof.objective, proof.bound, proof.gap_abs, proof.gap_rel, proof.max_violation)
    return Claim(word, *numbers, solution.arrays, proof.facts)


def programme(cost: Array, a: Array, b: Array) -> float | None:
    """The optimum by linear programming, None where there is no plan."""
    (m, n), free = cost.shape, np.isfinite(cost)
    sides = vstack([kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))])
    limits = [(0, None if one else 0) for one in free.ravel()]
    found = linprog(np.where(free, cost, 0).ravel(), A_eq=sides, b_eq=np.r_[a, b], bounds=limits)
    return None if found.status == 2 else float(found.fun)


@pytest.mark.parametrize("seed", range(60))
def test_whole_masses_agree_with_linear_programming(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 8, 2)
    cost = rng.integers(-5, 20, (m, n)).astype(float)
    a = rng.integers(0, 9, m) + (np.arange(m) == 0)
    b = rng.multinomial(a.sum(), np.ones(n) / n)
    if seed % 3 == 0:
        cost[rng.random((m, n)) < 0.4] = np.inf
    wanted = programme(cost, a, b)
    given = cost.astype(int) if seed % 2 and np.isfinite(cost).all() else cost
    solution, certificate = prove({"cost": given, "a": a, "b": b})
    assert certificate.holds
    if wanted is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert solution.termination is Termination.OPTIMAL
    assert certificate.gap_abs == 0
    assert certificate.max_violation == 0
    assert certificate.objective == pytest.approx(wanted, abs=1e-9)
    assert (solution.arrays["plan"].sum(axis=1) == a).all()
    assert np.count_nonzero(solution.arrays["plan"]) <= m + n - 1


@pytest.mark.parametrize("scale", [-900, 0, 900])
@pytest.mark.parametrize("seed", range(10))
def test_floats_agree_with_linear_programming_in_any_unit(seed: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 12, 2)
    cost, a, b = rng.normal(size=(m, n)), rng.random(m), rng.random(n)
    a, b = a / a.sum(), b / b.sum()
    solution, certificate = prove({"cost": np.ldexp(cost, scale), "a": a, "b": b})
    wanted = programme(cost, a, b)
    assert certificate.objective is not None
    assert float(np.ldexp(certificate.objective, -scale)) == pytest.approx(wanted, rel=1e-9)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-13
    assert certificate.max_violation < 1e-14
    assert (solution.arrays["plan"] >= 0).all()


@pytest.mark.parametrize("n", [30, 120])
def test_uniform_masses_are_an_assignment(n: int) -> None:
    cost = np.random.default_rng(n).integers(0, 1000, (n, n))
    _, certificate = prove({"cost": cost, "a": np.ones(n, int), "b": np.ones(n, int)})
    assert certificate.objective == cost[linear_sum_assignment(cost)].sum() == certificate.bound


def test_masses_are_rows_that_are_repeated() -> None:
    rng = np.random.default_rng(3)
    cost, a = rng.integers(0, 50, (6, 9)), np.array([1, 4, 2, 5, 3, 3])
    b = rng.multinomial(a.sum(), np.ones(9) / 9)
    wide = np.repeat(np.repeat(cost, a, axis=0), b, axis=1)
    _, certificate = prove({"cost": cost, "a": a, "b": b})
    assert certificate.objective == wide[linear_sum_assignment(wide)].sum()


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "inner", "cityblock", "cosine", "correlation"])
def test_points_are_costs_worked_out_in_float64(metric: str) -> None:
    rng = np.random.default_rng(4)
    solution, certificate = prove({"x": rng.normal(size=(9, 3)), "y": rng.normal(size=(7, 3))}, metric=metric)
    assert solution.facts["costs"] == "worked out in float64"
    assert certificate.holds
    assert solution.termination is Termination.OPTIMAL


def test_large_integers_lose_no_digit() -> None:
    cost = np.array([[2**59 + 1, 2**59], [2**59, 2**59 + 1]])
    _, certificate = prove({"cost": cost, "a": np.array([3, 4]), "b": np.array([4, 3])})
    assert certificate.objective == certificate.bound == 7 * 2**59


def test_ties_and_zeros_end() -> None:
    for cost in (np.zeros((40, 40), int), np.ones((40, 40)), np.arange(40)[:, None] + np.arange(40)):
        solution, certificate = prove({"cost": cost})
        assert solution.termination is Termination.OPTIMAL
        assert certificate.gap_abs is not None


def test_what_is_cut_short_is_a_plan_with_a_bound() -> None:
    rng = np.random.default_rng(5)
    inputs = {"x": rng.random((300, 2)), "y": rng.random((300, 2))}
    chosen = CARD.options.model_validate({"method": "exact"})
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(1e-6), "cpu")
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.objective is not None
    assert certificate.bound is not None
    assert certificate.bound < certificate.objective


@pytest.mark.parametrize("output", ["plan", "potentials"])
def test_outputs(output: str) -> None:
    rng = np.random.default_rng(6)
    cost = rng.integers(0, 9, (5, 6))
    a, b = np.array([6, 6, 6, 6, 6]), np.array([5, 5, 5, 5, 5, 5])
    solution, certificate = prove({"cost": cost, "a": a, "b": b}, output=output)
    assert solution.termination is Termination.OPTIMAL
    slack = cost - solution.arrays["f"][:, None] - solution.arrays["g"]
    assert slack.min() == 0
    if output == "potentials":
        listed = (solution.arrays[name] for name in ("entry_rows", "entry_columns", "entry_values"))
        assert sum(cost[i, j] * mass for i, j, mass in zip(*listed, strict=True)) == certificate.objective


def corrupted() -> dict[str, Callable[[dict[str, Array]], None]]:
    def plan(at: tuple[int, int], by: float) -> Callable[[dict[str, Array]], None]:
        def change(arrays: dict[str, Array]) -> None:
            arrays["plan"][at] += by

        return change

    def prices(by: Any) -> Callable[[dict[str, Array]], None]:
        def change(arrays: dict[str, Array]) -> None:
            arrays["g"] = arrays["g"] + by

        return change

    return {
        "more mass": plan((0, 0), 1e-3),
        "one ulp of mass": plan((0, 0), 2.0**-54),
        "negative mass": plan((0, 0), -1.0),
        "no number in the plan": plan((0, 0), np.nan),
        "prices moved": prices(np.linspace(0, 0.5, 7)),
        "a price that is none": prices(np.array([0, 0, np.inf, 0, 0, 0, 0])),
        "prices of 1e300": prices(1e300 * np.arange(7)),
        "no prices": lambda arrays: arrays.pop("g") is None,
        "another shape": lambda arrays: arrays.update(plan=arrays["plan"][:, :-1]),
    }


@pytest.mark.parametrize("name", corrupted())
def test_a_corrupted_answer_is_refused_or_told_truly(name: str) -> None:
    rng = np.random.default_rng(7)
    cost, a, b = rng.random((6, 7)), rng.random(6), rng.random(7)
    inputs = {"cost": cost, "a": a / a.sum(), "b": b / b.sum()}
    chosen = CARD.options.model_validate({"method": "exact"})
    problem = CARD.build(inputs, chosen)
    solution = CARD.solve(problem, chosen, Deadline())
    best = CARD.certify(problem, solution)
    solution.arrays = {key: array.copy() for key, array in solution.arrays.items()}
    corrupted()[name](solution.arrays)
    found = CARD.certify(problem, solution)
    if not found.holds:
        return
    assert best.objective is not None
    if found.bound is not None:
        assert Fraction(found.bound) <= Fraction(best.objective)
    if found.objective is not None:
        assert found.gap_abs is not None
        assert Fraction(found.objective) + Fraction(found.gap_abs) >= Fraction(best.bound or 0)
    said = recheck("uot", inputs, {"method": "exact"}, claim(solution, found))
    assert all(one.holds for one in said), said


def test_a_hall_set_that_shows_nothing_is_refused() -> None:
    cost = np.array([[0.0, np.inf], [0.0, np.inf], [0.0, 0.0]])
    inputs = {"cost": cost, "a": np.array([2, 1, 1]), "b": np.array([2, 2])}
    solution, _ = prove(inputs)
    assert solution.termination is Termination.INFEASIBLE
    assert solution.arrays["hall_rows"].tolist() == [0, 1]
    problem = CARD.build(inputs, CARD.options.model_validate({"method": "exact"}))
    for rows in ([2], [0], [], [0, 0], [5]):
        solution.arrays["hall_rows"] = np.array(rows, int)
        assert CARD.certify(problem, solution).holds is False


@pytest.mark.parametrize(
    ("inputs", "options", "field"),
    [
        ({}, {"reg": 0.1}, "reg"),
        ({}, {"reg_m": 1.0}, "reg_m"),
        ({}, {"top_k": 1}, "top_k"),
        ({}, {"divergence": True}, "divergence"),
        ({"a": np.array([1, 2]), "b": np.array([1, 1])}, {}, "b"),
        ({"a": np.array([0.5, 0.5]), "b": np.array([0.5, 0.6])}, {}, "b"),
        ({"a": np.array([-1, 2]), "b": np.array([1, 0])}, {}, "a"),
        ({"cost": np.ones((2, 2, 2))}, {}, "cost"),
        ({"f0": np.ones(2)}, {}, "f0"),
        ({"cost": np.array([[2**61, 0], [0, 0]])}, {}, "cost"),
    ],
)
def test_what_method_exact_does_not_take_is_named(inputs: Inputs, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build({"cost": np.ones((2, 2)), **inputs}, CARD.options.model_validate({"method": "exact", **options}))
    assert wrong.value.field == field


def test_the_gpu_leaves_it_to_the_cpu() -> None:
    options = CARD.options.model_validate({"method": "exact"})
    assert CARD.suits(CARD.build({"cost": np.ones((900, 900))}, options), options) == ("cpu",)


def test_reg_m_may_say_inf() -> None:
    assert prove({"cost": np.eye(3)}, reg_m="inf")[0].termination is Termination.OPTIMAL
