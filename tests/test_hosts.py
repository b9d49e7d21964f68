"""500 jobs on two API hosts and three worker hosts while everything dies or runs full: all are answered, and right.

One after the other: every process of every host is killed, then a replica of Redis and a sentinel, Redis runs out of
memory, the disks of an API host and of a worker host fill, the bucket does not answer, and the primary of Redis dies.
"""

import contextlib
import io
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import redis
from scipy.optimize import linear_sum_assignment

from tests.disks import fill, small_disk
from tests.hosts import S3, Hosts, is_gone
from tests.workers.cluster import Cluster
from tests.workers.service import eventually
from workers.runtime.redis_server import find_server

JOBS = 500
CLIENTS = 8
PACE_S = 0.8
"""Between two jobs of a client, so that the load lasts as long as the faults."""
PATIENCE_S = 120.0
BETWEEN_S = 1.0


class Load:
    """Clients that submit and check, each over whichever API host answers."""

    def __init__(self, urls: list[str]) -> None:
        self.urls = urls
        self.answered: list[str] = []
        self.wrong: list[str] = []
        self.told: Counter[str] = Counter()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(seed,), daemon=True) for seed in range(CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Go on to the last job, then stop."""
        until = time.monotonic() + 2 * PATIENCE_S
        while len(self.answered) < JOBS and not self.wrong and time.monotonic() < until:
            time.sleep(0.2)
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S + 10)
            assert not thread.is_alive()

    def _run(self, seed: int) -> None:
        client = Client(self.urls, seed, self.told)
        while not self._stop.is_set():
            try:
                self.answered.append(client.one())
            except Exception as error:
                self.wrong.append(repr(error)[:500])
            self._stop.wait(PACE_S)


class Client:
    def __init__(self, urls: list[str], seed: int, told: Counter[str]) -> None:
        self._rng, self._told = np.random.default_rng(seed), told
        self._hosts = [httpx.Client(base_url=url, timeout=30) for url in urls]

    def one(self) -> str:
        """A job of one of three kinds, from its submission to its checked answer: its id."""
        kind = self._rng.random()
        if kind < 0.15:
            return self._qap()
        n = 90 if kind < 0.4 else int(self._rng.integers(2, 40))  # the larger ones are objects of the bucket
        cost = self._rng.integers(0, 1000, (n, n))
        job, answer = self._solved(
            {"solver": "lap", "inputs": {"cost": self._uploaded(cost) if n == 90 else cost.tolist()}}
        )
        rows, columns = linear_sum_assignment(cost)
        assert answer["objective"] == cost[rows, columns].sum()
        assert cost[np.arange(n), answer["assignment"]].sum() == answer["objective"]
        return job

    def _uploaded(self, cost: Any) -> dict[str, Any]:
        body = io.BytesIO()
        np.save(body, cost)
        return {"blob": self._until({201}, "POST", "/v1/blobs", content=body.getvalue()).json()["blob"]}

    def _qap(self) -> str:
        flow, distance = (np.triu(self._rng.integers(0, 9, (12, 12)), 1) for _ in range(2))
        flow, distance = flow + flow.T, distance + distance.T
        inputs = {"flow": flow.tolist(), "distance": distance.tolist()}
        job, answer = self._solved({"solver": "qap", "inputs": inputs, "time_limit_s": 1.0})
        at = np.array(answer["permutation"])
        assert sorted(at) == list(range(12))
        assert answer["objective"] == (flow * distance[np.ix_(at, at)]).sum()
        return job

    def _solved(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        key = {"Idempotency-Key": f"job-{self._rng.integers(1 << 60)}"}
        job = self._until({200, 202}, "POST", "/v1/jobs", json=body, headers=key).json()["id"]
        give_up = time.monotonic() + PATIENCE_S
        while True:
            seen = self._until({200}, "GET", f"/v1/jobs/{job}", params={"wait": 5}).json()
            if seen["state"] == "succeeded":
                return job, self._until({200}, "GET", f"/v1/jobs/{job}/result").json()
            assert seen["state"] in ("queued", "running"), seen
            assert time.monotonic() < give_up, seen

    def _until(self, wanted: set[int], verb: str, path: str, **more: Any) -> httpx.Response:
        """The answer of the first host that gives one: refusals and cut connections are asked again elsewhere."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            host = self._hosts[int(self._rng.integers(len(self._hosts)))]
            try:
                answer = host.request(verb, path, **more)
            except httpx.TransportError as error:
                self._told[type(error).__name__] += 1
            else:
                if answer.status_code in wanted:
                    return answer
                assert answer.status_code in (429, 503, 507), f"{verb} {path}: {answer.status_code} {answer.text[:300]}"
                self._told[str(answer.status_code)] += 1
            assert time.monotonic() < give_up, f"{verb} {path}"
            time.sleep(0.2)


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[tuple[Hosts, Cluster, S3]]:
    pytest.importorskip("moto", reason="there is no S3 server here")
    program = find_server()
    if program is None:
        pytest.skip("there is no redis-server here")
    with contextlib.ExitStack() as stack:
        for host in ("api-1", "worker-2"):
            stack.enter_context(small_disk(tmp_path / host / "data", "96m"))
        (tmp_path / "redis").mkdir()
        cluster = Cluster(tmp_path / "redis", program)
        stack.callback(cluster.stop)
        eventually(cluster.in_step, 30)
        s3 = S3(tmp_path)
        stack.callback(s3.stop)
        hosts = Hosts(tmp_path, cluster, s3)
        stack.callback(hosts.stop)
        hosts.ready()
        yield hosts, cluster, s3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_is_lost_while_everything_dies_in_turn(parts: tuple[Hosts, Cluster, S3]) -> None:
    hosts, cluster, s3 = parts
    load = Load(hosts.urls)
    load.start()
    eventually(lambda: len(load.answered) > 2 * CLIENTS, 60)
    killed = every_process(hosts)
    redis_out_of_memory(cluster)
    full_disks(hosts)
    replica_and_sentinel(cluster)
    silent_bucket(s3)
    took_over = failover(cluster)
    load.end()
    print(f"{len(load.answered)} jobs, killed {dict(killed)}, callers heard {dict(load.told)}")
    assert load.wrong == []
    assert len(load.answered) == len(set(load.answered)) >= JOBS
    assert took_over
    assert killed.keys() >= {"app.cli.main", "workers.runtime.worker", "workers.runtime.child", "app.intake.clerk"}
    assert load.told["507"] > 0  # Redis and a disk were full in earnest
    assert load.told["503"] > 0
    assert hosts.stop() == [0] * 5


def every_process(hosts: Hosts) -> Counter[str]:
    """Kill a process of each kind on each host, those first that others started; the hosts come back."""
    killed: Counter[str] = Counter()
    for host in (*hosts.workers, *hosts.apis):
        for kind in host.processes():
            found = host.processes().get(kind)
            if found is None:
                continue
            found.kill()
            killed[kind] += 1
            eventually(partial(is_gone, found), 10)
            time.sleep(BETWEEN_S)
        hosts.ready()
    return killed


def redis_out_of_memory(cluster: Cluster) -> None:
    with redis.Redis(port=cluster.ports[cluster.primary()]) as client:
        client.config_set("maxmemory", 1)
        time.sleep(6)
        client.config_set("maxmemory", 0)
    time.sleep(BETWEEN_S)


def full_disks(hosts: Hosts) -> None:
    ballast = [fill(host.data) for host in (hosts.apis[1], hosts.workers[2])]
    time.sleep(6)
    for file in ballast:
        file.unlink()
    time.sleep(BETWEEN_S)


def replica_and_sentinel(cluster: Cluster) -> None:
    for k in (2, 5):
        cluster.kill(k)
        time.sleep(2)
        cluster.start(k)
    eventually(lambda: in_step(cluster), 60)


def silent_bucket(s3: S3) -> None:
    os.kill(s3.process.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(s3.process.pid, signal.SIGCONT)
    time.sleep(BETWEEN_S)


def failover(cluster: Cluster) -> bool:
    """The primary is gone; a replica takes over, and the dead one comes back as a replica."""
    before = cluster.primary()
    cluster.kill(before)
    eventually(lambda: cluster.primary() != before, 60)
    time.sleep(2)
    cluster.start(before)
    eventually(lambda: in_step(cluster), 90)
    return cluster.primary() != before


def in_step(cluster: Cluster) -> bool:
    """The primary has two replicas that follow."""
    try:
        with redis.Redis(port=cluster.ports[cluster.primary()]) as client:
            told: Any = client.info("replication")
    except redis.RedisError:
        return False
    return all(told.get(f"slave{k}", {}).get("state") == "online" for k in range(2))
