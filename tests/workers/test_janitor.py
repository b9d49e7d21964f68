"""What each kind of loss looks like in Redis, and that a round of cleaning mends it. No workers here."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import redis

from workers.jobs.janitor import Janitor
from workers.jobs.job import State, StoreFull, Submission
from workers.jobs.queue import Jobs
from workers.jobs.records import Limits, Order, Records
from workers.rq import lost
from workers.runtime.config import Settings


@pytest.fixture
def made(jobs: Jobs, settings: Settings) -> Janitor:
    return Janitor(settings)


def submitted(jobs: Jobs) -> str:
    reference = jobs.store.put(np.eye(2), "ann")
    return jobs.submit(Submission("ann", "lap", {"cost": reference}, queue="cpu"))[0].id


def queued(jobs: Jobs) -> list[str]:
    """The ids that wait, as they will be taken."""
    lined = sorted(Records(jobs._redis).in_line("cpu"), key=lambda job_id: jobs.get(job_id, "ann").queue_position or 0)
    return [*jobs._redis.lrange("rq:queue:cpu", 0, -1), *lined]


def take(jobs: Jobs, token: str = "one", most: int = 1) -> list[Order]:
    return Records(jobs._redis).take("cpu", "a worker", "a cpu", token, Limits.of(jobs.settings), most=most, idle_s=5)


def test_a_silent_workers_job_goes_back_to_the_front(jobs: Jobs, made: Janitor) -> None:
    first, second = submitted(jobs), submitted(jobs)
    assert [order.job_id for order in take(jobs)] == [first]
    made.clean()
    assert queued(jobs) == [second]  # its worker is heard of
    jobs._redis.zadd("rq:wip:cpu", {f"{first}:one-1": time.time() - 1})
    made.clean()
    assert queued(jobs) == [first, second]
    assert jobs.get(first, "ann").state is State.QUEUED
    assert jobs._redis.zcard("rq:wip:cpu") == 0


def test_workers_get_the_time_to_be_heard_again_once_a_frozen_redis_is_back(
    jobs: Jobs, settings: Settings, passes: Callable[[float], None]
) -> None:
    """From the first round that works: the one before may have begun and failed any time earlier."""
    janitor, job_id = Janitor(replace(settings, lost_after_s=60.0)), submitted(jobs)
    take(jobs)
    jobs._redis.zadd("rq:wip:cpu", {f"{job_id}:one-1": time.time() - 1})
    pid = jobs._redis.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(redis.TimeoutError):
            janitor.clean()
        passes(61)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert janitor.clean()
    assert queued(jobs) == []
    passes(61)
    assert janitor.clean()
    assert queued(jobs) == [job_id]


def test_only_one_cleans(jobs: Jobs, settings: Settings, made: Janitor) -> None:
    jobs._redis.set("allot:janitor", "somebody", ex=600)
    assert not made.clean()
    jobs._redis.pexpire("allot:janitor", 1)
    time.sleep(0.05)
    assert made.clean()
    assert not jobs._redis.exists("allot:janitor")


def test_a_stray_comes_back(jobs: Jobs, made: Janitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost, "BETWEEN_S", 0.1)
    assert take(jobs) == []  # a worker waits
    job_id = submitted(jobs)
    assert jobs._redis.lrange("rq:queue:cpu", 0, -1) == [job_id]
    jobs._redis.lmove("rq:queue:cpu", "rq:queue:cpu:intermediate", "LEFT", "RIGHT")
    made.clean()
    assert queued(jobs) == []  # somebody may be about to start it
    time.sleep(0.15)
    made.clean()
    assert queued(jobs) == [job_id]
    assert jobs._redis.llen("rq:queue:cpu:intermediate") == 0


def test_a_job_that_is_nowhere_is_found_missing_and_runs_again(jobs: Jobs, made: Janitor) -> None:
    job_id, other = submitted(jobs), submitted(jobs)
    (line,) = jobs._redis.keys("allot:line:cpu:*")
    jobs._redis.zrem(line, job_id)
    made.search()
    assert queued(jobs) == [other]  # it may just have been on its way
    made.search()
    assert sorted(queued(jobs)) == sorted([job_id, other])
    jobs.cancel(job_id, "ann")
    made.search()
    made.search()
    assert queued(jobs) == [other]


def test_now_and_then_it_scrubs(jobs: Jobs, made: Janitor) -> None:
    jobs._redis.sadd("rq:workers:cpu", "rq:worker:long-dead")
    made._scrubbed -= 1e6
    assert made.clean()
    assert jobs._redis.scard("rq:workers:cpu") == 0


def test_strangers_are_dropped(jobs: Jobs, made: Janitor) -> None:
    jobs._redis.hset("rq:job:evil", mapping={"data": '["os.system", null, ["true"], {}]', "origin": "cpu"})
    jobs._redis.rpush("rq:queue:cpu:intermediate", "evil", "nothing")
    made.clean()
    assert jobs._redis.llen("rq:queue:cpu:intermediate") == 0


def test_a_job_of_the_former_release_that_was_never_queued_runs(jobs: Jobs, made: Janitor) -> None:
    """That release recorded a job first and gave it to RQ in a second step, which a death could leave out."""
    job_id = submitted(jobs)
    jobs._redis.delete(*jobs._redis.keys("allot:line:*"), *jobs._redis.keys("allot:forms:*"), "allot:fair:cpu")
    jobs._redis.hdel(f"allot:job:{job_id}", "form", "priority", "seconds", "retries")
    made.search()
    made.search()
    assert [order.job_id for order in take(jobs)] == [job_id]


def test_bytes_that_cannot_be_settled_keep_no_job_from_being_found(
    jobs: Jobs, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> int:
        raise StoreFull("the disk is full")

    janitor = Janitor(settings)
    monkeypatch.setattr(janitor._jobs.store, "settle_left", full)
    assert janitor.clean()
