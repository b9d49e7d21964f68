"""How tests run the API, and what they post to it. The one service of a session is a fixture of all tests."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.alone import Alone, header
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.supervisor import Supervisor

READY_S = 280.0
MIB = 1 << 20


@dataclass(frozen=True)
class Service:
    url: str
    settings: Settings
    app: FastAPI


def serve(app: FastAPI) -> tuple[str, Callable[[], None]]:
    """Run the app on a free port in a thread: (its address, how to stop it)."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()

    def stop() -> None:
        app.state.waiting.end()
        server.should_exit = True
        thread.join(10)
        listener.close()

    return f"http://127.0.0.1:{listener.getsockname()[1]}", stop


def running_api(folder: Path) -> Iterator[Service]:
    """Embedded Redis, one CPU worker, the API under uvicorn on a free port."""
    with EmbeddedRedis(folder, fsync="no") as url:  # a slow disk keeps it from answering, and no test needs its files
        settings = Settings(
            redis_url=url,
            cancel_grace_s=60.0,  # of a busy machine: what is cancelled keeps its best, and its child is not killed
            data_dir=folder,
            max_upload_bytes=16 * MIB,
            max_elements=1 << 22,
            max_time_limit_s=100,
            arena_dir=str(folder / "shared"),
            arena_bytes=64 * MIB,
        )
        supervisor = Supervisor(settings, cpu_workers=1, gpus=[])
        supervisor.start()
        app = create_app(settings, HttpSettings(max_json_bytes=4 * MIB, inline_elements=1000))
        address, stop = serve(app)
        try:
            wait_until_ready(address)
            yield Service(address, settings, app)
        finally:
            stop()
            supervisor.stop(drain=False)


def wait_until_ready(address: str) -> None:
    give_up = time.monotonic() + READY_S
    while True:
        answer, told = (httpx.get(f"{address}/{path}") for path in ("readyz", "v1/devices"))
        # of a Redis that is late there is none, on a busy machine
        workers = told.json()["workers"] if told.status_code == 200 else []
        if answer.status_code == 200 and any(worker["state"] == "idle" for worker in workers):
            return
        assert time.monotonic() < give_up, answer.text
        time.sleep(0.1)


def ready_or_not(client: httpx.Client) -> httpx.Response:
    """What /readyz says once no check was late: each has less than a second, and a busy machine pauses for as long."""
    give_up = time.monotonic() + 60
    while True:
        answer = client.get("/readyz")
        told = answer.json()["checks"]
        was_late = "does not answer" in told["redis"] or told["store"] == "cannot be written"
        if not was_late or time.monotonic() > give_up:
            return answer
        time.sleep(0.1)


@pytest.fixture(scope="module")
def alone(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """An API in a process of its own, on the same Redis and store, whose clerks are up."""
    made = Alone(service.settings, tmp_path_factory.mktemp("alone"))
    with httpx.Client(base_url=made.url, timeout=60) as client:
        client.post("/v1/blobs", content=gzip.compress(header("(1,)") + bytes(8))).raise_for_status()
        yield made
    made.process.terminate()
    made.process.wait(20)


@pytest.fixture(scope="module")
def owners(service: Service) -> Iterator[tuple[str, str, str]]:
    """The address of the API with two keys, and the keys."""
    (ann, entry), (bob, other) = new_key("ann"), new_key("bob")
    url, stop = serve(create_app(service.settings, HttpSettings(api_keys=(entry, other), inline_elements=1000)))
    yield url, ann, bob
    stop()


def _with_key(address: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=40)


@pytest.fixture
def ann(owners: tuple[str, str, str]) -> Iterator[httpx.Client]:
    """One owner."""
    with _with_key(owners[0], owners[1]) as client:
        yield client


@pytest.fixture
def bob(owners: tuple[str, str, str]) -> Iterator[httpx.Client]:
    """Another owner."""
    with _with_key(owners[0], owners[2]) as client:
        yield client


@pytest.fixture
def post(client: httpx.Client) -> Callable[..., httpx.Response]:
    """Post a job as JSON; `wait` seconds for its answer."""

    def send(job: dict[str, Any], wait: float | None = 30, **headers: str) -> httpx.Response:
        prefer = {} if wait is None else {"Prefer": f"wait={wait}"}
        return client.post("/v1/jobs", json=job, headers=prefer | headers)

    return send


LAP = {"solver": "lap", "inputs": {"cost": [[4, 1, 3], [2, 0, 5], [3, 2, 2]]}}


def long_job(seconds: float = 30) -> dict[str, Any]:
    """A job that runs until its time limit or until it is stopped."""
    n = 40
    flow = [[(i * 7 + j * 13) % 31 for j in range(n)] for i in range(n)]
    distance = [[(i * 11 + j * 5) % 29 for j in range(n)] for i in range(n)]
    return {"solver": "qap", "inputs": {"flow": flow, "distance": distance}, "time_limit_s": seconds}
