"""Redis frozen or full, the store's disk full, while jobs run: each answer arrives, at its first attempt."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.disks import fill, small_disk
from tests.workers.service import OWNER, Service, allowed, eventually, running_service
from workers.jobs.job import Job, State, Submission


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("small") / "disk", "8m") as mounted:
        yield mounted


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("allot")
    for service in running_service(folder, cpu_workers=1, store_url=f"file://{disk}/blobs", lost_after_s=4.0):
        service.ended(service.long_qap(time_limit_s=0.5))  # what the first loads takes its time
        yield service


def frozen(service: Service, seconds: float) -> None:
    assert service.redis.pid is not None
    os.kill(service.redis.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(service.redis.pid, signal.SIGCONT)


def first_attempt(service: Service, job: Job, within_s: float = 30.0) -> Job:
    done = service.ended(job, within_s)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1), done
    return done


def test_a_frozen_redis_lengthens_no_solve_and_costs_no_attempt(service: Service) -> None:
    most_s = min(20.0, max(6.0, allowed(3.5)))
    job = service.long_qap(time_limit_s=3.0)
    service.running(job)
    frozen(service, max(7.0, 2 * most_s))  # longer than its worker may be silent, and than the solve may take
    assert first_attempt(service, job).timings_ms["solve"] < 1e3 * most_s
    assert service.jobs.result(job.id, OWNER)["termination"] == "time_limit"


def test_a_full_redis_takes_no_running_job_along(service: Service) -> None:
    job = service.long_qap(time_limit_s=6.0)
    service.running(job)
    service.jobs._redis.config_set("maxmemory", 1)
    time.sleep(7.0)
    service.jobs._redis.config_set("maxmemory", 0)
    first_attempt(service, job)


def test_a_redis_that_cannot_write_takes_no_running_job_along(service: Service) -> None:
    job = service.long_qap(time_limit_s=6.0)
    service.running(job)
    service.jobs._redis.config_set("min-replicas-to-write", 1)
    time.sleep(8.0)
    service.jobs._redis.config_set("min-replicas-to-write", 0)
    first_attempt(service, job)


def test_an_answer_waits_for_room_on_disk(service: Service, disk: Path) -> None:
    cost = np.random.default_rng(0).integers(0, 1000, (4, 8000))
    reference = service.jobs.store.put(cost, OWNER)
    ballast = fill(disk)
    job, _ = service.jobs.submit(Submission(OWNER, "lap", {"cost": reference}, queue="cpu"))
    eventually(lambda: (service.jobs.get(job.id, OWNER).progress or {}).get("phase") == "wait", 20)
    ballast.unlink()
    first_attempt(service, job)
