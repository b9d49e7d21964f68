"""Long polls, `Prefer: wait` and event streams, on a service without workers: its jobs end when the test says so."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import LAP, ready_or_not, serve
from tests.workers.service import allowed
from workers.jobs.job import Job, Submission, Unavailable
from workers.jobs.queue import Jobs
from workers.jobs.shown import Seen
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis

OWNER = "local"


@dataclass
class Idle:
    url: str
    app: FastAPI
    redis: EmbeddedRedis

    @property
    def jobs(self) -> Jobs:
        made: Jobs = self.app.state.jobs
        return made

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def job(self) -> Job:
        inputs = {"cost": self.jobs.store.put(np.array([[4, 1], [2, 0]]), OWNER)}
        return self.jobs.submit(Submission(OWNER, "lap", inputs, queue="cpu"))[0]


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Idle]:
    redis = EmbeddedRedis(tmp_path)
    app = create_app(
        Settings(redis_url=redis.start(), data_dir=tmp_path), HttpSettings(keep_alive_s=0.5, max_wait_s=600)
    )
    worker = {"device": "cpu", "queue": "cpu", "state": "idle", "heartbeat": time.time() + 1000, "host_bytes": 1 << 30}
    app.state.jobs._redis.hset("allot:workers", "cpu-1-1", json.dumps(worker))
    url, stop = serve(app)
    try:
        yield Idle(url, app, redis)
    finally:
        stop()
        redis.stop()


async def ask(port: int, verb: str, path: str, headers: str = "") -> tuple[int, bytes]:
    """(status, the rest of the answer), over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{verb} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode())
    told = await reader.read()
    writer.close()
    return int(told[9:12]), told


async def held(idle: Idle) -> None:
    """Until somebody waits."""
    while not idle.app.state.waiting.told.waiting:
        await asyncio.sleep(0.02)


def test_a_worker_that_warms_up_is_shown_and_gets_no_jobs(idle: Idle) -> None:
    worker = {"device": "cpu", "queue": "cpu", "heartbeat": time.time() + 1000, "host_bytes": 1 << 30}
    client = httpx.Client(base_url=idle.url)
    assert ready_or_not(client).status_code == 200
    told = worker | {"state": "warming 3 of 8"}
    idle.jobs._redis.hset("allot:workers", "cpu-1-1", json.dumps(told))
    idle.jobs._redis.hset("allot:workers", "gpu-1-2", json.dumps(told | {"device": "gpu", "queue": "gpu"}))
    assert idle.jobs.workers() == []
    answer = ready_or_not(client)
    assert answer.status_code == 503
    assert answer.json()["checks"]["worker"] == "none can solve yet: warming 3 of 8, warming 3 of 8"
    states = [one["state"] for one in httpx.get(f"{idle.url}/v1/devices").json()["workers"]]
    assert states == ["warming 3 of 8"] * 2
    refused = httpx.post(f"{idle.url}/v1/jobs", json={**LAP, "device": "gpu"})
    assert "no gpu worker is alive" in refused.json()["detail"]


def test_hundreds_wait_and_all_are_answered(idle: Idle) -> None:
    job, count = idle.job(), 300

    async def run() -> tuple[list[tuple[int, bytes]], float]:
        polls = [asyncio.create_task(ask(idle.port, "GET", f"/v1/jobs/{job.id}?wait=600")) for _ in range(count)]
        streams = [asyncio.create_task(ask(idle.port, "GET", f"/v1/jobs/{job.id}/events")) for _ in range(count)]
        while idle.app.state.waiting.told.waiting < 2 * count:
            assert not [one.result() for one in (*polls, *streams) if one.done()]
            await asyncio.sleep(0.05)
        connections = len(await asyncio.to_thread(idle.jobs._redis.client_list))
        assert connections < 100, connections
        assert (await ask(idle.port, "GET", "/v1/jobs"))[0] == 200
        begun = time.monotonic()
        assert (await ask(idle.port, "POST", f"/v1/jobs/{job.id}/cancel"))[0] == 200
        return await asyncio.gather(*polls, *streams), time.monotonic() - begun

    answers, took_s = asyncio.run(run())
    assert {status for status, _ in answers} == {200}
    assert all(b'"state":"cancelled"' in told for _, told in answers)
    assert took_s < allowed(15)
    assert idle.app.state.waiting.told.waiting == 0


def test_the_next_change_answers_a_poll_that_names_a_version(idle: Idle) -> None:
    job = idle.job()
    etag = httpx.get(f"{idle.url}/v1/jobs/{job.id}").headers["etag"]
    known = {"If-None-Match": etag}
    begun = time.monotonic()
    assert httpx.get(f"{idle.url}/v1/jobs/{job.id}?wait=0.3", headers=known).status_code == 304
    assert 0.3 <= time.monotonic() - begun < allowed(3)
    idle.jobs._records.cancel(job.id)
    assert httpx.get(f"{idle.url}/v1/jobs/{job.id}?wait=9", headers=known).json()["state"] == "cancelled"


def test_an_ended_stream_ends_at_once(idle: Idle) -> None:
    job = idle.job()
    idle.jobs.cancel(job.id, OWNER)
    ids = re.findall(r"id: (\S+)", httpx.get(f"{idle.url}/v1/jobs/{job.id}/events").text)
    begun = time.monotonic()
    again = httpx.get(f"{idle.url}/v1/jobs/{job.id}/events", headers={"Last-Event-ID": ids[-1]}, timeout=20)
    assert time.monotonic() - begun < allowed(3)
    assert "data:" not in again.text


def test_streams_end_cleanly_when_their_job_is_deleted(idle: Idle, caplog: pytest.LogCaptureFixture) -> None:
    job = idle.job()

    async def run() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", idle.port)
        asked = f"GET /v1/jobs/{job.id}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        writer.write(asked.encode())
        told = await asyncio.wait_for(reader.readuntil(b": still here"), 60)
        assert (await ask(idle.port, "DELETE", f"/v1/jobs/{job.id}"))[0] == 204
        told += await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return told

    told = asyncio.run(run())
    assert told.startswith(b"HTTP/1.1 200 ")
    assert b": the job was deleted" in told
    assert told.endswith(b"0\r\n\r\n")  # the last chunk, so the client knows that this is all
    assert not [record for record in caplog.records if record.exc_info]


def test_streams_end_cleanly_when_redis_goes_away(idle: Idle, caplog: pytest.LogCaptureFixture) -> None:
    job = idle.job()

    async def run() -> tuple[int, bytes]:
        stream = asyncio.create_task(ask(idle.port, "GET", f"/v1/jobs/{job.id}/events"))
        await held(idle)
        await asyncio.to_thread(idle.redis.stop)
        return await asyncio.wait_for(stream, 10)

    status, told = asyncio.run(run())
    assert (status, b": the events cannot be read now" in told) == (200, True)
    assert told.endswith(b"0\r\n\r\n")
    assert not [record for record in caplog.records if record.exc_info]


def test_a_poll_outlives_a_restart_of_redis(idle: Idle) -> None:
    job = idle.job()

    async def run() -> tuple[int, bytes]:
        poll = asyncio.create_task(ask(idle.port, "GET", f"/v1/jobs/{job.id}?wait=30"))
        await held(idle)
        await asyncio.to_thread(idle.redis.stop)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(idle.redis.start)
        await asyncio.to_thread(idle.jobs.cancel, job.id, OWNER)
        return await asyncio.wait_for(poll, 20)

    status, told = asyncio.run(run())
    assert (status, b'"state":"cancelled"' in told) == (200, True)


def test_a_job_that_was_made_is_told_though_redis_went_away(idle: Idle, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_look(*_: Any) -> None:
        raise Unavailable("Redis does not answer")

    monkeypatch.setattr(idle.app.state.waiting.told, "look", no_look)
    made(idle)


def test_a_job_that_was_made_is_told_though_its_answer_cannot_be_read(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def for_result(request: Any, jobs: Jobs, job: Job, timeout_s: float, made: bool) -> tuple[Job, Seen]:
        record = jobs._redis.hgetall(f"allot:job:{job.id}") | {"state": "succeeded"}
        document = {"objective": 1, "timings_ms": {}, "arrays": {"u": job.inputs["cost"]}}
        return job, Seen(job.id, record, json.dumps(document).encode())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(idle.app.state.waiting, "for_result", for_result)
    monkeypatch.setattr(idle.app.state.store, "open_array", full)
    made(idle)


def made(idle: Idle) -> None:
    answer = httpx.post(f"{idle.url}/v1/jobs", json=LAP, headers={"Prefer": "wait=0.2"}, timeout=20)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["links"]["self"]


def test_who_hangs_up_is_forgotten(idle: Idle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.answers.waiting.SLICE_S", 0.2)
    job = idle.job()

    async def run() -> None:
        for path in (f"/v1/jobs/{job.id}?wait=50", f"/v1/jobs/{job.id}/events"):
            _, writer = await asyncio.open_connection("127.0.0.1", idle.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            while idle.app.state.waiting.told.waiting == 0:
                await asyncio.sleep(0.02)
            writer.transport.abort()
            until = time.monotonic() + 10
            while idle.app.state.waiting.told.waiting:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)

    asyncio.run(run())
