"""RQ behind its five verbs, on a real Redis and without a child."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rq import Queue, Retry
from rq.job import Job
from rq.serializers import JSONSerializer

from workers.jobs.job import State
from workers.jobs.records import Ending, Limits, Order, Records
from workers.rq import Fate, Hands, Held, Line, Lost, lost
from workers.rq.allowed import JOB_FUNCTION
from workers.runtime.config import Settings
from workers.runtime.connection import connect

LOST_AFTER_S = 60


@pytest.fixture
def redis(settings: Settings) -> Iterator[Any]:
    raw = connect(settings.redis_url, text=False)
    raw.flushall()
    yield raw
    raw.close()


@pytest.fixture
def line(redis: Any) -> Line:
    return Line("cpu", redis)


class Taker:
    """A worker's hands, and the records that it takes from."""

    def __init__(self, hands: Hands, settings: Settings) -> None:
        self.hands = hands
        self.records = Records(connect(settings.redis_url))
        self.limits = replace(Limits.of(settings), lost_after_s=LOST_AFTER_S)

    def send(self, *job_ids: str, **more: Any) -> None:
        record = {"owner": "ann", "solver": "lap", "state": "queued", "queue": "cpu", "attempt": 0, "retries": 2}
        record |= {"form": "-", "priority": 0, "seconds": 1, "result_ttl_s": 60, "created_at": time.time(), **more}
        record |= {"inputs": "{}", "options": "{}", "device": "cpu", "time_limit_s": 1}
        for job_id in job_ids:
            assert self.records.submit(job_id, record, ([], []), "", self.limits)[0] == "created"

    def orders(self, most: int = 1) -> list[Order]:
        token = f"token{time.monotonic_ns()}"
        return self.records.take("cpu", self.hands.name, "a cpu", token, self.limits, most=most, idle_s=LOST_AFTER_S)

    def taken(self) -> Held:
        (order,) = self.orders()
        return self.hands.hold(order.job_id, order.execution)


@pytest.fixture
def taker(settings: Settings, redis: Any) -> Iterator[Taker]:
    """On a client of its own, which stays open: RQ listens for commands on it from a thread."""
    raw = connect(settings.redis_url, text=False)
    with Hands("cpu", raw, lost_after_s=LOST_AFTER_S, stop=lambda: None) as made:
        yield Taker(made, settings)


def entries(redis: Any) -> list[str]:
    return [entry.decode() for entry in redis.zrange("rq:wip:cpu", 0, -1)]


def waiting(redis: Any) -> list[str]:
    return [job_id.decode() for job_id in redis.lrange("rq:queue:cpu", 0, -1)]


def test_from_send_to_done(redis: Any, line: Line, taker: Taker) -> None:
    taker.send("a", "b")
    assert (taker.records.waiting("cpu"), line.running()) == (2, 0)
    assert [taker.records.position("cpu", job_id) for job_id in "abc"] == [1, 2, None]
    held = taker.taken()
    assert (held.job_id, held.stopped) == ("a", False)
    assert (taker.records.waiting("cpu"), line.running(), taker.records.position("cpu", "b")) == (1, 1, 1)
    assert entries(redis) == [f"a:{held.execution}"]
    assert redis.smembers(f"rq:worker:{taker.hands.name}:executions") == {f"a:{held.execution}".encode()}
    assert Lost("cpu", redis).places() | taker.records.in_line("cpu") == {"a", "b"}
    assert taker.records.finish([Ending("a", held.execution, State.SUCCEEDED, {})], "cpu", taker.hands.name) == [True]
    assert (taker.records.waiting("cpu"), line.running()) == (1, 0)
    assert not redis.exists("rq:job:a", "rq:executions:a", "rq:queue:cpu:intermediate")
    assert redis.keys("rq:execution:*") == []
    assert redis.hget(f"rq:worker:{taker.hands.name}", "state") == b"idle"
    assert redis.hget(f"rq:worker:{taker.hands.name}", "successful_job_count") == b"1"
    assert redis.scard(f"rq:worker:{taker.hands.name}:executions") == 0


def test_a_worker_that_waits_is_given_a_job(redis: Any, taker: Taker) -> None:
    assert taker.orders() == []  # now others know that it waits
    taker.send("a", "b")
    assert waiting(redis) == ["a"]  # and no more than it takes
    (order,) = taker.orders()
    assert (order.job_id, order.runs_left, waiting(redis)) == ("a", 2, [])


def test_what_the_scripts_write_is_what_rq_writes(redis: Any, taker: Taker) -> None:
    """RQ's own reader finds in a job of ours what it finds in one that RQ was given in its own way."""
    taker.send("a")
    (order,) = taker.orders()
    queue = Queue("cpu", connection=redis, serializer=JSONSerializer)
    queue.enqueue_call(
        JOB_FUNCTION, args=("b",), job_id="b", timeout=-1, result_ttl=0, failure_ttl=taker.limits.keep_failed_s,
        retry=Retry(max=2, enqueue_at_front=True), description="",
    )  # fmt: skip
    ours, theirs = (Job.fetch(job_id, connection=redis, serializer=JSONSerializer) for job_id in "ab")
    assert (ours.func_name, ours.args, ours.kwargs) == (theirs.func_name, ("a",) and list(ours.args), theirs.kwargs)
    assert list(ours.args) == ["a"]
    for name in ("origin", "timeout", "result_ttl", "failure_ttl", "retries_left", "enqueue_at_front_on_retry"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.get_status() == "started"
    assert abs((ours.enqueued_at - theirs.enqueued_at).total_seconds()) < 60
    (execution,) = ours.get_executions()
    assert (execution.id, execution.worker_name) == (order.execution, taker.hands.name)
    assert (queue.started_job_registry.get_job_ids(cleanup=False), ours.worker_name) == (["a"], taker.hands.name)


def test_renewing_moves_the_moment_of_loss(redis: Any, taker: Taker) -> None:
    taker.send("a")
    held = taker.taken()
    entry = f"a:{held.execution}"
    assert 0 < redis.zscore("rq:wip:cpu", entry) - time.time() <= LOST_AFTER_S
    redis.zadd("rq:wip:cpu", {entry: time.time() + 0.1})
    before = math.floor(time.time())
    held.renew()
    assert redis.zscore("rq:wip:cpu", entry) >= before + LOST_AFTER_S  # RQ counts in whole seconds
    assert redis.hget("rq:job:a", "status") == b"started"


def test_renewing_does_not_bring_back_what_was_revoked(redis: Any, taker: Taker) -> None:
    taker.send("a")
    held = taker.taken()
    told: list[tuple[str, bool]] = []

    def tell(*what: Any) -> bool:
        told.append(what)
        return False

    redis.zadd("rq:wip:cpu", {f"a:{held.execution}": time.time() - 1})
    Lost("cpu", redis).revoke(tell)
    assert told == [("a", True)]
    held.renew()
    assert (entries(redis), waiting(redis)) == ([], ["a"])


@pytest.mark.parametrize(("fate", "places"), [("again", ["a"]), ("failed", []), ("dropped", [])])
def test_other_ends(redis: Any, taker: Taker, fate: Fate, places: list[str]) -> None:
    taker.send("a", "b")
    taker.taken().done(fate, "why")
    assert (waiting(redis), entries(redis)) == (places, [])
    assert redis.zrange("rq:failed:cpu", 0, -1) == ([b"a"] if fate == "failed" else [])


def test_attempts_run_out_but_for_those_that_do_not_count(redis: Any, taker: Taker) -> None:
    taker.send("a")

    def again(**how: Any) -> int:
        (order,) = taker.orders()
        held = taker.hands.hold(order.job_id, order.execution)
        assert taker.records.lose("a", order.execution, "again", {}) == "queued"
        held.done("again", **how)
        return order.runs_left

    assert [again(), again()] == [2, 1]
    assert [again(counts=False) for _ in range(3)] == [0, 0, 0]
    assert waiting(redis) == ["a"]


def test_a_death_before_the_start_loses_nothing(redis: Any, taker: Taker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id is still between queue and worker of a former release, and nothing says that it was started."""
    monkeypatch.setattr(lost, "BETWEEN_S", 0.1)
    taker.orders()
    taker.send("a", "b")
    redis.lmove("rq:queue:cpu", "rq:queue:cpu:intermediate")
    found = Lost("cpu", redis)
    told: list[Any] = []

    def tell(*what: Any) -> bool:
        told.append(what)
        return False

    found.revoke(tell)
    assert waiting(redis) == []  # it may yet start
    time.sleep(0.15)
    found.revoke(tell)
    assert (waiting(redis), entries(redis), told) == (["a"], [], [])
    assert redis.llen("rq:queue:cpu:intermediate") == 0
    assert taker.taken().job_id == "a"


def test_the_scripts_use_the_prefix_that_rq_uses() -> None:
    code = "from workers.rq import LUA; assert \"'mine:queue:'\" in LUA and 'rq:' not in LUA"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"RQ_KEY_PREFIX": "mine"})
    assert done.returncode == 0
