"""Deaths at the worst moments: each job is still solved once, and its owner sees one answer."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.workers.service import OWNER, Service, allowed, child_of, eventually, kill, running_service, runs
from workers.jobs.job import JobFailed, State


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    for service in running_service(tmp_path_factory.mktemp("allot"), cpu_workers=2):
        for job in [service.long_qap(time_limit_s=0.5) for _ in range(2)]:
            service.ended(job)  # what the first of a child loads takes its time
        yield service


def test_a_killed_child_is_replaced_and_its_job_runs_again(service: Service) -> None:
    job = service.long_qap(time_limit_s=min(30.0, allowed(3.0)))
    service.solving(job)
    kill(child_of(service.worker_of(job)))
    done = service.ended(job)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 2)
    states = [event.data["state"] for event in service.jobs.events(job.id, OWNER) if event.kind == "state"]
    assert states == ["queued", "running", "queued", "running", "succeeded"]


def test_children_killed_while_idle_cost_no_attempt(service: Service) -> None:
    for pid in service.supervisor.alive():
        kill(child_of(psutil.Process(pid)))
    done = service.ended(service.lap(seed=3))
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)


def test_what_is_handed_to_a_worker_while_its_child_is_replaced_is_not_taken_for_lost(tmp_path: Path) -> None:
    """A worker that is listed as waiting finds its child dead, and the next one is slow to start."""
    for service in running_service(tmp_path, 1, lost_after_s=3.0, heartbeat_s=0.2, janitor_s=0.2):
        (pid,) = service.supervisor.alive()
        worker = psutil.Process(pid)
        service.ended(service.lap())
        first = child_of(worker)
        kill(first)
        slow = child_of(worker)
        os.kill(slow.pid, signal.SIGSTOP)
        job = service.lap(seed=3)
        time.sleep(4.0)
        os.kill(slow.pid, signal.SIGCONT)
        done = service.ended(job)
        assert (done.state, done.attempt) == (State.SUCCEEDED, 1)


def test_a_child_that_dies_as_it_starts_costs_the_job_that_waits_for_it_no_attempt(tmp_path: Path) -> None:
    for service in running_service(tmp_path, cpu_workers=1):
        (pid,) = service.supervisor.alive()
        worker = psutil.Process(pid)
        first = child_of(worker)
        service.ended(service.lap())
        os.kill(pid, signal.SIGSTOP)  # it is listed as waiting, and finds out after it has been handed the job
        kill(first)
        job = service.lap(seed=3)
        os.kill(pid, signal.SIGCONT)
        kill(child_of(worker))
        done = service.ended(job)
        assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
        assert service.supervisor.restarts() == 1


def test_a_killed_worker_takes_its_child_along_and_its_job_runs_elsewhere(service: Service) -> None:
    job = service.long_qap(time_limit_s=min(30.0, allowed(3.0)))  # still runs when it is looked at a second time
    service.running(job)
    worker = service.worker_of(job)
    child = child_of(worker)
    kill(worker)
    start = time.monotonic()
    eventually(lambda: not runs(child), 5)
    again = service.running(job, attempt=2, within_s=15)
    assert time.monotonic() - start < allowed(10)
    assert service.worker_of(again).pid != worker.pid
    assert service.ended(job).state is State.SUCCEEDED


def test_worker_and_child_killed_together(service: Service) -> None:
    service.ready()
    job = service.long_qap()
    service.solving(job)
    worker = service.worker_of(job)
    for process in (*worker.children(), worker):
        kill(process)
    service.solving(job, attempt=2, within_s=10)
    service.jobs.cancel(job.id, OWNER)
    assert service.ended(job).attempt == 2


def test_a_job_that_takes_its_process_down_each_time_is_quarantined(service: Service) -> None:
    service.ready()
    job = service.long_qap()
    for attempt in (1, 2, 3):
        service.solving(job, attempt)
        kill(child_of(service.worker_of(job)))
    failed = service.ended(job)
    assert (failed.state, failed.attempt) == (State.FAILED, 3)
    assert failed.error is not None
    assert failed.error["code"] == "worker-lost"
    assert "signal 9" in failed.error["detail"]
    with pytest.raises(JobFailed, match="died at every attempt"):
        service.jobs.result(job.id, OWNER)
    assert service.ended(service.lap()).state is State.SUCCEEDED  # and the queue goes on


def test_a_worker_that_wakes_up_late_cannot_overwrite(service: Service) -> None:
    service.ready()
    job = service.long_qap(time_limit_s=min(30.0, allowed(3.0)))  # still runs when it is looked at a second time
    service.running(job)
    worker = service.worker_of(job)
    child = child_of(worker)
    for process in (worker, child):
        os.kill(process.pid, signal.SIGSTOP)
    service.running(job, attempt=2, within_s=15)
    for process in (worker, child):
        os.kill(process.pid, signal.SIGCONT)
    done = service.ended(job)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 2)
    assert service.jobs.result(job.id, OWNER)["attempt"] == 2
    time.sleep(0.5)
    assert service.jobs.get(job.id, OWNER).version == done.version


def test_a_job_between_queue_and_worker_comes_back(service: Service) -> None:
    service.ready()
    for place in service.supervisor._places:  # nobody may take it from the queue before it is hidden
        assert place.process is not None
        os.kill(place.process.pid, signal.SIGSTOP)
    job = service.lap(seed=5)
    redis = service.jobs._redis
    moved = redis.lmove("rq:queue:cpu", "rq:queue:cpu:intermediate", "LEFT", "RIGHT")
    for place in service.supervisor._places:
        assert place.process is not None
        os.kill(place.process.pid, signal.SIGCONT)
    if moved is not None:  # else a worker's own blocked pop was faster, and it has the job
        assert moved == job.id
    assert service.ended(job, 15).state is State.SUCCEEDED


def test_redis_killed_and_restarted_in_the_middle_of_a_job(service: Service) -> None:
    service.ready()
    job = service.long_qap(time_limit_s=4.0)
    waiting = [service.lap(seed=seed) for seed in range(3)]
    service.running(job)
    pid = service.redis.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    service.redis.stop()
    time.sleep(0.5)
    assert service.redis.start() == service.settings.redis_url
    assert service.ended(job, 40).state is State.SUCCEEDED
    for other in waiting:
        assert service.ended(other, 40).state is State.SUCCEEDED
