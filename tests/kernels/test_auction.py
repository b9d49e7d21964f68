from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, UNASSIGNED, Certificate, Csr, Deadline, Device, Solution, Termination
from tests.conftest import gpu_is_here
from tests.instances import auction as instances
from tests.oracles import auction as oracle

CARD = SOLVERS["auction"]


def run(inputs: Mapping[str, Any], device: Device = "cpu", **given: Any) -> tuple[Solution, Certificate]:
    if device not in CARD.modules:
        pytest.skip("no solver for this device")
    options = CARD.options(**given)
    problem = CARD.build(inputs, options)
    solution = CARD.solve(problem, options, Deadline(60), device)
    certificate = CARD.certify(problem, solution)
    assert certificate.holds, certificate
    return solution, certificate


@pytest.mark.parametrize("finish", ["auto", "auction", "paths"])
@pytest.mark.parametrize("family", instances.FAMILIES)
def test_the_optimum_is_scipys(family: str, finish: str, device: Device) -> None:
    inputs = instances.FAMILIES[family]()
    solution, certificate = run(inputs, device, finish=finish)
    best = oracle.scipy_optimum(inputs["benefit"], inputs.get("reject"))  # type: ignore[arg-type]
    if best is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(best, rel=1e-9)
    if solution.arrays["prices"].dtype.kind == "i":
        assert certificate.gap_abs == 0


def test_the_optimum_is_the_best_of_all_assignments(device: Device) -> None:
    for seed in range(20):
        graph = instances.planted(5, 6, 0.5, seed, limit=20)
        assert run({"benefit": graph}, device)[1].objective == oracle.best_of_all(graph)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 7.3, 1000.0])
@pytest.mark.parametrize("make", [instances.planted, instances.dense])
def test_an_epsilon_ends_within_its_bound(epsilon: float, make: Any, device: Device) -> None:
    graph = make(60, 80, 0.3, 5) if make is instances.planted else make(60, 80, 5)
    solution, certificate = run({"benefit": graph}, device, epsilon=epsilon)
    assert solution.termination is Termination.GAP_REACHED
    best = oracle.scipy_optimum(graph)
    assert best is not None
    assert certificate.objective is not None
    assert best - 60 * epsilon <= certificate.objective <= best


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_long_auctions_end_by_paths_within_epsilon(dtype: type, device: Device) -> None:
    graph = instances.planted(400, 400, 0.1, 24, dtype)
    best = oracle.scipy_optimum(graph)
    assert best is not None
    long, _ = run({"benefit": graph}, device, epsilon=1.0, finish="auction")
    assert long.facts["rounds"] > 1000
    for launch in ("persistent", "graph"):
        solution, certificate = run({"benefit": graph}, device, epsilon=1.0, launch=launch)
        assert solution.method == "auction+paths"
        assert solution.termination is Termination.GAP_REACHED
        assert solution.facts["rounds"] < long.facts["rounds"]
        assert certificate.objective is not None
        assert best - 400 <= certificate.objective <= best * (1 + 1e-12)


def test_an_epsilon_below_one_over_n_is_optimal(device: Device) -> None:
    graph = instances.planted(50, 50, 0.2, 6)
    _, certificate = run({"benefit": graph}, device, epsilon=1 / 51)
    assert certificate.gap_abs == 0
    assert certificate.objective == oracle.scipy_optimum(graph)


def test_the_auction_makes_the_papers_bids(device: Device) -> None:
    """Algorithm 1 by hand: rounds, bidders and prices of a literal transcription."""
    benefit = instances.dense(40, 40, 7)
    solution, _ = run({"benefit": benefit}, device, epsilon=1.0, finish="auction", trace=True)
    prices, owner, column = np.zeros(40), np.full(40, -1), np.full(40, -1)
    bidders = []
    while (column < 0).any():
        raises, chosen = np.zeros(40), np.full(40, -1)
        bidders.append(int((column < 0).sum()))
        for i in map(int, np.flatnonzero(column < 0)):
            net = benefit[i] - prices
            j = int(net.argmax())
            rise = net[j] - np.delete(net, j).max() + 1
            if rise > raises[j]:
                raises[j], chosen[j] = rise, i
        for j in map(int, np.flatnonzero(raises)):
            if owner[j] >= 0:
                column[owner[j]] = -1
            owner[j], column[chosen[j]] = chosen[j], j
            prices[j] += raises[j]
    np.testing.assert_array_equal(solution.arrays["assignment"], column)
    np.testing.assert_array_equal(solution.arrays["prices"], prices)
    np.testing.assert_array_equal(solution.arrays["bidders"], bidders)


def test_the_lowest_row_and_the_lowest_column_win_ties(device: Device) -> None:
    """Where all is equal, row k wins column k in round k: rounds of every size that the GPU tells apart."""
    n = 200
    solution, _ = run({"benefit": np.ones((n, n), np.int32)}, device, epsilon=1.0, finish="auction", trace=True)
    np.testing.assert_array_equal(solution.arrays["assignment"], np.arange(n))
    np.testing.assert_array_equal(solution.arrays["bidders"], np.arange(n, 0, -1))
    np.testing.assert_array_equal(solution.arrays["prices"], np.where(np.arange(n) < n - 1, 1, 2))


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("neighbours", [None, 30])
def test_points_are_assigned_as_their_distances(metric: str, neighbours: int | None, device: Device) -> None:
    clouds = instances.clouds(80, 120, 2, 1)
    solution, certificate = run(clouds, device, metric=metric, neighbours=neighbours)
    x, y = np.asarray(clouds["x"]), np.asarray(clouds["y"])
    step = np.abs(x[:, None] - y[None])
    distance = {"sqeuclidean": (step**2).sum(-1), "euclidean": np.sqrt((step**2).sum(-1)), "cityblock": step.sum(-1)}
    benefit = -distance[metric]
    if neighbours is not None:
        kth = -np.sort(-benefit, axis=1)[:, neighbours - 1 : neighbours]
        benefit = np.where(benefit >= kth, benefit, -np.inf)
        assert solution.arrays["neighbours"].shape == (80, neighbours)
    assert certificate.objective == pytest.approx(oracle.scipy_optimum(benefit), rel=1e-9)


@pytest.mark.parametrize("given", [{"launch": "graph"}, {"deterministic": False}])
def test_every_variant_of_the_rounds_ends_within_epsilon(given: dict[str, Any], device: Device) -> None:
    graph = instances.planted(300, 300, 0.2, 21)
    base, _ = run({"benefit": graph}, device, epsilon=1.0, finish="auction")
    solution, _ = run({"benefit": graph}, device, epsilon=1.0, finish="auction", **given)
    if "launch" in given:
        np.testing.assert_array_equal(solution.arrays["prices"], base.arrays["prices"])
        assert solution.facts["rounds"] == base.facts["rounds"]


@pytest.mark.gpu
def test_devices_make_the_same_bids() -> None:
    if not gpu_is_here():
        pytest.skip("no CUDA device here")
    for benefit in (instances.planted(200, 200, 0.2, 22), instances.dense(150, 150, 23, high=40)):
        one, _ = run({"benefit": benefit}, "cpu", epsilon=1.0, finish="auction", trace=True)
        two, _ = run({"benefit": benefit}, "gpu", epsilon=1.0, finish="auction", trace=True)
        for name in ("assignment", "prices", "profits", "bidders"):
            np.testing.assert_array_equal(one.arrays[name], two.arrays[name], err_msg=name)


def test_infeasible_graphs_name_too_many_rows_for_their_columns(device: Device) -> None:
    for finish in ("paths", "auction"):
        graph = instances.without_assignment(60, 3)
        solution, certificate = run({"benefit": graph}, device, finish=finish)
        assert solution.termination is Termination.INFEASIBLE
        assert certificate.proved.startswith("infeasible")
        rows = solution.arrays["hall_rows"]
        assert np.isfinite(oracle.as_dense(graph)[rows]).any(0).sum() < rows.size


def test_a_row_stays_unassigned_for_its_reject_price(device: Device) -> None:
    solution, certificate = run({"benefit": np.array([[5, 9]]), "reject": np.array([10])}, device)
    assert solution.arrays["assignment"].tolist() == [UNASSIGNED]
    assert certificate.objective == 10
    assert certificate.gap_abs == 0


def test_rows_that_may_stay_unassigned_do_so_for_nothing_unless_told_otherwise(device: Device) -> None:
    benefit = np.array([[5, -9], [7, -2], [1, -3]])
    solution, certificate = run({"benefit": benefit}, device, allow_unassigned=True)
    assert solution.arrays["assignment"].tolist() == [UNASSIGNED, 0, UNASSIGNED]
    assert certificate.objective == 7
    assert certificate.gap_abs == 0
    _, certificate = run({"benefit": benefit, "reject": np.array([0, 4, 0])}, device, allow_unassigned=True)
    assert certificate.objective == 9


@pytest.mark.parametrize("shape", [(300, 300), (300, 330)])
def test_prices_of_an_earlier_job_save_work(shape: tuple[int, int], device: Device) -> None:
    graph = instances.planted(*shape, 0.1, 8)
    first, _ = run({"benefit": graph}, device)
    values = graph.values.copy()
    values[::997] += 30
    changed = Csr(graph.indptr, graph.indices, values, graph.shape)
    again, certificate = run({"benefit": changed, "prices0": first.arrays["prices"]}, device)
    assert certificate.objective == oracle.scipy_optimum(changed)
    if shape[0] < shape[1]:
        return  # spare columns must give their old prices up, which costs about as much as it saves
    assert again.facts["bids"] + again.facts["rows_scanned"] < first.facts["bids"] + first.facts["rows_scanned"]


def test_an_earlier_answer_that_still_fits_is_kept(device: Device) -> None:
    for graph in (instances.planted(300, 300, 0.1, 8), instances.dense(120, 130, 9)):
        first, before = run({"benefit": graph}, device)
        start = {"prices0": first.arrays["prices"], "assignment0": first.arrays["assignment"]}
        again, after = run({"benefit": graph, **start}, device)
        assert after.objective == before.objective
        assert again.facts["bids"] + again.facts["rows_scanned"] <= 1
        np.testing.assert_array_equal(again.arrays["assignment"], first.arrays["assignment"])


def test_an_earlier_answer_may_have_lost_edges_and_gained_better_ones(device: Device) -> None:
    graph = instances.planted(200, 200, 0.2, 31)
    first, _ = run({"benefit": graph}, device)
    row = np.repeat(np.arange(200), np.diff(graph.indptr))
    values = graph.values.copy()
    values[::53] += 4000
    keep = (graph.indices != first.arrays["assignment"][row]) | (row % 9 > 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[keep], minlength=200))])
    changed = Csr(indptr, graph.indices[keep], values[keep], graph.shape)
    start = {"prices0": first.arrays["prices"], "assignment0": first.arrays["assignment"]}
    for given in ({}, {"finish": "auction"}, {"epsilon": 1.0}):
        _, certificate = run({"benefit": changed, **start}, device, **given)
        best = oracle.scipy_optimum(changed)
        assert best is not None
        assert certificate.objective is not None
        assert best - (200 if "epsilon" in given else 0) <= certificate.objective <= best


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_rows_of_any_length_are_read(dtype: type, device: Device) -> None:
    """One edge, a few, hundreds, and as many as a whole GPU reads together."""
    rng = np.random.default_rng(33)
    degrees, n_cols = [1, 3, 64, 65, 900, 70_000, 66_000], 90_000
    columns = [np.sort(rng.choice(n_cols, degree, replace=False)) for degree in degrees]
    values: Any = rng.integers(1, 50, sum(degrees)).astype(dtype)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    graph = Csr(indptr, np.concatenate(columns).astype(np.int32), values, (len(degrees), n_cols))
    _, certificate = run({"benefit": graph}, device)
    assert certificate.objective == pytest.approx(oracle.scipy_optimum(graph), rel=1e-9)
    _, certificate = run({"benefit": (rng.random((3, 70_000)) * 1000).astype(dtype)}, device)
    assert certificate.gap_abs == pytest.approx(0, abs=1e-6)


def test_a_round_limit_is_kept(device: Device) -> None:
    solution, certificate = run(
        {"benefit": instances.dense(80, 80, 9)}, device, epsilon=1.0, iteration_limit=3, trace=True
    )
    assert solution.termination is Termination.ITERATION_LIMIT
    assert solution.arrays["bidders"].size == solution.iterations == 3
    assert certificate.bound is not None


def test_weights_at_the_edge_of_int64_are_exact(device: Device) -> None:
    largest = 2**61 // 6
    benefit = np.array([[largest, largest - 1, 0], [largest - 1, largest - 3, 1], [5, 4, -largest], [1, 1, 1]][:3])
    for finish in ("paths", "auction"):
        _, certificate = run({"benefit": np.pad(benefit, ((0, 0), (0, 1)))}, device, finish=finish)
        assert certificate.gap_abs == 0
    run({"benefit": benefit}, device, epsilon=0.3, iteration_limit=2000)  # a price war of 1e18 rounds else


def test_a_false_answer_is_not_called_optimal() -> None:
    options = CARD.options()
    problem = CARD.build({"benefit": instances.dense(20, 20, 3)}, options)
    solution = CARD.solve(problem, options, Deadline())
    for name, spoilt in {
        "assignment": np.roll(solution.arrays["assignment"], 1),
        "prices": solution.arrays["prices"] + np.arange(20),
        "profits": solution.arrays["profits"] - 1,
    }.items():
        false = Solution(solution.termination, solution.method, solution.arrays | {name: spoilt})
        assert CARD.certify(problem, false).termination is Termination.CONVERGED, name


def test_the_example_runs() -> None:
    graph = CARD.example["inputs"]["benefit"]["csr"]
    arrays = {name: np.array(graph[name]) for name in ("indptr", "indices", "values")}
    _, certificate = run({"benefit": Csr(**arrays, shape=tuple(graph["shape"]))})
    assert certificate.objective == 21
