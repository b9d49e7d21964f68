"""Redis Sentinel with real servers: the primary is killed amid jobs, and none that was acknowledged is lost."""

import asyncio
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from tests.workers.cluster import Cluster
from tests.workers.service import OWNER, eventually, settings_for
from workers.jobs.job import Job, JobError, State, Submission, Unavailable
from workers.jobs.queue import Jobs
from workers.jobs.wire import Wire
from workers.runtime import primary
from workers.runtime.connection import READ_S, address_of, connect
from workers.runtime.primary import LOOK_EVERY_S, Primary
from workers.runtime.redis_server import find_server
from workers.runtime.supervisor import Supervisor

JOBS = 150


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    program = find_server()
    if program is None:
        pytest.skip("there is no redis-server here")
    made = Cluster(tmp_path, program)
    try:
        eventually(made.in_step, 30)
        yield made
    finally:
        made.stop()


def test_no_acknowledged_job_is_lost_with_the_primary(cluster: Cluster, tmp_path: Path) -> None:
    settings = dataclasses.replace(settings_for(tmp_path / "data"), warm_solvers="lap").with_redis(cluster.url)
    jobs = Jobs(settings)
    supervisor = Supervisor(settings, cpu_workers=1, gpus=[])
    supervisor.start()
    acknowledged: list[str] = []
    refused: list[str] = []

    def submit() -> None:
        for seed in range(10 * JOBS):
            if len(acknowledged) >= JOBS:
                return
            cost = np.random.default_rng(seed).integers(0, 100, (6, 6))
            try:
                reference = jobs.store.put(cost, OWNER)
                job, _ = jobs.submit(Submission(OWNER, "lap", {"cost": reference}, queue="cpu"))
                acknowledged.append(job.id)
            except JobError as error:
                refused.append(str(error))
                time.sleep(0.1)

    submitter = threading.Thread(target=submit)
    try:
        eventually(lambda: bool(jobs.workers()), 120)
        submitter.start()
        eventually(lambda: len(acknowledged) >= JOBS // 3, 60)
        os.kill(cluster.servers[0].pid, signal.SIGKILL)
        submitter.join(90)
        assert len(acknowledged) >= JOBS
        assert refused  # while there was no primary
        for job_id in acknowledged:
            assert _ended(jobs, job_id).state is State.SUCCEEDED
    finally:
        supervisor.stop(drain=False)
        submitter.join(1)


def _ended(jobs: Jobs, job_id: str) -> Job:
    give_up = time.monotonic() + 60
    while True:
        job = jobs.get(job_id, OWNER)
        if job.state.ended or time.monotonic() > give_up:
            return job
        time.sleep(0.02)


def test_without_replicas_nothing_is_acknowledged(cluster: Cluster, tmp_path: Path) -> None:
    jobs = Jobs(settings_for(tmp_path / "data").with_redis(cluster.url))
    reference = jobs.store.put(np.eye(3), OWNER)
    first, _ = jobs.submit(Submission(OWNER, "lap", {"cost": reference}, queue="cpu"))
    for server in cluster.servers[1:3]:
        os.kill(server.pid, signal.SIGKILL)

    def submit() -> None:
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up:
            jobs.submit(Submission(OWNER, "lap", {"cost": reference}, queue="cpu"))

    with pytest.raises(Unavailable, match="takes no writes now"):
        submit()
    assert jobs.get(first.id, OWNER).queue_position == 1
    assert jobs.list(OWNER, limit=1)[0]


def test_an_api_process_finds_the_primary(cluster: Cluster) -> None:
    async def ask() -> list[object]:
        wire = Wire(cluster.url)
        try:
            return await wire.ask(("ROLE",))
        finally:
            wire.close()

    assert address_of(cluster.url)["port"] == cluster.ports[0]
    (told,) = asyncio.run(ask())
    assert isinstance(told, list)
    assert told[0] == b"master"


@pytest.fixture
def frozen(cluster: Cluster) -> Iterator[int]:
    """The primary, once it can be stopped; it goes on at the end."""
    yield cluster.servers[0].pid
    os.kill(cluster.servers[0].pid, signal.SIGCONT)


def test_nobody_stays_at_a_primary_that_was_deposed_while_it_was_frozen(cluster: Cluster, frozen: int) -> None:
    """Awake again it still takes itself for the primary, and does not know what was written since."""

    async def ask_twice() -> None:
        wire = Wire(cluster.url)
        try:
            answers.extend(await wire.ask(("GET", "written")))
            asked.set()
            await asyncio.to_thread(thawed.wait)
            answers.extend(await wire.ask(("GET", "written")))
        finally:
            wire.close()

    old, answers, asked, thawed = connect(cluster.url), list[object](), threading.Event(), threading.Event()
    process = threading.Thread(target=lambda: asyncio.run(ask_twice()))
    process.start()
    assert old.get("written") is None
    assert asked.wait(10)
    os.kill(frozen, signal.SIGSTOP)
    eventually(lambda: cluster.primary() != 0, 30)
    eventually(lambda: _written(cluster), 30)
    time.sleep(2 * LOOK_EVERY_S)
    os.kill(frozen, signal.SIGCONT)
    thawed.set()
    assert old.get("written") == "since"
    process.join(10)
    assert answers == [None, b"since"]


def _written(cluster: Cluster) -> bool:
    try:
        return bool(redis.Redis(port=cluster.ports[cluster.primary()], socket_timeout=1).set("written", "since"))
    except redis.RedisError:
        return False


def test_a_reply_that_came_too_late_answers_nothing_else(cluster: Cluster, frozen: int) -> None:
    client = connect(cluster.url)
    client.set("mine", "mine")
    client.set("of another", "secret")
    assert client.get("mine") == "mine"
    for server in cluster.servers[3:]:  # nobody takes over while it is frozen
        os.kill(server.pid, signal.SIGSTOP)
    os.kill(frozen, signal.SIGSTOP)
    with pytest.raises(redis.TimeoutError):
        client.get("of another")
    waiting: list[object] = []
    reader = threading.Thread(target=lambda: waiting.append(client.get("mine")))
    reader.start()
    time.sleep(READ_S / 4)
    for server in cluster.servers[3:]:
        os.kill(server.pid, signal.SIGCONT)
    os.kill(frozen, signal.SIGCONT)
    reader.join(10)
    assert waiting == ["mine"]


def test_a_command_that_is_sent_again_goes_to_the_primary(cluster: Cluster) -> None:
    """redis-py sends it again on the connection that was cut. The server at its other end is still there."""
    client = connect(cluster.url)
    connection: Any = client.connection_pool.get_connection()

    def was_cut() -> bool:
        try:
            connection.send_command("PING")
            return bool(connection.read_response() != "PONG")
        except redis.ConnectionError:
            return True

    sentinel: Any = redis.Redis(port=cluster.ports[3])

    def begun() -> bool:
        try:
            return bool(sentinel.execute_command("SENTINEL", "FAILOVER", "allot"))
        except redis.ResponseError as wrong:  # it has not heard of a replica for a while
            if str(wrong).startswith("NOGOODSLAVE"):
                return False
            raise

    eventually(begun, 30)
    eventually(lambda: cluster.primary() != 0, 30)
    eventually(was_cut)
    connection.send_command("PING")
    assert connection.read_response() == "PONG"
    assert connection.port == cluster.ports[cluster.primary()]
    client.connection_pool.release(connection)


def test_a_replica_that_refuses_a_script_is_left(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever told that it was the primary was wrong, or it was so a moment ago."""
    places = iter([cluster.ports[1]] * 3)
    monkeypatch.setattr(Primary, "find", lambda self: ("127.0.0.1", next(places, cluster.ports[0])))
    client = connect(cluster.url)
    with pytest.raises(redis.ConnectionError, match="no primary"):
        client.execute_command("EVAL", "return redis.call('SET', 'a', 1)", 0)
    assert client.execute_command("EVAL", "return redis.call('SET', 'a', 1)", 0) == "OK"


class Sentinel:
    """One that says what it is told to say."""

    def __init__(self, epoch: int, port: int) -> None:
        self.epoch, self.port = epoch, port

    def sentinel_masters(self) -> dict[str, dict[str, object]]:
        state = {"is_master": True, "config-epoch": self.epoch, "ip": "here", "port": self.port}
        return {"allot": state | {"is_sdown": False, "is_odown": False}}

    def sentinel_get_master_addr_by_name(self, name: str) -> tuple[str, int]:
        return "here", self.port


def test_a_sentinel_that_has_not_heard_the_news_leads_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    late, quick = Sentinel(3, 1), Sentinel(4, 2)
    known = Primary("allot", [quick])
    assert known.find() == ("here", 2)
    known._sentinels = [late]  # as behind one name for all of them
    assert known.find() == ("here", 2)
    monkeypatch.setattr(primary, "FORGET_S", 0.0)  # all were set up anew, and count from the beginning
    assert known.find() == ("here", 1)
