"""Gromov-Wasserstein on each device: what a coupling is worth, how it compares, and what its bound is worth."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import ot
import pytest

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Deadline,
    Device,
    InvalidProblem,
    Solution,
    Termination,
    recheck,
    solve_and_prove,
)
from kernels.certificates.gromov.spectrum import projected
from kernels.gromov.search import GromovSearch
from tests.fuzz.judge import claim_of
from tests.kernels.strict_arrays import STRICT
from tests.workers.service import allowed

CARD = SOLVERS["gromov"]


def solved(inputs: dict[str, Any], device: Device = "cpu", limit_s: float = 60, **options: Any) -> tuple[Solution, Any]:
    given = CARD.options(**options)
    problem = CARD.build({name: np.asarray(value) for name, value in inputs.items()}, given)
    solution, certificate = solve_and_prove(CARD, problem, given, Deadline(limit_s), device)
    assert certificate.holds, certificate
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert certificate.bound <= certificate.objective
    return solution, certificate


def certified(problem: Any, solution: Solution) -> Any:
    """A certificate whose numbers are there."""
    return CARD.certify(problem, solution)


def distances(points: Array) -> Array:
    return np.asarray(np.linalg.norm(points[:, None] - points, axis=2))


def worth(x: Array, y: Array, plan: Array, cost: Array | None = None, alpha: float = 1.0) -> float:
    """By the sum over four indices."""
    squares = (x[:, None, :, None] - y[None, :, None, :]) ** 2
    value = alpha * np.einsum("ijkl,ij,kl->", squares, plan, plan)
    return float(value if cost is None else value + (1 - alpha) * (cost * plan).sum())


def spaces(seed: int, n: int = 12, m: int = 15) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    x, y = distances(rng.random((n, 2))), distances(rng.random((m, 3)))
    a, b = rng.random(n) + 0.1, rng.random(m) + 0.1
    return x, y, a / a.sum(), b / b.sum()


def test_the_objective_is_the_sum_over_four_indices(device: Device) -> None:
    rng = np.random.default_rng(3)
    x, y, cost = rng.normal(size=(7, 7)), rng.normal(size=(9, 9)), rng.normal(size=(7, 9))
    for alpha, given in ((1.0, {}), (0.3, {"cost": cost})):
        solution, certificate = solved({"x_distance": x, "y_distance": y, **given}, device, alpha=alpha)
        found = worth(x, y, solution.arrays["plan"], given.get("cost"), alpha)
        assert 0 <= certificate.objective - found <= 1e-12 * 100
        np.testing.assert_allclose(solution.arrays["plan"].sum(axis=1), 1 / 7, rtol=1e-14)
        np.testing.assert_allclose(solution.arrays["plan"].sum(axis=0), 1 / 9, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_no_worse_than_pot(seed: int) -> None:
    x, y, a, b = spaces(seed)
    theirs = ot.gromov_wasserstein(x, y, a, b, "square_loss")
    _, certificate = solved({"x_distance": x, "y_distance": y, "a": a, "b": b})
    assert certificate.objective <= worth(x, y, theirs) + 1e-9
    cost = np.random.default_rng(seed).random((len(x), len(y)))
    theirs = ot.gromov.fused_gromov_wasserstein(cost, x, y, a, b, "square_loss", alpha=0.4)
    _, certificate = solved({"x_distance": x, "y_distance": y, "a": a, "b": b, "cost": cost}, alpha=0.4)
    assert certificate.objective <= worth(x, y, theirs, cost, 0.4) + 1e-9


def test_an_entropic_answer_is_the_fixed_point_that_pot_finds(device: Device) -> None:
    x, y, a, b = spaces(5)
    theirs = ot.gromov.entropic_gromov_wasserstein(x, y, a, b, "square_loss", epsilon=0.03, max_iter=2000, tol=1e-12)
    inputs = {"x_distance": x, "y_distance": y, "a": a, "b": b}
    solution, _ = solved(inputs, device, method="entropic", reg=0.03, starts=1, tolerance=1e-14, max_iterations=2000)
    np.testing.assert_allclose(solution.arrays["plan"], theirs, atol=1e-6)


def test_points_are_their_distances(device: Device) -> None:
    rng = np.random.default_rng(8)
    x, y = rng.random((30, 2)), rng.random((25, 3))
    squares = [((p[:, None] - p) ** 2).sum(axis=2) for p in (x, y)]
    options: dict[str, Any] = {"method": "entropic", "reg": 0.05, "tolerance": 1e-13, "starts": 1}
    by_points = solved({"x": x, "y": y}, device, **options)
    by_matrix = solved({"x_distance": squares[0], "y_distance": squares[1]}, device, **options)
    assert by_points[1].objective == pytest.approx(by_matrix[1].objective, rel=1e-6)
    assert by_points[1].bound == pytest.approx(by_matrix[1].bound, rel=1e-9)


def test_the_same_space_twice_costs_nothing_and_is_proved(device: Device) -> None:
    points = np.random.default_rng(4).random((20, 2))
    order = np.random.default_rng(5).permutation(20)
    x, y = distances(points), distances(points @ np.array([[0.6, -0.8], [0.8, 0.6]]) + 3)[np.ix_(order, order)]
    solution, certificate = solved({"x_distance": x, "y_distance": y}, device)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective <= 1e-11
    assert certificate.bound >= 0


def test_order_and_units_do_not_matter() -> None:
    x, y, a, b = spaces(6)
    given = {"x_distance": x, "y_distance": y, "a": a, "b": b}
    _, plain = solved(given, starts=2)
    scaled = {"x_distance": np.ldexp(x, 40), "y_distance": np.ldexp(y, 40), "a": 3 * a, "b": np.ldexp(b, -7)}
    _, moved = solved(scaled, starts=2)
    assert moved.objective == pytest.approx(np.ldexp(plain.objective, 80), rel=1e-12)
    assert moved.bound == pytest.approx(np.ldexp(plain.bound, 80), rel=1e-9)
    order = np.random.default_rng(1).permutation(len(x))
    _, turned = solved(given | {"x_distance": x[np.ix_(order, order)], "a": a[order]}, starts=2)
    assert turned.objective == pytest.approx(plain.objective, rel=1e-6)
    assert turned.bound == pytest.approx(plain.bound, rel=1e-9)


def least(x: Array, y: Array) -> float:
    """The best permutation: squared Euclidean distances make a concave problem, whose optimum is at a vertex."""
    n = len(x)
    return min(float(((x - y[np.ix_(p, p)]) ** 2).sum()) for p in map(list, itertools.permutations(range(n)))) / n**2


@pytest.mark.parametrize("seed", range(4))
def test_the_best_vertex_is_found_and_no_bound_is_above_it(seed: int, device: Device) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    _, certificate = solved({"x": x, "y": y}, device, starts=8)
    optimum = least(*(((p[:, None] - p) ** 2).sum(axis=2) for p in (x, y)))
    assert certificate.bound <= optimum * (1 + 1e-12)
    assert certificate.objective >= optimum * (1 - 1e-12)
    if device == "cpu":
        assert certificate.objective == pytest.approx(optimum, rel=1e-9)


def test_no_coupling_is_below_the_bound() -> None:
    """Any weights, sizes and signs; couplings from everywhere, and what local search makes of them."""
    rng = np.random.default_rng(11)
    for _ in range(6):
        n, m = rng.integers(1, 5, 2)
        x, y = rng.normal(size=(n, n)), rng.normal(size=(m, m))
        a, b = rng.random(n), rng.random(m)
        cost = rng.normal(size=(n, m)) * 3
        solution, certificate = solved({"x_distance": x, "y_distance": y, "a": a, "b": b, "cost": cost}, alpha=0.6)
        assert claims_are_true({"x_distance": x, "y_distance": y, "a": a, "b": b, "cost": cost}, solution, certificate)
        p, q = a / a.sum(), b / b.sum()
        for _ in range(30):
            plan = ot.emd(p, q, rng.random((n, m))) * 0.7 + ot.emd(p, q, rng.random((n, m))) * 0.3
            assert worth(x, y, plan, cost, 0.6) >= certificate.bound


def claims_are_true(inputs: Any, solution: Solution, certificate: Certificate) -> bool:
    said = recheck("gromov", inputs, {"alpha": 0.6}, claim_of(solution, certificate))
    assert {"answer", "violation", "objective", "bound", "gap"} <= {one.name for one in said}
    return all(one.holds for one in said)


def test_a_corrupted_answer_is_refused_or_priced() -> None:
    x, y, a, b = spaces(7, 5, 6)
    problem = CARD.build({"x_distance": x, "y_distance": y, "a": a, "b": b}, CARD.options())
    options = CARD.options()
    solution = CARD.solve(problem, options, Deadline(20), "cpu")
    plan, truth = solution.arrays["plan"], certified(problem, solution)
    for broken in (plan * 1.001, plan - 0.01, plan[:, ::-1] * np.nan, plan.T, np.roll(plan, 1, axis=0)):
        assert not CARD.certify(problem, Solution(Termination.OPTIMAL, "", {"plan": broken, "f": a})).holds
    for f in (a * np.nan, a * 1e300, -a, solution.arrays["f"] + 1e-3 * a, a[:2], a.astype(int)):
        found = certified(problem, Solution(Termination.OPTIMAL, "", {"plan": plan, "f": f}))
        assert found.holds
        assert found.bound <= truth.bound * 1.001  # the potentials are those of nearly the same transport
        assert found.termination is Termination.CONVERGED
    moved = plan * (1 + 1e-11)
    priced = certified(problem, Solution(Termination.CONVERGED, "", {"plan": moved, "f": a}))
    assert priced.holds
    assert priced.objective > worth(x, y, moved)


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"x_distance": np.ones((2, 3)), "y_distance": np.ones((2, 2))}, "x_distance"),
        ({"x_distance": np.ones((2, 2))}, "y_distance"),
        ({"x_distance": np.full((2, 2), np.nan), "y_distance": np.ones((2, 2))}, "x_distance"),
        ({"x_distance": np.full((2, 2), 1e101), "y_distance": np.ones((2, 2))}, "x_distance"),
        ({"x": np.ones((2, 2)), "x_distance": np.ones((2, 2)), "y": np.ones((2, 1))}, "x_distance"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 1)), "a": [1, -1]}, "a"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 1)), "b": [0, 0]}, "b"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 1)), "cost": np.ones((1, 2))}, "cost"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 1)), "x_features": np.ones((2, 1))}, "x_features"),
        ({"x": np.ones((2, 2)), "y": np.ones((2, 1)), "plan0": -np.ones((2, 2))}, "plan0"),
    ],
)
def test_wrong_inputs_are_named(inputs: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        CARD.build({name: np.asarray(value) for name, value in inputs.items()}, CARD.options())
    assert caught.value.field == field


def test_a_time_limit_is_kept_with_a_coupling() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.random((400, 3)), rng.random((400, 3))
    deadline = Deadline(0.5)
    given = CARD.options()
    problem = CARD.build({"x": x, "y": y}, given)
    solution, certificate = solve_and_prove(CARD, problem, given, deadline, "cpu")
    assert certificate.holds
    assert solution.termination is Termination.TIME_LIMIT
    assert deadline.elapsed_s < allowed(3)


def test_a_start_is_taken_and_every_report_is_better() -> None:
    x, y, a, b = spaces(9)
    given = {"x_distance": x, "y_distance": y, "a": a, "b": b}
    best, _ = solved(given, starts=6, seed=3)
    again, _ = solved(given | {"plan0": best.arrays["plan"]}, starts=1, method="exact")
    np.testing.assert_allclose(again.arrays["plan"], best.arrays["plan"], atol=1e-9)
    heard: list[float] = []
    problem, options = CARD.build({k: np.asarray(v) for k, v in given.items()}, CARD.options()), CARD.options()
    told = Deadline(20, on_progress=lambda p: heard.append(p.objective) if p.objective is not None else None)
    CARD.solve(problem, options, told, "cpu")
    assert len(heard) > 5
    assert heard == sorted(heard, reverse=True)


def test_eigenvalues_bound_spaces_of_different_dimension() -> None:
    """Two clouds, and two distances of which one has eigenvalues of both signs; no evidence can loosen the bound."""
    rng = np.random.default_rng(12)
    x, y = distances(rng.random((25, 1))), distances(rng.random((30, 3)))
    _, certificate = solved({"x_distance": x, "y_distance": y})
    bounds = certificate.facts["bounds_checked"]
    assert certificate.bound == bounds["projection"] > bounds["third, by rows"] > 0
    p, q = np.ones(6) / 6, np.ones(7) / 7
    for _ in range(10):
        signed = [m + m.T for m in (rng.normal(size=(6, 6)), rng.normal(size=(7, 7)))]
        problem = CARD.build(dict(zip(("x_distance", "y_distance"), signed, strict=True)), CARD.options())
        for f in (rng.normal(size=6), np.zeros(6)):
            bound = projected(problem, f)
            plans = [ot.emd(p, q, rng.normal(size=(6, 7))) for _ in range(20)]
            assert bound is not None
            assert bound <= min(worth(signed[0], signed[1], plan) for plan in plans)


def test_a_far_point_does_not_hide_what_near_ones_cost() -> None:
    """One cloud twice, two of its points exchanged: 0 is optimal, and this is not, however far another point is."""
    points = np.random.default_rng(0).random((20, 2))
    points[0], points[1] = 3e3, points[2] + 0.01
    problem = CARD.build({"x": points, "y": points}, CARD.options())
    plan = np.eye(20)[[0, 2, 1, *range(3, 20)]] / 20
    certificate = certified(problem, Solution(Termination.OPTIMAL, "", {"plan": plan}))
    assert certificate.holds
    assert certificate.gap_rel == 1
    assert certificate.termination is Termination.CONVERGED
    claim = replace(claim_of(Solution(Termination.CONVERGED, "", {"plan": plan}), certificate), proved="")
    for word, is_wrong in (("converged", False), ("optimal", True)):
        said = recheck("gromov", {"x": points, "y": points}, {}, replace(claim, termination=word))
        assert any(one.name == "optimal" and one.holds is False for one in said) is is_wrong


@pytest.mark.parametrize("points", [True, False])
def test_the_search_of_a_device_mixes_no_arrays_of_the_host_in(points: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a stand-in for CuPy: the same answer as with NumPy, by simplex and by scaling behind the bounds."""
    rng = np.random.default_rng(13)
    given: dict[str, Any] = {"x": rng.random((14, 2)), "y": rng.random((16, 1)), "a": rng.integers(0, 5, 14) + 0.5}
    if not points:
        given |= {"x_distance": rng.random((14, 14)), "y_distance": rng.random((16, 16)), "cost": rng.random((14, 16))}
        del given["x"], given["y"]
    monkeypatch.setattr("kernels.gromov.lower.LARGEST_SIMPLEX", 100 if points else 0)
    for method in ("entropic", "proximal"):
        options = CARD.options(method=method, max_iterations=20, starts=3)
        problem = CARD.build(given, options)
        here, there = (GromovSearch(problem, options, Deadline(60), xp).run() for xp in (np, STRICT))
        np.testing.assert_allclose(there.arrays["plan"], here.arrays["plan"], atol=1e-9)
        np.testing.assert_allclose(there.arrays["f"], here.arrays["f"], atol=1e-6)
        assert CARD.certify(problem, there).holds
