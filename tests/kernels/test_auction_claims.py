"""Answers of the auction that were once wrong, refused or slow, and what is tried when a claim was not earned."""

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import (
    FORBIDDEN,
    SOLVERS,
    Array,
    Certificate,
    Csr,
    Deadline,
    Device,
    Solution,
    Termination,
    solve_and_prove,
)
from kernels.auction.complete import complete
from kernels.auction.cpu.rebuild import minus_down, minus_up
from kernels.auction.proportion import cut_prices
from kernels.auction.scaling import war_bids
from kernels.certificates import auction_points
from kernels.problems.points import Points
from tests.instances import auction as instances
from tests.oracles import auction as oracle
from tests.workers.service import allowed

CARD = SOLVERS["auction"]
assert CARD.mend is not None
MEND = CARD.mend


def answer(
    device: Device, inputs: dict[str, Any], limit: float | None = None, **given: Any
) -> tuple[Solution, Certificate]:
    options = CARD.options(**given)
    return solve_and_prove(CARD, CARD.build(inputs, options), options, Deadline(limit), device)


@pytest.mark.parametrize("prices", [[0, 1e18], [0, 1.7e308], [1e18, 1e18], [5e-324, 1e300]])
@pytest.mark.parametrize("finish", ["auto", "auction", "paths"])
def test_old_prices_out_of_proportion_change_no_answer(prices: list[float], finish: str, device: Device) -> None:
    solution, certificate = answer(
        device, {"benefit": np.array([[0.7, 0.4], [0.6, 0.1]]), "prices0": np.array(prices)}, finish=finish
    )
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == 1
    assert certificate.gap_abs is not None
    assert certificate.gap_abs <= 2.0**-52


@pytest.mark.parametrize("make", [lambda rng: rng.random((60, 60)), lambda rng: rng.random((40, 55))])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9, 1e15, 1e300])
def test_garbage_prices_cost_no_answer(make: Any, size: float, device: Device) -> None:
    rng = np.random.default_rng(3)
    benefit = make(rng)
    benefit[rng.random(benefit.shape) < 0.5] = -1e12
    cold, _ = answer(device, {"benefit": benefit})
    warm, certificate = answer(device, {"benefit": benefit, "prices0": rng.random(benefit.shape[1]) * size})
    assert warm.termination is Termination.OPTIMAL
    np.testing.assert_array_equal(warm.arrays["assignment"], cold.arrays["assignment"])
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-15


@pytest.mark.parametrize("size", [1e-14, 1e-180, 1e-290, 1e290])
def test_benefits_of_any_size_are_proved_with_the_same_rigour(size: float, device: Device) -> None:
    benefit = np.random.default_rng(4).random((30, 30)) * size
    for given in ({}, {"epsilon": size / 100, "finish": "paths"}, {"finish": "auction"}):
        solution, certificate = answer(device, {"benefit": benefit, "prices0": np.full(30, 3 * size)}, **given)
        assert solution.termination is Termination.OPTIMAL
        assert certificate.objective == pytest.approx(oracle.scipy_optimum(benefit / size) * size, rel=1e-12)  # type: ignore[operator]
        assert certificate.gap_rel is not None
        assert certificate.gap_rel < 1e-14


@pytest.mark.parametrize("limit", [0.0, 0.001])
def test_a_time_limit_leaves_no_row_out_that_can_be_seated(limit: float, device: Device) -> None:
    rng = np.random.default_rng(5)
    sparse = instances.planted(600, 600, 0.02, 6)
    barred = np.where(rng.random((300, 300)) < 0.95, -np.inf, rng.random((300, 300)))
    np.fill_diagonal(barred, 0.5)
    for benefit in (rng.random((600, 600)), rng.integers(0, 99, (600, 600)), sparse, barred):
        solution, certificate = answer(device, {"benefit": benefit}, limit)
        assert certificate.objective is not None
        assert certificate.bound is not None
        assert certificate.bound >= certificate.objective
        assert sorted(solution.arrays["assignment"]) == list(range(benefit.shape[0]))


def test_a_time_limit_on_a_graph_without_assignment_says_so(device: Device) -> None:
    for benefit in (instances.without_assignment(60, 3), oracle.as_dense(instances.without_assignment(60, 3))):
        solution, certificate = answer(device, {"benefit": benefit}, 0.0)
        assert solution.termination is Termination.INFEASIBLE
        assert certificate.holds
        assert certificate.facts["hall_rows"] > certificate.facts["hall_columns"]


def test_completion_follows_paths_where_greed_gets_stuck() -> None:
    graph = Csr(np.array([0, 2, 3, 5]), np.array([0, 1, 0, 1, 2]), np.array([9, 1, 5, 8, 1]), (3, 3))
    column_of = np.array([0, -1, -1])
    assert complete(graph, column_of, None) is None
    assert column_of.tolist() == [1, 0, 2]
    for reject, out in ((9, [0, -1, -1]), (0, [0, -1, 1])):
        column_of = np.array([0, -1, -1])
        assert complete(graph, column_of, np.full(3, reject)) is None
        assert column_of.tolist() == out


def test_big_integers_and_a_fractional_epsilon(device: Device) -> None:
    rng = np.random.default_rng(7)
    benefits: list[Array] = [rng.integers(-(10**15), 10**15, (2, 2)) for _ in range(60)]
    benefits.append(np.array([[524580346678, -79201580387], [416469007919, -599985285435]]))
    for benefit in benefits:
        solution, certificate = answer(device, {"benefit": benefit}, epsilon=0.01)
        assert solution.termination in (Termination.GAP_REACHED, Termination.OPTIMAL)
        assert certificate.gap_abs == 0
        assert certificate.objective == max(np.trace(benefit), np.trace(benefit[:, ::-1]))


@pytest.mark.parametrize("limit", [None, 0.0])
def test_integers_with_prices_beyond_int64(limit: float | None, device: Device) -> None:
    for prices in ([1e19, 0], [0, 9.3e18], [1e300, 1e19]):
        _, certificate = answer(device, {"benefit": np.array([[7, 4], [6, 3]]), "prices0": np.array(prices)}, limit)
        assert certificate.holds
        assert certificate.objective == 10
        assert isinstance(certificate.bound, int)
        assert certificate.bound >= 10


def test_rows_without_an_edge_leave_integers_exact(device: Device) -> None:
    rng = np.random.default_rng(8)
    for _ in range(40):
        n = 30
        mask = rng.random((n, n)) < 0.2
        mask[rng.integers(n)] = False
        values, reject = rng.integers(2**50, 2**55, mask.sum()), rng.integers(2**50, 2**54, n)
        graph = Csr(np.concatenate([[0], np.cumsum(mask.sum(1))]), np.nonzero(mask)[1], values, (n, n))
        solution, certificate = answer(device, {"benefit": graph, "reject": reject})
        assert solution.termination is Termination.OPTIMAL
        assert isinstance(certificate.bound, int)
        assert certificate.gap_abs == 0


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("given", [{}, {"epsilon": 1e-3}, {"epsilon": 1e-20}, {"epsilon": 1e300}])
def test_a_price_war_ends(dtype: type, given: dict[str, float], device: Device) -> None:
    benefit: Array = np.full((51, 28), 10_000).astype(dtype)
    begun = time.perf_counter()
    solution, certificate = answer(device, {"benefit": benefit}, finish="auction", allow_unassigned=True, **given)
    if device == "cpu":
        assert time.perf_counter() - begun < allowed(2)
        assert solution.facts["bids"] <= 2 * war_bids(51)
    assert certificate.objective == 280_000
    if not given:
        assert solution.termination is Termination.OPTIMAL
    if not given and device == "cpu":
        assert solution.facts["price_war"] is True
        assert solution.method == "auction+paths"


def test_integers_beside_forbidden_entries_stay_exact(device: Device) -> None:
    benefit = np.array([[2**53 + 1, FORBIDDEN], [FORBIDDEN, 2]])
    for given in (benefit, np.ma.masked_equal(benefit, FORBIDDEN)):
        solution, certificate = answer(device, {"benefit": given})
        assert solution.arrays["prices"].dtype == np.int64
        assert certificate.objective == certificate.bound == 2**53 + 3
    solution, certificate = answer(device, {"benefit": np.full((2, 2), FORBIDDEN)})
    assert certificate.holds
    assert solution.termination is Termination.INFEASIBLE


def test_a_claim_that_is_not_earned_is_mended() -> None:
    rng = np.random.default_rng(9)
    cases: list[dict[str, Any]] = [
        {"benefit": rng.random((50, 50))},
        {"benefit": rng.random((50, 60)).astype(np.float32)},
        {"benefit": rng.integers(0, 10**6, (50, 50))},
        {"benefit": instances.planted(50, 50, 0.3, 1, np.float64)},
        {"benefit": rng.random((50, 30)), "reject": rng.random(50)},
        {"x": rng.random((40, 2)), "y": rng.random((50, 2))},
        {"benefit": rng.random((20, 20)) * 1e-250},
    ]
    options = CARD.options()
    for inputs in cases:
        problem = CARD.build(inputs, options)
        solution = CARD.solve(problem, options, Deadline(), "cpu")
        for name, spoilt in _spoilt(solution).items():
            certificate = CARD.certify(problem, spoilt)
            refused = name == "assignment" and not certificate.holds  # the swapped pair is no edge
            assert refused or certificate.termination is Termination.CONVERGED, name
            mended = MEND(problem, options, spoilt, Deadline(), "cpu")
            assert mended is not None, name
            assert CARD.certify(problem, mended).termination is None, name
            np.testing.assert_array_equal(mended.arrays["assignment"], solution.arrays["assignment"])
        assert MEND(problem, options, solution, Deadline(0.0), "cpu") is None


def _spoilt(solution: Solution) -> dict[str, Solution]:
    arrays, scale = solution.arrays, float(np.abs(solution.arrays["profits"]).max())
    noise = (np.random.default_rng(1).random(arrays["prices"].size) * scale * 1e-3).astype(arrays["prices"].dtype)
    swapped = arrays["assignment"].copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    return {
        "prices": replace(solution, arrays=arrays | {"prices": arrays["prices"] + noise}),
        "coarse": replace(solution, arrays=arrays | {"prices": arrays["prices"] * 0}),
        "assignment": replace(solution, arrays=arrays | {"assignment": swapped}),
    }


def test_differences_are_rounded_to_the_side_asked_for() -> None:
    rng = np.random.default_rng(10)
    for x, y in zip(rng.standard_normal(500) * 1e3, rng.standard_normal(500), strict=True):
        exact = Fraction(x) - Fraction(y)
        assert Fraction(float(minus_down(x, y))) <= exact <= Fraction(float(minus_up(x, y)))
        assert float(minus_up(x, y)) - float(minus_down(x, y)) <= 2 * np.spacing(abs(x - y))


def test_old_prices_are_cut_to_what_benefits_justify() -> None:
    cut = {"chains": False, "movable": False, "exact": True}
    assert cut_prices(np.array([1e300, 2.5, 0]), 4, 40, **cut).tolist() == [40, 10, 0]
    assert cut_prices(np.array([2**62, 3]), 4, 40, **cut).tolist() == [40, 12]
    assert cut_prices(np.array([100.0, 103.0]), 1, 5, **(cut | {"movable": True})).tolist() == [0, 3]
    assert cut_prices(np.array([9.0, 99.0]), 1, 5, **(cut | {"chains": True, "exact": False})).tolist() == [9, 10]
    assert cut_prices(np.array([7, 2**62]), 2.0**-3, 5, **cut).tolist() == [0, 5]


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("size", [1e-100, 1.0, 1e90])
def test_distances_are_exact_to_a_hundred_bits(metric: str, size: float) -> None:
    rng = np.random.default_rng(11)
    x, y = rng.standard_normal((20, 3)) * size, rng.standard_normal((20, 3)) * size
    y[:3] = x[:3] * (1 + 2.0**-50)
    y[3] = x[3]
    rows = np.arange(20)
    found = auction_points.Distances(Points(x, y, metric), None).exact(rows, rows, np.empty(0))
    for i in rows:
        steps = [Fraction(a) - Fraction(b) for a, b in zip(x[i], y[i], strict=True)]
        true = sum(abs(step) if metric == "cityblock" else step**2 for step in steps)
        value, error = -(Fraction(found.high[i]) + Fraction(found.low[i])), Fraction(found.error[i])
        assert error <= value * Fraction(2) ** -90
        if metric == "euclidean":
            assert max(Fraction(0), value - error) ** 2 <= true <= (value + error) ** 2
        else:
            assert value - error <= true <= value + error


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_points_are_bounded_by_their_true_distances(metric: str, device: Device) -> None:
    rng = np.random.default_rng(12)
    for n in range(2, 7):
        x, y = rng.random((n, 2)), rng.random((n + 1, 2))
        y[0] = x[0]
        solution, certificate = answer(device, {"x": x, "y": y}, metric=metric)
        assert solution.termination is Termination.OPTIMAL
        step = x[:, None] - y[None]  # the oracle of squares and blocks is exact, of roots good to their last bits
        exact = [[[Fraction(a) - Fraction(b) for a, b in zip(p, q, strict=True)] for q in y] for p in x]
        value: Array = -np.sqrt((step**2).sum(-1))
        best = oracle.exact_optimum(value, np.ones(value.shape, bool))
        if metric != "euclidean":
            size = [[sum(abs(d) if metric == "cityblock" else d * d for d in q) for q in p] for p in exact]
            best = -min(_totals(size))
        assert best is not None
        assert certificate.bound is not None
        assert Fraction(certificate.bound) >= best - (Fraction(1e-15) if metric == "euclidean" else 0)
        assert certificate.objective == pytest.approx(float(best), rel=1e-14)


def _totals(size: list[list[Any]]) -> list[Fraction]:
    from itertools import permutations

    return [sum(size[i][j] for i, j in enumerate(p)) for p in permutations(range(len(size[0])), len(size))]


def test_neighbours_that_are_not_the_nearest_are_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    clouds = instances.clouds(80, 100, 2, 1)
    options = CARD.options.model_validate({"neighbours": 12})
    problem = CARD.build(clouds, options)
    solution = CARD.solve(problem, options, Deadline(), "cpu")
    good = CARD.certify(problem, solution)
    assert good.termination is None
    assert "compared for all rows" in good.proved
    monkeypatch.setattr(auction_points, "CHECKED", 0)
    monkeypatch.setattr(auction_points, "SAMPLE", 9)
    assert "compared for 9 of 80 rows" in CARD.certify(problem, solution).proved
    monkeypatch.undo()
    names = solution.arrays["neighbours"].copy()
    unused = names[5] != solution.arrays["assignment"][5]
    names[5, np.flatnonzero(unused)[0]] = np.setdiff1d(np.arange(100), names[5])[-1]
    false = replace(solution, arrays=solution.arrays | {"neighbours": names})
    certificate = CARD.certify(problem, false)
    assert certificate.holds
    assert certificate.termination is Termination.CONVERGED
    assert "for 1 of 80 rows are not the nearest" in certificate.proved
    mended = MEND(problem, options, false, Deadline(), "cpu")
    assert mended is not None
    assert CARD.certify(problem, mended).objective == good.objective
    for wrong in (names[:, :5], np.zeros_like(names), names.astype(np.float64), names + 90):
        assert not CARD.certify(problem, replace(solution, arrays=solution.arrays | {"neighbours": wrong})).holds
