"""Limits of an owner over HTTP: how they are refused, and that another's requests go on."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from app.cli.main import main
from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import LAP, serve
from tests.app.test_bad_input import check
from workers.jobs.queue import Jobs
from workers.jobs.quotas import Quota
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis


class Place:
    """A service of two owners without workers, so that jobs wait."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        (ann, entry), (bob, other) = new_key("ann"), new_key("bob")
        self.settings = Settings(redis_url=redis_url, data_dir=folder)
        self.app = create_app(self.settings, HttpSettings(api_keys=(entry, other)))
        self.jobs: Jobs = self.app.state.jobs
        self.url, self.stop = serve(self.app)
        self.ann, self.bob = (
            httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=20)
            for key in (ann, bob)
        )
        worker = '{"device": "cpu", "queue": "cpu", "state": "idle", "heartbeat": %f, "host_bytes": 1000000000}'
        self.jobs._redis.hset("allot:workers", "one", worker % (time.time() + 3600))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("quotas")
    with EmbeddedRedis(folder) as url:
        place = Place(folder, url)
        yield place
        place.stop()


@pytest.fixture(autouse=True)
def unlimited(place: Place) -> Iterator[None]:
    yield
    place.jobs._redis.delete("allot:quota:ann", "allot:weights")
    place.jobs.quotas._known.clear()


def give(place: Place, **limits: object) -> None:
    place.jobs.quotas.set("ann", {name: str(value) for name, value in limits.items()})


def test_waiting_jobs_of_one_owner(place: Place) -> None:
    give(place, queued=1)
    assert place.ann.post("/v1/jobs", json=LAP).status_code == 202
    refused = place.ann.post("/v1/jobs", json=LAP)
    check(refused, 429)
    assert refused.json()["detail"].startswith("Too much at once: 1 of your jobs wait already")
    assert refused.headers["ratelimit-policy"] == '"queued";q=1'
    assert refused.headers["ratelimit"] == '"queued";r=0;t=5'
    assert refused.headers["retry-after"] == "5"
    assert place.bob.post("/v1/jobs", json=LAP).status_code == 202


def test_a_retry_of_a_job_that_was_made_is_no_job_more(place: Place) -> None:
    give(place, queued=0)
    first = place.ann.post("/v1/jobs", json=LAP, headers={"Idempotency-Key": "once"})
    give(place, queued=1)
    again = place.ann.post("/v1/jobs", json=LAP, headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])


def test_seconds_of_the_day_come_back_at_midnight(place: Place) -> None:
    now = float(place.jobs._redis.now())
    place.jobs._redis.hset(f"allot:spent:cpu:{int(now // 86400)}", "ann", 60)
    give(place, cpu_s=60)
    refused = place.ann.post("/v1/jobs", json=LAP)
    check(refused, 429)
    left = 86400 - now % 86400
    took = float(place.jobs._redis.now()) - now
    assert left - took - 2 < int(refused.headers["retry-after"]) < left + 2
    assert refused.headers["ratelimit-policy"] == '"cpu-seconds";q=60;w=86400'
    assert place.bob.post("/v1/jobs", json=LAP).status_code == 202


def test_bytes_are_refused_with_how_to_free_them(place: Place, tmp_path: Path) -> None:
    def upload(client: httpx.Client, number: float) -> httpx.Response:
        path = tmp_path / "a.npy"
        np.save(path, np.full(2000, number))
        return client.post("/v1/blobs", content=path.read_bytes())

    place.jobs._redis.delete("allot:kept:ann")
    give(place, bytes=20_000)
    first = upload(place.ann, 1.0)
    assert first.status_code == 201
    refused = upload(place.ann, 2.0)
    check(refused, 507)
    assert "DELETE jobs and blobs" in refused.json()["detail"]
    assert upload(place.bob, 1.0).status_code == 201  # of whose bytes nothing is told
    assert upload(place.ann, 1.0).status_code == 201  # the same again takes no more
    assert place.ann.delete(f"/v1/blobs/{first.json()['digest']}").status_code == 204
    place.app.state.store.sweep()
    assert upload(place.ann, 2.0).status_code == 201


@pytest.mark.parametrize("prefer", [{}, {"Prefer": "wait=0.1"}])
@pytest.mark.parametrize("form", ["part", "json"])
def test_inputs_of_a_job_count_no_longer_once_it_is_deleted(
    place: Place, tmp_path: Path, prefer: dict[str, str], form: str
) -> None:
    def stored() -> float:
        place.app.state.store.sweep()
        return place.jobs.quotas.used("ann")["bytes_store"]

    before, cost = stored(), np.random.default_rng(7).random((200, 200))
    if form == "json":
        job = {"solver": "lap", "inputs": {"cost": cost.tolist()}, "keep_inputs": True}
        made = place.ann.post("/v1/jobs", json=job, headers=prefer)
    else:
        np.save(tmp_path / "c.npy", cost)
        body = {"job": b'{"solver": "lap"}', "cost": (tmp_path / "c.npy").read_bytes()}
        made = place.ann.post("/v1/jobs", files=body, headers=prefer)
    assert made.status_code == 202, made.text
    assert stored() > before + cost.nbytes
    assert place.ann.delete(f"/v1/jobs/{made.json()['id']}").status_code == 204
    assert stored() == before


def test_requests_a_second_of_one_owner_change_while_it_runs(place: Place) -> None:
    give(place, requests_per_s=0.01)
    answers = [place.ann.get("/v1/solvers").status_code for _ in range(4)]
    assert answers[0] == 200
    assert answers[-1] == 429
    assert place.bob.get("/v1/solvers").status_code == 200
    give(place, requests_per_s="")
    assert place.ann.get("/v1/solvers").status_code == 200


def test_streams_of_one_owner(place: Place) -> None:
    give(place, streams=1)
    job = place.ann.post("/v1/jobs", json=LAP).json()
    events = f"/v1/jobs/{job['id']}/events"
    with place.ann.stream("GET", events) as held:
        assert held.status_code == 200
        refused = place.ann.get(events)
        check(refused, 429)
        assert refused.headers["ratelimit-policy"] == '"streams";q=1'
        give(place, streams=2)
        place.ann.get("/v1/jobs")
        with place.ann.stream("GET", events) as another:
            assert another.status_code == 200


def test_every_url_that_works_for_an_owner_is_counted(place: Place) -> None:
    """Of the workbench's too."""
    give(place, requests_per_s=0.001)
    job_id = "0" * 32
    paths = ["/v1/jobs", f"/v1/jobs/{job_id}/picture", "/v1/samples/office", "/v1/devices", "/v1/solvers"]
    assert place.ann.get(paths[0]).status_code == 200
    assert {place.ann.get(path).status_code for path in paths} == {429}
    assert place.ann.post("/v1/previews", content=b"1,2\n3,4\n").status_code == 429


def test_the_command_shows_and_sets_them(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOT_REDIS_URL", place.settings.redis_url)
    assert main(["key", "limit", "ann", "weight=3", "queued=7", "highest=2"]) == 0
    told = capsys.readouterr().out
    assert "weight          3\n" in told
    assert "queued          7\n" in told
    assert place.jobs._redis.hget("allot:weights", "ann") == "3"
    assert main(["key", "limit", "ann", "queued="]) == 0
    assert "queued          0\n" in capsys.readouterr().out
    for wrong in ("queued", "queued=-1", "weight=0", "colour=3"):
        assert main(["key", "limit", "ann", wrong]) == 2
    assert main(["key", "limit", "no good"]) == 2


def test_limits_cost_a_request_no_trip_to_redis(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ask = [], place.jobs.quotas.of

    def counted(owner: str) -> Quota:
        asked.append(owner)
        return ask(owner)

    monkeypatch.setattr(place.jobs.quotas, "of", counted)
    begun = time.monotonic()
    for _ in range(50):
        place.ann.get("/v1/solvers")
    assert 1 <= len(asked) <= 2 + 2 * (time.monotonic() - begun)
