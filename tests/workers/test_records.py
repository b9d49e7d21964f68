"""Who may change a job's record: the fencing token, on a real Redis."""

import json
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.jobs.job import Expired, State, Submission, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending, Limits, Order, Records

ROOT = Path(__file__).parents[2]
ERROR = {"code": "worker-lost"}


class Held:
    """A queued job, and workers that RQ believes to run it."""

    def __init__(self, jobs: Jobs, **more: Any) -> None:
        self.jobs = jobs
        self.records = Records(jobs._redis)
        reference = jobs.store.put(np.eye(2), "ann")
        self.id = jobs.submit(Submission("ann", "lap", {"cost": reference}, queue="cpu", **more))[0].id

    def heartbeat(self, execution: str, for_s: float = 60.0) -> None:
        self.jobs._redis.zadd("rq:wip:cpu", {f"{self.id}:{execution}": time.time() + for_s})

    def take(self, token: str) -> Order | None:
        """The worker of that name takes this job, if it may; its execution is called token-1."""
        self.jobs._redis.lpush("rq:queue:cpu", self.id)
        found = self.records.take("cpu", "a worker", "a cpu", token, Limits.of(self.jobs.settings))
        (order,) = found or (None,)
        assert order is None or (order.job_id, order.execution) == (self.id, f"{token}-1")
        return order

    def finish(self, token: str, state: State = State.SUCCEEDED) -> bool:
        fields, result = {"termination": "optimal"}, json.dumps({"by": token})
        return self.records.finish([Ending(self.id, f"{token}-1", state, fields, result)], "cpu", "a worker")[0]

    @property
    def state(self) -> State:
        return self.jobs.get(self.id, "ann").state


def is_free(jobs: Jobs, key: str) -> bool:
    """Whether a job is made by this Idempotency-Key. If so, it is deleted again."""
    inputs = {"cost": jobs.store.put(np.eye(2), "ann")}
    try:
        made, created = jobs.submit(Submission("ann", "lap", inputs, queue="cpu", idempotency_key=key, fingerprint="a"))
    except Expired:
        return False
    if created:
        jobs.delete(made.id, "ann")
    return created


@pytest.fixture
def held(jobs: Jobs) -> Held:
    return Held(jobs)


def test_one_execution_after_another(held: Held) -> None:
    assert held.take("one")
    held.heartbeat("one-1", for_s=-1)  # silent for too long
    assert held.records.lose(held.id, "", "again", ERROR) == "queued"
    assert held.take("two")
    assert not held.finish("one")
    assert not held.records.report(held.id, "one-1", [(1, "progress", {"iteration": 1})])
    assert held.records.stop_requested(held.id, "one-1")
    assert held.finish("two")
    assert held.finish("two")  # once more, as after a lost answer: nothing changes
    assert held.jobs.result(held.id, "ann") == {"by": "two"}
    assert held.jobs.get(held.id, "ann").attempt == 2


def test_asking_again_after_a_lost_answer_changes_nothing(held: Held) -> None:
    assert held.take("one")
    assert held.finish("one")
    version = held.jobs.get(held.id, "ann").version
    assert held.finish("one")
    assert held.jobs.get(held.id, "ann").version == version


def test_nobody_takes_a_job_from_an_execution_that_lives(held: Held) -> None:
    assert held.take("one")
    assert not held.take("two")
    assert held.records.lose(held.id, "", "again", ERROR) == "fenced"
    assert held.records.lose(held.id, "two-1", "again", ERROR) == "fenced"
    assert held.state is State.RUNNING


def test_a_job_that_says_running_is_taken_from_one_that_is_dead(held: Held) -> None:
    assert held.take("one")
    held.heartbeat("one-1", for_s=-1)
    assert held.take("two")
    assert not held.finish("one")
    assert held.finish("two")


def test_what_has_ended_stays_so(held: Held) -> None:
    held.take("one")
    held.finish("one")
    assert not held.take("two")
    assert held.records.lose(held.id, "", "again", ERROR) == "ended"
    held.records.cancel(held.id)
    assert held.state is State.SUCCEEDED
    held.id = "no such job"
    assert not held.take("one")


def test_a_cancelled_job_whose_worker_dies_is_cancelled(held: Held) -> None:
    held.take("one")
    held.records.cancel(held.id)
    assert held.records.stop_requested(held.id, "one-1")
    assert held.records.lose(held.id, "one-1", "again", ERROR) == "cancelled"
    assert held.state is State.CANCELLED


def test_no_attempts_left(held: Held) -> None:
    held.take("one")
    assert held.records.lose(held.id, "one-1", "fail", ERROR) == "failed"
    assert held.jobs.get(held.id, "ann").error == ERROR


def test_expiry_leaves_a_tombstone_and_lets_go_of_blobs(jobs: Jobs) -> None:
    held = Held(jobs, result_ttl_s=0.05)
    digest = jobs.get(held.id, "ann").inputs["cost"]["blob"]
    held.take("one")
    held.finish("one")
    jobs.store.delete(digest, "ann")
    assert jobs.store.sweep() == 0  # the job still holds it
    time.sleep(0.1)
    assert held.records.expire(60) == 1
    with pytest.raises(Expired):
        jobs.get(held.id, "ann")
    with pytest.raises(UnknownJob):
        jobs.get(held.id, "bob")
    assert jobs.store.sweep() == 1
    assert jobs.store.stat(digest, "ann") is None


def test_of_the_jobs_that_are_gone_so_many_are_remembered(jobs: Jobs) -> None:
    """What one owner leaves in Redis has an end. Nothing is forgotten of a job that is there, or of others' jobs."""
    old = Held(jobs, result_ttl_s=0.05, idempotency_key="my key", fingerprint="a")
    there = Held(jobs, idempotency_key="of one that is there", fingerprint="a")
    for one in (old, there):
        one.take("one")
        one.finish("one")
    time.sleep(0.1)
    assert old.records.expire(60) == 1
    with pytest.raises(Expired):
        jobs.get(old.id, "ann")
    assert not is_free(jobs, "my key")
    newer = [f"{number:032x}" for number in range(99_999)]
    jobs._redis.lpush("allot:gone:ann", *newer)  # with `old` the last of them
    more = Held(jobs)
    jobs.delete(more.id, "ann")
    assert jobs._redis.llen("allot:gone:ann") == len(newer) + 1
    assert jobs._redis.lindex("allot:gone:ann", 0) == more.id
    with pytest.raises(UnknownJob):
        jobs.get(old.id, "ann")
    assert is_free(jobs, "my key")
    assert not is_free(jobs, "of one that is there")


def test_deleting_a_running_job_forgets_it_when_it_ends(held: Held) -> None:
    held.take("one")
    held.jobs.delete(held.id, "ann")
    with pytest.raises(UnknownJob):
        held.jobs.get(held.id, "ann")
    assert held.records.stop_requested(held.id, "one-1")
    assert held.finish("one")
    assert held.records.read(held.id) == {}


def test_a_redis_that_forgot_the_scripts_is_sent_them_again(held: Held) -> None:
    assert held.take("one")
    held.jobs._redis.script_flush()
    assert held.finish("one")


def test_each_script_is_a_file_that_the_wheel_brings() -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["workers"]
    there = {path.relative_to(ROOT / "workers") for path in (ROOT / "workers").rglob("*.lua")}
    assert there == {path for path in there if any(path.match(pattern) for pattern in packaged)}
    assert len(there) > 10
