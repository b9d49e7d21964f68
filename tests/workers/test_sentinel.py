"""Redis Sentinel with real servers: the primary is killed amid jobs, and none that was acknowledged is lost."""

import asyncio
import dataclasses
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from tests.workers.service import OWNER, eventually, settings_for
from workers.jobs.job import Job, JobError, State, Submission, Unavailable
from workers.jobs.queue import Jobs
from workers.jobs.wire import Wire
from workers.runtime.connection import address_of
from workers.runtime.redis_server import find_server
from workers.runtime.supervisor import Supervisor

JOBS = 150


class Cluster:
    """A primary, two replicas and three sentinels."""

    def __init__(self, folder: Path, program: str) -> None:
        self.ports = [_free_port() for _ in range(6)]
        self.servers: list[subprocess.Popen[bytes]] = []
        for k, port in enumerate(self.ports):
            (folder / str(k)).mkdir()
            common = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder / str(k))]
            data = ["--appendonly", "yes", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"]
            follow = ["--replicaof", "127.0.0.1", str(self.ports[0])] if k else []
            command = [program, *common, *data, *follow]
            if k >= 3:
                config = folder / str(k) / "sentinel.conf"
                config.write_text(
                    f"port {port}\nbind 127.0.0.1\ndir {folder / str(k)}\n"
                    f"sentinel monitor allot 127.0.0.1 {self.ports[0]} 2\n"
                    "sentinel down-after-milliseconds allot 1000\nsentinel failover-timeout allot 5000\n"
                )
                command = [program, str(config), "--sentinel"]
            log = (folder / str(k) / "log").open("wb")
            self.servers.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[3:])
        self.url = f"sentinel://{hosts}/allot?min_replicas=1"

    def in_step(self) -> bool:
        """Both replicas follow, and every sentinel knows of them and of the others."""
        try:
            primary = redis.Redis(port=self.ports[0]).info("replication")
            watched: list[Any] = [redis.Redis(port=port).sentinel_masters() for port in self.ports[3:]]
        except redis.RedisError:
            return False
        told = [masters["allot"] for masters in watched]
        known = all(one["num-slaves"] == 2 and one["num-other-sentinels"] == 2 for one in told)
        return known and sum(primary.get(f"slave{k}", {}).get("state") == "online" for k in range(2)) == 2

    def stop(self) -> None:
        for server in self.servers:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


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
    for server in cluster.servers[1:3]:
        os.kill(server.pid, signal.SIGKILL)

    def submit() -> None:
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up:
            jobs.submit(Submission(OWNER, "lap", {"cost": reference}, queue="cpu"))

    with pytest.raises(Unavailable, match="takes no writes now"):
        submit()


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
