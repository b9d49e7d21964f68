"""Transport among three measures: against other ways to work it out, and what must not change the answer."""

import math
import tracemalloc
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Deadline,
    InvalidProblem,
    Solution,
    Termination,
    solve_and_prove,
)
from kernels.multimarginal import sums
from kernels.multimarginal.sinkhorn import scale
from kernels.problems.multimarginal import Multimarginal
from tests.instances.multimarginal import clouds, masses, tensor, weighed
from tests.kernels.strict_arrays import STRICT

CARD = SOLVERS["multimarginal"]


def solved(inputs: Any, device: Any = "cpu", **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options(**options)
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(30), device)
    assert certificate.holds, certificate
    return solution, certificate


def built(inputs: Any, **options: Any) -> Multimarginal:
    problem: Multimarginal = CARD.build(inputs, CARD.options(**options))
    return problem


def linear(problem: Multimarginal) -> float:
    """The value without an entropic term, by SciPy."""
    cost, sizes = problem.costs(slice(None)), problem.sizes
    rows = [
        np.broadcast_to(np.eye(size)[k].reshape([-1 if at == side else 1 for at in range(3)]), sizes).ravel()
        for side, size in enumerate(sizes)
        for k in range(size)
    ]
    found = linprog(cost.ravel(), A_eq=np.array(rows), b_eq=np.concatenate(problem.masses), method="highs")
    return float(found.fun)


def dense(problem: Multimarginal, runs: int = 4000) -> tuple[float, Array]:
    """(value, plan) by Sinkhorn's iteration on the whole tensor, without any care."""
    kernel = np.exp(-problem.costs(slice(None)) / problem.reg)
    a, b, c = problem.masses
    reference = np.einsum("i,j,k->ijk", a, b, c)
    u, v, w = (np.ones(size) for size in problem.sizes)
    for _ in range(runs):
        u = 1 / np.einsum("ijk,j,k->i", kernel, b * v, c * w)
        v = 1 / np.einsum("ijk,i,k->j", kernel, a * u, c * w)
        w = 1 / np.einsum("ijk,i,j->k", kernel, a * u, b * v)
    plan = reference * kernel * np.einsum("i,j,k->ijk", u, v, w)
    held = plan > 0
    relative = float((plan[held] * np.log(plan[held] / reference[held])).sum())
    return float((problem.costs(slice(None)) * plan).sum()) + problem.reg * relative, plan


FAMILIES = {"clouds": clouds(7, 8, 9), "weighed": weighed(9, 7, 8), "tensor": tensor(6, 7, 8)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reg", [1.0, 0.1, 0.03])
def test_entropic_as_a_dense_iteration(family: str, reg: float, device: Any) -> None:
    inputs = FAMILIES[family]
    value, plan = dense(built(inputs, reg=reg))
    for output in ("plan", "marginals"):
        solution, certificate = solved(inputs, device, reg=reg, tolerance=1e-9, output=output)
        assert solution.termination is Termination.GAP_REACHED
        assert certificate.objective == pytest.approx(value, rel=1e-8)
        assert certificate.bound == pytest.approx(value, rel=1e-8)
        arrays = solution.arrays
        pairs = [plan.sum(axis=axis) for axis in (2, 1, 0)]
        if output == "plan":
            np.testing.assert_allclose(arrays["plan"], plan, atol=1e-7)
        else:
            for name, expected in zip(("plan_xy", "plan_xz", "plan_yz"), pairs, strict=True):
                np.testing.assert_allclose(arrays[name], expected, atol=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_as_a_linear_programme_of_scipy(family: str) -> None:
    problem = built(FAMILIES[family], reg=0)
    solution, certificate = solved(FAMILIES[family], reg=0)
    assert solution.termination is Termination.OPTIMAL
    best = linear(problem)
    assert certificate.objective == pytest.approx(best, abs=1e-9)
    assert certificate.bound == pytest.approx(best, abs=1e-9)
    arrays = solution.arrays
    spare = problem.costs(slice(None)) - arrays["f"][:, None, None] - arrays["g"][:, None] - arrays["h"]
    assert spare.min() > -1e-12
    assert float((spare * arrays["plan"]).sum()) < 1e-9


def test_no_pair_of_permutations_is_better(device: Any) -> None:
    n = 4
    cost = np.random.default_rng(2).random((n, n, n))
    best = min(
        sum(cost[i, p[i], q[i]] for i in range(n)) / n for p in permutations(range(n)) for q in permutations(range(n))
    )
    _, certificate = solved({"cost": cost}, reg=0)
    assert certificate.bound is not None
    assert certificate.bound <= best + 1e-12
    _, soft = solved({"cost": cost}, device, reg=0.01)
    assert soft.objective is not None
    assert certificate.bound <= soft.objective <= best + 0.01 * 3 * math.log(n)


def test_points_on_a_line_go_by_their_ranks() -> None:
    rng = np.random.default_rng(3)
    points = rng.random((3, 6))
    ranked = np.sort(points, axis=1)
    best = sum(((ranked[i] - ranked[j]) ** 2).mean() for i, j in ((0, 1), (0, 2), (1, 2)))
    inputs = {name: side[:, None] for name, side in zip("xyz", points, strict=True)}
    solution, certificate = solved(inputs, reg=0)
    assert certificate.objective == pytest.approx(best, rel=1e-9)
    order = np.argsort(points, axis=1)
    assert solution.arrays["plan"][tuple(order)] == pytest.approx(1 / 6)


@pytest.mark.parametrize("output", ["marginals", "plan"])
def test_what_is_returned_has_the_marginals(output: str, device: Any) -> None:
    for inputs in (weighed(8, 9, 7), tensor(8, 9, 7)):
        for iterations in (1, 500):  # far from them at first, so that the repair has much to do
            found, _ = solved(inputs, device, reg=0.05, output=output, iterations=iterations)
            sides = built(inputs, reg=0.05).masses
            arrays = found.arrays
            if output == "plan":
                got = [arrays["plan"].sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
            else:
                got = [arrays["plan_xy"].sum(axis=1), arrays["plan_yz"].sum(axis=1), arrays["plan_xz"].sum(axis=0)]
            for expected, side in zip(sides, got, strict=True):
                np.testing.assert_allclose(side, expected, atol=1e-14)


def test_small_reg_comes_near_the_linear_programme(device: Any) -> None:
    """Where exp(-C / reg) is 0 in most places, in clouds and in a tensor.

    A device takes ten times as long for an iteration of so small a problem, as the host waits: a larger reg there.
    """
    for inputs in (clouds(7, 8, 9), tensor(5, 6, 7)):
        best, reg = linear(built(inputs, reg=0)), 2e-4 if device == "cpu" else 2e-3
        _, certificate = solved(inputs, device, reg=reg, tolerance=1e-4, iterations=100_000)
        assert certificate.bound is not None
        assert certificate.objective is not None
        assert best - 1e-9 < certificate.bound <= certificate.objective < best + reg * math.log(7 * 8 * 9)


def test_clouds_and_their_tensor_are_one_problem(device: Any) -> None:
    inputs = weighed(8, 9, 10)
    problem = built(inputs, reg=0.05)
    same = {"cost": problem.costs(slice(None)), **{name: inputs[name] for name in "abc"}}
    _, told = solved(inputs, device, reg=0.05, tolerance=1e-9)
    _, again = solved(same, device, reg=0.05, tolerance=1e-9)
    assert again.objective == pytest.approx(told.objective, rel=1e-9)
    assert again.bound == pytest.approx(told.bound, rel=1e-9)


@pytest.mark.parametrize("reg", [0.05, 0])
def test_order_of_the_measures_does_not_matter(reg: float) -> None:
    inputs = clouds(6, 7, 8)
    turned = {"x": inputs["z"], "y": inputs["x"], "z": inputs["y"], "pair_weights": np.array([2.0, 3.0, 1.0])}
    _, told = solved({**inputs, "pair_weights": np.array([1.0, 2.0, 3.0])}, reg=reg, tolerance=1e-9)
    _, same = solved(turned, reg=reg, tolerance=1e-9)
    assert same.objective == pytest.approx(told.objective, rel=1e-8)


@pytest.mark.parametrize("reg", [0.1, 0])
def test_units_do_not_matter(reg: float) -> None:
    inputs = tensor(5, 6, 7)
    one, told = solved(inputs, reg=reg, output="plan")
    for power in (-90, 60):
        moved, scaled = solved(
            {**inputs, "cost": np.ldexp(inputs["cost"], power)}, reg=float(np.ldexp(reg, power)), output="plan"
        )
        assert told.objective is not None
        assert scaled.objective == pytest.approx(np.ldexp(told.objective, power), rel=1e-12)
        np.testing.assert_allclose(moved.arrays["plan"], one.arrays["plan"], atol=1e-12)


def test_points_without_mass_have_no_say() -> None:
    inputs = clouds(6, 7, 8)
    more = {**inputs, "x": np.vstack([inputs["x"], [[50.0, 50.0]]]), "a": np.append(np.ones(6), 0.0)}
    for reg in (0.2, 0):
        _, told = solved(inputs, reg=reg, tolerance=1e-9)
        found, same = solved(more, reg=reg, tolerance=1e-9, output="plan")
        assert same.objective == pytest.approx(told.objective, rel=1e-7)
        assert not found.arrays["plan"][6].any()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reg", [0.5, 0.01])
def test_sums_by_logarithms_are_the_same(family: str, reg: float, monkeypatch: pytest.MonkeyPatch) -> None:
    one, told = solved(FAMILIES[family], reg=reg, output="marginals")
    monkeypatch.setattr(sums, "ROOM", -1.0)
    monkeypatch.setattr(sums, "MOST_KEPT", 0)
    monkeypatch.setattr(sums, "BLOCK", 200)
    other, same = solved(FAMILIES[family], reg=reg, output="marginals")
    assert other.iterations == one.iterations
    assert same.objective == pytest.approx(told.objective, rel=1e-10)
    np.testing.assert_allclose(other.arrays["plan_xz"], one.arrays["plan_xz"], atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reg", [0.5, 0.01])
def test_the_iteration_stays_on_the_device(family: str, reg: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a stand-in for CuPy that refuses arrays of the host."""
    for most in (1 << 25, 0):
        monkeypatch.setattr(sums, "MOST_KEPT", most)
        options = CARD.options(reg=reg, output="marginals")
        problem = CARD.build(FAMILIES[family], options)
        here, there = scale(np, problem, options, Deadline()), scale(STRICT, problem, options, Deadline())
        assert here.iterations == there.iterations
        for name, array in here.arrays.items():
            np.testing.assert_allclose(there.arrays[name], array, rtol=1e-12, atol=1e-14)


def test_the_mean_of_uneven_masses_is_reached_from_far() -> None:
    """Tiny masses and dear triples: exponents are large, and none is lost."""
    inputs = tensor(4, 5, 6)
    cost = np.array(inputs["cost"])
    cost[0, 0] = 1e6
    a = np.array([1e-90, 1.0, 1e-30, 1e-3])
    _, certificate = solved({"cost": cost, "a": a}, reg=0.01, tolerance=1e-3)
    best = linear(built({"cost": cost, "a": a}, reg=0))
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert best - 1e-6 <= certificate.objective
    assert certificate.bound <= best + 0.01 * math.log(4 * 5 * 6)


def test_a_stop_is_heard_and_told() -> None:
    options = CARD.options(reg=1e-3)
    problem = CARD.build(clouds(20, 20, 20), options)
    heard: list[Any] = []
    deadline = Deadline(30, cancelled=lambda: len(heard) >= 2, on_progress=heard.append)
    solution = CARD.solve(problem, options, deadline)
    assert solution.termination is Termination.STOPPED
    assert heard[-1].bound < heard[-1].objective
    assert CARD.certify(problem, solution).holds


def test_a_programme_without_time_is_answered_by_an_iteration() -> None:
    options = CARD.options(reg=0, output="marginals")
    problem = CARD.build(clouds(30, 30, 30), options)
    solution = CARD.solve(problem, options, Deadline(0.0))
    certificate = CARD.certify(problem, solution)
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.holds
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert 0 < certificate.bound < certificate.objective < 2 * certificate.bound


def test_a_programme_with_next_to_no_mass_is_solved() -> None:
    """HiGHS's presolve calls it infeasible."""
    inputs = {
        "x": np.array([[1.9, 1.5, -1.9], [1.8, 1.6, 2.9], [2.2, 1.8, 2.5], [-2.8, -3.0, -1.0]]),
        "y": np.array([[-1.6, 2.8, 0.2], [-1.3, 1.3, 1.7], [-2.4, 2.6, -2.9], [1.1, -2.0, -1.3]]),
        "z": np.array([[-2.8, -1.9, -1.4], [-2.0, 1.8, -2.0]]),
        "pair_weights": np.array([1.0, 0.0, 1.0]),
        "a": np.array([7.0, 3.0, 4.0, 5.0]),
        "b": np.array([3e-11, 8e-11, 1.6e-3, 1.0]),
    }
    options = CARD.options(reg=0, metric="euclidean")
    _, certificate = solve_and_prove(CARD, CARD.build(inputs, options), options, Deadline(30), "cpu")
    assert certificate.termination in (None, "optimal")
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-8


def test_large_clouds_never_make_a_tensor() -> None:
    """400 x 400 x 400 entries would be 512 MB."""
    options = CARD.options(reg=0.5, iterations=3, output="marginals")
    tracemalloc.start()
    problem = CARD.build(clouds(400, 400, 400), options)
    solution = CARD.solve(problem, options, Deadline(30))
    assert CARD.certify(problem, solution).holds
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64e6


X = np.random.default_rng(0).random((3, 2))
C = np.ones((2, 3, 4))
HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nothing": ({}, {}, "x"),
    "two clouds": ({"x": X, "y": X}, {}, "z"),
    "both": ({"cost": C, "z": X}, {}, "z"),
    "flat": ({"cost": C[0]}, {}, "cost"),
    "empty": ({"cost": C[:0]}, {}, "cost"),
    "nan": ({"cost": C * np.nan}, {}, "cost"),
    "forbidden": ({"cost": C * np.inf}, {}, "cost"),
    "huge costs": ({"cost": C * 1e200}, {}, "cost"),
    "complex": ({"cost": C * 1j}, {}, "cost"),
    "dimension": ({"x": X, "y": X, "z": np.ones((2, 3))}, {}, "z"),
    "nan points": ({"x": X, "y": X * np.nan, "z": X}, {}, "y"),
    "far points": ({"x": X, "y": X + 1e80, "z": X}, {}, "x"),
    "no direction": ({"x": X, "y": X * 0, "z": X}, {"metric": "cosine"}, "y"),
    "negative": ({"cost": C, "b": np.array([1.0, -1, 2])}, {}, "b"),
    "nan mass": ({"cost": C, "b": np.array([1.0, np.nan, 2])}, {}, "b"),
    "no mass": ({"cost": C, "c": np.zeros(4)}, {}, "c"),
    "length": ({"cost": C, "c": np.ones(3)}, {}, "c"),
    "specks": ({"cost": C, "a": np.array([1e-150, 1.0])}, {}, "a"),
    "weights": ({"x": X, "y": X, "z": X, "pair_weights": np.array([1.0, -1, 1])}, {}, "pair_weights"),
    "two weights": ({"x": X, "y": X, "z": X, "pair_weights": np.ones(2)}, {}, "pair_weights"),
    "exact with reg": ({"cost": C}, {"method": "exact", "reg": 1.0}, "reg"),
    "entropic without": ({"cost": C}, {"method": "entropic", "reg": 0}, "reg"),
    "sharp": ({"cost": C}, {"reg": 1e-11}, "reg"),
    "huge reg": ({"cost": C}, {"reg": 1e101}, "reg"),
    "large programme": ({"cost": np.ones((80, 80, 80))}, {"reg": 0}, "reg"),
    "large plan": (clouds(200, 200, 200), {"reg": 1.0, "output": "plan"}, "output"),
    "small reg of many": (clouds(700, 700, 700), {"reg": 1e-4}, "reg"),
    "many points": ({"x": np.ones((8193, 1)), "y": X[:, :1], "z": X[:, :1]}, {}, "x"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_wrong_input_is_named(name: str) -> None:
    inputs, options, field = HOSTILE[name]
    with pytest.raises(InvalidProblem) as raised:
        CARD.build(inputs, CARD.options(**options))
    assert raised.value.field == field


def test_masses_are_divided_by_their_sums() -> None:
    inputs = tensor(5, 6, 7)
    _, told = solved(inputs, reg=0.1)
    _, same = solved({**inputs, "a": inputs["a"] * 8, "b": np.full(6, 3.0)}, reg=0.1)
    assert same.objective == told.objective
    assert masses(5, 0).sum() != 1


def test_a_reg_left_out_is_a_share_of_the_costs() -> None:
    problem = built(tensor(4, 5, 6))
    assert problem.reg == pytest.approx(0.05 * np.abs(problem.costs(slice(None))).mean())
    assert built({"cost": np.zeros((2, 2, 2))}).reg == 1.0
