"""Large bodies over HTTP: their bytes move once, nothing is acknowledged before the disk has it, and answers come back
as files without another request."""

import asyncio
import hashlib
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load

from app.cli.verify import digests
from app.http.config import HttpSettings
from app.http.main import create_app
from app.intake.clerks import Clerks
from tests.app.conftest import Service, serve
from tests.workers.service import eventually
from workers.jobs.job import StoreFull
from workers.store import pieces
from workers.store.arena import MARK
from workers.store.digests import PIECE, digest_of, leaves_of
from workers.store.folder import Folder
from workers.store.in_hand import InHand
from workers.store.names import name_of
from workers.store.store import Store

NPZ, SAFETENSORS = "application/x-npz", "application/x-safetensors"
WAIT = {"Prefer": "wait=30"}
LONG = (4, PIECE // 16)
"""Rows and columns of float64 that take two pieces and a little."""


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def long_cost(seed: int) -> Any:
    return np.random.default_rng(seed).random(LONG)


@pytest.fixture
def app(service: Service) -> Iterator[tuple[Any, httpx.Client]]:
    """An API of this test's own on the common Redis and store, whose store may be tampered with."""
    own = create_app(service.settings, HttpSettings(inline_elements=1000))
    url, stop = serve(own)
    with httpx.Client(base_url=url, timeout=60) as client:
        yield own, client
    stop()


def solve(client: httpx.Client, cost: Any, headers: dict[str, str] = WAIT, **job: Any) -> httpx.Response:
    files: Any = {"job": (None, json.dumps({"solver": "lap", **job})), "cost": ("cost.npy", npy(cost))}
    return client.post("/v1/jobs", files=files, headers=headers)


def folder_of(own: Any) -> Folder:
    folder = own.state.store.folder
    assert isinstance(folder, Folder)
    return folder


def test_a_long_body_is_named_by_its_tree(client: httpx.Client) -> None:
    cost = long_cost(1)
    answer = solve(client, cost)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["input_digests"]["cost"]["blob"] == digest_of(npy(cost))
    assert told["input_digests"]["cost"]["blob"].startswith("sha256u:")
    assert told["objective"] == pytest.approx(cost.min(axis=1).sum())


def test_a_blob_has_the_digest_that_its_client_names(client: httpx.Client) -> None:
    data = npy(long_cost(2))
    plain = f"sha256:{hashlib.sha256(data).hexdigest()}"
    tree = digest_of(data)
    for asked, given in (({}, tree), ({"digest": plain}, plain), ({"digest": tree}, tree)):
        answer = client.post("/v1/blobs", content=data, params=asked)
        assert answer.status_code == 201, answer.text
        assert answer.json()["digest"] == answer.json()["blob"] == given
        assert ("repr-digest" in answer.headers) is given.startswith("sha256:")
        assert client.get(f"/v1/blobs/{given}").content == data
        job = {"solver": "lap", "inputs": {"cost": {"blob": given}}}
        assert client.post("/v1/jobs", json=job, headers=WAIT).status_code == 200
    wrong = tree[:-1] + ("0" if tree[-1] != "0" else "1")
    assert client.post("/v1/blobs", content=data, params={"digest": wrong}).status_code == 422


@pytest.mark.parametrize("at", [(0, 0), (1, 5), LONG])
def test_wrong_numbers_are_named_before_anything_is_queued(client: httpx.Client, at: tuple[int, int]) -> None:
    cost = long_cost(3)
    where = (min(at[0], LONG[0] - 1), min(at[1], LONG[1] - 1))
    before = len(client.get("/v1/jobs", params={"limit": 100}).json()["jobs"])
    for wrong in (np.nan, -np.inf):
        cost[where] = wrong
        answer = solve(client, cost)
        assert answer.status_code == 422, answer.text
        assert f"[{where[0]}, {where[1]}]" in answer.text
    cost[where] = np.inf
    assert solve(client, cost).status_code == 200
    assert len(client.get("/v1/jobs", params={"limit": 100}).json()["jobs"]) in (before + 1, 100)


def listed(client: httpx.Client) -> set[str]:
    """Ids of the newest jobs."""
    return {job["id"] for job in client.get("/v1/jobs", params={"limit": 100}).json()["jobs"]}


def test_a_job_that_is_waited_for_does_not_wait_for_the_disk(app: tuple[Any, httpx.Client], settles: Any) -> None:
    own, client = app
    go = settles(own)
    cost = long_cost(4)
    answer = solve(client, cost)
    assert answer.status_code == 200, answer.text
    name = name_of(answer.json()["input_digests"]["cost"]["blob"], "local")
    assert folder_of(own).is_laid(name)
    go.set()
    until = time.monotonic() + 10
    while folder_of(own).is_laid(name):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert folder_of(own).path(name).read_bytes() == npy(cost)


def test_the_disk_is_left_alone_for_a_moment(app: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    own, client = app
    monkeypatch.setattr("app.intake.settling.LATER_S", 3600.0)
    cost = long_cost(14)
    answer = solve(client, cost)
    assert answer.status_code == 200, answer.text
    name = name_of(answer.json()["input_digests"]["cost"]["blob"], "local")
    time.sleep(0.1)
    assert folder_of(own).is_laid(name)
    assert solve(client, cost[::-1], {"Prefer": "wait=0"}).status_code == 202  # who is told that it is kept waits
    asyncio.run_coroutine_threadsafe(own.state.settling.finish(), own.state.waiting._loop).result(30)
    assert not folder_of(own).is_laid(name)


def test_memory_for_the_next_is_had_by_who_waits_and_not_at_the_cost_of_blobs(
    app: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = app
    had: list[int] = []
    monkeypatch.setattr(InHand, "prepare", lambda hand, size, threads: had.append(size))
    for k in (32, 33):
        assert client.post("/v1/blobs", content=npy(long_cost(k))).status_code == 201
    cost = long_cost(34)
    assert solve(client, cost).status_code == 200
    until = time.monotonic() + 10
    while not had:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert had == [len(npy(cost))]


def test_an_array_that_is_read_where_it_lies_goes_to_a_clerk_without_a_copy(
    app: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be far larger than what an owner may have on its way."""
    _, client = app
    handed: list[Any] = []

    async def errand(clerks: Any, owner: str, told: Any, *more: Any) -> Any:
        handed.append(told["inputs"]["cost"])
        return await ask(clerks, owner, told, *more)

    ask = Clerks.ask
    monkeypatch.setattr(Clerks, "ask", errand)
    for most in ("AT_ONCE_ELEMENTS", "IN_PLACE_ELEMENTS"):
        monkeypatch.setattr(f"app.intake.built.{most}", -1)
    cost = long_cost(15)
    answer = solve(client, cost)
    assert answer.status_code == 200, answer.text
    assert answer.json()["objective"] == pytest.approx(cost.min(axis=1).sum())
    (handle,) = handed
    assert MARK in handle["path"]
    assert handle["offset"] == 128


def test_small_inputs_travel_beside_a_file(client: httpx.Client) -> None:
    frames = np.random.default_rng(16).random((400, 500))
    files: Any = {"job": (None, json.dumps({"solver": "lap", "options": {"cost_limit": 0.5}}))}
    files |= {"cost": ("cost.npy", npy(frames.reshape(-1))), "sizes": ("sizes.npy", npy(np.array([[400, 500]])))}
    answers = [client.post("/v1/jobs", files=files, headers=WAIT).json()]
    files["job"] = (None, json.dumps({"solver": "lap", "options": {"cost_limit": 0.5}, "keep_inputs": True}))
    answers.append(client.post("/v1/jobs", files=files, headers=WAIT).json())
    assert [one["state"] for one in answers] == ["succeeded"] * 2
    assert answers[0]["objective"] == answers[1]["objective"]
    for answer, names in zip(answers, ({"cost"}, {"cost", "sizes"}), strict=True):
        assert {name for name, said in answer["input_digests"].items() if "blob" in said} == names


def test_inputs_of_a_job_that_nobody_waits_for_go_one_way(client: httpx.Client) -> None:
    flow = np.random.default_rng(17).integers(0, 9, (40, 40)).tolist()  # 12.8 kB: one of two would fit the record
    job = {"solver": "qap", "inputs": {"flow": flow, "distance": flow}, "time_limit_s": 0.2}
    posted = client.post("/v1/jobs", json=job).json()
    assert {name for name, said in posted["input_digests"].items() if "blob" in said} == {"flow", "distance"}


def test_an_arena_that_another_process_is_at_is_waited_for_in_a_thread(
    app: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = app
    lay, tried = Store.lay, list[bool]()

    def busy(store: Store, writer: Any, owner: str, counted: bool = False, patient: bool = True) -> str:
        tried.append(patient)
        if not patient:
            raise BlockingIOError
        return lay(store, writer, owner, counted, patient)

    monkeypatch.setattr(Store, "lay", busy)
    cost = long_cost(17)
    assert solve(client, cost).json()["objective"] == pytest.approx(cost.min(axis=1).sum())
    assert tried == [False, True]


def test_the_event_loop_waits_for_no_hash(app: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = app
    cost, go, begun = long_cost(18), threading.Event(), threading.Event()

    def late(view: memoryview) -> bytes:
        begun.set()
        assert go.wait(30)
        return leaves_of(view)

    monkeypatch.setattr(pieces, "leaves_of", late)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(solve, client, cost)
        try:
            assert begun.wait(30)
            time.sleep(1.0)  # by now all is here and looked at
            assert client.get("/livez", timeout=5).status_code == 200
        finally:
            go.set()
        assert answer.result().json()["objective"] == pytest.approx(cost.min(axis=1).sum())


@pytest.fixture
def settles(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], threading.Event]]:
    """Holds the settling of an app's store back until the event is set."""
    events = []

    def held(own: Any) -> threading.Event:
        go, real = threading.Event(), own.state.store.settle
        events.append(go)

        def settle(names: Any) -> None:
            assert go.wait(30)
            real(names)

        monkeypatch.setattr(own.state.store, "settle", settle)
        return go

    yield held
    for event in events:
        event.set()


def test_an_acknowledgement_waits_for_the_disk(app: tuple[Any, httpx.Client], settles: Any) -> None:
    own, client = app
    go = settles(own)
    cost = np.random.default_rng(5).random((1300, 1300))
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(solve(client, cost, {"Prefer": "wait=0"})))
    asking.start()
    name = name_of(digest_of(npy(cost)), "local")
    eventually(lambda: folder_of(own).is_laid(name), 20)
    asking.join(0.5)
    assert not answers
    assert folder_of(own).is_laid(name)
    go.set()
    asking.join(30)
    assert answers[0].status_code == 202
    assert not folder_of(own).is_laid(name)


def test_a_job_that_nobody_waits_for_comes_after_its_bytes(app: tuple[Any, httpx.Client], settles: Any) -> None:
    own, client = app
    settles(own)  # and it is not asked: the job is placed when the disk has its bytes
    cost = long_cost(11)
    assert solve(client, cost, {}).status_code == 202
    name = name_of(digest_of(npy(cost)), "local")
    assert not folder_of(own).is_laid(name)
    assert folder_of(own).path(name).exists()


def test_a_job_whose_bytes_cannot_be_kept_is_none(
    app: tuple[Any, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, client = app

    def full(names: Any) -> None:
        raise StoreFull("the store's disk is full")

    monkeypatch.setattr(own.state.store, "settle", full)
    before = listed(client)
    answer = solve(client, np.random.default_rng(6).random((1300, 1300)), {"Prefer": "wait=0"})
    assert answer.status_code == 507
    until = time.monotonic() + 20
    while listed(client) - before:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_when_too_much_is_laid_the_disk_comes_first(service: Service, tmp_path: Path) -> None:
    from dataclasses import replace

    own = create_app(replace(service.settings, laid_bytes=1, arena_bytes=0), HttpSettings())  # memory has room
    url, stop = serve(own)
    with httpx.Client(base_url=url, timeout=60) as client:
        cost = long_cost(7)
        assert solve(client, cost).status_code == 200
        name = name_of(digest_of(npy(cost)), "local")
        assert not folder_of(own).is_laid(name)
        assert folder_of(own).path(name).exists()
    stop()


@pytest.mark.parametrize("media", [NPZ, SAFETENSORS])
def test_an_answer_comes_back_as_a_file(client: httpx.Client, media: str) -> None:
    cost = np.random.default_rng(8).random((300, 2000))
    answer = solve(client, cost, {**WAIT, "Accept": media})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == media
    assert "Accept" in answer.headers["vary"]
    assert "solve;dur=" in answer.headers["server-timing"]
    arrays = unpacked(answer.content, media)
    objective = cost[np.arange(300), arrays["assignment"]].sum()
    assert objective == pytest.approx(arrays["u"].sum() + arrays["v"].sum())
    where = answer.headers["location"]
    again = client.get(f"{where}/result", headers={"Accept": media})
    assert again.headers["content-type"] == media
    for name, array in unpacked(again.content, media).items():
        np.testing.assert_array_equal(array, arrays[name])
    if media == SAFETENSORS:
        head = json.loads(answer.content[8 : 8 + int.from_bytes(answer.content[:8], "little")])
        document = json.loads(head["__metadata__"]["document"])
        assert document["objective"] == pytest.approx(objective)
        assert document["certificate"]["holds"]
        assert int(answer.headers["content-length"]) == len(answer.content)


def unpacked(data: bytes, media: str) -> dict[str, Any]:
    return dict(np.load(io.BytesIO(data))) if media == NPZ else dict(load(data))


def test_a_file_without_a_wait_is_refused_and_a_late_answer_is_json(client: httpx.Client) -> None:
    cost = np.random.default_rng(9).random((30, 30))
    assert solve(client, cost, {"Accept": NPZ}).status_code == 406
    late = solve(client, np.random.default_rng(9).random((900, 900)), {"Accept": NPZ, "Prefer": "wait=0"})
    assert late.status_code in (200, 202)
    if late.status_code == 202:
        assert late.json()["state"] in ("queued", "running")
    wrong = solve(client, np.full((3, 3), np.nan), {**WAIT, "Accept": NPZ})
    assert wrong.status_code == 422
    assert wrong.headers["content-type"].startswith("application/problem+json")


@pytest.mark.parametrize("media", [NPZ, SAFETENSORS])
def test_small_answers_come_as_files_as_well(client: httpx.Client, media: str) -> None:
    job = {"solver": "lap", "inputs": {"cost": [[4, 1], [2, 0]]}}
    answer = client.post("/v1/jobs", json=job, headers={**WAIT, "Accept": media})
    assert answer.status_code == 200, answer.text
    np.testing.assert_array_equal(unpacked(answer.content, media)["assignment"], [1, 0])


def test_nobody_learns_of_laid_bytes_of_another(ann: httpx.Client, bob: httpx.Client) -> None:
    cost = long_cost(10)
    answer = solve(ann, cost)
    assert answer.status_code == 200, answer.text
    digest = answer.json()["input_digests"]["cost"]["blob"]
    assert ann.head(f"/v1/blobs/{digest}").status_code == 200
    assert bob.head(f"/v1/blobs/{digest}").status_code == 404
    job = {"solver": "lap", "inputs": {"cost": {"blob": digest}}}
    refused = bob.post("/v1/jobs", json=job, headers=WAIT)
    unknown = {"solver": "lap", "inputs": {"cost": {"blob": "sha256t:" + "0" * 64}}}
    assert refused.status_code == 422
    other = bob.post("/v1/jobs", json=unknown, headers=WAIT).json()
    assert refused.json()["errors"][0]["message"].replace(digest, "") == other["errors"][0]["message"].replace(
        "sha256t:" + "0" * 64, ""
    )


def test_verify_works_out_the_digest_that_an_answer_names(tmp_path: Path) -> None:
    cost = long_cost(12)
    path = tmp_path / "cost.npy"
    path.write_bytes(npy(cost))
    tree, plain = digest_of(npy(cost)), f"sha256:{hashlib.sha256(npy(cost)).hexdigest()}"
    for digest, holds in ((tree, True), (plain, True), (tree[:-4] + "0000", False), (plain[:-4] + "0000", False)):
        told = {"cost": {"blob": digest, "format": "npy", "dtype": "float64", "shape": list(LONG)}}
        assert [one.holds for one in digests(told, {"cost": cost}, {"cost": path})] == [holds]
        assert [one.holds for one in digests(told, {"cost": cost}, {})] == [holds]
