"""Who may change a job's record: the fencing token, on a real Redis."""

import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.jobs.job import Expired, State, Submission, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.records import Records

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

    def begin(self, execution: str) -> str:
        self.heartbeat(execution)
        return self.records.begin(self.id, execution, "a cpu")

    def finish(self, execution: str, state: State = State.SUCCEEDED) -> bool:
        return self.records.finish(self.id, execution, state, {"termination": "optimal"}, {"by": execution}, [])

    @property
    def state(self) -> State:
        return self.jobs.get(self.id, "ann").state


@pytest.fixture
def held(jobs: Jobs) -> Held:
    return Held(jobs)


def test_one_execution_after_another(held: Held) -> None:
    assert held.begin("one") == "begun"
    held.heartbeat("one", for_s=-1)  # silent for too long
    assert held.records.lose(held.id, "", True, ERROR) == "queued"
    assert held.begin("two") == "begun"
    assert not held.finish("one")
    assert not held.records.report(held.id, "one", "progress", {"iteration": 1})
    assert held.records.stop_requested(held.id, "one")
    assert held.finish("two")
    assert held.finish("two")  # once more, as after a lost answer: nothing changes
    assert held.jobs.result(held.id, "ann") == {"by": "two"}
    assert held.jobs.get(held.id, "ann").attempt == 2


def test_asking_again_after_a_lost_answer_changes_nothing(held: Held) -> None:
    for _ in range(2):
        assert held.begin("one") == "begun"
    assert held.jobs.get(held.id, "ann").attempt == 1
    assert held.finish("one")
    version = held.jobs.get(held.id, "ann").version
    assert held.finish("one")
    assert held.jobs.get(held.id, "ann").version == version


def test_nobody_takes_a_job_from_an_execution_that_lives(held: Held) -> None:
    assert held.begin("one") == "begun"
    assert held.begin("two") == "fenced"
    assert held.records.lose(held.id, "", True, ERROR) == "fenced"
    assert held.records.lose(held.id, "two", True, ERROR) == "fenced"
    assert held.state is State.RUNNING


def test_an_execution_that_rq_gave_up_cannot_begin(held: Held) -> None:
    held.heartbeat("late", for_s=-1)
    assert held.records.begin(held.id, "late", "a cpu") == "fenced"
    assert held.state is State.QUEUED


def test_what_has_ended_stays_so(held: Held) -> None:
    held.begin("one")
    held.finish("one")
    assert held.begin("two") == "ended"
    assert held.records.lose(held.id, "", True, ERROR) == "ended"
    held.records.cancel(held.id)
    assert held.state is State.SUCCEEDED
    assert held.records.begin("no such job", "one", "a cpu") == "unknown"


def test_a_cancelled_job_whose_worker_dies_is_cancelled(held: Held) -> None:
    held.begin("one")
    held.records.cancel(held.id)
    assert held.records.stop_requested(held.id, "one")
    assert held.records.lose(held.id, "one", True, ERROR) == "cancelled"
    assert held.state is State.CANCELLED


def test_no_attempts_left(held: Held) -> None:
    held.begin("one")
    assert held.records.lose(held.id, "one", False, ERROR) == "failed"
    assert held.jobs.get(held.id, "ann").error == ERROR


def test_expiry_leaves_a_tombstone_and_lets_go_of_blobs(jobs: Jobs) -> None:
    held = Held(jobs, result_ttl_s=0.05)
    held.begin("one")
    held.finish("one")
    digest = jobs.get(held.id, "ann").inputs["cost"]["blob"]
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


def test_deleting_a_running_job_forgets_it_when_it_ends(held: Held) -> None:
    held.begin("one")
    held.jobs.delete(held.id, "ann")
    with pytest.raises(UnknownJob):
        held.jobs.get(held.id, "ann")
    assert held.records.stop_requested(held.id, "one")
    assert held.finish("one")
    assert held.records.read(held.id) == {}


def test_a_redis_that_forgot_the_scripts_is_sent_them_again(held: Held) -> None:
    assert held.begin("one") == "begun"
    held.jobs._redis.script_flush()
    assert held.finish("one")


def test_each_script_is_a_file_that_the_wheel_brings() -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["workers"]
    there = {path.relative_to(ROOT / "workers") for path in (ROOT / "workers").rglob("*.lua")}
    assert there == {path for path in there if any(path.match(pattern) for pattern in packaged)}
    assert len(there) > 10
