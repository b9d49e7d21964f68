"""The embedded Redis: private, durable, alone on its folder, and gone with its owner."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import redis

from tests.workers.service import allowed, eventually, quickest
from workers.jobs.job import Unavailable
from workers.runtime import redis_server
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis


def test_it_is_private_and_evicts_nothing(tmp_path: Path) -> None:
    def started(folder: Path) -> float:
        start = time.perf_counter()
        with EmbeddedRedis(folder):
            return time.perf_counter() - start

    assert quickest(lambda: started(tmp_path), 2) < allowed(2)
    with EmbeddedRedis(tmp_path) as url:
        client = redis.Redis.from_url(url, decode_responses=True)
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        assert client.config_get("appendfsync")["appendfsync"] == "everysec"
        assert client.config_get("port")["port"] == "0"
        assert Path(url.removeprefix("unix://")).stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "redis").stat().st_mode & 0o777 == 0o700


def test_a_killed_server_remembers(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path)
    client = redis.Redis.from_url(server.start(), decode_responses=True)
    client.set("a", "1")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    with EmbeddedRedis(tmp_path) as url:
        assert redis.Redis.from_url(url, decode_responses=True).get("a") == "1"


def test_two_services_cannot_share_a_folder(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path), pytest.raises(Unavailable, match="another service"):
        EmbeddedRedis(tmp_path).start()
    with EmbeddedRedis(tmp_path):
        pass


def test_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    server = EmbeddedRedis(deep)
    url = server.start()
    assert len(url) < 107
    server.stop()
    assert not Path(url.removeprefix("unix://")).parent.exists()


def test_it_dies_with_its_owner(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from workers.runtime.redis_server import EmbeddedRedis\n"
        "server = EmbeddedRedis(Path(sys.argv[1])); server.start(); print(server.pid, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert psutil.pid_exists(pid)
    owner.kill()
    owner.wait()
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 3)


def test_one_that_is_killed_is_back_with_what_it_knew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = EmbeddedRedis(tmp_path)
    client = redis.Redis.from_url(server.start(), decode_responses=True)
    try:
        took = []
        for k in range(redis_server.MOST_DEATHS):
            client.set(f"key{k}", k)
            first = server.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            took.append(eventually(lambda was=first: server.pid != was and _answers(client)))  # type: ignore[misc]
        assert sorted(took)[-2] < allowed(2), took  # the machine may have paused in one of them
        assert [client.get(f"key{k}") for k in range(5)] == ["0", "1", "2", "3", "4"]
        pauses_s = re.findall(r"the embedded Redis ended with -9; it is started again in (\S+) s", caplog.text)
        assert len(pauses_s) == redis_server.MOST_DEATHS
        assert max(map(float, pauses_s)) <= 1.0
    finally:
        server.stop()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def test_one_that_dies_again_and_again_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "MOST_DEATHS", 2)
    lost: list[bool] = []
    server = EmbeddedRedis(tmp_path, lost=lambda: lost.append(True))

    def die() -> None:
        with server as url:
            client = redis.Redis.from_url(url)
            for _ in range(3):
                eventually(lambda: _answers(client))
                assert server.pid is not None
                os.kill(server.pid, signal.SIGKILL)
                eventually(lambda: not _answers(client))
            eventually(lambda: lost == [True])

    with pytest.raises(Unavailable, match="again and again"):
        die()


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_file_that_was_cut_short_costs_its_end_and_nothing_else(tmp_path: Path, cut: int) -> None:
    with EmbeddedRedis(tmp_path) as url, redis.Redis.from_url(url) as client:
        for k in range(100):
            client.set(f"key{k:02}", "x" * 30)
    file = tmp_path / "redis/appendonly.aof"
    file.write_bytes(file.read_bytes()[:-cut])
    with EmbeddedRedis(tmp_path) as url, redis.Redis.from_url(url, decode_responses=True) as client:
        kept = sorted(client.keys("key*"))
        assert kept == [f"key{k:02}" for k in range(len(kept))]
        assert 100 - cut // 50 - 1 <= len(kept) < 100
        client.set("after", 1)
    with EmbeddedRedis(tmp_path) as url, redis.Redis.from_url(url, decode_responses=True) as client:
        assert client.exists("key00", "after") == 2  # and it goes on behind the cut


def test_a_file_that_is_broken_in_the_middle_is_not_guessed_at(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as url, redis.Redis.from_url(url) as client:
        for k in range(20):
            client.set(f"key{k:02}", "x" * 30)
    file = tmp_path / "redis/appendonly.aof"
    told = file.read_bytes()
    command = told.index(b"*3", len(told) // 2)
    file.write_bytes(told[:command] + b"?9" + told[command + 2 :])
    with pytest.raises(Unavailable, match=r"redis\.log"):
        EmbeddedRedis(tmp_path).start()
    assert "redis-check-aof" in (tmp_path / "redis/redis.log").read_text()


def test_always_has_each_write_in_the_file_before_its_answer(tmp_path: Path) -> None:
    settings = Settings.from_env({"ALLOT_FSYNC": "always"})
    with (
        EmbeddedRedis(tmp_path, fsync=settings.fsync) as url,
        redis.Redis.from_url(url, decode_responses=True) as client,
    ):
        assert client.config_get("appendfsync")["appendfsync"] == "always"
        for k in range(50):
            client.set("key", f"value {k}")
            assert f"value {k}".encode() in (tmp_path / "redis/appendonly.aof").read_bytes()[-30:]
