import io
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy

from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import LAP, Service, long_job, serve
from tests.app.test_bad_input import check, npy, npz
from tests.workers.service import allowed

Post = Callable[..., httpx.Response]


def test_a_request_just_answers(client: httpx.Client) -> None:
    headers = {"Prefer": "wait=30", "Content-Type": "application/x-www-form-urlencoded"}
    body = '{"solver": "lap", "inputs": {"cost": [[4, 1], [2, 0]]}}'
    answer = client.post("/v1/jobs", content=body, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["preference-applied"] == "wait=30"
    found = answer.json()
    assert found["objective"] == 3
    assert found["assignment"] == [1, 0]
    assert found["certificate"]["bound"] == 3
    assert sum(found["duals"]["u"]) + sum(found["duals"]["v"]) == 3
    assert {"termination", "method", "device", "iterations", "seed", "versions", "attempt"} <= found.keys()
    assert {"queued", "load", "solve", "certify", "total"} <= found["timings_ms"].keys()


def test_submit_poll_fetch(client: httpx.Client, post: Post) -> None:
    answer = post(LAP, wait=None)
    assert answer.status_code == 202
    assert answer.headers["retry-after"]
    where = answer.headers["location"]
    assert answer.json()["links"]["self"] == where
    job = client.get(f"{where}?wait=30").json()
    assert job["state"] == "succeeded"
    assert job["expires_at"] > job["ended_at"]
    assert client.get(f"{where}/result").json()["objective"] == 5
    assert client.get("/v1/jobs").json()["jobs"][0] == job


def test_every_form_of_an_input_is_the_same_job(client: httpx.Client, post: Post) -> None:
    cost = np.array([[7, 5, 9], [8, 2, 3], [4, 6, 1]])
    uploaded = client.post("/v1/blobs", content=npy(cost)).json()
    packed = npz(cost=cost, other=cost + 1)
    several = client.post("/v1/blobs", content=packed).json()
    one = client.post("/v1/blobs", content=packed, params={"member": "cost"}).json()
    forms: list[Any] = [
        cost.tolist(),
        {"data": cost.tolist()},
        uploaded,
        {"blob": uploaded["digest"]},
        one,
        {**several, "member": "cost"},
        {"blob": several["digest"], "member": "cost"},
    ]
    for form in forms:
        answer = post({"solver": "lap", "inputs": {"cost": form}})
        assert answer.status_code == 200, answer.text
        assert answer.json()["objective"] == 10
    for body, name in (({"solver": "lap"}, "cost"), ({"solver": "lap", "inputs": {"cost": {"part": "c"}}}, "c")):
        sent = client.post("/v1/jobs", data={"job": json.dumps(body)}, files={name: ("c.npy", npy(cost))},
                           headers={"Prefer": "wait=30"})  # fmt: skip
        assert sent.status_code == 200, sent.text
        assert sent.json()["objective"] == 10


def test_null_forbids(post: Post) -> None:
    lap = post({"solver": "lap", "inputs": {"cost": [[1, None], [2, 9]]}}).json()
    assert lap["assignment"] == [0, 1]
    most = {"solver": "lap", "inputs": {"cost": [[9, None], [8, 1]]}, "options": {"maximize": True}}
    assert post(most).json()["objective"] == 10
    auction = post({"solver": "auction", "inputs": {"benefit": [[5, 4], [None, 3]]}}).json()
    assert auction["assignment"] == [0, 1]


def test_null_leaves_integers_exact(post: Post) -> None:
    answer = post({"solver": "lap", "inputs": {"cost": [[2**53 + 1, None], [None, 2]]}}).json()
    assert answer["objective"] == answer["certificate"]["bound"] == 2**53 + 3
    assert answer["termination"] == "optimal"
    refused = post({"solver": "lap", "inputs": {"cost": [[-(2**63), 1], [1, 2]]}})
    assert refused.status_code == 422


def test_an_infeasible_problem_leaves_its_batch_the_other_answers(post: Post) -> None:
    batch = [[[1, 2], [3, 4]], [[None, None], [1, 2]], [[5, 1], [1, 5]]]
    answer = post({"solver": "lap", "inputs": {"cost": batch}}).json()
    assert answer["termination"] == "infeasible"
    assert answer["objective"] == 7
    assert answer["assignment"] == [[0, 1], [-1, -1], [1, 0]]
    assert answer["certificate"]["facts"]["problems"]["terminations"] == ["optimal", "infeasible", "optimal"]
    assert answer["hall_rows"] == [[False, False], [True, False], [False, False]]


def test_infeasible_is_an_answer(post: Post) -> None:
    answer = post({"solver": "lap", "inputs": {"cost": [[1, None], [2, None]]}})
    assert answer.status_code == 200
    assert answer.json()["termination"] == "infeasible"


@pytest.mark.parametrize(
    "text",
    [
        "3\n\n0 1 2\n1 0 3\n2 3 0\n\n0 5 1\n5 0 2\n1 2 0\n",
        "3\n0 1 2 1\n0 3 2 3 0\n0 5 1 5 0\n2 1 2 0",
        "3 777\n0 1 2\n1 0 3\n2 3 0\n0 5 1\n5 0 2\n1 2 0\n",
        "3\n0.0 1.0 2.0\n1.0 0 3\n2 3e0 0\n0 5 1\n5 0 2\n1 2 0\n",
    ],
    ids=["blank-lines", "wrapped-rows", "extra-number", "floats"],
)
def test_good_qaplib_files(client: httpx.Client, text: str) -> None:
    body = {"job": json.dumps({"solver": "qap", "time_limit_s": 5})}
    answer = client.post("/v1/jobs", data=body, files={"qaplib": ("x.dat", text)}, headers={"Prefer": "wait=30"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["objective"] == 24


def test_sln_gives_the_best_known_value(client: httpx.Client) -> None:
    files = {"qaplib": ("x.dat", b"2\n0 1\n1 0\n0 3\n3 0\n"), "sln": ("x.sln", b"2 6\n1 2\n")}
    body = {"job": json.dumps({"solver": "qap", "time_limit_s": 5})}
    sent = client.post("/v1/jobs", data=body, files=files, headers={"Prefer": "wait=30"})
    assert sent.status_code == 200, sent.text
    assert sent.json()["certificate"]["facts"]["best_known"] == 6


def test_idempotency_key(post: Post) -> None:
    first = post(LAP, wait=None, **{"Idempotency-Key": "one"})
    again = post(LAP, wait=None, **{"Idempotency-Key": "one"})
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"
    other = {**LAP, "options": {"maximize": True}}
    check(post(other, wait=None, **{"Idempotency-Key": "one"}), 409)
    check(post(LAP, wait=None, **{"Idempotency-Key": "x" * 256}), 400)


def test_an_idempotency_key_outlives_its_job(client: httpx.Client, post: Post) -> None:
    made = post(LAP, **{"Idempotency-Key": "short-lived"}).json()
    client.delete(f"/v1/jobs/{made['id']}").raise_for_status()
    check(post(LAP, wait=None, **{"Idempotency-Key": "short-lived"}), 410)


def test_etag_and_long_poll(client: httpx.Client, post: Post) -> None:
    where = post(LAP).json()["links"]["self"]
    seen = client.get(where)
    assert client.get(where, headers={"If-None-Match": seen.headers["etag"]}).status_code == 304
    assert client.get(where, headers={"If-None-Match": '"other"'}).status_code == 200
    begun = time.monotonic()
    client.get(f"{where}?wait=20")
    assert time.monotonic() - begun < min(15, allowed(5))


def test_cancel_keeps_the_best(client: httpx.Client, post: Post) -> None:
    links = post(long_job(), wait=None).json()["links"]
    while client.get(links["self"]).json()["progress"] is None:
        time.sleep(0.02)
    check(client.get(links["result"]), 409)
    begun = time.monotonic()
    client.post(links["cancel"])
    job = client.get(f"{links['self']}?wait=20").json()
    assert (job["state"], job["termination"]) == ("succeeded", "stopped")
    assert time.monotonic() - begun < min(15, allowed(5))
    assert sorted(client.get(links["result"]).json()["permutation"]) == list(range(40))


def test_a_time_limit_is_an_answer(post: Post) -> None:
    answer = post(long_job(0.3)).json()
    assert answer["termination"] == "time_limit"
    assert answer["certificate"]["bound"] <= answer["objective"]


def test_cancel_of_a_waiting_job_and_delete(client: httpx.Client, post: Post) -> None:
    running = post(long_job(), wait=None).json()["links"]
    waiting = post(LAP, wait=None).json()
    assert client.post(waiting["links"]["cancel"]).json()["state"] == "cancelled"
    problem = client.get(waiting["links"]["result"])
    check(problem, 409)
    assert problem.json()["state"] == "cancelled"
    assert client.delete(running["self"]).status_code == 204
    check(client.get(running["self"]), 404)
    assert post(LAP).status_code == 200  # the worker is free again


def test_events_replay(client: httpx.Client, post: Post) -> None:
    links = post(long_job(0.5), wait=None).json()["links"]
    ids, kinds, last = follow(client, links["events"])
    assert kinds[0] == kinds[-1] == "state"
    assert "incumbent" in kinds
    assert last["state"] == "succeeded"
    again, _, _ = follow(client, links["events"], ids[1])
    assert again == ids[2:]
    check(client.get(links["events"], headers={"Last-Event-ID": "x"}), 400)
    check(client.get(links["events"], headers={"Accept": "application/pdf"}), 406)


def follow(client: httpx.Client, url: str, after: str | None = None) -> tuple[list[str], list[str], dict[str, Any]]:
    ids, kinds, data = [], [], {}
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
    with client.stream("GET", url, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                ids.append(value)
            elif name == "event":
                kinds.append(value)
            elif name == "data":
                data = json.loads(value)
    return ids, kinds, data


def test_results_as_bytes(client: httpx.Client, post: Post) -> None:
    links = post(LAP).json()["links"]
    packed = client.get(links["result"], headers={"Accept": "application/x-npz"})
    assert packed.headers["content-type"] == "application/x-npz"
    arrays = np.load(io.BytesIO(packed.content))
    assert arrays["assignment"].tolist() == [1, 0, 2] or arrays["assignment"].tolist() == [2, 1, 0]
    for media in ("application/x-safetensors", "application/vnd.safetensors"):
        tensors = safetensors.numpy.load(client.get(links["result"], headers={"Accept": media}).content)
        assert tensors.keys() == set(arrays)
    check(client.get(links["result"], headers={"Accept": "text/csv"}), 406)


def test_large_arrays_are_linked(client: httpx.Client, post: Post) -> None:
    n = 70  # a plan of 39 kB: smaller answers are always in line
    cost = np.random.default_rng(0).random((n, n))
    uot = {"cost": cost.tolist(), "a": [1.0] * n, "b": [2.0] * n}
    answer = post({"solver": "uot", "inputs": uot, "options": {"reg": 0.1}}).json()
    assert len(answer["potentials"]["f"]) == n
    assert answer["plan"]["shape"] == [n, n]
    plan = np.load(io.BytesIO(client.get(answer["plan"]["href"]).content))
    assert plan.shape == (n, n)


def test_an_answer_without_its_arrays(client: httpx.Client, post: Post) -> None:
    answer = post({"solver": "lap", "inputs": {"cost": np.eye(300, dtype=int).tolist()}}).json()
    bare = client.get(answer["links"]["result"], params={"arrays": "false"})
    assert len(bare.content) < 4000
    told = bare.json()
    assert (told["objective"], told["certificate"]) == (answer["objective"], answer["certificate"])
    assert (told["assignment"]["shape"], told["duals"]["u"]["shape"]) == ([300], [300])
    check(client.get(answer["links"]["result"], params={"arrays": "some"}), 422, "arrays")


def test_points_without_mass_give_valid_json(post: Post) -> None:
    uot = {"cost": [[0, 1], [1, 0]], "a": [0, 1], "b": [1, 1]}
    answer = post({"solver": "uot", "inputs": uot, "options": {"reg": 0.1}})
    assert answer.status_code == 200, answer.text
    json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_warm_start(client: httpx.Client, post: Post) -> None:
    first = post(LAP).json()
    warm = post({**LAP, "warm_start": first["id"]})
    assert warm.status_code == 200, warm.text
    assert warm.json()["objective"] == first["objective"]
    job = client.get(warm.json()["links"]["self"]).json()
    assert job["input_digests"].keys() == {"cost", "u0", "v0"}
    check(post({**long_job(1), "warm_start": first["id"]}), 422, "warm_start")


def test_expired_results_are_gone(client: httpx.Client, post: Post) -> None:
    links = post({**LAP, "result_ttl_s": 0.2}, wait=None).json()["links"]
    give_up = time.monotonic() + allowed(15)
    while client.get(links["result"]).status_code in (200, 409) and time.monotonic() < give_up:
        time.sleep(0.1)
    check(client.get(links["result"]), 410)


@pytest.mark.parametrize("accept", ["application/json", "application/x-npz", None])
def test_a_result_that_was_fetched_is_kept_for_less(service: Service, accept: str | None) -> None:
    url, stop = serve(create_app(replace(service.settings, fetched_ttl_s=1.0), HttpSettings()))
    try:
        with httpx.Client(base_url=url, timeout=40) as client:
            answer = client.post("/v1/jobs", json=LAP, headers={} if accept else {"Prefer": "wait=30"})
            links = answer.json()["links"]
            if accept:  # else the answer to the POST was the result
                assert client.get(links["self"], params={"wait": 30}).json()["state"] == "succeeded"
                assert client.get(links["result"], params={"arrays": "false"}).status_code == 200
                time.sleep(2)
                assert client.get(links["result"], headers={"Accept": accept}).status_code == 200
            give_up = time.monotonic() + allowed(15)
            while (last := client.get(links["self"])).status_code == 200 and time.monotonic() < give_up:
                time.sleep(0.1)
            assert last.status_code == 410
    finally:
        stop()


def test_pages(client: httpx.Client, post: Post) -> None:
    made = [post(LAP, wait=None).json()["id"] for _ in range(5)]
    seen: list[str] = []
    cursor = None
    while len(seen) < 5:
        page = client.get("/v1/jobs", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next"]
    assert seen[:5] == made[::-1]
    assert all(job["solver"] == "qap" for job in client.get("/v1/jobs?solver=qap").json()["jobs"])
    assert client.get("/v1/jobs?state=failed").json() == {"jobs": [], "next": None}


def test_many_may_wait_while_others_are_answered(service: Service, client: httpx.Client, post: Post) -> None:
    links = post(long_job(), wait=None).json()["links"]

    def wait() -> None:
        httpx.get(f"{service.url}{links['self']}?wait=30", timeout=60)

    waiting = [threading.Thread(target=wait) for _ in range(60)]
    for thread in waiting:
        thread.start()
    begun = time.monotonic()
    assert client.get("/v1/jobs").status_code == 200
    assert time.monotonic() - begun < min(25, allowed(3))
    client.post(links["cancel"])
    for thread in waiting:
        thread.join(40)
        assert not thread.is_alive()
