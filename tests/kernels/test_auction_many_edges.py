"""Graphs of very many edges, on the host: whatever looks at all of them makes nothing that has an entry for each.

The limits that pieces have are made small here, so that small graphs have many pieces.
"""

import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.auction_graphs import many_planted, many_uniform, planted_columns, planted_duals
from kernels import SOLVERS, Array, Csr, Deadline, InvalidProblem, Solution, Termination
from kernels.auction import complete as completion
from kernels.auction.complete import complete
from kernels.problems import arrays, sparse
from kernels.problems.sparse import exact_sums, row_blocks, summed
from tests.instances import auction as instances

CARD = SOLVERS["auction"]
MANY = 1 << 21


@pytest.fixture(params=[1, 2, 7, 1 << 17])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(arrays, "PIECE", request.param)
    monkeypatch.setattr(sparse, "PIECE", request.param)
    return int(request.param)


def graph_of(rows: list[list[int]], n_cols: int, values: Array | None = None) -> Csr:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.array([j for row in rows for j in row], np.int32)
    return Csr(indptr, indices, np.arange(indices.size) if values is None else values, (len(rows), n_cols))


def peak(work: Callable[[], Any]) -> int:
    """Bytes that it has at most beside what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_pieces_are_whole_rows_and_all_of_them(pieces: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(0, 5, 60))])
    found = list(row_blocks(indptr))
    assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
    assert found[-1][1] == 60
    assert all(indptr[last] - indptr[first] <= pieces for first, last in found if last - first > 1)


def test_rows_are_sorted_whatever_the_piece(pieces: int) -> None:
    rng = np.random.default_rng(1)
    rows = [rng.permutation(20)[: rng.integers(0, 9)].tolist() for _ in range(40)]
    given = graph_of(rows, 20)
    before = given.indices.copy()
    found = sparse.sparse("benefit", given)
    np.testing.assert_array_equal(given.indices, before)
    for i, row in enumerate(rows):
        here = slice(given.indptr[i], given.indptr[i + 1])
        order = np.argsort(row)
        np.testing.assert_array_equal(found.indices[here], np.array(row, np.int32)[order])
        np.testing.assert_array_equal(found.values[here], given.values[here][order])
    in_order = sparse.sparse("benefit", found)
    assert in_order.indices is found.indices
    assert in_order.values is found.values


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0], [1, 2], [3, 1, 3]], "column 3 twice in row 2"),
        ([[0, 2], [], [4, 4], [5, 5]], "column 4 twice in row 2"),
        ([[0, 1, 2, 3], [9]], r"holds 9 at \[4\]"),
        ([[0, 1], [2, -3]], r"holds -3 at \[3\]"),
    ],
)
@pytest.mark.usefixtures("pieces")
def test_a_wrong_edge_is_named(rows: list[list[int]], words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        sparse.sparse("benefit", graph_of(rows, 6))


@pytest.mark.usefixtures("pieces")
def test_a_wrong_number_is_named() -> None:
    benefit = np.ones((3, 5))
    benefit[0, 1], benefit[2, 3] = -np.inf, np.nan
    with pytest.raises(InvalidProblem, match=r"holds nan at \[2, 3\]"):
        arrays.finite("benefit", benefit, allow=-np.inf)
    with pytest.raises(InvalidProblem, match=r"holds -inf at \[0, 1\]"):
        arrays.finite("benefit", benefit)
    benefit[2, 3], benefit[1, 4] = 2, -1e300
    with pytest.raises(InvalidProblem, match="beyond"):
        exact_sums("benefit", benefit, 5)
    exact_sums("benefit", benefit.clip(-1e100), 5)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.usefixtures("pieces")
def test_entries_of_one_pair_are_added_up(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    rows = [rng.integers(0, 8, rng.integers(0, 12)).tolist() for _ in range(30)]
    given = graph_of(rows, 8)
    values = rng.integers(1, 50, given.indices.size).astype(dtype)
    found = summed("benefit", Csr(given.indptr, given.indices, values, given.shape))
    wanted = np.zeros(given.shape)
    np.add.at(wanted, (np.repeat(np.arange(30), np.diff(given.indptr)), given.indices), values)
    assert found.values.dtype == (np.int64 if np.dtype(dtype).kind == "i" else dtype)
    for i in range(30):
        here = slice(found.indptr[i], found.indptr[i + 1])
        np.testing.assert_array_equal(found.indices[here], np.flatnonzero(wanted[i]))
        np.testing.assert_array_equal(found.values[here], wanted[i][wanted[i] > 0])


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("degree", [512, 1 << 10])
def test_a_build_and_its_certificate_have_no_entry_for_each_edge(dtype: Any, degree: int) -> None:
    benefit = many_uniform(MANY // degree, degree, dtype) if degree < 1 << 10 else many_uniform(1448, 1448, dtype)
    options = CARD.options()
    assert peak(lambda: CARD.build({"benefit": benefit}, options)) < MANY // 2
    problem = CARD.build({"benefit": benefit}, options)
    nothing = np.zeros(problem.shape[0], np.int64)
    arrays_of = {"assignment": nothing - 1, "prices": nothing, "profits": nothing}
    stopped = Solution(Termination.TIME_LIMIT, "none", arrays_of)
    CARD.certify(problem, stopped)
    # a piece of 2^17 entries in int64 or float64, three times
    assert peak(lambda: CARD.certify(problem, stopped)) < 8 << 20


@pytest.mark.parametrize("degree", [32, 1 << 10])
def test_a_stopped_solve_is_completed_without_an_entry_for_each_edge(
    monkeypatch: pytest.MonkeyPatch, degree: int
) -> None:
    monkeypatch.setattr(completion, "MOST_OF_SCIPY", 0)
    monkeypatch.setattr(completion, "AT_ONCE", 1 << 12)
    graph = many_uniform(MANY // degree, degree, np.int32)
    assert isinstance(graph, Csr)
    column_of = np.arange(graph.shape[0])
    column_of[::50] = -1
    before = column_of.copy()
    assert peak(lambda: complete(graph, column_of, None)) < 2 * MANY
    assert sorted(column_of) == list(range(graph.shape[0]))
    assert (column_of == before).mean() > 0.9


@pytest.mark.parametrize("at_once", [1, 100, 1 << 22])
@pytest.mark.parametrize("reject", [None, 40])
def test_rows_that_choose_in_pieces_choose_as_all_together(
    monkeypatch: pytest.MonkeyPatch, at_once: int, reject: int | None
) -> None:
    graph = instances.planted(200, 220, 0.05, 3, limit=100)
    prices = None if reject is None else np.full(200, reject)
    wanted, found = np.full(200, -1), np.full(200, -1)
    completion._choose_together(graph, wanted, np.ones(220, bool), prices)
    monkeypatch.setattr(completion, "AT_ONCE", at_once)
    completion._choose_together(graph, found, np.ones(220, bool), prices)
    np.testing.assert_array_equal(found, wanted)
    first: dict[int, int] = {}  # the first round by hand: the lowest row that names a column has it
    for i in range(200):
        here = slice(graph.indptr[i], graph.indptr[i + 1])
        values = graph.values[here]
        if values.size and (reject is None or values.max() > reject):
            first.setdefault(int(graph.indices[here][values.argmax()]), i)
    assert all(found[i] == j for j, i in first.items())


@pytest.mark.parametrize("seed", range(6))
def test_paths_one_by_one_seat_whom_scipy_seats(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(completion, "MOST_OF_SCIPY", 0)
    graph = instances.planted(150, 150, 0.015, seed)
    column_of = np.full(150, -1)
    assert complete(graph, column_of, None) is None
    assert sorted(column_of) == list(range(150))
    for i, j in enumerate(column_of):
        assert j in graph.indices[graph.indptr[i] : graph.indptr[i + 1]]


def test_paths_one_by_one_name_rows_that_see_too_few_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MOST_OF_SCIPY", 0)
    graph = instances.without_assignment(60, 3)
    rows = complete(graph, np.full(60, -1), None)
    assert rows is not None
    seen = {int(j) for i in rows for j in graph.indices[graph.indptr[i] : graph.indptr[i + 1]]}
    assert len(seen) < rows.size


@pytest.mark.parametrize(("n", "degree"), [(1200, 24), (1003, 20), (90, 90), (3, 2)])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_planted_assignment_is_the_optimum(n: int, degree: int, dtype: Any) -> None:
    options = CARD.options()
    problem = CARD.build({"benefit": many_planted(n, degree, dtype)}, options)
    solution = CARD.solve(problem, options, Deadline(60), "cpu")
    certificate = CARD.certify(problem, solution)
    assert certificate.holds
    assert solution.termination is Termination.OPTIMAL
    np.testing.assert_array_equal(solution.arrays["assignment"], planted_columns(n))
    assert certificate.objective == sum(int(duals.sum()) for duals in planted_duals(n))


@pytest.mark.parametrize("refuses", [False, True])
def test_a_large_array_is_locked_for_its_copy_alone(monkeypatch: pytest.MonkeyPatch, refuses: bool) -> None:
    gpu_locked = pytest.importorskip("kernels.gpu_locked", reason="cupy is not installed")
    told: list[str] = []

    class Held:
        def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
            self.shape = shape

        def set(self, array: Array) -> None:
            told.append(f"set {array.nbytes}")

    def lock(address: int, count: int) -> Callable[[], object]:
        if refuses:
            raise RuntimeError("not this memory")
        told.append(f"lock {count}")
        return lambda: told.append("unlock")

    stream = SimpleNamespace(synchronize=lambda: told.append("wait"))
    device = SimpleNamespace(get_current_stream=lambda: stream)
    staged = SimpleNamespace(empty=Held, asarray=lambda array: told.append("staged"), cuda=device)
    monkeypatch.setattr(gpu_locked, "cupy", staged)
    monkeypatch.setattr(gpu_locked, "is_page_locked", lambda array: False)
    monkeypatch.setattr(gpu_locked.locked, "page_lock", lock)
    monkeypatch.setattr(gpu_locked, "MOST_STAGED", 1 << 21)
    gpu_locked.uploaded(np.zeros(1 << 18))
    assert told == ["staged"]
    del told[:]
    gpu_locked.uploaded(np.zeros((1 << 18) + 1))
    size = 8 * ((1 << 18) + 1)
    assert told == ([f"set {size}"] if refuses else [f"lock {size}", f"set {size}", "wait", "unlock"])
