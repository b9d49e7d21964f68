"""5,100 who wait at once, by long poll, event stream and `Prefer: wait`: no connection and no file for any of them."""

import asyncio
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.waiters import Connection, long_job, service, until_ready
from tests.workers.service import allowed

WAITERS = 5100
SPARE_FILES = 130
"""The pools of connections to Redis grow to 100 while thousands ask at once, and stay there."""
WAIT_S = 240
"""More than a busy machine takes to open as many connections."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files are counted by /proc")


@pytest.fixture
def files() -> Iterator[None]:
    """Room for as many connections in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3 * WAITERS:
        pytest.skip("this process may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def redis_of(first: psutil.Process) -> psutil.Process:
    return next(one for one in first.children() if "redis-server" in " ".join(one.cmdline()))


@pytest.mark.long
def test_thousands_wait_and_cost_no_connection(files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOT_MAX_WAIT_S", str(WAIT_S))
    with service(1) as (port, first):
        asyncio.run(waited(port, first, redis_of(first)))


async def waited(port: int, first: psutil.Process, redis: psutil.Process) -> None:
    await until_ready(port)
    connection, body = await Connection(port).open(), long_job(WAIT_S)
    key = "Idempotency-Key: one\r\n"
    _, told = await connection.ask("POST", "/v1/jobs", body, key)
    job = json.loads(told)
    await asyncio.sleep(1)
    api_files, redis_files = first.num_fds(), redis.num_fds()
    ended: Counter[str] = Counter()
    early = asyncio.Event()

    async def wait(held: Connection, kind: str) -> None:
        if kind == "prefer":
            status, seen = await held.ask("POST", "/v1/jobs", body, f"{key}Prefer: wait={WAIT_S}\r\n")
        else:
            path = f"{job['links']['self']}?wait={WAIT_S}" if kind == "poll" else job["links"]["events"]
            status, seen = await held.ask("GET", path)
        early.set()
        ended[f"{kind} {status}"] += status == 200 and (b'"state":"cancelled"' in seen or b'"objective"' in seen)

    kinds = ("poll", "stream", "prefer")
    held = [await Connection(port).open() for _ in range(WAITERS)]
    tasks = [asyncio.create_task(wait(one, kinds[k % 3])) for k, one in enumerate(held)]
    give_up = time.monotonic() + 60
    while first.num_fds() < api_files + WAITERS and time.monotonic() < give_up:
        await asyncio.sleep(0.2)
    await asyncio.sleep(6)
    assert not early.is_set()
    assert abs(redis.num_fds() - redis_files) < SPARE_FILES
    assert first.num_fds() < api_files + WAITERS + SPARE_FILES
    assert (await connection.ask("GET", "/v1/jobs?limit=1"))[0] == 200
    begun = time.monotonic()
    assert (await connection.ask("POST", job["links"]["cancel"]))[0] == 200
    await asyncio.wait_for(asyncio.gather(*tasks), 120)
    assert time.monotonic() - begun < allowed(30)
    assert ended == {f"{kind} 200": WAITERS // 3 for kind in kinds}
    for one in held:
        one.close()
    give_up = time.monotonic() + 30
    while first.num_fds() > api_files + SPARE_FILES:
        assert time.monotonic() < give_up, first.num_fds()
        await asyncio.sleep(0.2)


def test_the_pool_of_connections_follows_the_settings(tmp_path: Path) -> None:
    from workers.jobs.queue import Jobs
    from workers.runtime.config import Settings

    made = Jobs(Settings(redis_url="unix:///nowhere", data_dir=tmp_path, max_redis_connections=7))
    assert made._redis.connection_pool.max_connections == 7
