"""What a client makes of a Redis that is full, cannot write, or does not answer at all."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.workers.service import allowed, quickest
from workers.jobs.job import StoreFull, Unavailable
from workers.jobs.records import Records
from workers.runtime.connection import READ_S, CannotWrite, NoRoom, connect, guarded
from workers.runtime.primary import replicas_of
from workers.runtime.redis_server import EmbeddedRedis

GROW = "return redis.call('SET', ARGV[1], ARGV[2])"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    made = EmbeddedRedis(tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(server: EmbeddedRedis, tmp_path: Path) -> Iterator[Any]:
    made = connect((tmp_path / "redis" / "url").read_text())
    yield made
    made.close()


@pytest.fixture
def full(client: Any) -> Any:
    client.set("some", "x" * 100_000)
    client.config_set("maxmemory", 1)
    return client


def test_no_room_is_told_apart_in_commands_scripts_and_pipelines(full: Any) -> None:
    with pytest.raises(NoRoom):
        full.set("a", 1)
    with pytest.raises(NoRoom):
        full.register_script(GROW)(args=["a", 1])
    for transaction in (True, False):
        pipeline = full.pipeline(transaction=transaction).set("a", 1)
        with pytest.raises(NoRoom):
            pipeline.execute()
    with pytest.raises(StoreFull, match="out of memory"):
        guarded(lambda: full.set("a", 1))()
    full.config_set("maxmemory", 0)
    assert full.set("a", 1)


def test_a_redis_that_takes_no_writes_is_told_apart_from_our_bugs(client: Any) -> None:
    client.config_set("min-replicas-to-write", 1)
    writes: list[Callable[[], Any]] = [
        lambda: client.set("a", 1),
        lambda: client.register_script(GROW)(args=["a", 1]),
        lambda: client.pipeline(transaction=False).eval(GROW, 0, "whose", "secret").execute(),
    ]
    for write in writes:
        with pytest.raises(CannotWrite, match=r"^NOREPLICAS ") as told:
            write()
        assert "secret" not in str(told.value)
        with pytest.raises(Unavailable, match="takes no writes now"):
            guarded(write)()
    client.config_set("min-replicas-to-write", 0)
    assert client.set("a", 1)


def test_what_only_looks_is_answered_by_a_redis_that_takes_no_writes(client: Any) -> None:
    """Full, without its replicas, and as a replica, which refuses whatever a script would change."""
    records, told = Records(client), ["one", "two"]
    client.rpush("rq:queue:cpu", *told)
    client.hset("allot:job:three", mapping={"owner": "ann", "form": "-"})
    for key, member in (("allot:line:cpu:-:ann", "three"), ("allot:forms:cpu:ann", "-"), ("allot:fair:cpu", "ann")):
        client.zadd(key, {member: 1})
    client.hset("allot:backlog:cpu", mapping={"n": 1, "n:ann": 1, "s:ann": 1})
    for trouble in ("CONFIG SET maxmemory 1", "CONFIG SET min-replicas-to-write 1", "REPLICAOF 127.0.0.1 1"):
        client.execute_command(*trouble.split())
        with pytest.raises((NoRoom, CannotWrite)):
            client.set("a", 1)
        client.script_flush()  # of a script that Redis has forgotten, too
        for _ in range(2):
            assert [records.position("cpu", job_id) for job_id in [*told, "three", "four"]] == [1, 2, 3, None], trouble
            assert (records.waiting("cpu"), records.in_line("cpu")) == (3, {"three"})


def test_reads_of_a_frozen_redis_end_within_a_second(server: EmbeddedRedis, client: Any) -> None:
    client.get("a")
    assert server.pid is not None
    pid = server.pid

    def longest() -> float:
        took = []
        os.kill(pid, signal.SIGSTOP)
        try:
            for _ in range(2):  # on a connection that was there, and on a new one
                start = time.monotonic()
                with pytest.raises(Unavailable):
                    guarded(lambda: client.get("a"))()
                took.append(time.monotonic() - start)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert client.get("a") is None
        return max(took)

    assert quickest(longest, READ_S + 0.3) < allowed(READ_S + 0.3)


def test_what_is_meant_to_block_may(client: Any) -> None:
    start = time.monotonic()
    assert not client.xread({"nothing": "0-0"}, block=1500)
    assert client.execute_command("BLMOVE", "nothing", "nowhere", "LEFT", "RIGHT", 1.5) is None
    assert time.monotonic() - start > 2.5


@pytest.mark.parametrize(
    ("url", "replicas"),
    [
        ("redis://somewhere/0?min_replicas=2", 0),
        ("sentinel://one:26379,two:26379/allot", 0),
        ("sentinel://:secret@one:26379,two:26379/allot?db=1&min_replicas=2", 2),
    ],
)
def test_urls(url: str, replicas: int) -> None:
    assert replicas_of(url) == replicas


def test_whoever_finds_all_connections_taken_waits_for_one(
    server: EmbeddedRedis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.runtime.pool.WAIT_S", 60.0)
    client = connect((tmp_path / "redis" / "url").read_text(), most=2)
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(lambda _: client.get("nothing"), range(400))) == [None] * 400
    client.close()
