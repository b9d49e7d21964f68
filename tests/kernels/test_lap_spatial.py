"""Points paired by generated columns: the matrix's optimum, proofs, ties, odd clouds, and an end ahead of time."""

from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from kernels import SOLVERS, Certificate, Deadline, Solution, Termination, solve_and_prove
from kernels.deadline import Progress
from kernels.lap.cpu.solver import solve_one
from kernels.lap.spatial import levels, planes, pricing, solver
from kernels.lap.spatial.planes import planes_under
from kernels.lap.spatial.tree import LEAF, tree_of
from kernels.lap.spatial.which import FEWEST, suits
from kernels.problems.arrays import Floats
from kernels.problems.metrics import METRICS
from kernels.problems.points import METRICS as DISTANCES
from kernels.problems.points import PointAssignment, Points

LAP = SOLVERS["lap"]
KINDS = ["uniform", "clustered", "tight", "line", "duplicates", "grid", "equal", "far", "same"]


def clustered(rng: np.random.Generator, n: int, d: int, spread: float = 0.03) -> Floats:
    """A cluster may have many more rows than columns: some pairs are long."""
    return rng.random((8, d))[rng.integers(0, 8, n)] + rng.normal(0, spread, (n, d))


def clouds(kind: str, n: int, d: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.random((n, d)), rng.random((n, d))
    if kind == "clustered":
        return clustered(rng, n, d), clustered(rng, n, d)
    if kind == "grid":
        return rng.integers(0, 12, (n, d)).astype(float), rng.integers(3, 15, (n, d)).astype(float)
    if kind == "equal":
        return np.ones((n, d)), np.ones((n, d))
    if kind == "far":
        return rng.random((n, d)), rng.random((n, d)) + 1e3
    if kind == "tight":
        return clustered(rng, n, d, 1e-5), clustered(rng, n, d, 1e-5)
    if kind == "line":
        return np.repeat(rng.random((n, 1)), d, 1), np.repeat(rng.random((n, 1)) ** 3, d, 1)
    if kind == "duplicates":
        return tuple(clustered(rng, n, d)[rng.integers(0, n // 10, n)] for _ in range(2))  # type: ignore[return-value]
    x = rng.random((n, d))
    return x, x[rng.permutation(n)]


def paired(x: Floats, y: Floats, metric: str, deadline: Deadline | None = None) -> tuple[Solution, Certificate, Any]:
    """By columns whatever their number is, and the certificate of the problem."""
    options = LAP.options(metric=metric)
    problem = LAP.build({"x": x, "y": y}, options)
    assert isinstance(problem, PointAssignment)
    solution = solver.solve(problem, deadline or Deadline(), solve_one)
    return solution, LAP.certify(problem, solution), problem


@pytest.fixture(autouse=True)
def small_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several levels at sizes that SciPy solves in no time."""
    monkeypatch.setattr(levels, "DENSE", 24)


@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 8])
def test_the_optimum_is_scipys(metric: str, kind: str, d: int) -> None:
    x, y = clouds(kind, 401, d, d)
    solution, certificate, _ = paired(x, y, metric)
    cost = cdist(x, y, metric)
    best = cost[linear_sum_assignment(cost)].sum()
    assert solution.method == "columns"
    assert solution.facts["levels"] >= 2
    assert certificate.objective == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert (certificate.gap_abs or 0.0) <= 1e-11 * max(1.0, abs(float(best)))
    assert sorted(solution.arrays["assignment"].tolist()) == list(range(401))


@pytest.mark.parametrize("kind", ["uniform", "clustered"])
def test_auto_takes_it_and_proves_the_optimum(kind: str) -> None:
    x, y = clouds(kind, FEWEST, 2)
    options = LAP.options()
    problem = LAP.build({"x": x, "y": y}, options)
    assert isinstance(problem, PointAssignment)
    solution, certificate = solve_and_prove(LAP, problem, options, Deadline(120), "cpu")
    assert solution.method == "columns"
    assert solution.termination is Termination.OPTIMAL
    matrix = problem.written_out().weights
    assert isinstance(matrix, np.ndarray)
    dense = solve_one(matrix, False, None, None, FEWEST**2, Deadline())
    cost = cdist(x, y, "sqeuclidean")
    best = float(cost[np.arange(FEWEST), dense.arrays["assignment"]].sum())
    assert certificate.objective == pytest.approx(best, rel=1e-13)


@pytest.mark.parametrize("power", [-400, 300])
def test_large_and_tiny_coordinates(power: int) -> None:
    x, y = clouds("uniform", 300, 2)
    plain, _, _ = paired(x, y, "sqeuclidean")
    moved, certificate, _ = paired(np.ldexp(x, power), np.ldexp(y, power), "sqeuclidean")
    np.testing.assert_array_equal(moved.arrays["assignment"], plain.arrays["assignment"])
    np.testing.assert_array_equal(moved.arrays["v"], np.ldexp(plain.arrays["v"], 2 * power))
    assert certificate.objective is not None


def test_which_problems() -> None:
    x, y = clouds("uniform", FEWEST, 2)
    plain = LAP.options()

    def built(rows: Floats, columns: Floats, **options: Any) -> bool:
        given = LAP.options(**options)
        problem = LAP.build({"x": rows, "y": columns}, given)
        assert isinstance(problem, PointAssignment)
        return suits(problem, given)

    assert built(x, y)
    assert not built(x[:-1], y)
    assert not built(x[:-1], y[:-1])
    assert not built(x, y, maximize=True)
    assert not built(x, y, iteration_limit=3)
    assert not built(x, y, metric="inner")
    assert not built(np.tile(x, 5), np.tile(y, 5))
    assert plain.metric == "sqeuclidean"


@pytest.mark.parametrize("polls", [0, 1, 2, 5, 10, 20, 40])
def test_an_end_ahead_of_time_has_an_answer_and_a_bound(polls: int) -> None:
    x, y = clouds("clustered", 500, 2)
    looked = count()
    solution, certificate, _ = paired(x, y, "euclidean", Deadline(cancelled=lambda: next(looked) >= polls))
    cost = cdist(x, y)
    best = cost[linear_sum_assignment(cost)].sum()
    assert solution.termination is Termination.STOPPED
    assert certificate.objective is not None
    assert certificate.bound is not None
    assert certificate.bound <= best * (1 + 1e-12)
    assert certificate.objective >= best * (1 - 1e-12)


def test_reports_close_in_on_the_optimum() -> None:
    x, y = clouds("clustered", 600, 2)
    told: list[Progress] = []
    _, certificate, _ = paired(x, y, "euclidean", Deadline(on_progress=told.append))
    best = certificate.objective
    assert best is not None
    reported = [(one.objective, one.bound) for one in told if one.objective is not None]
    assert reported
    for objective, bound in reported:
        assert bound is not None
        assert bound <= best <= objective * (1 + 1e-12)
    assert reported[-1][1] == pytest.approx(best, rel=1e-9)


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clouds("clustered", 900, 3)
    monkeypatch.setattr(pricing, "BLOCK", 64)
    answers = []
    for threads in (1, 3):
        monkeypatch.setattr(pricing, "THREADS", threads)
        answers.append(paired(x, y, "cityblock")[0].arrays)
    for name, array in answers[0].items():
        np.testing.assert_array_equal(array, answers[1][name])


@pytest.mark.parametrize("n", [1, LEAF, LEAF + 1, 500])
def test_nodes_of_the_tree_hold_their_points(n: int) -> None:
    points = np.random.default_rng(n).normal(size=(n, 3))
    tree = tree_of(points)
    leaves = len(tree.starts) - 1
    assert np.diff(tree.starts).max() <= LEAF
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(n))
    np.testing.assert_array_equal(tree.points, points[tree.order])
    for leaf in range(leaves):
        part = tree.points[tree.starts[leaf] : tree.starts[leaf + 1]]
        node = leaf + leaves
        while node:
            assert (tree.low[node] <= part).all()
            assert (part <= tree.high[node]).all()
            node //= 2


@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leaning", [0.0, 1.0, 30.0])
def test_planes_lie_under_the_prices_of_their_nodes(
    metric: str, kind: str, leaning: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "PIECE", 128)
    _, y = clouds(kind, 500, 3)
    tree = tree_of(y / np.abs(y).max())
    rng = np.random.default_rng(1)
    prices = tree.points @ rng.normal(0, leaning, 3) + rng.normal(0, 0.1, 500)
    laid = planes_under(prices, tree, METRICS.index(metric), 3)
    leaves = len(tree.starts) - 1
    for node in range(1, 2 * leaves):
        level = node.bit_length() - 1
        first, last = ((node + k - (1 << level)) * (leaves >> level) for k in (0, 1))
        part = slice(tree.starts[first], tree.starts[last])
        under = laid.least[node] + (tree.points[part] - laid.middles[node]) @ laid.slopes[node]
        assert (under <= prices[part] + 1e-12).all()
        assert (prices[part] - under).min() <= 1e-12
        assert laid.flat[node] == prices[part].min()
        if metric == "euclidean":
            assert np.linalg.norm(laid.slopes[node]) <= 1 + 1e-15


@pytest.mark.parametrize("metric", DISTANCES)
def test_rows_of_leaning_prices_pass_by_most_boxes(metric: str) -> None:
    """All prices lean by what it costs to come from far away, as those of an optimum between two places do."""
    rng = np.random.default_rng(2)
    x, y = rng.random((400, 2)) * 0.1, rng.random((400, 2)) * 0.1 + 0.8
    base = cdist(y, [[0.05, 0.05]], metric)[:, 0]
    tree = tree_of(y)
    kind = METRICS.index(metric)
    base = base[tree.order]
    net = cdist(x, tree.points, metric) - base
    offers = pricing.offers_of(tree, base, np.zeros(400), kind)
    leaves = len(tree.starts) - 1
    passed, flat = 0, 0
    for i in range(400):
        bounds = np.array([pricing.to_box(x, i, offers, node, kind) for node in range(leaves, 2 * leaves)])
        least = np.minimum.reduceat(net[i], tree.starts[:-1])
        assert (bounds <= least + 1e-12).all()
        gaps = np.clip(np.maximum(tree.low - x[i], x[i] - tree.high), 0, None)[leaves:]
        away = cdist(gaps, np.zeros((1, 2)), metric)[:, 0] + offers.flat[leaves:]
        passed += int((bounds >= least.min()).sum())
        flat += int((away >= least.min()).sum())
    if metric != "cityblock":  # whose net costs are all equal here, so that no box can be passed by
        assert passed > 400 * leaves / 2
        assert passed > 1.5 * flat


@pytest.mark.parametrize("metric", DISTANCES)
def test_pricing_finds_what_a_whole_matrix_shows(metric: str) -> None:
    rng = np.random.default_rng(3)
    x, y, base, rise = rng.random((80, 3)), rng.random((300, 3)), rng.normal(0, 0.2, 300), rng.random(300)
    tree = tree_of(y)
    search = pricing.Pricing(x, tree, METRICS.index(metric))
    net = cdist(x, tree.points, metric) - base + rise
    limits = np.quantile(net, 0.05, axis=1)
    found = search.cheapest(base, rise, np.arange(80), limits, 20, Deadline())
    assert found is not None
    for i in range(80):
        below = np.flatnonzero(net[i] < limits[i] - 1e-12)
        near = below[np.argsort(net[i, below])][:20]
        assert found.columns[i, : len(near)].tolist() == near.tolist()
    assert search.cheapest(base, rise, np.arange(80), limits, 20, Deadline(0)) is None


def test_a_problem_without_a_matrix_is_estimated_without_one() -> None:
    n = 1 << 18
    cloud = np.broadcast_to(np.zeros(2), (n, 2))
    problem = PointAssignment(np.empty((0, 0)), points=Points(cloud, cloud))
    for device in ("cpu", "gpu"):
        estimate = LAP.estimate(problem, LAP.options(), device)
        assert estimate.host_bytes < 1 << 30
        assert estimate.device_bytes < 1 << 33
