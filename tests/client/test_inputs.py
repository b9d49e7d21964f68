"""What may be given to the client, and what comes back for it."""

import itertools
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allot_client import Client, InvalidInput, Result, digests, tasks
from allot_client.arrays import FORBIDDEN_INTEGER, given, without_holes
from allot_client.body import job_body
from allot_client.files import read_for_service
from allot_client.points import METRICS, as_points, cost_matrix
from allot_client.tasks import task
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, eye_array, save_npz
from scipy.spatial.distance import cdist

from workers.store.digests import PIECE, digest_of

random = np.random.default_rng(7)


class Frame:
    """As much of a DataFrame as is looked at."""

    def __init__(self, values: Any, index: list[str], columns: list[str]) -> None:
        self.values, self.index, self.columns, self.shape = values, index, columns, values.shape

    def to_numpy(self) -> Any:
        return self.values


class Cells:
    """As much of an AnnData as is looked at."""

    def __init__(self, values: Any, names: list[str]) -> None:
        self.X, self.obs_names, self.var_names = values, names, [f"gene{k}" for k in range(values.shape[1])]


Frame.__module__, Cells.__module__ = "pandas.core.frame", "anndata._core.anndata"


@pytest.mark.parametrize("dtype", [bool, np.float16, np.int8, np.uint32, np.float32, np.int64, ">f8", ">i4"])
@pytest.mark.parametrize("n", [5, 90])
def test_types(allot: Client, dtype: Any, n: int) -> None:
    cost = (random.random((n, n)) * (2 if dtype is bool else 9)).astype(int).astype(dtype)
    answer = allot.lap(cost)
    rows, columns = linear_sum_assignment(cost.astype(float))
    assert answer.objective == cost[rows, columns].astype(float).sum()


@pytest.mark.parametrize("n", [5, 90])
def test_short_floats_of_jax_without_jax(allot: Client, n: int) -> None:
    ml_dtypes: Any = pytest.importorskip("ml_dtypes")
    for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        cost = (random.random((n, n)) * 9).astype(kind)
        wide = cost.astype(float)
        best = wide[linear_sum_assignment(wide)].sum()
        assert allot.lap(cost).objective == pytest.approx(best, rel=1e-6)
        assert next(allot.lap([cost, cost[:2]]).each()).objective == pytest.approx(best, rel=1e-6)
        assert allot.lap(allot.upload(cost)).objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("n", [5, 3000])
def test_sparse_booleans_are_ones(allot: Client, n: int, tmp_path: Path) -> None:
    graph = csr_array(np.eye(n, dtype=bool) if n < 9 else eye_array(n, dtype=bool))
    save_npz(tmp_path / "graph.npz", graph)
    for known in (graph, read_for_service(tmp_path / "graph.npz")):
        assert allot.auction(known).objective == n
    assert allot.uot(graph, reg=1.0).plan.nnz == n


def test_a_callers_sparse_matrix_stays_as_it_is(allot: Client) -> None:
    graph = csr_array((np.array([1.0, 2, 3]), np.array([1, 0, 1]), np.array([0, 2, 3])), (2, 2))
    for array in (graph.data, graph.indices, graph.indptr):
        array.flags.writeable = False
    assert allot.auction(graph).objective == 5
    assert graph.indices.tolist() == [1, 0, 1]


def test_holes_forbid_a_pair(allot: Client) -> None:
    lists = [[1, None, 3], [None, 2, 2], [4, 1, None]]
    masked = np.ma.masked_equal([[1, 0, 3], [0, 2, 2], [4, 1, 0]], 0)
    for cost in (lists, masked, np.where(masked.mask, np.inf, masked.data)):
        assert allot.lap(cost).assignment.tolist() == [0, 2, 1]
        assert allot.lap(cost).objective == 4
    assert allot.lap(lists, maximize=True).objective == 9
    assert allot.auction(lists).objective == 9
    ragged: list[Any] = [np.ma.masked_equal([[1, 0], [2, 9]], 0), np.array([[3]])]
    assert [one.assignment.tolist() for one in allot.lap(ragged).each()] == [[0, 1], [0]]
    with_fractions = without_holes(np.array([[0.5, None]], object), -np.inf)
    assert with_fractions.tolist() == [[0.5, -np.inf]]
    assert without_holes(np.array([[5, None]], object), np.inf).tolist() == [[5, FORBIDDEN_INTEGER]]


def test_what_is_no_number_is_told(allot: Client) -> None:
    missing = type("NAType", (), {})()  # as much of pandas.NA as is looked at
    assert allot.lap(np.array([[1, missing], [3, 4]], object)).assignment.tolist() == [0, 1]
    for wrong in ([["a", None], [1, 2]], np.array([[object(), 1], [1, 2]], object)):
        with pytest.raises(ValueError, match="no number"):
            allot.lap(wrong)


def test_names_come_back(allot: Client) -> None:
    costs = Frame(np.array([[4, 1], [2, 9]]), ["Anna", "Bob"], ["wash", "cook"])
    answer = allot.lap(costs)
    assert dict(answer.pairs()) == {"Anna": "cook", "Bob": "wash"}
    gaps = Frame(np.array([[4, np.nan], [2, 9]]), ["Anna", "Bob"], ["wash", "cook"])
    assert dict(allot.lap(gaps).pairs()) == {"Anna": "wash", "Bob": "cook"}
    with pytest.raises(InvalidInput, match="nan"):
        allot.lap(gaps.to_numpy())
    walks = Frame(np.array([[0, 5], [5, 0]]), ["lab", "ward"], ["lab", "ward"])
    rooms = Frame(np.array([[0, 9], [9, 0]]), ["101", "102"], ["101", "102"])
    layout = allot.qap(walks, rooms, fixed={0: 1})
    assert dict(layout.pairs()) == {"lab": "102", "ward": "101"}
    assert "  lab -> 102" in layout.in_words()
    left, right = Cells(random.random((4, 3)), list("abcd")), Cells(random.random((5, 3)), list("vwxyz"))
    plan = allot.uot(x=left, y=right, reg=0.5)
    assert (plan.row_names, plan.column_names) == (tuple("abcd"), tuple("vwxyz"))
    assert dict(allot.auction(x=left, y=right).pairs()).keys() == set("abcd")


def test_ragged_problems_one_by_one(allot: Client) -> None:
    problems = [random.random(shape) for shape in ((3, 5), (7, 2), (1, 1))]
    problems += [1e6 + 1e6 * random.random((12, 12))]
    for problem, found in zip(problems, allot.lap(problems).each(), strict=True):
        rows, columns = linear_sum_assignment(problem)
        assert len(found.assignment) == len(problem)
        assert found.assignment[rows].tolist() == columns.tolist()
        assert found.objective == pytest.approx(problem[rows, columns].sum())
        assert found.termination == "optimal"
        assert found.gap is not None
        assert found.gap < 1e-15  # a share of the objective, however large that is


def test_a_single_problem_is_a_batch_of_one(allot: Client) -> None:
    (found,) = allot.lap([[4, 1], [2, 0]]).each()
    assert (found.assignment.tolist(), found.objective, found.gap) == ([1, 0], 3, 0)


@pytest.mark.parametrize("metric", [name for name in METRICS if name != "inner"])
def test_costs_by_metric(metric: str) -> None:
    x, y = random.normal(size=(30, 6)), random.normal(size=(40, 6))
    np.testing.assert_allclose(cost_matrix(x, y, metric), cdist(x, y, metric), atol=1e-12)


def test_points_of_a_metric(allot: Client) -> None:
    x, y = random.normal(size=(12, 6)), random.normal(size=(12, 6))
    costs = cdist(x, y, "correlation")
    best = costs[linear_sum_assignment(costs)].sum()
    assert allot.lap(x=x, y=y, metric="correlation").objective == pytest.approx(best)
    auction = allot.auction(x=x, y=y, metric="correlation")
    assert auction.objective == pytest.approx(-best)
    by_points = allot.uot(x=x, y=y, metric="cosine", reg=0.3).plan
    by_costs = allot.uot(cdist(x, y, "cosine"), reg=0.3).plan
    np.testing.assert_allclose(by_points, by_costs, atol=1e-6)
    with pytest.raises(ValueError, match="constant point in row 1"):
        as_points(np.array([[1.0, 2.0], [3.0, 3.0]]), "correlation")
    with pytest.raises(ValueError, match="expected one of"):
        allot.lap(x=x, y=y, metric="colour")


def test_places_on_the_earth(allot: Client) -> None:
    """Angles by the haversine formula, as longitude and latitude or as directions."""
    x, y = (np.column_stack([random.uniform(-180, 180, k), random.uniform(-89, 89, k)]) for k in (6, 7))
    (a, b), (c, d) = np.radians(x).T, np.radians(y).T
    half = np.sin((b[:, None] - d) / 2) ** 2 + np.cos(b)[:, None] * np.cos(d) * np.sin((a[:, None] - c) / 2) ** 2
    costs = 2 * np.arcsin(np.sqrt(half))
    np.testing.assert_allclose(cost_matrix(x, y, "geodesic"), costs, atol=1e-12)
    axes = np.array([[2.0, 0, 0], [0, 3, 0], [-1, 0, 0]])
    np.testing.assert_allclose(cost_matrix(axes[:1], axes, "geodesic"), [[0, np.pi / 2, np.pi]], atol=1e-12)
    plan = allot.uot(x=x, y=y, metric="geodesic", reg=0.3)
    np.testing.assert_allclose(plan.plan, allot.uot(costs, reg=0.3).plan, atol=1e-6)
    lines = allot.uot(x=x, y=y, metric="geodesic", reg=0.3, output="potentials")
    np.testing.assert_allclose(lines.barycentric(y, x=x, y=y), plan.barycentric(y), rtol=1e-3)
    assert allot.lap(x=x, y=y, metric="geodesic").objective == pytest.approx(allot.lap(costs).objective)
    with pytest.raises(ValueError, match="directions"):
        cost_matrix(np.zeros((1, 3)), axes, "geodesic")


def test_points_are_sent_as_points(allot: Client) -> None:
    boxes = random.random((9, 2))
    boxes = np.concatenate([boxes, boxes + 0.2], axis=1)
    made = tasks.lap(None, {"metric": "iou"}, {"x": boxes, "y": boxes[::-1]})
    assert made.inputs.keys() == {"x", "y"}
    answer = allot.lap(x=boxes, y=boxes[::-1], metric="iou")
    assert answer.objective == 0
    assert answer.assignment.tolist() == list(range(9))[::-1]
    x, y = random.normal(size=(6, 3)), random.normal(size=(7, 3))
    limited = allot.lap(x=x, y=y, metric="cityblock", cost_limit=2.0)
    by_costs = allot.lap(cdist(x, y, "cityblock"), cost_limit=2.0)
    assert limited.objective == pytest.approx(by_costs.objective)
    assert limited.assignment.tolist() == by_costs.assignment.tolist()


def test_a_body_is_not_a_copy() -> None:
    """What is sent is the caller's memory: for a large array, a view of it."""
    cost = random.random((300, 300))
    made = task("lap", {"cost": cost}, {})
    body = job_body(made.job, made.inputs)
    views = [np.frombuffer(piece, np.uint8) for piece in body.pieces if isinstance(piece, memoryview)]
    assert len(views) == 1
    assert np.shares_memory(views[0], cost)
    assert sum(map(len, body.slices())) == body.length


class Tensor:
    """As much of a torch tensor on a GPU as is looked at."""

    def __init__(self, array: Any, place: str) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self.device = types.SimpleNamespace(type=place)

    def detach(self) -> "Tensor":
        return self

    def contiguous(self) -> "Tensor":
        return Tensor(np.ascontiguousarray(self.array), self.device.type)

    def copy_(self, other: "Tensor") -> "Tensor":
        self.array[...] = other.array
        return self

    def numpy(self) -> Any:
        assert self.device.type == "cpu"
        return self.array

    def to(self, device: Any) -> "Tensor":
        return Tensor(self.array, device.type)


def test_tensors_on_a_gpu_go_through_pinned_memory_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[bool] = []

    def empty(shape: Any, dtype: Any, pin_memory: bool) -> Tensor:
        pinned.append(pin_memory)
        return Tensor(np.empty(shape, dtype), "cpu")

    fake = types.SimpleNamespace(
        Tensor=Tensor, bfloat16="bfloat16", empty=empty, from_numpy=lambda array: Tensor(array, "cpu")
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(Tensor, "__module__", "torch")
    found = given(Tensor(np.eye(3), "cuda"))
    assert isinstance(found.value, np.ndarray)
    assert found.value.tolist() == np.eye(3).tolist()
    assert pinned == [True]
    back = found.bring(np.array([2, 0, 1]))
    assert (back.device.type, back.array.tolist()) == ("cuda", [2, 0, 1])


def test_jax_arrays_come_back_as_such(allot: Client) -> None:
    jax = pytest.importorskip("jax")
    answer = allot.lap(jax.numpy.asarray([[4.0, 1.0], [2.0, 9.0]], jax.numpy.bfloat16))
    assert isinstance(answer.assignment, jax.Array)
    assert answer.assignment.tolist() == [1, 0]


def test_results_are_compared_without_their_home() -> None:
    assert not Result.__dataclass_fields__["home"].compare


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 77])
def test_digests_are_the_services(size: int) -> None:
    data = random.bytes(size)
    for cuts in ([], [128], [PIECE - 1, PIECE + 1]):
        ends = [0, *(cut for cut in cuts if cut < size), size]
        parts = [memoryview(data)[a:b] for a, b in itertools.pairwise(ends)]
        assert digests.digest_of(parts) == digest_of(data)


def test_a_large_answer_comes_in_one_request(allot: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    real = allot._carry_out

    def carry_out(call: Any) -> Any:
        asked.append((call.method, call.path))
        return real(call)

    monkeypatch.setattr(allot, "_carry_out", carry_out)
    cost = random.random((400, 400))
    answer = allot.lap(cost)
    assert asked == [("POST", "/v1/jobs")]
    rows, columns = linear_sum_assignment(cost)
    assert answer.objective == pytest.approx(cost[rows, columns].sum())
    np.testing.assert_array_equal(answer.assignment, columns)
    assert answer.certificate.holds
    assert answer.verified


def test_an_uploaded_long_array_is_found_again(allot: Client) -> None:
    cost = random.random((2, PIECE // 8))
    blob = allot.upload(cost)
    assert blob.digest.startswith("sha256u:")
    assert allot.upload(cost).digest == blob.digest
    assert allot.lap(blob).objective == pytest.approx(cost.min(axis=1).sum())


def test_of_fewer_facilities_those_that_were_given_are_paired(allot: Client) -> None:
    flow, distance = 1 - np.eye(2), np.abs(np.subtract.outer(range(3), range(3)))
    named = allot.qap(Frame(flow, list("ab"), list("ab")), Frame(distance, list("xyz"), list("xyz")))
    assert [one for one, _ in named.pairs()] == ["a", "b"]
    assert "c" not in named.in_words().split("a -> ")[1]
    fetched: Any = allot.job(named.id).result()
    for plain in (allot.qap(flow, distance), allot.qap(allot.upload(flow), distance), fetched):
        assert [one for one, _ in plain.pairs()] == [0, 1]
        assert re.search(r"^permutation = \[\d \d\]$", plain.in_words(), re.MULTILINE)
        assert sorted(plain.arrays["permutation"]) == [0, 1, 2]
    general = allot.lawler(np.einsum("ik,pq->ipkq", flow, distance))
    assert [one for one, _ in general.pairs()] == [0, 1]


def test_a_qaplib_file_is_a_path_or_a_text(allot: Client, tmp_path: Path) -> None:
    text = "3\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n"
    path = tmp_path / "n3.dat"
    path.write_text(text)
    for inputs in ({"qaplib": text}, {"qaplib": path}, str(path)):
        assert allot.submit("qap", inputs, time_limit_s=2).result().objective == 24
    assert allot.qap(path, linear=np.full((3, 3), 10), permutation0=[2, 0, 1], time_limit_s=2).objective == 24 + 30


def test_an_address_without_http_is_one(allot: Client) -> None:
    with Client(allot.url.removeprefix("http://")) as plain:
        assert plain.lap([[3]]).objective == 3
