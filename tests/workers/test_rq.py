"""RQ behind its five verbs, on a real Redis and without a child."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from workers.rq import Fate, Hands, Held, Line, Lost, lost
from workers.rq.books import Books
from workers.runtime.config import Settings
from workers.runtime.connection import connect

LOST_AFTER_S = 2


@pytest.fixture
def redis(settings: Settings) -> Iterator[Any]:
    raw = connect(settings.redis_url, text=False)
    raw.flushall()
    yield raw
    raw.close()


@pytest.fixture
def line(redis: Any) -> Line:
    return Line("cpu", redis)


@pytest.fixture
def hands(settings: Settings, redis: Any) -> Iterator[Hands]:
    """On a client of its own, which stays open: RQ listens for commands on it from a thread."""
    raw = connect(settings.redis_url, text=False)
    with Hands("cpu", raw, lost_after_s=LOST_AFTER_S, stop=lambda: None) as made:
        yield made


def send(redis: Any, line: Line, *job_ids: str) -> None:
    for job_id in job_ids:
        with redis.pipeline() as pipeline:
            line.send(job_id, pipeline, attempts=3, keep_failed_s=60)
            pipeline.execute()


def taken(hands: Hands) -> Held:
    held = hands.take()
    assert held is not None
    return held


def entries(redis: Any) -> list[str]:
    return [entry.decode() for entry in redis.zrange("rq:wip:cpu", 0, -1)]


def waiting(redis: Any) -> list[str]:
    return [job_id.decode() for job_id in redis.lrange("rq:queue:cpu", 0, -1)]


def test_a_take_waits_for_a_second_and_no_longer(hands: Hands) -> None:
    start = time.monotonic()
    assert hands.take() is None
    assert 0.9 < time.monotonic() - start < 2


def test_from_send_to_done(redis: Any, line: Line, hands: Hands) -> None:
    send(redis, line, "a", "b")
    assert (line.waiting(), line.running(), line.position("b"), line.position("c")) == (2, 0, 2, None)
    held = taken(hands)
    assert (held.job_id, held.may_run_again, held.stopped) == ("a", True, False)
    assert (line.waiting(), line.running(), line.position("b")) == (1, 1, 1)
    assert entries(redis) == [f"a:{held.execution}"]
    assert Lost("cpu", redis).places() == {"a", "b"}
    held.done("ended")
    assert (line.waiting(), line.running()) == (1, 0)
    assert not redis.exists("rq:job:a", "rq:executions:a", "rq:queue:cpu:intermediate")
    assert redis.hget(f"rq:worker:{hands.name}", "state") == b"idle"
    assert redis.scard(f"rq:worker:{hands.name}:executions") == 0


def test_renewing_moves_the_moment_of_loss(redis: Any, line: Line, hands: Hands) -> None:
    send(redis, line, "a")
    held = taken(hands)
    entry = f"a:{held.execution}"
    assert 0 < redis.zscore("rq:wip:cpu", entry) - time.time() <= LOST_AFTER_S
    redis.zadd("rq:wip:cpu", {entry: time.time() + 0.1})
    held.renew()
    assert redis.zscore("rq:wip:cpu", entry) - time.time() > LOST_AFTER_S - 1  # RQ counts in whole seconds


def test_renewing_does_not_bring_back_what_was_revoked(redis: Any, line: Line, hands: Hands) -> None:
    send(redis, line, "a")
    held = taken(hands)
    told: list[tuple[str, bool]] = []
    redis.zadd("rq:wip:cpu", {f"a:{held.execution}": time.time() - 1})
    Lost("cpu", redis).revoke(lambda *what: told.append(what))
    assert told == [("a", True)]
    held.renew()
    assert (entries(redis), waiting(redis)) == ([], ["a"])


@pytest.mark.parametrize(("fate", "places"), [("again", ["a", "b"]), ("failed", ["b"]), ("dropped", ["b"])])
def test_other_ends(redis: Any, line: Line, hands: Hands, fate: Fate, places: list[str]) -> None:
    send(redis, line, "a", "b")
    taken(hands).done(fate, "why")
    assert (waiting(redis), entries(redis)) == (places, [])
    assert redis.zrange("rq:failed:cpu", 0, -1) == ([b"a"] if fate == "failed" else [])


def test_attempts_run_out_but_for_those_that_do_not_count(redis: Any, line: Line, hands: Hands) -> None:
    send(redis, line, "a")
    for _ in range(2):
        held = taken(hands)
        assert held.may_run_again
        held.done("again")
    for _ in range(3):
        held = taken(hands)
        assert not held.may_run_again
        held.done("again", counts=False)
    assert waiting(redis) == ["a"]


def test_a_death_before_the_start_loses_nothing(
    redis: Any, line: Line, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ has the execution, the job's status does not say started, and its id is still between queue and worker."""

    def dies(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(lost, "BETWEEN_S", 0.1)
    send(redis, line, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(Books, "prepare_job_execution", dies)
        with pytest.raises(ConnectionError):
            hands.take()
    found, told = Lost("cpu", redis), []
    found.revoke(lambda *what: told.append(what))
    time.sleep(0.15)
    found.revoke(lambda *what: told.append(what))
    assert (waiting(redis), len(entries(redis))) == (["b"], 1)  # it may yet start
    time.sleep(LOST_AFTER_S)
    found.revoke(lambda *what: told.append(what))
    assert (waiting(redis), entries(redis), told) == (["a", "b"], [], [])
    assert redis.llen("rq:queue:cpu:intermediate") == 0
    assert taken(hands).job_id == "a"


def test_the_scripts_use_the_prefix_that_rq_uses() -> None:
    code = "from workers.rq import LUA; assert \"'mine:queue:'\" in LUA and 'rq:' not in LUA"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"RQ_KEY_PREFIX": "mine"})
    assert done.returncode == 0
