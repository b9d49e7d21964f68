import asyncio
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allot_client import (
    AsyncClient,
    Client,
    InvalidInput,
    JobCancelled,
    NotFound,
    Unauthorized,
    Unreachable,
    WaitedTooLong,
    as_completed,
)
from allot_client.arrays import Sparse, given
from allot_client.body import job_body
from allot_client.flows import Answer, Call, Retry
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from tests.app.conftest import Service, long_job

COST = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
random = np.random.default_rng(0)


@pytest.mark.parametrize("n", [3, 40, 80])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_lap_small_as_json_and_large_as_bytes(allot: Client, n: int, dtype: Any) -> None:
    cost = (random.random((n, n + 2)) * 1000).astype(dtype)
    answer = allot.lap(cost)
    rows, cols = linear_sum_assignment(cost)
    assert answer.optimal
    assert answer.gap is not None
    assert answer.gap < 1e-9
    assert answer.assignment.tolist() == cols.tolist()
    assert answer.objective == pytest.approx(cost[rows, cols].astype(float).sum())
    assert answer.certificate.holds
    assert answer.u.shape == (n,)


def test_ragged_problems_in_one_call(allot: Client) -> None:
    problems = [random.random((m, n)) for m, n in ((3, 5), (7, 2), (1, 1))]
    answer = allot.lap(problems)
    for k, problem in enumerate(problems):
        rows, cols = linear_sum_assignment(problem)
        assert [j for j in answer.assignment[k, : len(problem)].tolist() if j >= 0] == cols.tolist(), rows


def test_other_solvers(allot: Client, tmp_path: Path) -> None:
    graph = csr_array(np.triu(random.integers(1, 9, (6, 6))))
    assert allot.auction(graph).objective == graph.diagonal().sum()
    plan = allot.uot(x=random.normal(size=(30, 2)), y=random.normal(size=(40, 2)), reg=0.1).plan
    assert plan.shape == (30, 40)
    (tmp_path / "n3.dat").write_text("3\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n")
    assert sorted(allot.qap(tmp_path / "n3.dat", time_limit_s=1).permutation.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "int64", "uint8"])
def test_a_long_sparse_matrix_goes_as_its_three_arrays(allot: Client, kind: str) -> None:
    numbers = np.random.default_rng(3)
    dense = numbers.integers(1, 200, (120, 150)) * (numbers.random((120, 150)) < 0.4)
    np.fill_diagonal(dense, 7)
    graph = csr_array(dense.astype(kind))
    answer = allot.auction(graph)
    rows, cols = min_weight_full_bipartite_matching(csr_array(dense), maximize=True)
    assert answer.optimal
    assert answer.objective == dense[rows, cols].sum()
    value = given(graph).value
    assert isinstance(value, Sparse)
    sent = b"".join(job_body({"solver": "auction"}, {"benefit": value}).slices())
    for part, array in (("indptr", graph.indptr), ("indices", graph.indices), ("values", graph.data)):
        assert f'name="benefit.{part}"; filename="benefit.{part}.npy"'.encode() in sent
        assert array.tobytes() in sent


def test_result_arrays_above_the_inline_limit(allot: Client) -> None:
    answer = allot.uot(random.random((80, 60)), reg=0.1)
    assert "href" in answer.document["plan"]
    assert answer.plan.shape == (80, 60)
    assert answer.plan.sum() == pytest.approx(answer.plan.sum(axis=1).sum())


def test_submit_follow_cancel(allot: Client) -> None:
    request = long_job(60)
    arrays = {name: np.array(value) for name, value in request["inputs"].items()}
    job = allot.submit("qap", arrays, time_limit_s=60)
    kinds = []
    for event in job.events():
        kinds.append(event.kind)
        if event.kind == "incumbent":
            job.cancel()
    assert kinds[-1] == "state"
    answer = job.result(30)
    assert answer.termination == "stopped"
    assert sorted(answer.arrays["permutation"].tolist()) == list(range(40))


def test_waiting_has_an_end_and_queued_jobs_can_be_cancelled(allot: Client) -> None:
    arrays = {name: np.array(value) for name, value in long_job()["inputs"].items()}
    first, second = (allot.submit("qap", arrays, time_limit_s=60) for _ in range(2))
    with pytest.raises(WaitedTooLong, match=second.id):
        second.result(0.3)
    second.cancel()
    with pytest.raises(JobCancelled):
        second.result(10)
    first.cancel()
    assert [job.id for job in as_completed([first, second])]
    first.delete()
    first.delete()
    with pytest.raises(NotFound):
        first.view()
    assert second.id in {view["id"] for view in allot.jobs(solver="qap")}


def test_a_blob_is_sent_once(allot: Client) -> None:
    blob = allot.upload(COST)
    assert allot.lap(blob).objective == 5
    assert allot.lap(blob, maximize=True).objective == linear_sum(COST, maximize=True)


def linear_sum(cost: Any, maximize: bool = False) -> Any:
    return cost[linear_sum_assignment(cost, maximize)].sum()


def test_map_keeps_the_order(allot: Client) -> None:
    problems = [random.integers(0, 99, (5, 5)) for _ in range(40)]
    found = [answer.objective for answer in allot.map(allot.lap, problems, concurrency=4)]
    assert found == [linear_sum(problem) for problem in problems]


def test_the_field_at_fault(allot: Client) -> None:
    with pytest.raises(InvalidInput, match=r"(?i)nan") as wrong:
        allot.lap(np.array([[np.nan, 1.0], [2.0, 3.0]]))
    assert wrong.value.faults[0].field in ("cost", "inputs.cost")
    with pytest.raises(InvalidInput, match="unknown"):
        allot.lap(COST, colour="red")


def test_a_key_is_read_from_the_environment(
    owners: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, key, other = owners
    with Client(url) as nobody, pytest.raises(Unauthorized, match="set ALLOT_API_KEY"):
        nobody.lap(COST)
    monkeypatch.setenv("ALLOT_URL", url)
    monkeypatch.setenv("ALLOT_API_KEY", key)
    with Client() as ann, Client(api_key=other) as bob:
        job = ann.submit("lap", {"cost": COST})
        assert job.result().timings["total"] > 0
        with pytest.raises(NotFound):
            bob.job(job.id).view()


def test_nobody_there() -> None:
    with Client("http://127.0.0.1:9", retry=Retry(attempts=2, first_s=0.01)) as client, pytest.raises(Unreachable):
        client.lap(COST)


def test_asyncio(service: Service) -> None:
    async def main() -> None:
        async with AsyncClient(service.url) as client:
            answer = await client.lap(random.random((90, 90)))
            assert answer.optimal
            problems = [random.integers(0, 99, (4, 4)) for _ in range(20)]
            found = [a.objective async for a in client.map(client.lap, problems, concurrency=4)]
            assert found == [linear_sum(problem) for problem in problems]
            job = await client.submit("lap", {"cost": COST})
            assert (await job.result()).objective == 5
            assert [event.kind async for event in job.events()][-1] == "state"

    asyncio.run(main())


def test_retries_stop_and_obey_the_service() -> None:
    retry = Retry(attempts=3, first_s=0.1, longest_s=1.0)
    get, post = Call("GET", "/"), Call("POST", "/", safe=False)
    busy = Answer(429, {"retry-after": "1"}, b"")
    assert retry.pause_s(1, get, busy) == 1.0
    assert retry.pause_s(3, get, busy) is None
    broken = Answer(0, {}, b"", "reset")
    assert retry.pause_s(1, get, broken) is not None
    assert retry.pause_s(1, post, broken) is None
    assert retry.pause_s(1, get, Answer(422, {}, b"")) is None


def test_arrays_of_matrices_of_any_sizes_are_made_when_they_are_asked_for(allot: Client) -> None:
    answer = allot.lap([np.array([[1.0, 2.0]]), np.array([[2.0, 1.0, 9.0], [1.0, 2.0, 9.0]])])
    again = pickle.loads(pickle.dumps(answer))
    for one in (answer, again):
        assert sorted(one.arrays) == ["assignment", "u", "v"]
        assert "v" in one.arrays
        assert "prices" not in one.arrays
        held: Any = one.arrays
        assert held._made == {}
        np.testing.assert_array_equal(one.assignment, [[0, -1], [1, 0]])
        assert one.assignment is one.arrays["assignment"]
        assert one.v.shape == (2, 3)
        with pytest.raises(KeyError):
            one.arrays["prices"]
