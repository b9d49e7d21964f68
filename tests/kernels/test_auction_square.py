"""Sparse square graphs on the CPU: bids in phases, and the exact finish after them."""

import itertools
from typing import Any

import numpy as np
import pytest

from kernels import Array, Csr, Deadline, Termination
from kernels.auction.cpu import square
from kernels.auction.cpu.phases import Packed
from kernels.auction.cpu.thinned import KEPT, thinned
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
    whole = Packed(graph.indptr, np.stack([graph.indices, graph.values.astype(np.int32)], 1))
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
