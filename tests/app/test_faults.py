"""What callers are told while a part of the service is out of order: which status, why, and how soon."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import ready_or_not, serve
from tests.disks import fill, small_disk
from tests.workers.service import allowed, eventually, quickest
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.redis_server import EmbeddedRedis
from workers.store import disk as disk_module

JOB = {"solver": "lap", "inputs": {"cost": np.arange(128.0 * 128).reshape(128, 128).tolist()}}


@dataclasses.dataclass
class Service:
    """An API over a Redis of its own, whose one worker is only written down."""

    client: httpx.Client
    redis: EmbeddedRedis
    url: str
    folder: Path

    def ready(self) -> tuple[int, str, float]:
        """Status and detail of readyz, and the seconds that it took."""
        start = time.monotonic()
        answer = self.client.get("/readyz")
        return answer.status_code, answer.json().get("detail", ""), time.monotonic() - start

    def refuses(self) -> tuple[int, str]:
        """Status and detail of readyz, none of whose checks was late."""
        answer = ready_or_not(self.client)
        return answer.status_code, answer.json().get("detail", "")

    def post(self) -> httpx.Response:
        return self.client.post("/v1/jobs", json=JOB)

    def signal(self, number: signal.Signals) -> None:
        assert self.redis.pid is not None
        os.kill(self.redis.pid, number)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(disk_module, "SPARE_BYTES", 0)
    redis = EmbeddedRedis(tmp_path)
    with small_disk(tmp_path / "store", "2m") as disk, redis as url:
        worker: dict[str, Any] = {"device": "cpu", "queue": "cpu", "state": "idle", "heartbeat": time.time() + 3600}
        worker |= {"host_bytes": 1 << 34, "gpu": None, "broken": {}}
        connect(url).hset("allot:workers", "cpu-1-one", json.dumps(worker))
        settings = Settings(redis_url=url, data_dir=tmp_path, store_url=f"file://{disk}/blobs")
        address, stop = serve(create_app(settings, HttpSettings(insecure=True)))
        try:
            found = Service(httpx.Client(base_url=address, timeout=60), redis, url, disk)
            # its checks have a second each, and the first ones start threads and processes on a busy machine
            eventually(lambda: found.ready()[0] == 200, 30)
            yield found
        finally:
            stop()


def test_a_full_disk_is_told_and_mends(service: Service) -> None:
    ballast = fill(service.folder)
    status, why = service.refuses()
    assert (status, "store: cannot be written: the store's disk is full" in why) == (503, True)
    refused = service.post()
    assert refused.status_code == 507
    assert "full" in refused.json()["detail"]
    upload = service.client.post("/v1/blobs", content=b"\x93NUMPY" + bytes(50_000))
    assert upload.status_code == 507
    assert [path for path in service.folder.rglob("tmp/*") if path.is_file()] == []
    ballast.unlink()
    eventually(lambda: service.ready()[0] == 200, 10)
    assert service.post().status_code == 202


def test_a_redis_without_room_is_told_and_mends(service: Service) -> None:
    redis = connect(service.url)
    redis.config_set("maxmemory", 1)
    status, why = service.refuses()
    assert (status, "out of memory" in why) == (503, True)
    refused = service.post()
    assert (refused.status_code, "out of memory" in refused.json()["detail"]) == (507, True)
    assert service.client.get("/v1/jobs").status_code == 200
    redis.config_set("maxmemory", 0)
    eventually(lambda: service.ready()[0] == 200, 10)
    assert service.post().status_code == 202


def test_a_redis_that_cannot_write_is_told_and_mends(service: Service) -> None:
    job = service.post().json()
    redis = connect(service.url)
    redis.config_set("min-replicas-to-write", 1)  # the refusal that can be had without breaking its disk
    status, why = service.refuses()
    assert (status, "takes no writes" in why) == (503, True)
    refused = service.post()
    assert (refused.status_code, "takes no writes" in refused.json()["detail"]) == (503, True)
    seen = service.client.get(f"/v1/jobs/{job['id']}")
    assert (seen.status_code, seen.json()["queue_position"]) == (200, 1)
    assert [one["id"] for one in service.client.get("/v1/jobs").json()["jobs"]] == [job["id"]]
    redis.config_set("min-replicas-to-write", 0)
    eventually(lambda: service.ready()[0] == 200, 10)


def told_so(service: Service) -> float:
    """Seconds after which it is said that Redis does not answer."""
    status, why, took_s = service.ready()
    assert (status, "does not answer" in why) == (503, True)
    return took_s


def test_a_frozen_redis_is_told_within_a_second(service: Service) -> None:
    assert service.post().status_code == 202  # and a clerk is there, whose start takes a busy machine seconds
    service.signal(signal.SIGSTOP)
    try:
        assert quickest(lambda: told_so(service), 1) < allowed(1)
        start = time.monotonic()
        assert service.post().status_code == 503
        assert time.monotonic() - start < allowed(4)
    finally:
        service.signal(signal.SIGCONT)
    eventually(lambda: service.ready()[0] == 200, 10)
    assert service.post().status_code == 202


def test_a_redis_that_dies_is_back_within_two_seconds(service: Service) -> None:
    job = service.post().json()["id"]
    time.sleep(1.1)  # its file is written every second

    def back() -> float:
        service.signal(signal.SIGKILL)
        return eventually(lambda: service.ready()[0] == 200, 10)

    assert quickest(back, 2) < allowed(2)
    assert service.client.get(f"/v1/jobs/{job}").status_code == 200


def test_a_service_whose_redis_keeps_dying_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--workers", "0"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    with (tmp_path / "log").open("w") as log:
        service = subprocess.Popen(
            [*command, "--data-dir", str(tmp_path)], stdout=subprocess.PIPE, stderr=log, text=True, env=env
        )
    try:
        assert service.stdout is not None
        assert "listens" in service.stdout.readline()
        give_up = time.monotonic() + 60
        while service.poll() is None and time.monotonic() < give_up:
            for child in psutil.Process(service.pid).children():
                if "redis-server" in child.name():
                    child.kill()
            time.sleep(0.05)
        assert service.wait(1) == 2
        assert "again and again" in (tmp_path / "log").read_text()
    finally:
        service.kill()
        service.wait()
