"""Sparse square graphs on the CPU: bids in phases, and the exact finish after them."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

from kernels import Array, Csr, Deadline, Termination
from kernels.auction.cpu import nearness, square
from kernels.auction.cpu.nearness import numbered
from kernels.auction.cpu.packing import Grain, grain_of, packed, whole_prices
from kernels.auction.cpu.phases import MOST_PRICE, SPAN, Packed
from kernels.auction.cpu.thinned import KEPT, thinned
from kernels.problems.arrays import untouched
from tests.kernels.test_auction import CARD, run
from tests.oracles import auction as oracle


def _graph(n: int, degree: int, seed: int, low: int, high: int, dtype: Any = np.int64, planted: bool = True) -> Csr:
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, n, (n, degree))
    if planted:
        columns[:, 0] = rng.permutation(n)
    places = np.unique(np.repeat(np.arange(n), degree) * n + columns.reshape(-1))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(places // n, minlength=n))])
    values = rng.integers(low, high + 1, places.size).astype(dtype)
    return Csr(indptr, (places % n).astype(np.int32), values, (n, n))


def _with(graph: Csr, values: Array) -> Csr:
    return Csr(graph.indptr, graph.indices, values, graph.shape)


RANGES = {"wide": (1, 10_000), "ties": (1, 3), "below 0": (-500, -1), "2e14": (0, 2 * 10**14), "equal": (7, 7)}


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("which", RANGES)
@pytest.mark.parametrize("n", [6, 40, 300])
def test_phases_end_in_the_optimum(n: int, which: str, dtype: type) -> None:
    for seed, degree in itertools.product(range(3), (2, 5)):
        graph = _graph(n, degree, seed, *RANGES[which], dtype=dtype)
        solution, certificate = run({"benefit": graph})
        assert solution.termination is Termination.OPTIMAL
        assert which == "equal" or solution.facts["phases"] >= 1
        assert certificate.termination is None  # it grants the claim
        best = oracle.scipy_optimum(graph)
        assert best is not None
        assert certificate.objective == pytest.approx(best, rel=1e-12)
        if dtype is np.int64:
            assert certificate.gap_abs == 0
            assert solution.arrays["prices"].dtype == np.int64


@pytest.mark.parametrize("largest", [2**61 // 18, 2**61 // 18 // 64])
def test_integers_at_their_limit_stay_exact(largest: int) -> None:
    graph = _graph(16, 4, 5, -largest, largest)
    _, certificate = run({"benefit": graph})
    assert certificate.gap_abs == 0


def test_a_graph_without_an_assignment_ends_with_a_violator() -> None:
    for seed, degree, largest in itertools.product(range(8), (1, 2, 3), (9, 2**61 // 60)):
        graph = _graph(40, degree, seed, 0, largest, planted=False)
        solution, certificate = run({"benefit": graph})
        if oracle.scipy_optimum(_with(graph, np.ones(graph.indices.size))) is None:
            assert solution.termination is Termination.INFEASIBLE
        else:
            assert certificate.gap_abs == 0


def test_phases_that_are_cut_short_leave_the_rest_to_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(200, 5, 3, 1, 1000)
    best = run({"benefit": graph})[1].objective
    monkeypatch.setattr(square, "MANY", 1)
    solution, certificate = run({"benefit": graph})
    assert (certificate.objective, certificate.gap_abs) == (best, 0)
    assert solution.facts["phases"] == 1
    assert solution.facts["augmentations"] > 0


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_one_that_is_stopped_answers_with_an_assignment(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(square, "BATCH_EDGES", 100)
    options = CARD.options()
    problem = CARD.build({"benefit": _graph(100, 4, 2, 1, 50, dtype)}, options)
    ended = set()
    for looks in (0, 1, 2, 5, 20, 60, 61, 62, 63, 64, 70, 80, 1000):
        count = itertools.count()
        stopped = Deadline(60, cancelled=lambda count=count, looks=looks: next(count) >= looks)  # type: ignore[misc]
        solution = CARD.solve(problem, options, stopped, "cpu")
        certificate = CARD.certify(problem, solution)
        assert certificate.holds
        assert certificate.gap_abs is not None
        ended.add(solution.termination)
    assert ended == {Termination.STOPPED, Termination.OPTIMAL}


def test_rows_of_many_edges_bid_for_the_best_of_them() -> None:
    for dtype in (np.int64, np.float64):
        graph = _graph(200, 90, 4, 1, 10_000, dtype)
        solution, certificate = run({"benefit": graph})
        assert solution.facts["phases"] >= 1
        assert certificate.termination is None
        assert certificate.objective == oracle.scipy_optimum(graph)
    span = int(graph.values.max())
    whole = Packed(graph.indptr.astype(np.int32), np.stack([graph.indices, graph.values.astype(np.int32)], 1))
    part = thinned(whole, 200)
    for i in range(200):
        all_of_row, kept = (np.sort(p.edges[p.indptr[i] : p.indptr[i + 1], 1])[::-1] for p in (whole, part))
        assert span >= kept[0]
        assert KEPT <= kept.size < all_of_row.size
        assert (kept[:KEPT] == all_of_row[:KEPT]).all()


def test_where_the_best_edges_assign_nobody_the_lists_do() -> None:
    benefit = np.random.default_rng(2).integers(1, 100, (80, 80))
    benefit[:, :40] += 1000  # the best edges of all rows lead to half of the columns
    benefit[0, 40:] = 200  # and the best edge of every other column to one row
    columns = np.tile(np.arange(80, dtype=np.int32), 80)
    graph = Csr(np.arange(81) * 80, columns, benefit.reshape(-1), (80, 80))
    solution, certificate = run({"benefit": graph})
    assert solution.facts["phases"] == 0
    assert (certificate.objective, certificate.gap_abs) == (oracle.scipy_optimum(graph), 0)


def test_other_requests_take_the_way_they_took() -> None:
    graph = _graph(40, 5, 1, 1, 100)
    assert run({"benefit": graph}, finish="paths")[0].facts["phases"] == 0
    assert run({"benefit": graph, "prices0": np.zeros(40, np.int64)})[0].facts["phases"] == 0
    assert run({"benefit": graph}, allow_unassigned=True)[0].facts["phases"] == 0


def _near(n: int, known: int, seed: int) -> Csr:
    """Points in the plane, in any order, their nearest places and a hidden one; minus squared distances."""
    rng = np.random.default_rng(seed)
    x, hidden = rng.random((n, 2)), rng.permutation(n)
    y = (x + rng.normal(0, 1 / np.sqrt(n), (n, 2)))[hidden]
    columns = np.concatenate([cKDTree(y).query(x, known)[1], np.argsort(hidden)[:, None]], 1)
    places = np.unique(np.repeat(np.arange(n), known + 1) * n + columns.reshape(-1))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(places // n, minlength=n))])
    squares = ((x[places // n] - y[places % n]) ** 2).sum(1)
    return Csr(indptr, (places % n).astype(np.int32), -np.rint(squares * 1e9).astype(np.int64), (n, n))


def _as_packed(graph: Csr) -> Packed:
    whole = (graph.values - graph.values.min()).astype(np.int32)
    return Packed(untouched(graph.indptr.astype(np.int32)), np.stack([graph.indices, whole], 1))


def _triples(graph: Packed, rows: Array, columns: Array) -> set[tuple[int, int, int]]:
    """Row, column and benefit of every edge, by the numbers that `rows` and `columns` give their places."""
    row_of = np.repeat(np.arange(graph.indptr.size - 1), np.diff(graph.indptr))
    return set(zip(rows[row_of].tolist(), columns[graph.edges[:, 0]].tolist(), graph.edges[:, 1].tolist(), strict=True))


def test_a_local_graph_in_another_order_is_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearness, "LEAST_ROWS", 1)
    graph = _near(20_000, 8, 1)
    graph.values[:] = np.random.default_rng(1).integers(0, 1000, graph.values.size)
    before = _as_packed(graph)
    near = numbered(before)
    assert near is not None
    assert sorted(near.rows) == sorted(near.columns) == list(range(20_000))
    n = np.arange(20_000)
    assert _triples(near.packed, near.rows, near.columns) == _triples(before, n, n)
    assert _reach(near.packed) < _reach(before) / 8


def _reach(graph: Packed) -> float:
    """How far apart in memory the columns of a row are, in the middle."""
    columns = graph.edges[:, 0]
    return float(np.median([np.ptp(columns[a:b]) for a, b in itertools.pairwise(graph.indptr) if b > a]))


def test_graphs_without_places_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearness, "LEAST_ROWS", 1)
    assert numbered(_as_packed(_graph(20_000, 8, 1, 1, 9))) is None  # a walk meets everybody
    assert numbered(_as_packed(_graph(20_000, 2, 1, 1, 9))) is None  # or ends again and again
    band = np.arange(6000)[:, None] + np.arange(3)
    ordered = Csr(
        np.arange(6001) * 3, (band % 6000).astype(np.int32).reshape(-1), np.ones(18_000, np.int64), (6000, 6000)
    )
    assert numbered(_as_packed(ordered)) is None  # it has an order


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_an_order_changes_no_optimum(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clouds that know nothing of each other, so that the walk has to begin twice."""
    monkeypatch.setattr(nearness, "LEAST_ROWS", 1)
    parts = [_near(2500, 12, seed) for seed in (2, 3)]
    indptr = np.concatenate([parts[0].indptr, parts[0].indptr[-1] + parts[1].indptr[1:]])
    indices = np.concatenate([parts[0].indices, parts[1].indices + 2500]).astype(np.int32)
    values: Array = np.concatenate([part.values for part in parts]).astype(dtype)
    graph = Csr(indptr, indices, values, (5000, 5000))
    assert numbered(Packed(untouched(indptr.astype(np.int32)), np.stack([indices, indices], 1))) is not None
    solution, certificate = run({"benefit": graph})
    assert solution.termination is Termination.OPTIMAL
    assert certificate.termination is None
    assert certificate.objective == pytest.approx(oracle.scipy_optimum(graph), rel=1e-12)


def test_a_local_graph_without_an_assignment_ends_with_a_violator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearness, "LEAST_ROWS", 1)
    graph = _near(3000, 6, 4)
    graph.indices[graph.indptr[7] :] = np.where(
        graph.indices[graph.indptr[7] :] == 11, 12, graph.indices[graph.indptr[7] :]
    )
    columns = np.unique(np.repeat(np.arange(3000), np.diff(graph.indptr)) * 3000 + graph.indices)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(columns // 3000, minlength=3000))])
    poor = Csr(indptr, (columns % 3000).astype(np.int32), np.ones(columns.size, np.int64), (3000, 3000))
    found = oracle.scipy_optimum(poor)
    solution, certificate = run({"benefit": poor})
    assert (solution.termination is Termination.INFEASIBLE) == (found is None)
    assert certificate.holds


@pytest.mark.parametrize("epsilon", [1, 3, 20])
def test_whole_prices_spoil_few_pairs(epsilon: int) -> None:
    """Rows hold a column within epsilon of their best in grains; after rounding, most hold one of their best."""
    rng, n, grain = np.random.default_rng(epsilon), 400, 64
    benefits = rng.integers(0, 50, (n, n))
    prices = rng.integers(0, 20 * grain, n)
    best = (benefits * grain - prices).max(1)
    held = np.argmax(benefits * grain - prices >= best[:, None] - epsilon, 1)
    whole = whole_prices(prices, grain, epsilon)
    nets = benefits - whole
    spoilt = nets[np.arange(n), held] < nets.max(1)
    lift = next(k for k in range(grain) if ((prices + k) // grain == whole).all())
    low = (prices + lift) % grain >= grain - epsilon  # the columns that can spoil a pair
    assert low.sum() <= n * epsilon / grain
    assert (low[np.argmax(np.where(spoilt[:, None], nets, -1), 1)] | ~spoilt).all()
    assert spoilt.sum() < (benefits * grain - prices)[np.arange(n), held].size / 2
    assert (whole_prices(prices, 1, epsilon) == prices).all()


@pytest.mark.parametrize("span", [1, 9, 99, 9_999, SPAN - 1, SPAN, SPAN + 1, 2**40])
def test_benefits_are_packed_as_finely_as_they_fit(span: int) -> None:
    values = np.array([-5, -5 + span, -5 + span // 2])
    graph = Csr(np.array([0, 3]), np.arange(3, dtype=np.int32), values, (1, 3))
    for n in (10, 10_000, 1_000_000):
        grain = grain_of(span, n, floats=False)
        edges = packed(graph, grain, -5).edges
        assert edges[:, 0].tolist() == [0, 1, 2]
        assert (edges[:, 1] == (values + 5) * grain.grain // int(grain.unit)).all()
        assert 0 <= edges.min() <= edges.max() <= SPAN
        assert SPAN * 8 <= MOST_PRICE
    floats = Csr(graph.indptr, graph.indices, values / 7, (1, 3))
    found = packed(floats, grain_of(span / 7, 10, floats=True), -5 / 7).edges[:, 1]
    assert np.abs(found - (values + 5) * SPAN / span).max() <= 1


def test_few_different_benefits_leave_hardly_a_path() -> None:
    """Ties make the tree of a path large: bids in small fractions of a unit, well rounded, need none or few."""
    graph = _graph(4000, 8, 6, 1, 5)
    solution, certificate = run({"benefit": graph})
    assert grain_of(4, 4000, floats=False) == Grain(128, 1)
    assert certificate.objective == oracle.scipy_optimum(graph)
    assert solution.facts["augmentations"] <= 20
